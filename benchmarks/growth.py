"""Measures how the cost of a heartbeat grows with the cluster: one dimension of the cluster grows, the others stay.

`idle_us` is the cost of a heartbeat that can place nothing, `place_us` that of a heartbeat that places one container.
Both figures are microseconds of CPU time of the whole core. Ideally, the cost does not grow.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.core_driver import CoreDriver, cpu_s, queues
from yarn.resource import Resource

HEARTBEATS = 1_000
RUNS = 3
NODES = (10, 100, 1_000, 10_000)
APPLICATIONS = (10, 100, 1_000)
QUEUES = (1, 10, 100)

_NODE = Resource(1_048_576, 1_024)


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"idle_us_10_nodes", "place_us_10_nodes", ..., "..._applications", "..._queues": microseconds}."""
    shapes = {
        **{f"{n}_nodes": (n, 10, 10) for n in NODES},
        **{f"{n}_applications": (100, 10, n) for n in APPLICATIONS},
        **{f"{n}_queues": (100, n, 100) for n in QUEUES},
    }
    figures: dict[str, float] = {}
    for name, shape in shapes.items():
        progress(name)
        runs = [_heartbeat_us(*shape) for _ in range(RUNS)]
        figures[f"idle_us_{name}"] = round(statistics.median(idle for idle, _ in runs), 1)
        figures[f"place_us_{name}"] = round(statistics.median(place for _, place in runs), 1)
    return figures


def _heartbeat_us(nodes: int, queue_count: int, applications: int) -> tuple[float, float]:
    """(idle_us, place_us) of one cluster.

    All applications except the youngest get what they requested. Then the youngest requests containers.
    """
    cluster = CoreDriver(nodes, queues(queue_count), _NODE)
    for number in range(applications):
        cluster.run_application(number + 1, f"root.q{number % queue_count}", "user", 0)
    for attempt_id in cluster.attempts:
        cluster.request(attempt_id, 1)
    cluster.beat_until_placed(applications)
    for _ in cluster.nodes:
        cluster.beat()
    idle = cpu_s(lambda: cluster.beat_times(HEARTBEATS))
    cluster.request(cluster.attempts[-1], HEARTBEATS)
    place = cpu_s(lambda: cluster.beat_until_placed(HEARTBEATS))
    return idle / HEARTBEATS * 1e6, place / HEARTBEATS * 1e6
