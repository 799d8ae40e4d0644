"""Builds results of simulations for tests: a small cluster with three queues and what happened in it."""

from __future__ import annotations

import random
from collections.abc import Iterable

from yarn.resource import Resource
from yarnling.report.page import html_of
from yarnling.whatif.compare import compare
from yarnling.whatif.compare_report import comparison_page
from yarnling.whatif.containers import ContainerOutcome, ContainerOutcomes, End
from yarnling.whatif.figures import figures_of
from yarnling.whatif.result import (
    ApplicationOutcome,
    LongWait,
    QueueSample,
    WhatIfResult,
)

MINUTE = 60_000
HOUR = 60 * MINUTE
GB = 1024
NOTHING = Resource(0, 0)


def gigabytes(amount: float) -> Resource:
    return Resource(round(amount * GB), round(amount / 4))


def application(
    name: str = "app", user: str = "ann", queue: str = "root.etl", submitted_ms: int = 0, **others: object
) -> ApplicationOutcome:
    fields = {"am_started_ms": submitted_ms, "ended_ms": submitted_ms + HOUR, "state": "FINISHED", **others}
    return ApplicationOutcome(name, user, queue, submitted_ms, **fields)  # type: ignore[arg-type]


def container(
    requested_ms: int,
    wait_ms: int | None,
    runs_ms: int = MINUTE,
    *,
    app: int = 0,
    end: End | None = End.COMPLETED,
    memory_gb: float = 4,
    withdrawn_ms: int | None = None,
    **others: object,
) -> ContainerOutcome:
    """A container; `wait_ms` None: it was never allocated."""
    size = gigabytes(memory_gb)
    if wait_ms is None:
        return ContainerOutcome(app, requested_ms, None, withdrawn_ms, None, None, size, **others)  # type: ignore[arg-type]
    started_ms = requested_ms + wait_ms
    return ContainerOutcome(app, requested_ms, started_ms, None, started_ms + runs_ms, end, size, **others)  # type: ignore[arg-type]


def sample(time_ms: int, queue: str, used: float, guaranteed: float, maximum: float, **others: object) -> QueueSample:
    """Amounts in GB."""
    pending = gigabytes(float(str(others.pop("pending", 0))))
    reserved = gigabytes(float(str(others.pop("reserved", 0))))
    amounts = (gigabytes(used), reserved, pending, gigabytes(guaranteed), gigabytes(maximum))
    return QueueSample(time_ms, queue, *amounts, 1, 0, **others)  # type: ignore[arg-type]


def result(
    applications: list[ApplicationOutcome],
    containers: Iterable[ContainerOutcome],
    samples: list[QueueSample] | None = None,
    **others: object,
) -> WhatIfResult:
    fields = {
        "title": "Tonight", "configuration": "conf/now", "workload": "tonight.yaml", "seed": 1, "until_ms": 2 * HOUR,
        "cluster": gigabytes(400), "nodes": 4, "leaf_queues": ("root.etl", "root.adhoc", "root.ml"),
        "longest_waits": (), **others,
    }  # fmt: skip
    return WhatIfResult(
        applications=tuple(applications),
        containers=ContainerOutcomes.of(containers),
        samples=tuple(samples or []),
        **fields,  # type: ignore[arg-type]
    )


def busy_day(seed: int = 1, etl_wait_min: float = 12, preempted: float = 0.02, **others: object) -> WhatIfResult:
    """A day of three queues: etl at night, adhoc in working hours, ml the whole day."""
    chance = random.Random(seed)
    shares = {"root.etl": (200, 320), "root.adhoc": (120, 240), "root.ml": (80, 400)}
    waits_min = {"root.etl": etl_wait_min / 3, "root.adhoc": 1.5, "root.ml": 6}
    users = {"root.etl": ["nightly"], "root.adhoc": ["ann", "bob", "cem"], "root.ml": ["dee", "eva"]}
    apps, containers = [], []
    for number in range(90):
        queue = chance.choice(list(shares))
        at = int(24 * HOUR * (chance.random() * 0.3 if queue == "root.etl" else chance.random() * 0.8))
        am_wait_ms = chance.randrange(5 * MINUTE)
        late = queue == "root.etl" and chance.random() < 0.1
        apps.append(
            application(
                f"{queue[5:]}-{number}", chance.choice(users[queue]), queue, at, am_limit_wait_ms=am_wait_ms,
                deadline_ms=2 * HOUR if queue == "root.etl" else None, ended_ms=at + (3 if late else 1) * HOUR,
            )
        )  # fmt: skip
        containers.append(container(at, am_wait_ms, HOUR, app=number, is_am=True, memory_gb=1.5))
        for _ in range(chance.randrange(5, 40)):
            wait = int(chance.expovariate(1 / waits_min[queue]) * MINUTE)
            end = End.PREEMPTED if queue == "root.ml" and chance.random() < 8 * preempted else End.COMPLETED
            locality = chance.choice(["NODE_LOCAL", "RACK_LOCAL", "OFF_SWITCH"])
            containers.append(container(at, wait, 20 * MINUTE, app=number, end=end, locality=locality))
    containers.append(container(23 * HOUR, None, app=89))
    longest = sorted(
        range(len(containers)), key=lambda i: (containers[i].allocated_ms or 0) - containers[i].requested_ms
    )
    return result(
        apps, containers, _samples(shares, chance), until_ms=24 * HOUR, nodes=40,
        longest_waits=tuple(
            LongWait(index, "waits because queue root.etl is at its maximum: 320 of 320 GB are used")
            for index in longest[-10:]
        ),
        **others,
    )  # fmt: skip


def _samples(shares: dict[str, tuple[int, int]], chance: random.Random) -> list[QueueSample]:
    found = []
    for minute in range(0, 24 * 60, 5):
        hour = minute / 60
        wanted = {
            "root.etl": 330 if hour < 8 else 30,
            "root.adhoc": 160 if 8 < hour < 18 else 20,
            "root.ml": 40 + 15 * hour,
        }
        used, left = {}, 400.0
        for queue, (_, maximum) in shares.items():
            used[queue] = max(0.0, min(wanted[queue] * chance.uniform(0.85, 1.05), maximum, left))
            left -= used[queue]
        found.append(sample(minute * MINUTE, "root", sum(used.values()), 400, 400))
        for queue, (guaranteed, maximum) in shares.items():
            pending = max(0.0, wanted[queue] * 1.1 - used[queue])
            found.append(sample(minute * MINUTE, queue, used[queue], guaranteed, maximum, pending=pending))
    return found


def page_of(before: WhatIfResult, after: WhatIfResult) -> str:
    """The page of a comparison of two results."""
    return html_of(comparison_page(compare([figures_of(before)], [figures_of(after)]), (before, after), ()))
