"""Chapter 7: a container that is too large for every free space reserves a node."""

from __future__ import annotations

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.settings import SCHEDULER
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.run.names import node
from yarnling.simulation.account import Told
from yarnling.simulation.trace_file import RunTrace

SMALL = Resource(1024, 1)
BOB_S = 12.0
UNTIL_S = 90.0


def set_up(big_mb: int, trace: RunTrace | None = None) -> Stage:
    stage = Stage(nodes=2, settings={f"{SCHEDULER}root.default.minimum-user-limit-percent": "50"}, trace=trace)
    stage.submit(2.0, "ann", (Wanted(13, SMALL, seconds=15), Wanted(60, SMALL, seconds=8)))
    stage.submit(BOB_S, "bob", (Wanted(1, Resource(big_mb, 1), seconds=8),))
    return stage


def play(big_mb: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(big_mb, trace)
    narrator = Narrator(stage, participants(stage, "bob"))
    narrator.say(
        "Two nodes of 8192 MB. ann fills them with containers of 1024 MB that end after a while, and has more "
        "waiting. Only bob's AM is drawn."
    )
    stage.run(BOB_S - 0.001)
    narrator.skip()
    _free(stage, narrator)
    narrator.say(f"Now bob submits an application: its AM of 1024 MB, and one container of {big_mb} MB.")
    stage.run_until(lambda: bool(_decisions(stage)), UNTIL_S)
    narrator.show(kinds=("RMApp",), hidden=("startContainers",))
    _free(stage, narrator)
    free_mb = sum(node.unallocated.memory_mb for node in stage.nodes())
    if not _big(stage):
        narrator.say("From now on, what becomes free on the reserved node is kept for bob.")
        stage.run_until(lambda: bool(_big(stage)), UNTIL_S)
        narrator.show(kinds=(), hidden=("startContainers",))
        _free(stage, narrator)
    return _concluded(stage, narrator, big_mb, free_mb)


def _decisions(stage: Stage) -> list[Told]:
    """The scheduler's decision on bob's container."""
    return [told for told in stage.account.told if told.is_decision and "bob-c" in told.text]


def _big(stage: Stage) -> list[object]:
    return list(stage.containers("bob"))


def _free(stage: Stage, narrator: Narrator) -> None:
    nodes = [stage.node(number) for number in (1, 2)]
    narrator.table(
        ("node", "used", "free", "reserved for"),
        *(
            (
                f"n{number}",
                f"{node.allocated.memory_mb} MB",
                f"{node.unallocated.memory_mb} MB",
                "" if node.reserved is None else stage.names.container(node.reserved.container_id),
            )
            for number, node in enumerate(nodes, 1)
        ),
    )


def _concluded(stage: Stage, narrator: Narrator, big_mb: int, free_mb: int) -> Story:
    first, last = _decisions(stage)[0], _decisions(stage)[-1]
    place = first.text.split(" on ")[1].split(":")[0]
    waited_s = (last.at_ms - first.at_ms) / 1000
    if first is last:
        answer = f"at once on {place}, without a reservation"
        why: tuple[str, ...] = (f"A container of {big_mb} MB fitted into what was free on {place} at its turn.",)
    else:
        answer = f"on {place}, {waited_s:.3f} s after the scheduler has reserved {place} for it"
        why = _reasons(stage, big_mb, free_mb, (first.at_ms, last.at_ms))
    return narrator.story(
        Question(
            f"On which node does bob's container of {big_mb} MB run, and how long was that node reserved?", answer, why
        ),
        {"reserved_ms": first.at_ms, "placed_ms": last.at_ms, "node": place},
    )


def _reasons(stage: Stage, big_mb: int, free_mb: int, times_ms: tuple[int, int]) -> tuple[str, ...]:
    reserved_ms, placed_ms = times_ms
    place = node(stage.containers("bob")[0].node_id)
    maximum_mb = stage.queue("default").maximum.memory_mb
    return (
        f"At {reserved_ms / 1000:.3f} s {free_mb} MB were free in the whole cluster, but no node had {big_mb} MB. So "
        f"the scheduler reserved {place}: nobody else gets what becomes free there.",
        "Why not earlier? A reservation counts as use of the queue. Until containers of ann had ended, the queue "
        f"would have been above its maximum ({maximum_mb} MB) with {big_mb} MB more.",
        f"At {placed_ms / 1000:.3f} s enough was free on {place}, and the reservation became a container. Until then "
        "the free part of the node was idle: a reservation costs use, and keeps large containers from waiting "
        "forever.",
    )


LESSON = Lesson(
    7,
    "reservation",
    "Reservation: how a large container gets its turn",
    (
        "Small containers fit into every gap, large ones do not. If the scheduler only ever filled gaps, a large "
        "container would wait forever on a busy cluster. So when it is the turn of a container that does not fit on "
        "a node, the scheduler reserves the node for it.",
    ),
    {
        "reservation": "a node is kept for one waiting container: until it fits, nobody else gets the node's "
        "free space.",
        "starvation": "that a request waits forever because others always get there first.",
    },
    Number("big", 5120, 1024, 6144, "MB of bob's container", (5120, 6144, 1024)),
    set_up,
    play,
    (
        "Hadoop: RegularContainerAllocator (RESERVED), FiCaSchedulerApp.reserve, "
        "CapacityScheduler.allocateFromReservedContainer",
        "here: rm/scheduler/placement/allocator.py, rm/scheduler/placement/visit.py",
    ),
)
