"""Measures heartbeats per second that place nothing, although 100 applications have requests: all are at their user
limits.

Hadoop measures the same situation in TestCapacitySchedulerPerf. In the figures without a suffix, nothing happens
between the heartbeats. In those with `stirred`, an application changes its requests before each heartbeat, so that no
earlier result can be reused.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.core_driver import CoreDriver, cpu_s, queues
from yarn.resource import Resource

APPLICATIONS = 100
HEARTBEATS = 2_000
RUNS = 3
QUEUES = (1, 40)

_NODE = Resource(1_048_576, 1_024)


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"heartbeats_per_s_<Q>_queues" and "..._stirred": heartbeats per second, through the whole core}."""
    figures: dict[str, float] = {}
    for count in QUEUES:
        for stirred in (False, True):
            progress(f"{APPLICATIONS} applications at their limits in {count} queues{', stirred' * stirred}")
            name = f"heartbeats_per_s_{count}_queues{'_stirred' * stirred}"
            figures[name] = round(statistics.median(heartbeats_per_s(count, stirred=stirred) for _ in range(RUNS)))
    return figures


def heartbeats_per_s(queue_count: int, *, stirred: bool) -> float:
    """Heartbeats per second in one run. The time for changing requests is not counted."""
    cluster = rejecting_cluster(queue_count, APPLICATIONS)
    booked = cluster.container_count
    spent = 0.0
    if stirred:
        for number in range(HEARTBEATS):
            cluster.request(cluster.attempts[number % APPLICATIONS], 50 + number % 7)
            spent += cpu_s(cluster.beat, sweep=False)
    else:
        spent = cpu_s(lambda: cluster.beat_times(HEARTBEATS))
    if cluster.container_count != booked:
        raise RuntimeError("A container was placed, although all applications should be at their user limits.")
    return HEARTBEATS / spent


def rejecting_cluster(queue_count: int, applications: int) -> CoreDriver:
    """A core with two large nodes.

    Each queue has one user, who has reached a user limit that is a tiny part of the queue.
    """
    cluster = CoreDriver(2, queues(queue_count, user_limit_factor="0.1"), _NODE)
    for number in range(applications):
        cluster.run_application(number + 1, f"root.q{number % queue_count}", "user", 0)
    for attempt_id in cluster.attempts:
        cluster.request(attempt_id, 10_000)
    before = -1
    while cluster.container_count != before:
        before = cluster.container_count
        for _ in range(len(cluster.nodes) * 2):
            cluster.beat()
    return cluster
