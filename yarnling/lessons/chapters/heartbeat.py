"""Chapter 2: heartbeats, response ids, and a node that falls silent."""

from __future__ import annotations

from rm.core.events import NodeHeartbeat
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse
from yarn.states import NodeState
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.simulation.process import run
from yarnling.simulation.trace_file import RunTrace

REPEAT_S = 3.0
KILL_S = 6.0


def set_up(expiry_s: int, trace: RunTrace | None = None) -> Stage:
    stage = Stage(nodes=2, settings={"yarn.nm.liveness-monitor.expiry-interval-ms": str(1000 * expiry_s)}, trace=trace)
    stage.happening(KILL_S, "NM n2", "NM n2 is killed: it sends nothing any more", lambda: _kill(stage))
    return stage


def play(expiry_s: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(expiry_s, trace)
    narrator = Narrator(stage, participants(stage))
    narrator.say("Both NodeManagers register, and then send a heartbeat every second. Look at the response ids.")
    stage.run(REPEAT_S - 0.001)
    narrator.show(every=True)
    first, second = _repeat(stage, narrator)
    narrator.say(
        "Heartbeats go on. Then the NodeManager of n2 is killed. Nobody informs the RM: its heartbeats just stop."
    )
    stage.run(KILL_S)
    narrator.show()
    lost_ms = _wait_until_lost(stage, expiry_s)
    narrator.show()
    last_ms = _last_heartbeat_ms(stage)
    silent_s = (lost_ms - last_ms) / 1000
    narrator.table(
        ("last heartbeat of n2", "n2 becomes LOST", "silence"),
        (f"{last_ms / 1000:.3f} s", f"{lost_ms / 1000:.3f} s", f"{silent_s:.3f} s"),
    )
    measured: dict[str, int | str] = {"last_heartbeat_ms": last_ms, "lost_ms": lost_ms, "repeated_id": second}
    return narrator.story(_question(expiry_s, last_ms, lost_ms, (first, second)), measured)


def _kill(stage: Stage) -> None:
    stage.cluster.machine(2).kill(containers=True)


def _repeat(stage: Stage, narrator: Narrator) -> tuple[int, int]:
    """Send the last heartbeat of n1 again; returns the response ids of the lost reply and of the repeated one."""
    node_id = stage.node_id(1)
    first = stage.view.last_response_id(node_id)
    request = NodeHeartbeatRequest(node_id, first - 1)
    replies: list[NodeHeartbeatResponse] = []

    def got(reply: object) -> None:
        assert isinstance(reply, NodeHeartbeatResponse)
        replies.append(reply)

    narrator.say(
        f"Now suppose that the reply with response id {first} never reached n1. Then n1 sends the same heartbeat "
        f"again, still with response id {first - 1}:"
    )
    run(stage.cluster.rm.ask(lambda call: NodeHeartbeat(call, request)), got)
    narrator.show(every=True)
    second = replies[0].response_id
    narrator.say(
        f"The RM sees {first - 1} where it expects {first}: one behind means that its reply was lost. It sends that "
        f"reply again ({second}) and does nothing else, so that a repeated message has no second effect."
    )
    return first, second


def _wait_until_lost(stage: Stage, expiry_s: int) -> int:
    def is_lost() -> bool:
        return stage.view.node_state(stage.node_id(2)) == NodeState.LOST.name

    came = stage.run_until(is_lost, KILL_S + 2 * expiry_s + 10)
    assert came, "a silent node expires"
    return next(told.at_ms for told in stage.account.told if told.change is not None and told.change.target == "LOST")


def _last_heartbeat_ms(stage: Stage) -> int:
    return max(told.at_ms for told in stage.account.told if told.rpc and told.place == "NM n2")


def _question(expiry_s: int, last_ms: int, lost_ms: int, ids: tuple[int, int]) -> Question:
    silent_s = (lost_ms - last_ms) / 1000
    return Question(
        f"n2 is killed {KILL_S:.3f} s after the start, and the expiry interval is {expiry_s} s. When does the RM "
        "declare n2 LOST?",
        f"at {lost_ms / 1000:.3f} s",
        (
            f"The clock of n2 starts at its last heartbeat ({last_ms / 1000:.3f} s), not when it is killed "
            f"({KILL_S:.3f} s): the RM cannot know of that.",
            "The RM looks for silent nodes from time to time (every third of the interval), so it found n2 after "
            f"{silent_s:.3f} s of silence: {silent_s - expiry_s:.3f} s more than the interval.",
            f"The repeated heartbeat was answered with response id {ids[1]}, the same as before ({ids[0]}).",
        ),
    )


LESSON = Lesson(
    2,
    "heartbeat",
    "Heartbeat: how the RM knows that a node lives",
    (
        "Once a second each NodeManager reports its containers, and the reply contains orders. Apart from starting "
        "AMs, the RM never calls a NodeManager: its orders wait for the next heartbeat. The heartbeat is also the "
        "only sign that the node lives. If none comes for the expiry interval (10 minutes in Hadoop's defaults), the "
        "RM declares the node LOST and everything on it failed.",
        "Each reply has a response id, and each heartbeat carries the id of the last reply that arrived. So both "
        "sides know whether a reply was lost.",
    ),
    {
        "heartbeat": "a call that is made at regular intervals; that it comes is itself the message.",
        "response id": "the number of a reply; the next heartbeat carries it back.",
        "LOST": "the state of a node from which no heartbeat came for the expiry interval.",
        "RESYNC": "the order to register again, for a node whose response id does not fit.",
    },
    Number("expiry", 10, 3, 600, "seconds of silence (yarn.nm.liveness-monitor.expiry-interval-ms)", (10, 30, 3)),
    set_up,
    play,
    (
        "Hadoop: ResourceTrackerService.nodeHeartbeat, NMLivelinessMonitor (AbstractLivelinessMonitor)",
        "here: rm/core/resource_tracker.py (heartbeat), rm/core/liveness.py",
    ),
)
