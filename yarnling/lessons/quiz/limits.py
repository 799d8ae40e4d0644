"""Questions about sizes and limits: rounding, headroom, user limits, the order of queues."""

from __future__ import annotations

import random

from yarn.resource import Resource
from yarnling.lessons.quiz.question import QuizQuestion
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.settings import SCHEDULER
from yarnling.lessons.scene.stage import Stage
from yarnling.lessons.scene.story import Rows, Text
from yarnling.run.names import am

SIZE = Resource(1024, 1)
NODE_MB = 8192
SETTLED_S = 20.0
"""By then everything that can be placed has been placed."""
DRAWS_MAX = 100


def submit(draw: random.Random) -> QuizQuestion:
    step_mb = draw.choice((256, 512, 1024, 2048))
    wanted_mb = draw.randint(100, 6000)
    stage = Stage(nodes=1, settings={"yarn.scheduler.minimum-allocation-mb": str(step_mb)}, encode=False)
    stage.submit(2.0, "ann", (Wanted(1, SIZE),), am_size=Resource(wanted_mb, 1))
    stage.run(4)
    (held_mb,) = (each.resource.memory_mb for each in stage.held("ann") if each.is_am)
    return QuizQuestion(
        (Text(f"yarn.scheduler.minimum-allocation-mb is {step_mb}. ann's AM requests {wanted_mb} MB."),),
        "How much memory (MB) does the AM's container hold?",
        f"{held_mb} MB",
        (
            f"Requests are rounded up to a multiple of {step_mb} MB: {held_mb // step_mb} x {step_mb} = {held_mb} MB.",
            f"{held_mb - wanted_mb} MB more than requested are held.",
        ),
    )


def _queues(capacities: dict[str, int], **others: int | str) -> dict[str, str]:
    """Settings for leaf queues below the root with these percentages, and the same other keys for each."""
    settings = {f"{SCHEDULER}root.queues": ",".join(capacities)}
    for name, percent in capacities.items():
        settings[f"{SCHEDULER}root.{name}.capacity"] = str(percent)
        for key, value in others.items():
            settings[f"{SCHEDULER}root.{name}.{key.replace('_', '-')}"] = str(value)
    return settings


def headroom(draw: random.Random) -> QuizQuestion:
    percent, factor, maximum = draw.randint(2, 8) * 10, draw.choice((1, 1, 2, 3)), draw.choice((60, 80, 100))
    settings = _queues({"a": percent, "b": 100 - percent}, user_limit_factor=10)
    settings |= {
        f"{SCHEDULER}root.a.user-limit-factor": str(factor),
        f"{SCHEDULER}root.a.maximum-capacity": str(max(maximum, percent)),
    }
    nodes = draw.randint(2, 4)
    stage = Stage(nodes=nodes, settings=settings, encode=False)
    stage.submit(2.0, "ann", (Wanted(draw.randint(1, 6), SIZE),), queue="a")
    stage.submit(2.5, "bob", (Wanted(draw.randint(1, 8), SIZE),), queue="b")
    stage.run(SETTLED_S)
    queue = stage.queue("a")
    user_mb = stage.use("ann").limit.memory_mb
    ann_mb, bob_mb = (stage.use(name).used.memory_mb for name in ("ann", "bob"))
    total_mb = stage.view.cluster_resource().memory_mb
    guarantee_mb, maximum_mb = queue.guaranteed.memory_mb, queue.maximum.memory_mb
    count = len(stage.account.allocate_replies)
    stage.run_until(
        lambda: any(who == am("ann") for _, who, _ in stage.account.allocate_replies[count:]), SETTLED_S + 9
    )
    reply = next(reply for _, who, reply in stage.account.allocate_replies[count:] if who == am("ann"))
    return QuizQuestion(
        (
            Text(
                f"{nodes} nodes of {NODE_MB} MB; containers are multiples of 1024 MB. Queue a is guaranteed "
                f"{guarantee_mb} MB ({percent} %), its maximum is {maximum_mb} MB, its user-limit-factor {factor}. "
                "Nobody waits for anything."
            ),
            Rows(("user", "queue", "uses"), (("ann", "a", f"{ann_mb} MB"), ("bob", "b", f"{bob_mb} MB"))),
        ),
        "Which headroom (MB) does the next allocate reply report to ann's AM?",
        f"{reply.headroom.memory_mb} MB",
        (
            "Headroom is the least of three, in whole multiples of 1024 MB.",
            f"Her user limit leaves {user_mb} - {ann_mb} = {max(0, user_mb - ann_mb)} MB. The limit of a user who is "
            "alone is the queue's guarantee, or, once the queue uses more than that, what it uses and one container "
            f"more; at most {factor} x {guarantee_mb} MB; rounded up to whole containers.",
            f"The queue's maximum leaves {maximum_mb} - {ann_mb} = {max(0, maximum_mb - ann_mb)} MB.",
            f"The cluster has {total_mb} - {ann_mb + bob_mb} = {total_mb - ann_mb - bob_mb} MB free.",
        ),
    )


def user_limit(draw: random.Random) -> QuizQuestion:
    percent, factor, nodes = draw.randint(2, 7) * 10, draw.choice((1, 1, 2, 3)), draw.randint(2, 4)
    settings = _queues({"a": percent, "b": 100 - percent}, user_limit_factor=factor)
    stage = Stage(nodes=nodes, settings=settings, encode=False)
    stage.submit(2.0, "ann", (Wanted(100, SIZE),), queue="a")
    stage.run(SETTLED_S)
    ann = stage.use("ann")
    used_mb, guarantee_mb, limit_mb = ann.used.memory_mb, ann.guaranteed.memory_mb, ann.limit.memory_mb
    total_mb = stage.view.cluster_resource().memory_mb
    if used_mb == total_mb:
        end = f"The cluster has no more than {total_mb} MB; the limit would have allowed {limit_mb} MB and a container."
    else:
        end = (
            f"A user who is at the limit, and not above it, gets one container more: she stops at {used_mb} MB, the "
            f"first multiple of 1024 MB above {limit_mb} MB."
        )
    return QuizQuestion(
        (
            Text(
                f"{nodes} nodes of {NODE_MB} MB. Queue a is guaranteed {guarantee_mb} MB ({percent} %), its maximum is "
                f"the whole cluster, its user-limit-factor {factor}. Queue b is idle."
            ),
        ),
        "ann is alone and requests 100 containers of 1024 MB from queue a; her AM has 1024 MB too. How much memory "
        "(MB) does she use when she gets no more?",
        f"{used_mb} MB",
        (
            f"Her user limit is at most user-limit-factor x guarantee = {factor} x {guarantee_mb} = "
            f"{factor * guarantee_mb} MB, in whole containers {limit_mb} MB.",
            end,
        ),
    )


def queue(draw: random.Random) -> QuizQuestion:
    capacities, counts = _unequal(draw)
    names = tuple(capacities)
    stage = Stage(nodes=5, settings=_queues(capacities, user_limit_factor=10), encode=False)
    for name, count in zip(names, counts, strict=True):
        stage.submit(2.0, f"old-{name}", (Wanted(count, SIZE),), user=f"user-{name}", queue=name)
    stage.run(SETTLED_S)
    rows = tuple(_queue_row(stage, name) for name in names)
    for name in names:
        stage.submit(SETTLED_S, f"new-{name}", (Wanted(1, SIZE),), user=f"user-{name}", queue=name)
    first: list[str] = []

    def is_placed() -> bool:
        first[:] = [name for name in names if stage.held(f"new-{name}")]
        return bool(first)

    stage.run_until(is_placed, SETTLED_S + 10)
    return QuizQuestion(
        (
            Text(
                "In each queue an application has just been submitted; its AM waits for 1024 MB. Node n1 has free "
                "memory."
            ),
            Rows(("queue", "used", "guaranteed"), tuple(row[:3] for row in rows)),
        ),
        "A heartbeat arrives. Which queue is served first?",
        first[0],
        (
            "The queue that uses the smallest part of its guarantee comes first: "
            + ", ".join(f"{row[0]} {row[3]}" for row in rows)
            + ".",
        ),
        names,
    )


def _unequal(draw: random.Random) -> tuple[dict[str, int], list[int]]:
    """({queue: percent}, containers in each), no two of which use the same part of their guarantee."""
    capacities, counts = {"a": 50, "b": 30, "c": 20}, [1, 2, 3]
    for _ in range(DRAWS_MAX):
        percents = draw.choice(((50, 30, 20), (40, 40, 20), (60, 20, 20), (34, 33, 33)))
        capacities = dict[str, int](zip("abc", percents, strict=True))
        counts = [draw.randint(1, 8) for _ in percents]
        uses = sorted((1024 + 1024 * count) / percent for count, percent in zip(counts, percents, strict=True))
        if min(uses[1] - uses[0], uses[2] - uses[1]) > 1:
            break
    return capacities, counts


def _queue_row(stage: Stage, name: str) -> tuple[str, ...]:
    queue = stage.queue(name)
    used_mb, guarantee_mb = queue.used.memory_mb, queue.guaranteed.memory_mb
    return name, f"{used_mb} MB", f"{guarantee_mb} MB", f"{100 * used_mb / guarantee_mb:.1f} %"
