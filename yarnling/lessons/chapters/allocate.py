"""Chapter 4: allocate, the heartbeat of ApplicationMasters, and headroom."""

from __future__ import annotations

from yarn.protocols.master import AllocateResponse
from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.simulation.trace_file import RunTrace

SIZE = Resource(1024, 1)
UNTIL_S = 30.0
SHOWN_S = 5.0


def set_up(count: int, trace: RunTrace | None = None) -> Stage:
    stage = Stage(nodes=2, trace=trace)
    stage.submit(2.0, "ann", (Wanted(count, SIZE),))
    return stage


def play(count: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(count, trace)
    narrator = Narrator(stage, participants(stage, "ann"))
    stage.run(2.4)
    narrator.skip()
    narrator.say(
        "Two nodes of 8192 MB; ann's ApplicationMaster (AM) has just been started on n1. It registers, and requests "
        f"{count} containers of {SIZE.memory_mb} MB with its first allocate call."
    )
    stage.run(SHOWN_S)
    narrator.show(kinds=())
    narrator.say(
        "The first reply brings no containers: allocate only notes the requests. Containers are placed when a "
        "NodeManager's heartbeat arrives, at most one for each heartbeat if the request names no node (off-switch). "
        "The AM learns of them with its next allocate call."
    )
    stage.run_until(lambda: len(_received(stage)) >= count, UNTIL_S)
    narrator.skip()
    replies = _with_containers(stage)
    narrator.say("All replies that brought containers:")
    rows = [
        (f"{at_ms / 1000:.3f} s", reply.response_id, len(reply.allocated), f"{reply.headroom.memory_mb} MB")
        for at_ms, reply in replies
    ]
    narrator.table(("time", "response id", "containers", "headroom"), *rows)
    return _concluded(stage, narrator, count)


def _concluded(stage: Stage, narrator: Narrator, count: int) -> Story:
    got = len(_received(stage))
    verdict = stage.verdict("ann") if got < count else ""
    if verdict:
        narrator.say(f"{got} of {count} containers are allocated. yarnling explain says of the next one: it {verdict}.")
    at_ms, _, last = stage.account.allocate_replies[-1] if got < count else _last_with_containers(stage)
    measured: dict[str, int | str] = {"containers": got, "headroom_mb": last.headroom.memory_mb, "at_ms": at_ms}
    free_mb = sum(node.unallocated.memory_mb for node in stage.nodes())
    used_mb = stage.use("ann").used.memory_mb
    why = [
        f"ann holds {used_mb} MB: her AM of 1024 MB and {got} containers of {SIZE.memory_mb} MB. {free_mb} MB are "
        "free in the cluster.",
        "Headroom is the least of three: what her user limit leaves, what the queue's maximum leaves, and what is "
        "free in the cluster. Here she is alone in the only queue, so the free memory decides.",
    ]
    if got < count:
        why.append(f"The other {count - got} requests stay with the scheduler; no error is reported to the AM.")
    return narrator.story(
        Question(
            f"ann requests {count} containers of 1024 MB at once. How many does she get without anything ending, and "
            "which headroom does the last of these replies report?",
            f"{got} containers, headroom {last.headroom.memory_mb} MB",
            tuple(why),
        ),
        measured,
    )


def _with_containers(stage: Stage) -> list[tuple[int, AllocateResponse]]:
    return [(at_ms, reply) for at_ms, _, reply in stage.account.allocate_replies if reply.allocated]


def _last_with_containers(stage: Stage) -> tuple[int, str, AllocateResponse]:
    return next(entry for entry in reversed(stage.account.allocate_replies) if entry[2].allocated)


def _received(stage: Stage) -> list[object]:
    return [each for _, reply in _with_containers(stage) for each in reply.allocated]


LESSON = Lesson(
    4,
    "allocate",
    "Allocate and headroom: how an application gets containers",
    (
        "An AM calls allocate once a second. The call carries what the AM wants, the reply carries what it has got "
        "since the last call. The two are not the same: placing containers takes heartbeats of NodeManagers in "
        "between.",
        "Each reply also reports the headroom: how much more the application could get now. An AM can plan by it: a "
        "MapReduce AM that sees too little headroom for its maps stops reduces to make room for them.",
    ),
    {
        "ApplicationMaster (AM)": "the first container of each application; it requests the others and starts them.",
        "resource request": "so many containers of this size, on this node, in this rack or anywhere (*).",
        "off-switch": "the placement of a container on a node that was not asked for, neither itself nor its rack.",
        "headroom": "what the application could still get now, as reported by each allocate reply.",
    },
    Number("containers", 6, 1, 100, "containers of 1024 MB that ann requests", (6, 15, 20)),
    set_up,
    play,
    (
        "Hadoop: OpportunisticContainerAllocatorAMService and DefaultAMSProcessor (allocate), CapacityHeadroomProvider",
        "here: rm/core/application_masters.py, rm/scheduler/events/allocate.py, rm/scheduler/capacity/limits.py "
        "(headroom)",
    ),
)
