"""Chapter 10: the distribution of 1 TB among queues and users, as vendors' manuals tell it, in four stages."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number, WordChoice
from yarnling.lessons.scene.samples import GB_MB, Samples, used_gb
from yarnling.lessons.scene.settings import SCHEDULER, preemption, queues
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Mark
from yarnling.simulation.trace_file import RunTrace

SIZE = Resource(5 * GB_MB, 1)
NODE = Resource(200 * GB_MB, 200)
FIRST_S, MORE_S, GUPTA_S, UNTIL_S = 15.0, 30.0, 45.0, 165.0
QUEUE_OF = {
    "mary": "marketing",
    "sue": "support",
    "sid": "development",
    "hitesh": "development",
    "jian": "development",
    "zhijie": "development",
    "xuan": "development",
    "gupta": "qa",
}
QA_GB, LIMIT_GB, PERCENT_MAX = 480, 120, 100
MARKS = (
    Mark(round(1000 * FIRST_S), "sid and hitesh submit to development"),
    Mark(round(1000 * MORE_S), "jian, zhijie and xuan submit to development"),
    Mark(round(1000 * GUPTA_S), "gupta submits to qa"),
)
ASSIGNMENTS = "per-node-heartbeat.maximum-offswitch-assignments"
PREEMPTION: dict[str, dict[str, str]] = {
    "off": {},
    "on": preemption({}),
    "at-once": preemption({"total_preemption_per_round": "1", "natural_termination_factor": "1"}),
}
"""{variant: its settings}: none, Hadoop's defaults, and all that is needed in one round."""


class _Ran(Struct, frozen=True):
    """The figures of a variant. `returned_s`: from gupta's submission until qa had its guarantee."""

    samples: Samples
    most_gb: int
    returned_s: int
    preempted: int


def set_up(
    preempting: str = "off", maximum: int = 100, trace: RunTrace | None = None, *, engineering: int = 100
) -> Stage:
    tree: dict[str, str | dict[str, str]] = {
        "engineering": {"capacity": "60", "maximum-capacity": str(engineering)},
        "support": "10",
        "marketing": "30",
        "engineering.development": {"capacity": "20", "maximum-capacity": str(maximum)},
        "engineering.qa": "80",
    }
    settings = {**queues(tree), **PREEMPTION[preempting], f"{SCHEDULER}{ASSIGNMENTS}": "2"}
    stage = Stage(nodes=5, resource=NODE, settings=settings, encode=trace is not None, trace=trace)
    _submit(stage, 2.0, "mary", 300)
    _submit(stage, 2.0, "sue", 100)
    for seconds, names in ((FIRST_S, ("sid", "hitesh")), (MORE_S, ("jian", "zhijie", "xuan")), (GUPTA_S, ("gupta",))):
        for index, name in enumerate(names):
            _submit(stage, seconds + index / 2, name, 0)
    return stage


def _submit(stage: Stage, seconds: float, name: str, gb: int) -> None:
    """Submit an application of so much memory, for ever; 0: of more than there is, in containers of two minutes."""
    size_gb = SIZE.memory_mb // GB_MB
    wanted = Wanted(gb // size_gb - 1, SIZE) if gb else Wanted(400, SIZE, seconds=120)
    stage.submit(seconds, name, (wanted,), queue=QUEUE_OF[name], am_size=SIZE)


def play(preempting: str = "off", maximum: int = 100, trace: RunTrace | None = None) -> Story:
    stage = set_up(preempting, maximum, trace)
    ran = _run(stage)
    variants = {word: ran if word == preempting else _variant(word, maximum) for word in PREEMPTION}
    narrator = Narrator(stage, participants(stage, *QUEUE_OF))
    narrator.say(
        "A cluster of 1000 GB. Queue engineering is guaranteed 60 % of it, support 10 % and marketing 30 %; in "
        "engineering, development has 20 % (120 GB) and qa 80 % (480 GB). The story has 100 nodes of 10 GB; here five "
        "nodes of 200 GB, in containers of 5 GB, which run for two minutes in engineering and for ever elsewhere."
    )
    _stages(narrator, ran, maximum)
    narrator.draw(ran.samples.curves(f"Memory by user, preemption {preempting}", "GB", marks=MARKS, is_stacked=True))
    _after_gupta(narrator, {word: variants[word] for word in PREEMPTION if word in ("off", preempting)})
    _served(narrator, ran)
    _limits(narrator, ran)
    _maximum(narrator, maximum, ran)
    measured = {
        "development_gb": ran.most_gb,
        "preempted": ran.preempted,
        **{f"{word}_returned_s": each.returned_s for word, each in variants.items()},
        **{f"{name}_gb": round(ran.samples.values[name][int(GUPTA_S)]) for name in QUEUE_OF},
    }
    return narrator.story(_question(ran, preempting, maximum), measured)


def _run(stage: Stage, until_s: float = UNTIL_S) -> _Ran:
    samples = Samples(stage, {name: lambda name=name: used_gb(stage, name) for name in QUEUE_OF})  # type: ignore[misc]
    samples.run(until_s)
    qa = samples.values["gupta"]
    returned_s = next((second for second, gb in enumerate(qa) if gb >= QA_GB), len(qa)) - int(GUPTA_S)
    most_gb = round(max(map(sum, zip(*_development(samples), strict=True))))
    killed = sum(step == "killed" for _, _, step in stage.account.preempted)
    return _Ran(samples, most_gb, returned_s, killed)


@lru_cache(maxsize=8)
def _variant(preempting: str, maximum: int, engineering: int = PERCENT_MAX, until_s: float = UNTIL_S) -> _Ran:
    """A variant beside the one that is told: the same for several settings of the lesson."""
    return _run(set_up(preempting, maximum, engineering=engineering), until_s)


def _development(samples: Samples) -> list[list[float]]:
    return [samples.values[name] for name, queue in QUEUE_OF.items() if queue == "development"]


def _stages(narrator: Narrator, ran: _Ran, maximum: int) -> None:
    rows = [
        ("1. support and marketing are full", FIRST_S - 1),
        ("2. sid and hitesh came", MORE_S - 1),
        ("3. jian, zhijie and xuan came", GUPTA_S - 1),
        ("4. gupta came: at the end", UNTIL_S),
    ]
    narrator.say(f"The four stages; development's maximum-capacity is {maximum}:")
    narrator.table(
        ("memory in GB", "at", *QUEUE_OF),
        *(
            (text, f"{second:.0f} s", *(f"{values[int(second)]:.0f}" for values in ran.samples.values.values()))
            for text, second in rows
        ),
    )


def _after_gupta(narrator: Narrator, variants: dict[str, _Ran]) -> None:
    """Compare `variants`: only the one that is told and that without preemption; others are to be predicted."""
    narrator.say(
        f"qa was idle until gupta came at {GUPTA_S:.0f} s, so development has used qa's guarantee. Without preemption "
        "gupta waits until containers end; what becomes free then goes to qa, until development and qa use memory as 1 "
        "to 4. With preemption the ResourceManager takes containers away, those of the youngest application first. "
        "With Hadoop's defaults (on) a round takes at most 10 % of the cluster, times a natural-termination factor of "
        "0.2: 20 GB. More are chosen only when these are gone, after 15 s. at-once sets both factors to 1."
    )
    at_s = int(GUPTA_S) + 30
    narrator.table(
        ("preemption", "qa 30 s after gupta came", "qa has its 480 GB", "containers preempted"),
        *(
            (word, f"{each.samples.values['gupta'][at_s]:.0f} GB", f"after {each.returned_s} s", each.preempted)
            for word, each in variants.items()
        ),
    )


def _served(narrator: Narrator, ran: _Ran) -> None:
    """Show a moment at which qa is served although it uses more of the cluster than development."""
    qa = ran.samples.values["gupta"]
    development = [sum(each) for each in zip(*_development(ran.samples), strict=True)]
    shown = ""
    for now, (qa_gb, development_gb) in enumerate(zip(qa[:-1], development[:-1], strict=True)):
        if qa_gb > development_gb > LIMIT_GB and qa[now + 1] > qa_gb and development[now + 1] <= development_gb:
            shown = (
                f" At {now} s qa used {qa_gb:.0f} GB, more than development's {development_gb:.0f} GB, and the next "
                f"free memory went to qa: {qa_gb:.0f}/{QA_GB} = {qa_gb / QA_GB:.2f} is less than "
                f"{development_gb:.0f}/{LIMIT_GB} = {development_gb / LIMIT_GB:.2f}."
            )
            break
    narrator.contrast(
        "The most under-served queue is the one with the least use compared with the total capacity.",
        f"Compared with its own guarantee.{shown}",
    )


def _limits(narrator: Narrator, ran: _Ran) -> None:
    held, hitesh = (round(ran.samples.values[name][int(MORE_S) - 1]) for name in ("sid", "hitesh"))
    stopped = f"; hitesh gets {hitesh} GB, until development is at its maximum" if hitesh < held else ""
    narrator.contrast(
        f"sid and hitesh are allowed {LIMIT_GB} GB each, {2 * LIMIT_GB} GB together.",
        f"With more requests than that {'sid' if stopped else 'each'} ends one container above the limit ({held} GB): "
        f"the limit is compared with what a user holds before the container{stopped}.",
    )
    narrator.say(
        "The two queues settle at 1 to 4, but development's users do not share: in it the oldest application is first, "
        "so sid gets what becomes free, up to his limit, and the others keep little more than their AMs."
    )


def _maximum(narrator: Narrator, maximum: int, ran: _Ran) -> None:
    """Compare with a run in which engineering has a maximum, too."""
    claim = "A maximum-capacity of 40 keeps development at 40 % of engineering's guarantee, 240 of 600 GB."
    truth = "It is a percentage of the parent's absolute maximum, which is the cluster by default, so 400 GB"
    if maximum == PERCENT_MAX:
        narrator.contrast(claim, f"{truth}: see --maximum-capacity 40.")
        return
    bounded = _variant("off", maximum, 60, GUPTA_S).most_gb
    narrator.contrast(
        claim,
        f"{truth}. With {maximum} development used up to {ran.most_gb} GB here. With a maximum-capacity of 60 on "
        f"engineering as well it used up to {bounded} GB.",
    )


def _question(ran: _Ran, preempting: str, maximum: int) -> Question:
    most_gb = ran.most_gb
    why = [
        "The other queues leave 600 GB. development may use "
        f"{maximum} % of its parent's maximum of 1000 GB: {10 * maximum} GB.",
        f"When gupta came, {600 - most_gb} GB were free for qa at once.",
    ]
    if preempting == "off":
        why.append("The rest came as containers ended: here each runs for two minutes.")
    else:
        why.append(
            f"{ran.preempted} containers were preempted; the others ended by themselves. support and marketing lost "
            "nothing: they are at their guarantees."
        )
    return Question(
        f"Preemption is {preempting}, and development's maximum-capacity is {maximum}. How much memory does "
        "development hold at most, and how long after gupta's submission does qa have its guarantee of 480 GB?",
        f"{most_gb} GB; after {ran.returned_s} s",
        tuple(why),
    )


LESSON = Lesson(
    10,
    "distribution",
    "Distribution: the story of 1 TB in four stages",
    (
        "Many manuals explain the CapacityScheduler with one story: a cluster of 1 TB, the departments engineering, "
        "support and marketing, and users who come one after the other. Idle capacity is lent, and returned when its "
        "owner comes.",
        "This is that story on the real scheduler, with and without preemption. The manuals' figures are nearly "
        "right; the sentences below say where Hadoop 3.4.1 differs.",
    ),
    {
        "elasticity": "a queue may use more than its guarantee while others leave theirs idle.",
        "under-served": "a queue whose use divided by its guarantee is low; it is offered free capacity first.",
        "preemption": "the ResourceManager takes containers from a queue above its guarantee for one below its own.",
        "maximum-capacity": "the most that a queue may use, in percent of its parent's maximum.",
    },
    WordChoice(
        "preemption",
        tuple(PREEMPTION),
        "yarn.resourcemanager.scheduler.monitor.enable; on has Hadoop's defaults, at-once takes all in one round",
    ),
    set_up,
    play,
    (
        "Hadoop: PriorityUtilizationQueueOrderingPolicy (used/guaranteed), CSQueueUtils (absolute maximum), "
        "UsersManager.computeUserLimit, ProportionalCapacityPreemptionPolicy",
        "here: rm/scheduler/capacity/, rm/scheduler/preemption/, [common claims](../what-hadoop-does.md); cases A1, "
        "A3 and A4 of [the mission cases](../design/mission-cases.md)",
    ),
    (
        Number(
            "maximum-capacity",
            PERCENT_MAX,
            20,
            PERCENT_MAX,
            "percent (yarn.scheduler.capacity.root.engineering.development.maximum-capacity)",
            (100, 40),
        ),
    ),
)
