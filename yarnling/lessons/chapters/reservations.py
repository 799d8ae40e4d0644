"""Chapter 21: a reservation is filled, dropped or moved; a node has one at most; and the scheduler keeps looking."""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from yarnling.lessons.chapters.reservation_cases import BOB_S, CASES, GB, ReservationCase
from yarnling.lessons.scene.lesson import Lesson, Narrator, WordChoice
from yarnling.lessons.scene.samples import Samples, used_gb
from yarnling.lessons.scene.stage import Stage
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Curves, Mark
from yarnling.run.names import node
from yarnling.simulation.trace_file import RunTrace

END_S = 60.0


class ReservationSpan(Struct):
    """A reservation, from its start to its end. `outcome`: what became of it, "" while it is there."""

    container: str
    node: str
    from_ms: int
    until_ms: int = 0
    outcome: str = ""

    @property
    def sentence(self) -> str:
        seconds = (self.until_ms - self.from_ms) / 1000
        became = f"{self.outcome} after {seconds:.1f} s" if self.outcome else "still reserved at the end"
        return f"{self.node} for {self.container}, {became}"


def set_up(name: str, trace: RunTrace | None = None) -> Stage:
    case = CASES[name]
    stage = Stage(nodes=case.nodes, settings=case.settings, trace=trace)
    for each in case.submissions:
        stage.submit(each.at_s, each.name, each.wanted, queue=each.queue)
    return stage


def play(name: str, trace: RunTrace | None = None) -> Story:
    case = CASES[name]
    stage = set_up(name, trace)
    narrator = Narrator(stage, ("RM", "AM bob"))
    narrator.say(f"{case.nodes} nodes of 8 GB. {case.scene}")
    stage.run(BOB_S - 0.001)
    narrator.skip()
    _nodes(stage, narrator)
    narrator.say(f"At {BOB_S:.0f} s bob submits his application.")
    found = _reservations(stage, narrator)
    narrator.say("The reservations, and what became of them:")
    narrator.table(
        ("node", "for", "from", "until", ""),
        *((each.node, each.container, *map(_seconds, (each.from_ms, each.until_ms)), each.outcome) for each in found),
    )
    narrator.draw(_picture(name))
    narrator.say(f"At {END_S:.0f} s:")
    _nodes(stage, narrator)
    sentence = stage.verdict("bob")
    if sentence:
        narrator.say(f"yarnling explain: bob's container {sentence}.")
    return narrator.story(_question(stage, case, found), _measured(stage, found))


def _reservations(stage: Stage, narrator: Narrator) -> list[ReservationSpan]:
    """Run to the end, and note when a reservation comes and goes."""
    found: list[ReservationSpan] = []
    present: dict[str, str] = {}
    while stage.run_until(partial(_has_changed, stage, present), END_S):
        _show(narrator)
        before, present = present, _reserved(stage)
        for place, container in before.items():
            if present.get(place) != container:
                ended = next(each for each in found if each.node == place and not each.outcome)
                ended.until_ms, ended.outcome = stage.now_ms, _outcome(stage, container)
        for place, container in present.items():
            if before.get(place) != container:
                found.append(ReservationSpan(container, place, stage.now_ms))
    _show(narrator)
    for each in found:
        if not each.outcome:
            each.until_ms = stage.now_ms
    return found


def _picture(name: str) -> Curves:
    """The price of the reservations: memory that is free and kept for them. The same run, sampled."""
    stage = set_up(name)
    measures = {"free, but kept": partial(_kept_gb, stage), "bob's containers": partial(used_gb, stage, "bob")}
    samples = Samples(stage, measures)
    samples.run(END_S)
    return samples.curves("Memory", "GB", marks=(Mark(int(1000 * BOB_S), "bob submits"),))


def _kept_gb(stage: Stage) -> float:
    if not stage.applications:
        return 0.0
    return sum(each.unallocated.memory_mb for each in stage.nodes() if each.reserved is not None) / GB


def _has_changed(stage: Stage, before: dict[str, str]) -> bool:
    return _reserved(stage) != before


def _show(narrator: Narrator) -> None:
    narrator.show(kinds=(), hidden=("getNewApplication", "startContainers", "registerApplicationMaster"))


def _outcome(stage: Stage, container: str) -> str:
    """The end of a reservation."""
    elsewhere = [other for other, kept in _reserved(stage).items() if kept == container]
    if elsewhere:
        return f"moved to {elsewhere[0]}"
    running = [stage.names.container(each.container_id) for name in ("bob", "cem") for each in stage.containers(name)]
    return "became the container" if container in running else "dropped"


def _reserved(stage: Stage) -> dict[str, str]:
    """{node: container that it is reserved for}."""
    return {
        node(each.node_id): stage.names.container(each.reserved.container_id)
        for each in stage.nodes()
        if each.reserved is not None
    }


def _nodes(stage: Stage, narrator: Narrator) -> None:
    rows = []
    for each in stage.nodes():
        name = node(each.node_id)
        amounts = (each.allocated, each.unallocated)
        rows.append((name, *(f"{amount.memory_mb // GB} GB" for amount in amounts), _reserved(stage).get(name, "")))
    narrator.table(("node", "used", "free", "reserved for"), *rows)


def _seconds(at_ms: int) -> str:
    return f"{at_ms / 1000:.3f} s"


def _place(stage: Stage) -> str:
    """The node of bob's container, "" if it does not run."""
    return next((node(each.node_id) for each in stage.containers("bob")), "")


def _measured(stage: Stage, found: list[ReservationSpan]) -> dict[str, str | int]:
    return {"reservations": len(found), "place": _place(stage), "outcomes": ", ".join(each.outcome for each in found)}


def _question(stage: Stage, case: ReservationCase, found: list[ReservationSpan]) -> Question:
    place = _place(stage)
    return Question(
        "Which nodes are reserved, for whom, and what becomes of it? On which node does bob's container run at "
        f"{END_S:.0f} s?",
        "; ".join((*(each.sentence for each in found), f"it runs on {place}" if place else "it does not run")),
        case.why,
    )


LESSON = Lesson(
    21,
    "reservations",
    "Reservations: filled, dropped, moved, and one for each node",
    (
        "Lesson 7 showed a reservation that became a container. It can also end otherwise: another node serves the "
        "request first, or the reservation is moved. And it has a price, because it counts as used: by the node, "
        "which serves nobody else, and by the queue, which may reach its maximum through it.",
    ),
    {
        "reservation": "a node is kept for one waiting container; a node has one at most.",
        "reservations-continue-look-all-nodes": "whether a reservation may be given up for room on another node, "
        "if a limit of the queue or the user leaves no other way; true by default.",
        "allow-move-reservation": "whether preemption for a queue of higher priority may move its reservation to a "
        "node where more can be taken; false by default.",
    },
    WordChoice("case", tuple(CASES), "the nodes, the queues and the applications"),
    set_up,
    play,
    (
        "Hadoop: RegularContainerAllocator.assignContainer, FiCaSchedulerApp.findNodeToUnreserve, "
        "AbstractLeafQueue.assignContainers (needAssignToQueueCheck), QueuePriorityContainerCandidateSelector",
        "recorded with Hadoop 3.4.1: tests/scenarios/scripts/f1-*.txt to f6-*.txt, and in "
        "tests/conformance/recordings/ upward-preemption and case-f6-an-older-application-comes-first",
        "here: rm/scheduler/placement/allocator.py, rm/scheduler/placement/visit.py, "
        "rm/scheduler/preemption/queue_priority_container_candidate_selector.py; lessons 7 and 20",
    ),
)
