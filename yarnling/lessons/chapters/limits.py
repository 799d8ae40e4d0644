"""Chapter 17: how many applications a queue takes, and how many of them run at a time."""

from __future__ import annotations

from collections import Counter

from yarn.resource import Resource
from yarn.states import YarnApplicationState
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.settings import SCHEDULER, queues
from yarnling.lessons.scene.stage import AM_SIZE, Stage
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Bar, Bars
from yarnling.run.names import CLIENT, RM
from yarnling.simulation.trace_file import RunTrace

NODES, NODE = 4, Resource(10240, 10)
TOTAL_MB = NODES * NODE.memory_mb
QUEUE = "a"
SYSTEM_MAX = 20
USER_PERCENT = 50
SUBMITTED = {"ann": 7, "bob": 6}
BOB_S = 12.0
UNTIL_S = 40.0
GB_MB = 1024
RUNS, WAITS, REFUSED = "runs", "waits", "refused"


def set_up(percent: int, trace: RunTrace | None = None) -> Stage:
    tree: dict[str, str | dict[str, str]] = {
        QUEUE: {"capacity": "50", "minimum-user-limit-percent": str(USER_PERCENT)},
        "b": "50",
    }
    settings = {
        **queues(tree),
        f"{SCHEDULER}maximum-applications": str(SYSTEM_MAX),
        f"{SCHEDULER}maximum-am-resource-percent": str(percent / 100),
    }
    stage = Stage(nodes=NODES, resource=NODE, settings=settings, trace=trace)
    for user, start_s in (("ann", 2.0), ("bob", BOB_S)):
        for number in range(1, SUBMITTED[user] + 1):
            wanted = (Wanted(1, Resource(1024, 1)),)
            stage.submit(start_s + number / 2, f"{user}-{number}", wanted, user=user, queue=QUEUE)
    return stage


def play(percent: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(percent, trace)
    narrator = Narrator(stage, (CLIENT, RM))
    narrator.say(
        f"{NODES} nodes of {NODE.memory_mb} MB; queues a and b are guaranteed half of these {TOTAL_MB} MB each, and b "
        f"is idle. maximum-am-resource-percent is {percent} % (Hadoop's default is 10 %). maximum-applications of the "
        f"cluster is {SYSTEM_MAX} (10000 by default), so a, with half of the cluster, takes {SYSTEM_MAX // 2}, and one "
        f"user {SYSTEM_MAX // 4} of these, as minimum-user-limit-percent is {USER_PERCENT}."
    )
    narrator.say(
        f"ann submits {SUBMITTED['ann']} applications to a. Each has an AM of 1024 MB, requests one container, and "
        f"does not end. At {BOB_S:.0f} s:"
    )
    stage.run(BOB_S)
    user_limit_mb = _am_limits_mb(stage)[1]
    bars = [_bar(stage, "ann alone", ("ann",), user_limit_mb)]
    _applications(stage, narrator)
    narrator.say(f"From {BOB_S:.0f} s on bob submits {SUBMITTED['bob']} more. At {UNTIL_S:.0f} s:")
    stage.run(UNTIL_S)
    narrator.skip()
    _applications(stage, narrator)
    bars.append(_bar(stage, "queue a at the end", tuple(SUBMITTED), _am_limits_mb(stage)[0]))
    narrator.draw(Bars("Memory of AMs, and their limit (|)", "GB", tuple(bars)))
    facts = {**_measured(stage), "user_limit_mb": user_limit_mb}
    return narrator.story(_question(percent, facts), facts)


def _applications(stage: Stage, narrator: Narrator) -> None:
    rows = [(name, _state(stage, name), _why(stage, name)) for name in stage.applications]
    narrator.table(("application", "", "why"), *rows)


def _bar(stage: Stage, name: str, users: tuple[str, ...], limit_mb: int) -> Bar:
    return Bar(name, _running(stage, *users) * AM_SIZE.memory_mb / GB_MB, limit_mb / GB_MB)


def _running(stage: Stage, *users: str) -> int:
    """Count the applications of these users that run."""
    return sum(_state(stage, name) == RUNS for name in stage.applications if name.partition("-")[0] in users)


def _state(stage: Stage, name: str) -> str:
    state = stage.application(name).state
    if state is YarnApplicationState.RUNNING:
        return RUNS
    return REFUSED if state is YarnApplicationState.FAILED else WAITS


def _why(stage: Stage, name: str) -> str:
    state = stage.application(name).state
    if state is YarnApplicationState.FAILED:
        return stage.application(name).diagnostics.partition(": ")[2].partition(" cannot accept")[0].rstrip(",")
    if state is YarnApplicationState.RUNNING:
        return ""
    return stage.verdict(name).removeprefix("waits because ").partition(" (")[0]


def _am_limits_mb(stage: Stage) -> tuple[int, int]:
    """The memory that the AMs of the queue may use now, and those of one of its users."""
    queue, user = stage.view.am_limits(f"root.{QUEUE}")
    return queue.memory_mb, user.memory_mb


def _measured(stage: Stage) -> dict[str, int]:
    counts = Counter((name.partition("-")[0], _state(stage, name)) for name in stage.applications)
    measured = {f"{user}_{state}": counts[user, state] for user in SUBMITTED for state in (RUNS, WAITS, REFUSED)}
    return {**measured, "queue_limit_mb": _am_limits_mb(stage)[0]}


def _question(percent: int, facts: dict[str, int]) -> Question:
    queue_mb, guarantee_mb = facts["queue_limit_mb"], TOTAL_MB // 2
    return Question(
        f"maximum-am-resource-percent is {percent} %. How many of ann's {SUBMITTED['ann']} applications and of bob's "
        f"{SUBMITTED['bob']} run at the end, how many wait, and how many are refused?",
        "; ".join(
            f"{user}: {facts[f'{user}_{RUNS}']} run, {facts[f'{user}_{WAITS}']} wait, "
            f"{facts[f'{user}_{REFUSED}']} refused"
            for user in SUBMITTED
        ),
        (
            "Often written: the AMs of a queue may use 20 % of it. Hadoop 3.4.1: 10 % by default, and not of the "
            f"guarantee, but of what the queue may use now: {percent} % of {TOTAL_MB} MB, because b is idle, are "
            f"{queue_mb} MB (rounded up to whole minimum allocations). An application whose AM would exceed it waits "
            "in state ACCEPTED.",
            f"A user has a limit too, of the guarantee: {percent} % of {guarantee_mb} MB, divided by the active users, "
            f"but at least minimum-user-limit-percent of it. While ann is alone that is {facts['user_limit_mb']} MB.",
            f"maximum-applications counts all that run or wait. ann has {SYSTEM_MAX // 4} when she submits the next, "
            "which is refused: its state is FAILED, and it is not tried again. It protects the RM; the AM limit "
            "protects the queue, which would be full of AMs that wait for their containers.",
            "The first application of a queue is let in whatever the size of its AM, or a small queue could never run "
            "anything.",
        ),
    )


LESSON = Lesson(
    17,
    "limits",
    "Limits: how many applications a queue takes and runs",
    (
        "A queue full of AMs gets nothing done: each waits for containers, and there is no room for any. So the "
        "CapacityScheduler limits the share of a queue that AMs may use, and the number of applications that it knows.",
    ),
    {
        "maximum-am-resource-percent": "the share of a queue that its AMs may use together, as a fraction: 0.1. A "
        "queue may have its own.",
        "maximum-applications": "the number of applications, running and waiting, of the cluster or of a queue.",
        "ACCEPTED": "the state of an application that waits for its AM's container.",
        "activated": "counted as running by the scheduler: its AM may be placed. Others wait for activation.",
    },
    Number("am-percent", 10, 1, 100, f"{SCHEDULER}maximum-am-resource-percent, in percent", (10, 20, 50)),
    set_up,
    play,
    (
        "Hadoop: AbstractLeafQueue.calculateAndGetAMResourceLimitPerPartition, "
        "getUserAMResourceLimitPerPartition, activateApplications and validateSubmitApplication (recordings "
        "masters-511, am-percent-below-0, gap-1-user-am-limit-weight-above-share)",
        "here: rm/scheduler/capacity/activation.py; tests/scenarios/scripts/c1-maximum-applications.txt, "
        "c2-maximum-am-percent.txt and c2-am-limit-of-a-user.txt",
    ),
)
