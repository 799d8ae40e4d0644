"""Chapter 18: the priority of a queue, with the manuals' figure of a small queue A and a big queue B."""

from __future__ import annotations

import re

from msgspec import Struct

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number, Value, WordChoice
from yarnling.lessons.scene.samples import GB_MB, Samples, used_gb
from yarnling.lessons.scene.settings import SCHEDULER, queues
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Mark
from yarnling.simulation.trace_file import RunTrace

SIZE = Resource(GB_MB, 1)
NODE = Resource(25 * GB_MB, 25)
GUARANTEES_GB = {"A": 4, "B": 16, "C": 5}
QUEUE_OF = {"ann": "A", "bob": "B"}
ANN_S, UNTIL_S = 10.0, 34.0
COUNTED = 10
POLICIES = ("priority-utilization", "utilization")
_ALLOCATED = re.compile(r"allocates (ann|bob)-c\d+ ")


class _Served(Struct, frozen=True):
    """A container that was allocated once both queues had requests; the uses before it, in GB."""

    at_ms: int
    queue: str
    used_a: int
    used_b: int


def set_up(priority: int = 1, policy: str = POLICIES[0], trace: RunTrace | None = None) -> Stage:
    elastic = {"user-limit-factor": "100"}
    tree = {
        "A": {"capacity": "16", "priority": str(priority), **elastic},
        "B": {"capacity": "64", **elastic},
        "C": {"capacity": "20"},
    }
    settings = {**queues(tree), f"{SCHEDULER}root.ordering-policy": policy}
    stage = Stage(nodes=1, resource=NODE, settings=settings, trace=trace, encode=trace is not None)
    stage.submit(2.0, "bob", (Wanted(40, SIZE),), queue="B")
    stage.submit(ANN_S, "ann", (Wanted(40, SIZE),), queue="A")
    return stage


def play(priority: int = 1, policy: str = POLICIES[0], trace: RunTrace | None = None) -> Story:
    stage = set_up(priority, policy, trace)
    narrator = Narrator(stage, participants(stage, *QUEUE_OF))
    narrator.say(
        "A node of 25 GB; queue A is guaranteed 4 GB, B 16 GB, and C 5 GB, which nobody uses. bob submits to B, and at "
        f"{ANN_S:.0f} s ann to A; each wants 40 containers of 1 GB. root's ordering-policy is {policy}, the priority "
        f"of A is {priority} and that of B 0."
    )
    measures = {f"queue {queue}": lambda name=name: used_gb(stage, name) for name, queue in QUEUE_OF.items()}
    samples = Samples(stage, measures)
    samples.run(UNTIL_S)
    bounds = {f"queue {queue}": float(GUARANTEES_GB[queue]) for queue in QUEUE_OF.values()}
    marks = (Mark(round(1000 * ANN_S), "ann submits to A"),)
    narrator.draw(samples.curves("Memory by queue, with the guarantees", "GB", bounds=bounds, marks=marks))
    given = _given(stage)
    _table(narrator, given)
    held = {queue: round(used_gb(stage, name)) for name, queue in QUEUE_OF.items()}
    _contrasts(narrator, given, held)
    first = "".join(each.queue for each in given[:COUNTED])
    measured: dict[str, Value] = {"order": "".join(each.queue for each in given), "a_gb": held["A"], "b_gb": held["B"]}
    return narrator.story(_question(priority, policy, first, held), measured)


def _given(stage: Stage) -> list[_Served]:
    """The containers that were allocated after ann's first request, in order."""
    since_ms = min(at_ms for at_ms, who, _ in stage.account.allocate_replies if who == "AM ann")
    used = {"A": 1, "B": 1}
    found = []
    for told in stage.account.told:
        match = _ALLOCATED.match(told.text) if told.is_decision else None
        if match is None:
            continue
        queue = QUEUE_OF[match[1]]
        if told.at_ms >= since_ms:
            found.append(_Served(told.at_ms, queue, used["A"], used["B"]))
        used[queue] += 1
    return found


def _table(narrator: Narrator, given: list[_Served]) -> None:
    narrator.say("Every container since ann's first request, with the use of both queues before it:")
    rows = [
        (
            f"{each.at_ms / 1000:.3f} s",
            *(
                f"{used}/{GUARANTEES_GB[queue]} = {used / GUARANTEES_GB[queue]:.2f}"
                for queue, used in (("A", each.used_a), ("B", each.used_b))
            ),
            each.queue,
        )
        for each in given
    ]
    narrator.table(("time", "A", "B", "served"), *rows)


def _contrasts(narrator: Narrator, given: list[_Served], held: dict[str, int]) -> None:
    smaller = next((each for each in given if each.queue == "A" and each.used_a < each.used_b), None)
    if smaller is not None:
        narrator.say(
            f"The figure of the manuals: at {smaller.at_ms / 1000:.3f} s A used {smaller.used_a} GB and B "
            f"{smaller.used_b} GB, and A was served."
        )
    narrator.contrast(
        "To serve a queue first, give it a higher priority.",
        "Priorities count only if the parent's ordering-policy is priority-utilization; the default is utilization, "
        "which ignores them.",
    )
    narrator.contrast(
        "A queue of a higher priority always gets resources first.",
        "First come the queues below their guarantee, among them by priority and then by use/guarantee; then those "
        f"at or above it, by the same rules. So B gets its guarantee before A grows above its own. Here A ends with "
        f"{held['A']} GB and B with {held['B']} GB.",
    )


def _question(priority: int, policy: str, first: str, held: dict[str, int]) -> Question:
    why = [
        f"The first {COUNTED} containers were served in the order {first}.",
        f"A is guaranteed {GUARANTEES_GB['A']} GB and B {GUARANTEES_GB['B']} GB; the other {GUARANTEES_GB['C']} GB are "
        "C's, and idle.",
    ]
    if policy == POLICIES[0] and priority:
        why.append(
            "A comes first up to its guarantee, then B up to its own, and what is idle goes to A again, because of its "
            "priority."
        )
    else:
        why.append("Nobody has a priority that counts: the queue with the lower use/guarantee is served.")
    return Question(
        f"The priority of A is {priority}, and the policy {policy}. Of the first {COUNTED} containers after ann's "
        "request, how many are A's, and what do A and B hold at the end?",
        f"{first.count('A')} of {COUNTED}; A {held['A']} GB, B {held['B']} GB",
        tuple(why),
    )


LESSON = Lesson(
    18,
    "priorities",
    "Queue priorities: a small queue and a big one",
    (
        "Which queue is served next? Without priorities the one with the lowest use/guarantee: a small queue can come "
        "before a big one, although the big one uses more. Priorities of queues are for those who should come first, "
        "such as interactive work.",
    ),
    {
        "use/guarantee": "what a queue uses, divided by its guaranteed capacity.",
        "priority of a queue": "a number; higher comes first, within limits that this lesson shows. Default 0.",
        "ordering-policy of a parent": "utilization (the default), or priority-utilization.",
    },
    Number("priority", 1, 0, 10, "yarn.scheduler.capacity.root.A.priority", (1, 0)),
    set_up,
    play,
    (
        "Hadoop: PriorityUtilizationQueueOrderingPolicy",
        "here: rm/scheduler/capacity/, [common claims](../what-hadoop-does.md); case A6 of [the mission "
        "cases](../design/mission-cases.md)",
    ),
    (WordChoice("policy", POLICIES, "yarn.scheduler.capacity.root.ordering-policy"),),
)
