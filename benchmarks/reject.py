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

REQUESTED = 10_000
"""Containers that each application requests at first: more than its user may have."""

NODES = 2
NODE = Resource(1_048_576, 1_024)


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"heartbeats_per_s_<Q>_queues" and "..._stirred": heartbeats per second, through the whole core}."""
    figures: dict[str, float] = {}
    for count in QUEUES:
        for stirred in (False, True):
            progress(f"{APPLICATIONS} applications at their limits in {count} queues{', stirred' * stirred}")
            name = figure_name(count, stirred=stirred)
            figures[name] = round(statistics.median(heartbeats_per_s(count, stirred=stirred) for _ in range(RUNS)))
    return figures


def figure_name(queue_count: int, *, stirred: bool) -> str:
    return f"heartbeats_per_s_{queue_count}_queues{'_stirred' * stirred}"


def heartbeats_per_s(queue_count: int, *, stirred: bool) -> float:
    """Heartbeats per second in one run. The time for changing requests is not counted."""
    cluster = rejecting_cluster(queue_count, APPLICATIONS)
    return HEARTBEATS / rejecting_cpu_s(cluster, HEARTBEATS, stirred=stirred)


def rejecting_cluster(queue_count: int, applications: int) -> CoreDriver:
    """A core with two large nodes, whose users have all reached their limits."""
    cluster = CoreDriver(NODES, limited_queues(queue_count), NODE)
    reach_limits(cluster, queue_count, applications)
    return cluster


def limited_queues(count: int) -> dict[str, str]:
    """The configuration of queues whose user limit is a tiny part of the queue. Each has one user."""
    return queues(count, user_limit_factor="0.1")


def reach_limits(cluster: CoreDriver, queue_count: int, applications: int) -> None:
    """Start applications, and have them request containers until their users have reached their limits."""
    for number in range(applications):
        cluster.run_application(number + 1, f"root.q{number % queue_count}", "user", 0)
    for attempt_id in cluster.attempts:
        cluster.request(attempt_id, REQUESTED)
    before = -1
    while cluster.container_count != before:
        before = cluster.container_count
        cluster.beat_times(len(cluster.nodes) * 2)


def rejecting_cpu_s(cluster: CoreDriver, heartbeats: int, *, stirred: bool) -> float:
    """The seconds of CPU of heartbeats that place nothing."""
    attempts = cluster.attempts
    booked = cluster.container_count
    spent = 0.0
    if stirred:
        for number in range(heartbeats):
            cluster.request(attempts[number % len(attempts)], 50 + number % 7)
            spent += cpu_s(cluster.beat, sweep=False)
    else:
        spent = cpu_s(lambda: cluster.beat_times(heartbeats))
    if cluster.container_count != booked:
        raise RuntimeError("A container was placed, although all applications should be at their user limits.")
    return spent
