"""Chapter 8: a queue below its guarantee gets containers back from a queue above its own."""

from __future__ import annotations

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.settings import MONITOR, SCHEDULER
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.simulation.trace_file import RunTrace

SIZE = Resource(1024, 1)
BOB_S = 14.0
WANTED_BY_BOB = 20
INTERVAL_S = 3
PREEMPTION = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    f"{MONITOR}monitoring_interval": str(1000 * INTERVAL_S),
    f"{MONITOR}total_preemption_per_round": "1",
    f"{MONITOR}natural_termination_factor": "1",
}
QUEUES = {
    f"{SCHEDULER}root.queues": "a,b",
    f"{SCHEDULER}root.a.capacity": "50",
    f"{SCHEDULER}root.b.capacity": "50",
    f"{SCHEDULER}root.a.user-limit-factor": "2",
    f"{SCHEDULER}root.b.user-limit-factor": "2",
}


def set_up(wait_s: int, trace: RunTrace | None = None) -> Stage:
    settings = {**PREEMPTION, **QUEUES, f"{MONITOR}max_wait_before_kill": str(1000 * wait_s)}
    stage = Stage(nodes=2, settings=settings, trace=trace)
    stage.submit(2.0, "ann", (Wanted(30, SIZE),), queue="a")
    stage.submit(BOB_S, "bob", (Wanted(WANTED_BY_BOB, SIZE),), queue="b")
    return stage


def play(wait_s: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(wait_s, trace)
    narrator = Narrator(stage, participants(stage, "ann", "bob"))
    narrator.say(
        "Two nodes of 8192 MB; queues a and b are guaranteed half each. While b was idle, ann's application in a has "
        "taken the whole cluster with containers that never end by themselves."
    )
    narrator.say(
        f"Preemption is enabled, and its policy looks every {INTERVAL_S} s. So that the numbers stay simple, it may "
        "take all that it needs in one round (total_preemption_per_round 1, natural_termination_factor 1; Hadoop's "
        "defaults are 0.1 and 0.2, which take smaller steps)."
    )
    stage.run(BOB_S - 0.001)
    narrator.skip()
    _queues(stage, narrator)
    narrator.say(f"At {BOB_S:.0f} s bob submits an application with {WANTED_BY_BOB} containers to b.")
    stage.run_until(lambda: bool(_preempted(stage)), BOB_S + wait_s + 30)
    narrator.show(
        kinds=(), hidden=("getNewApplication", "nodeHeartbeat", "startContainers", "registerApplicationMaster")
    )
    stage.run(stage.now_ms / 1000 + 2 * wait_s + 60)
    narrator.say(
        "First only bob's AM waited, so one container was enough. Once the AM had registered, its requests counted "
        "too. All that the policy decided, by time:"
    )
    narrator.table(("time", "announced to the AM", "killed"), *_rounds(stage))
    narrator.say("The queues at the end:")
    narrator.skip()
    _queues(stage, narrator)
    sentence = stage.verdict("bob")
    if sentence:
        narrator.say(f"yarnling explain: bob's next container {sentence}.")
    return narrator.story(_question(stage, wait_s), _measured(stage))


def _queues(stage: Stage, narrator: Narrator) -> None:
    rows = []
    for name in ("a", "b"):
        queue = stage.queue(name)
        amounts = (queue.used, queue.guaranteed, queue.pending)
        rows.append((f"queue {name}", *(f"{each.memory_mb} MB" for each in amounts)))
    narrator.table(("", "used", "guaranteed", "waiting"), *rows)


def _preempted(stage: Stage) -> list[int]:
    """The times at which containers were killed, in ms."""
    return [at_ms for at_ms, _, step in stage.account.preempted if step == "killed"]


def _rounds(stage: Stage) -> list[tuple[str, int, int]]:
    """A row for each round of the policy that decided something."""
    rounds: dict[int, list[str]] = {}
    for at_ms, _, step in stage.account.preempted:
        rounds.setdefault(at_ms, []).append(step)
    return [
        (f"{at_ms / 1000:.3f} s", steps.count("requested"), steps.count("killed")) for at_ms, steps in rounds.items()
    ]


def _measured(stage: Stage) -> dict[str, int | str]:
    killed = _preempted(stage)
    return {
        "preempted": len(killed),
        "first_ms": killed[0],
        "a_mb": stage.queue("a").used.memory_mb,
        "b_mb": stage.queue("b").used.memory_mb,
    }


def _question(stage: Stage, wait_s: int) -> Question:
    killed = _preempted(stage)
    first_s = killed[0] / 1000
    a_mb, b_mb = (stage.queue(name).used.memory_mb for name in ("a", "b"))
    guarantee_mb = stage.queue("a").guaranteed.memory_mb
    notes = [(at_ms, reply) for at_ms, _, reply in stage.account.allocate_replies if reply.preemption is not None]
    warned = f"ann's AM was informed at {notes[0][0] / 1000:.3f} s which containers were chosen. " if notes else ""
    return Question(
        f"How many containers of ann are preempted, and when is the first one, if max_wait_before_kill is {wait_s} s?",
        f"{len(killed)} containers, the first at {first_s:.3f} s",
        (
            f"The policy looks every {INTERVAL_S} s. Queue b is guaranteed {guarantee_mb} MB, used less and had "
            "requests that waited; queue a used more than its guarantee. So containers of a were chosen, the latest "
            f"first. {warned}An AM can use the time to save work, or to release other containers instead.",
            f"Containers that were still needed {wait_s} s later were killed in the next round of the policy, from "
            f"{first_s:.3f} s on: {first_s - BOB_S:.3f} s after bob's submission.",
            f"At the end a uses {a_mb} MB and b {b_mb} MB. Preemption gives b its guarantee ({guarantee_mb} MB) and "
            "no more: it never takes from a what a is guaranteed, and AMs come last.",
        ),
    )


LESSON = Lesson(
    8,
    "preemption",
    "Preemption: how a guarantee is kept",
    (
        "Elasticity lets a queue use what others leave idle. When their work comes, the borrowed containers must go "
        "back. Without preemption the other queue waits until they end by themselves, which may be never. With it, "
        "the RM chooses containers of queues above their guarantee, informs their AMs, waits, and kills what was not "
        "given back.",
    ),
    {
        "preemption": "the RM takes containers from a queue above its guarantee for one that is below its own.",
        "max_wait_before_kill": "how long an AM is given between the announcement and the kill.",
        "exit status -102": "the exit status of a preempted container (ContainerExitStatus.PREEMPTED).",
    },
    Number("wait", 10, 1, 120, f"seconds ({MONITOR}max_wait_before_kill)", (10, 1, 30)),
    set_up,
    play,
    (
        "Hadoop: ProportionalCapacityPreemptionPolicy, FifoCandidatesSelector",
        "here: rm/scheduler/preemption/policy.py and the selectors beside it",
    ),
)
