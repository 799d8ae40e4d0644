"""Chapter 20: a large container among small ones is placed, gets a node by reservation, or others are preempted."""

from __future__ import annotations

from typing import NamedTuple

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.settings import MONITOR, SCHEDULER, preemption, queues
from yarnling.lessons.scene.stage import AM_SIZE, Stage
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Bar, Bars
from yarnling.run.names import node
from yarnling.simulation.trace_file import RunTrace

SMALL = Resource(1024, 1)
NODE_MB, LARGER_NODE_MB = 8192, 16384
SMALL_MB = 24576
"""The most that ann's queue may use: 6144 MB of each of the four nodes."""
BOB_S = 20.0
UNTIL_S = 80.0
LASTS_S = 30
HALF = {"capacity": "50", "user-limit-factor": "2"}
SETTINGS = {
    **preemption({"total_preemption_per_round": "1", "natural_termination_factor": "1"}),
    **queues({"a": HALF, "b": HALF}),
}


class Way(NamedTuple):
    """A cluster on which the same large container waits. `lasts_s`: of ann's containers; None: they never end."""

    name: str
    text: str
    sizes: tuple[Resource, ...]
    lasts_s: int | None = None
    settings: tuple[tuple[str, str], ...] = ()


class LargeWait(NamedTuple):
    """The large container in one way, in ms since its request; None: not until the end."""

    reserved_ms: int | None
    reserved_on: str
    placed_ms: int | None
    placed_on: str
    killed: int


BY_RESERVATION = ((f"{MONITOR}select_based_on_reserved_containers", "true"),)
EQUAL = (Resource(NODE_MB, 8),) * 4
WAYS = (
    Way("waits", "nothing ends, and preemption is on", EQUAL),
    Way("placed", f"nothing ends; n4 has {LARGER_NODE_MB} MB", (*EQUAL[:3], Resource(LARGER_NODE_MB, 16))),
    Way("reserved", f"each of ann's containers ends after {LASTS_S} s", EQUAL, LASTS_S),
    Way(
        "preempted for",
        "nothing ends; preemption looks at reservations",
        EQUAL,
        None,
        BY_RESERVATION,
    ),
)


def set_up(size_mb: int, trace: RunTrace | None = None, way: Way = WAYS[-1]) -> Stage:
    share = 100 * SMALL_MB / sum(size.memory_mb for size in way.sizes)
    settings = {**SETTINGS, **dict(way.settings), f"{SCHEDULER}root.a.maximum-capacity": f"{share:g}"}
    stage = Stage(sizes=way.sizes, settings=settings, trace=trace)
    stage.submit(2.0, "ann", (Wanted(200, SMALL, seconds=way.lasts_s),), queue="a")
    stage.submit(BOB_S, "bob", (Wanted(1, Resource(size_mb, 1)),), queue="b")
    return stage


def play(size_mb: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(size_mb, trace)
    narrator = Narrator(stage, ("RM", "AM ann", "AM bob"))
    narrator.say(
        f"Four nodes of {NODE_MB} MB. Queues a and b are guaranteed half each. ann wants more containers of "
        f"{SMALL.memory_mb} MB than there are, but a may use {SMALL_MB} MB at most: she holds 6144 MB on each node."
    )
    stage.run(BOB_S - 0.001)
    narrator.skip()
    _nodes(stage, narrator)
    free_mb = [each.unallocated.memory_mb for each in stage.nodes()]
    narrator.say(
        f"{sum(free_mb)} MB are free in all, {max(free_mb)} MB on one node at most. At {BOB_S:.0f} s bob submits an "
        f"application with one container of {size_mb} MB to b, which has far less than its guarantee. Preemption is "
        "on, and may take all that it needs in one round; ann's AM has 15 s to react. With select_based_on_"
        "reserved_containers (off by default) it chooses containers on the node that is reserved."
    )
    stage.run_until(lambda: bool(stage.containers("bob")), UNTIL_S)
    narrator.show(kinds=(), hidden=("getNewApplication", "startContainers", "registerApplicationMaster"))
    seen = [_seen(stage), *(_run(size_mb, way) for way in WAYS[:-1])]
    seen = [*seen[1:], seen[0]]
    _compare(narrator, seen)
    return narrator.story(_question(size_mb, seen, max(free_mb)), _measured(seen))


def _run(size_mb: int, way: Way) -> LargeWait:
    stage = set_up(size_mb, way=way)
    stage.run_until(lambda: bool(stage.containers("bob")), UNTIL_S)
    return _seen(stage)


def _seen(stage: Stage) -> LargeWait:
    """The fate of bob's container, from the allocate call on that requested it."""
    requested_ms = next(at_ms for at_ms, who, _ in stage.account.allocate_replies if who == "AM bob")
    decided = {
        verb: next((told for told in stage.account.told if told.text.startswith(f"{verb} bob-c")), None)
        for verb in ("reserves", "allocates")
    }
    times = [None if told is None else told.at_ms - requested_ms for told in decided.values()]
    places = ["" if told is None else told.text.split(" on ")[1].split(":")[0] for told in decided.values()]
    killed = sum(step == "killed" for _, _, step in stage.account.preempted)
    return LargeWait(times[0], places[0], times[1], places[1], killed)


def _nodes(stage: Stage, narrator: Narrator) -> None:
    narrator.table(
        ("node", "used", "free"),
        *(
            (node(each.node_id), f"{each.allocated.memory_mb} MB", f"{each.unallocated.memory_mb} MB")
            for each in stage.nodes()
        ),
    )


def _compare(narrator: Narrator, seen: list[LargeWait]) -> None:
    narrator.say("The same container in four clusters. Times are since the call that requested it:")
    rows = []
    for way, each in zip(WAYS, seen, strict=True):
        reserved = "" if each.reserved_ms is None else f"{each.reserved_on} after {each.reserved_ms / 1000:.3f} s"
        runs = f"{_waits(each)} on {each.placed_on}" if each.placed_on else _waits(each)
        rows.append((way.name, way.text, reserved, runs, each.killed))
    narrator.table(("", "the cluster", "reserved", "runs", "killed"), *rows)
    narrator.draw(Bars("Time from the request to the start", "s", tuple(map(_bar, WAYS, seen))))


def _bar(way: Way, seen: LargeWait) -> Bar:
    """The time that the container waits; the whole time that it was watched, if it did not run."""
    if seen.placed_ms is None:
        return Bar(f"{way.name} (never)", UNTIL_S - BOB_S)
    return Bar(way.name, seen.placed_ms / 1000)


def _waits(seen: LargeWait) -> str:
    return "never" if seen.placed_ms is None else f"after {seen.placed_ms / 1000:.3f} s"


def _measured(seen: list[LargeWait]) -> dict[str, int | str]:
    measured: dict[str, int | str] = {}
    for way, each in zip(WAYS, seen, strict=True):
        name = way.name.partition(" ")[0]
        measured |= {f"{name}_ms": -1 if each.placed_ms is None else each.placed_ms, f"{name}_killed": each.killed}
    return measured


def _question(size_mb: int, seen: list[LargeWait], gap_mb: int) -> Question:
    outcomes = (f"{way.name}: {_waits(each)}" for way, each in zip(WAYS, seen, strict=True))
    return Question(
        f"In which of the four clusters does bob's container of {size_mb} MB run, and after how long?",
        "; ".join(outcomes),
        (
            *((_fits(size_mb, gap_mb),) if size_mb <= gap_mb else _reasons(size_mb, seen, gap_mb)),
            "Often written: usual scheduling, reservation and preemption are all unfriendly to large containers. "
            "Hadoop 3.4.1: usual scheduling is, and so is preemption by default; a reservation brings the container "
            "what ends on its node, and with select_based_on_reserved_containers preemption clears that node.",
        ),
    )


def _fits(size_mb: int, gap_mb: int) -> str:
    return f"{size_mb} MB fit into the {gap_mb} MB that are free on each node: the next heartbeat of a node places it."


def _reasons(size_mb: int, seen: list[LargeWait], gap_mb: int) -> tuple[str, ...]:
    waits, placed, reserved, preempted = seen
    by_default = "takes nothing"
    if waits.killed:
        by_default = f"takes {waits.killed} container of ann, so that a node can be reserved, and then nothing more"
    return (
        f"No node of {NODE_MB} MB has {size_mb} MB free: the first that sends a heartbeat is reserved, once a's and "
        "b's use and the reservation are not more than the cluster has.",
        f"placed: {placed.placed_on} had room. At its heartbeat the container was placed there, and the reservation "
        f"of {placed.reserved_on} was dropped.",
        f"reserved: what ended on {reserved.reserved_on} was kept for bob, until it was enough. If nothing ends, this "
        "takes forever.",
        f"waits: preemption {by_default}. By default it counts a reservation as used, so b seems to have what it asks "
        "for; and it looks at sums, not at nodes.",
        f"preempted for: {_by_reservation(size_mb, preempted, gap_mb)}",
    )


def _by_reservation(size_mb: int, seen: LargeWait, gap_mb: int) -> str:
    if seen.placed_ms is not None:
        return (
            f"containers of ann on {seen.placed_on} were chosen, announced to her AM and killed 15 s later, so that "
            f"the reserved container fitted: {seen.killed} in all."
        )
    # b uses an AM and the reservation, and its request is still there: so much would it use if it had all.
    budget_mb = max(0, SMALL_MB + AM_SIZE.memory_mb + 2 * size_mb - len(EQUAL) * NODE_MB)
    return (
        f"nothing is taken. The policy counts free memory wherever it is, and would therefore take {budget_mb} MB "
        f"from a, but the reserved node lacks {size_mb - gap_mb} MB: too little would be as bad as nothing."
    )


LESSON = Lesson(
    20,
    "large",
    "Large containers: one container, three ways to run",
    (
        "The memory that is free in a cluster is spread over its nodes, a little on each. Small containers can use "
        "it, a large one cannot. There are three ways for it to run all the same: a node has enough room, a node is "
        "reserved and collects what ends there, or containers on that node are preempted. This lesson shows one "
        "container in all of them, beside the case in which none helps.",
    ),
    {
        "fragmentation": "the free memory would be enough, but no node has it in one piece.",
        "reservation": "a node is kept for one waiting container; it counts as used by the container's queue.",
        "select_based_on_reserved_containers": "let preemption choose containers on a reserved node, so many that "
        "the reserved container fits; by default it looks only at sums.",
    },
    Number("size", 6144, 1024, NODE_MB, "MB of bob's container", (6144, 4096, 8192, 2048)),
    set_up,
    play,
    (
        "Hadoop: RegularContainerAllocator, ReservedContainerCandidatesSelector, and PreemptableResourceCalculator, "
        "which takes reservations off what waits",
        "recorded with Hadoop 3.4.1: tests/scenarios/scripts/b7-big-container-preempting-plain.txt and "
        "b7-big-container-preempting-surgical.txt, and with 4096 MB in tests/conformance/recordings/ "
        "case-b7-big-container-of-4-gb-plain and -surgical",
        "here: rm/scheduler/placement/allocator.py, rm/scheduler/preemption/policy.py; lessons 7 and 8",
    ),
)
