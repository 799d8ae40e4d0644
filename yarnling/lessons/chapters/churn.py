"""Chapter 19: a queue comes back to its guarantee by churn or by preemption, and what preemption does not do."""

from __future__ import annotations

from collections import Counter
from functools import partial

from msgspec import Struct

from yarn.times import short_number
from yarnling.lessons.chapters.churn_cases import BOB_S, CASES, ChurnCase
from yarnling.lessons.scene.lesson import Lesson, Narrator, WordChoice
from yarnling.lessons.scene.samples import Samples, used_gb
from yarnling.lessons.scene.stage import NODE, Stage
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Mark
from yarnling.simulation.trace_file import RunTrace

ROUNDS_MAX = 12
"""The most rounds of preemption in the table."""
USERS = ("ann", "bob")


class ChurnFigures(Struct, frozen=True):
    """The run of a case: the use in GB at its end, and `reached_s`, from bob's request until he had his half.

    `rounds`: (time in ms, containers announced, containers killed) of each round of preemption that decided something.
    """

    half_gb: float
    ann_gb: float
    bob_gb: float
    reached_s: float | None
    rounds: tuple[tuple[int, int, int], ...]

    @property
    def killed(self) -> int:
        return sum(killed for _, _, killed in self.rounds)


def set_up(name: str, trace: RunTrace | None = None) -> Stage:
    case = CASES[name]
    stage = Stage(nodes=case.nodes, settings=case.settings, trace=trace)
    for each in case.submissions:
        stage.submit(each.at_s, each.name, each.wanted, user=each.user, queue=each.queue, am_size=each.am_size)
    return stage


def play(name: str, trace: RunTrace | None = None) -> Story:
    case = CASES[name]
    stage = set_up(name, trace)
    narrator = Narrator(stage, ("RM",))
    half_gb = case.nodes * NODE.memory_mb / 2048
    narrator.say(
        f"{case.nodes} nodes of {NODE.memory_mb // 1024} GB. ann wants more than there is; half of it, "
        f"{short_number(half_gb)} GB, is bob's. {case.scene}"
    )
    samples = Samples(stage, {user: partial(_used_gb, stage, case, user) for user in USERS})
    samples.run(BOB_S)
    ann_gb, bob_gb = (short_number(samples.values[user][-1]) for user in USERS)
    narrator.say(f"At {BOB_S:.0f} s ann uses {ann_gb} GB and bob {bob_gb} GB, and bob wants more.")
    samples.run(BOB_S + case.lasts_s)
    marks = (Mark(int(1000 * BOB_S), "bob wants more"),)
    narrator.draw(samples.curves("Use", "GB", bounds=dict.fromkeys(USERS, half_gb), marks=marks))
    seen = _seen(stage, samples, half_gb)
    if seen.rounds:
        narrator.say("Containers of ann that preemption announced to her AM, and killed:")
        narrator.table(("time", "announced", "killed"), *_rows(seen.rounds))
    else:
        narrator.say("No container is preempted.")
    sentence = stage.verdict(case.submissions[-1].name)
    if sentence:
        narrator.say(f"yarnling explain at the end: bob's next container {sentence}.")
    return narrator.story(_question(case, seen), _measured(seen))


def _used_gb(stage: Stage, case: ChurnCase, user: str) -> float:
    return sum(used_gb(stage, each.name) for each in case.submissions if (each.user or each.name) == user)


def _seen(stage: Stage, samples: Samples, half_gb: float) -> ChurnFigures:
    rounds: dict[int, Counter[str]] = {}
    for at_ms, _, step in stage.account.preempted:
        rounds.setdefault(at_ms, Counter())[step] += 1
    ann, bob = (samples.values[user] for user in USERS)
    times = zip(samples.times_ms, bob, strict=True)
    return ChurnFigures(
        half_gb,
        ann[-1],
        bob[-1],
        next((at_ms / 1000 - BOB_S for at_ms, used in times if used >= half_gb), None),
        tuple((at_ms, steps["requested"], steps["killed"]) for at_ms, steps in rounds.items()),
    )


def _rows(rounds: tuple[tuple[int, int, int], ...]) -> list[tuple[str, int, int]]:
    rows = [(f"{at_ms / 1000:.3f} s", announced, killed) for at_ms, announced, killed in rounds]
    if len(rows) > ROUNDS_MAX:
        left = rows[ROUNDS_MAX - 1 :]
        last = (f"{len(left)} more", sum(row[1] for row in left), sum(row[2] for row in left))
        rows = [*rows[: ROUNDS_MAX - 1], last]
    return rows


def _measured(seen: ChurnFigures) -> dict[str, float]:
    return {
        "half_gb": seen.half_gb,
        "ann_gb": seen.ann_gb,
        "bob_gb": seen.bob_gb,
        "killed": seen.killed,
        "reached_s": -1 if seen.reached_s is None else seen.reached_s,
    }


def _question(case: ChurnCase, seen: ChurnFigures) -> Question:
    figures = {name: short_number(figure) for name, figure in _measured(seen).items()}
    when = "never" if seen.reached_s is None else f"{figures['reached_s']} s after his request"
    return Question(
        f"When does bob have his half, {figures['half_gb']} GB? How much does he have {case.lasts_s} s after his "
        "request, and how many containers of ann were killed?",
        f"{when}; {figures['bob_gb']} GB; {figures['killed']} killed",
        (*(reason.format_map(figures) for reason in case.why), case.claim),
    )


LESSON = Lesson(
    19,
    "churn",
    "Churn: how a guarantee comes back, and what preemption does not do",
    (
        "A queue may use more than its guarantee while others leave theirs idle. What it has borrowed comes back in "
        "two ways: its containers end, which is called churn, or they are preempted. Containers that run for days do "
        "not end, and preemption does less than is often expected of it: it is slow by default, leaves the last tenth "
        "alone, counts only what user limits allow, looks at sums instead of nodes, and works between queues unless "
        "more is switched on. Each case of this lesson shows one of these.",
    ),
    {
        "churn": "that containers end and others start; a queue with much churn gives back quickly.",
        "total_preemption_per_round": "the part of the cluster that one round of preemption may take (0.1).",
        "natural_termination_factor": "the part of that which is taken in the round (0.2): the rest is expected to "
        "end by itself.",
        "max_ignored_over_capacity": "the dead zone: a queue loses nothing while it is not more than this above its "
        "guarantee (0.1).",
        "intra-queue preemption": "preemption between applications or users of one queue; off by default.",
    },
    WordChoice("case", tuple(CASES), "the configuration and the applications"),
    set_up,
    play,
    (
        "Hadoop: ProportionalCapacityPreemptionPolicy, PreemptableResourceCalculator, FifoCandidatesSelector, "
        "IntraQueueCandidatesSelector; AbstractLeafQueue.getTotalPendingResourcesConsideringUserLimit",
        "recorded with Hadoop 3.4.1: tests/scenarios/scripts/d4-*.txt, e3-*.txt, e5-*.txt, e6-*.txt, and "
        "b5-large-containers-minimum-30.txt for pending requests under a user limit",
        "here: rm/scheduler/preemption/; lessons 8 and 20, docs/explain.md",
    ),
)
