"""Chapter 6: queues share by guarantees, users share a queue."""

from __future__ import annotations

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.settings import SCHEDULER
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.simulation.trace_file import RunTrace

SIZE = Resource(1024, 1)
ALONE_UNTIL_S = 20.0
BOTH_UNTIL_S = 70.0
SETTINGS = {
    f"{SCHEDULER}root.queues": "a,b",
    f"{SCHEDULER}root.a.capacity": "50",
    f"{SCHEDULER}root.b.capacity": "50",
    f"{SCHEDULER}root.a.minimum-user-limit-percent": "50",
}


def set_up(factor: int, trace: RunTrace | None = None) -> Stage:
    stage = Stage(nodes=2, settings={**SETTINGS, f"{SCHEDULER}root.a.user-limit-factor": str(factor)}, trace=trace)
    wanted = (Wanted(200, SIZE, seconds=15),)
    stage.submit(2.0, "ann", wanted, queue="a")
    stage.submit(ALONE_UNTIL_S, "bob", wanted, queue="a")
    return stage


def play(factor: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(factor, trace)
    narrator = Narrator(stage, participants(stage, "ann"))
    narrator.say(
        "Two nodes of 8192 MB. Queue a and queue b are each guaranteed half. ann submits to a an application with 200 "
        "containers of 1024 MB, which run for 15 s each. Nobody uses b."
    )
    stage.run(1.999)
    narrator.skip()
    stage.run(4.6)
    narrator.show(kinds=("RMApp",), hidden=("getNewApplication", "submitApplication"))
    narrator.say(f"... and so on, one container for each heartbeat of a node. At {ALONE_UNTIL_S:.0f} s:")
    stage.run(ALONE_UNTIL_S - 0.001)
    alone_mb = _used_mb(stage, "ann")
    _usage(stage, narrator, "ann")
    _explain(stage, narrator, "ann")
    narrator.say(
        "Now bob submits the same to queue a. He gets what is free, and what becomes free while he has less than his "
        f"share. At {BOTH_UNTIL_S:.0f} s:"
    )
    stage.run(BOTH_UNTIL_S)
    _usage(stage, narrator, "ann", "bob")
    _explain(stage, narrator, "ann", "bob")
    together_mb, bob_mb = _used_mb(stage, "ann"), _used_mb(stage, "bob")
    return narrator.story(
        _question(stage, factor, alone_mb, together_mb, bob_mb),
        {"alone_mb": alone_mb, "together_mb": together_mb, "bob_mb": bob_mb},
    )


def _used_mb(stage: Stage, name: str) -> int:
    return stage.use(name).used.memory_mb


def _usage(stage: Stage, narrator: Narrator, *names: str) -> None:
    queue, total = stage.queue("a"), stage.view.cluster_resource()
    rows = [(f"user {name}", f"{_used_mb(stage, name)} MB", "", "") for name in names]
    used, guarantee, maximum = queue.used, queue.guaranteed, queue.maximum
    narrator.table(
        ("", "used", "guaranteed", "maximum"),
        *rows,
        ("queue a", f"{used.memory_mb} MB", f"{guarantee.memory_mb} MB", f"{maximum.memory_mb} MB"),
        ("cluster", f"{used.memory_mb} MB", f"{total.memory_mb} MB", ""),
    )


def _explain(stage: Stage, narrator: Narrator, *names: str) -> None:
    for name in names:
        verdict = stage.verdict(name)
        if verdict:
            narrator.say(f"yarnling explain: {name}'s next container {verdict}.")


def _question(stage: Stage, factor: int, alone_mb: int, together_mb: int, bob_mb: int) -> Question:
    guarantee_mb = stage.queue("a").guaranteed.memory_mb
    total_mb = stage.view.cluster_resource().memory_mb
    bound_mb = factor * guarantee_mb
    why = [
        f"No user may use more than user-limit-factor x the queue's guarantee: {factor} x {guarantee_mb} = {bound_mb} "
        "MB.",
    ]
    if alone_mb > bound_mb:
        why.append(
            f"She has {alone_mb} MB: the scheduler checks what she has before it places a container, not what she "
            "would have. At the limit, and not above it, she gets one container more."
        )
    if bound_mb < total_mb:
        why.append(
            f"The other {total_mb - alone_mb} MB stay idle while ann waits: this is the price of factor {factor}."
        )
    else:
        why.append(
            f"That is all of the cluster ({total_mb} MB) or more, so ann borrows the idle guarantee of queue b: the "
            "queue is elastic, up to its maximum."
        )
    why.append(
        "With two active users the limit of each is the greater of an equal share of what both use, and "
        f"minimum-user-limit-percent (50) of the queue: ann ended with {together_mb} MB and bob with {bob_mb} MB."
    )
    return Question(
        f"user-limit-factor is {factor}. How much memory does ann use while she is alone, and how much once bob has "
        "been active in the same queue for a while?",
        f"{alone_mb} MB alone, {together_mb} MB with bob",
        tuple(why),
    )


LESSON = Lesson(
    6,
    "users",
    "Users and elasticity: who gets how much of a queue",
    (
        "The CapacityScheduler divides the cluster among queues. Each queue has a guarantee, and may borrow what "
        "others leave idle, up to its maximum. Within a queue, the users share: a user limit keeps one user from "
        "taking all.",
    ),
    {
        "queue": "a part of the cluster with a guarantee; applications are submitted to a queue.",
        "capacity": "a queue's guarantee, in percent of its parent.",
        "user limit": "what one user may use in a queue now; it depends on who else is active there.",
        "active user": "a user with requests that wait.",
        "user-limit-factor": "the largest multiple of the queue's guarantee that one user may ever use.",
        "elasticity": "that a queue may use more than its guarantee while others leave theirs idle.",
    },
    Number("user-limit-factor", 1, 1, 10, "yarn.scheduler.capacity.root.a.user-limit-factor", (1, 2, 3)),
    set_up,
    play,
    (
        "Hadoop: UsersManager.computeUserLimit, AbstractLeafQueue.canAssignToUser",
        "here: rm/scheduler/capacity/limits.py, docs/explain.md",
    ),
)
