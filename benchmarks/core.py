"""Measures how many containers a second the ResourceManager's core places, in one process without RPCs and clocks.

There are 10,000 containers in all. The requests are for any node, so that each heartbeat places one container. The
nodes send heartbeats in turn. Only the heartbeats are timed, until the last container is placed.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.core_driver import CoreDriver, cpu_s, queues
from yarn.resource import Resource

CONTAINERS = 10_000
RUNS = 3
"""The number of times that each shape is measured; the median is reported."""

NODE = Resource(65_536, 64)


class Shape(NamedTuple):
    """The size of a cluster. Applications are spread evenly over the queues, and containers over the applications."""

    nodes: int
    queues: int
    applications: int


SHAPES = {
    "containers_per_s_500": Shape(500, 2, 4),
    "containers_per_s_1000": Shape(1_000, 2, 4),
    "containers_per_s_5000": Shape(5_000, 2, 4),
    "containers_per_s_1000_with_100_applications": Shape(1_000, 10, 100),
    "containers_per_s_1000_with_1000_applications": Shape(1_000, 10, 1_000),
}


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{figure: containers placed per second} for each shape."""
    figures: dict[str, float] = {}
    for name, shape in SHAPES.items():
        progress(f"{CONTAINERS:,} containers of {shape.applications:,} applications on {shape.nodes:,} nodes")
        figures[name] = round(statistics.median(containers_per_s(shape) for _ in range(RUNS)))
    return figures


def containers_per_s(shape: Shape) -> float:
    """Containers placed per second in one run."""
    cluster = CoreDriver(shape.nodes, queues(shape.queues), NODE)
    request_containers(cluster, shape.queues, shape.applications, CONTAINERS)
    return CONTAINERS / cpu_s(lambda: cluster.beat_until_placed(CONTAINERS))


def request_containers(cluster: CoreDriver, queue_count: int, applications: int, containers: int) -> None:
    """Start all applications, then have each request its part of the containers."""
    for number in range(applications):
        cluster.run_application(number + 1, f"root.q{number % queue_count}", "user", 0)
    for attempt_id in cluster.attempts:
        cluster.request(attempt_id, containers // applications)
