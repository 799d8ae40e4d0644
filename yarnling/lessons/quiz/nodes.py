"""Questions about nodes: registration, response ids, silence."""

from __future__ import annotations

import random

from rm.core.events import NodeHeartbeat
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse
from yarn.resource import Resource
from yarn.states import NodeAction, NodeState
from yarnling.lessons.quiz.question import QuizQuestion
from yarnling.lessons.scene.stage import Stage
from yarnling.lessons.scene.story import Rows, Text
from yarnling.simulation.process import run

CHOICES = 4


def register(draw: random.Random) -> QuizQuestion:
    minimum_mb = draw.choice((512, 1024, 2048))
    sizes = [Resource(draw.choice((256, 512, 1024, 1536, 2048, 4096, 8192)), 4) for _ in range(draw.randint(2, 4))]
    settings = {"yarn.scheduler.minimum-allocation-mb": str(minimum_mb)}
    stage = Stage(sizes=sizes, settings=settings, encode=False)
    stage.run(3)
    total_mb = stage.view.cluster_resource().memory_mb
    replies = [told for told in stage.account.told if told.is_reply and "register" in told.rpc]
    orders = {told.target.removeprefix("NM "): told.text.split(":")[0] for told in replies}
    names = [f"n{number}" for number in range(1, len(sizes) + 1)]
    rows = tuple((name, f"{size.memory_mb} MB") for name, size in zip(names, sizes, strict=True))
    return QuizQuestion(
        (
            Text(f"yarn.scheduler.minimum-allocation-mb is {minimum_mb}. These machines register:"),
            Rows(("node", "memory"), rows),
        ),
        "How much memory (MB) does the cluster have then?",
        f"{total_mb} MB",
        (
            *(
                f"{name} with {size.memory_mb} MB got {orders[name]}"
                + ("." if orders[name] == "NORMAL" else f": less than {minimum_mb} MB.")
                for name, size in zip(names, sizes, strict=True)
            ),
            f"The nodes that stay have {total_mb} MB.",
        ),
    )


def heartbeat(draw: random.Random) -> QuizQuestion:
    stage = Stage(nodes=2, encode=False)
    stage.run(draw.uniform(5, 20))
    node_id = stage.node_id(1)
    last = stage.view.last_response_id(node_id)
    sent = last - draw.choice((0, 1, 1, 2, 3))
    replies: list[NodeHeartbeatResponse] = []

    def got(reply: object) -> None:
        assert isinstance(reply, NodeHeartbeatResponse)
        replies.append(reply)

    run(stage.cluster.rm.ask(lambda call: NodeHeartbeat(call, NodeHeartbeatRequest(node_id, sent))), got)
    reply = replies[0]
    answer = str(reply.response_id) if reply.action is NodeAction.NORMAL else reply.action.name
    if reply.action is not NodeAction.NORMAL:
        why = f"{sent} is {last - sent} behind {last}: only the last reply can be repeated. n1 must register again."
    elif sent == last:
        why = f"{sent} is the id of the RM's last reply: all is well, and the next reply is {reply.response_id}."
    else:
        why = f"{sent} is one behind {last}: the reply was lost, so the RM repeats it and does nothing else."
    return QuizQuestion(
        (Text(f"The RM's last reply to a heartbeat of n1 had the response id {last}."),),
        f"n1 sends a heartbeat with response id {sent}. Which response id has the reply, or which order (RESYNC, "
        "SHUTDOWN) is in it?",
        answer,
        (why,),
    )


def lost(draw: random.Random) -> QuizQuestion:
    expiry_ms = 1000 * draw.choice((3, 6, 9, 12, 30))
    stage = Stage(
        nodes=draw.randint(2, 3),
        settings={"yarn.nm.liveness-monitor.expiry-interval-ms": str(expiry_ms)},
        encode=False,
    )
    stage.run(draw.uniform(4, 9))
    stage.cluster.machine(2).kill(containers=True)
    killed_ms = stage.now_ms
    stage.run(killed_ms / 1000 + 0.1)
    heartbeats = [told for told in stage.account.told if told.rpc and told.place == "NM n2"]
    last_ms = heartbeats[-1].at_ms
    came = stage.run_until(lambda: stage.view.node_state(stage.node_id(2)) == NodeState.LOST.name, 120)
    assert came, "a silent node expires"
    lost_ms, period_ms = stage.now_ms, expiry_ms // 3
    first = draw.randint(0, CHOICES - 1)
    times = [lost_ms + (index - first) * period_ms for index in range(CHOICES)]
    choices = tuple(f"{at_ms / 1000:.3f} s" for at_ms in times)
    silences = [f"at {at_ms / 1000:.3f} s n2 has been silent for {(at_ms - last_ms) / 1000:.3f} s" for at_ms in times]
    return QuizQuestion(
        (
            Text(
                f"The expiry interval is {expiry_ms // 1000} s; the RM looks for silent nodes every third of it. The "
                f"last heartbeat of n2 arrived at {last_ms / 1000:.3f} s; its NodeManager was killed at "
                f"{killed_ms / 1000:.3f} s. The RM looks, among other times, at {', '.join(choices)}."
            ),
        ),
        "When does the RM declare n2 LOST?",
        choices[first],
        (
            f"It is LOST at the first look at which its silence is longer than {expiry_ms / 1000:.0f} s.",
            f"When the RM looks, {'; '.join(silences[max(0, first - 1) : first + 1])}.",
        ),
        choices,
    )
