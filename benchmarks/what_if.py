"""The speed at which a day of a cluster is simulated: `yarnling simulate --workload`, with Hadoop's intervals.

The workload is drawn: applications come evenly over the day, their sizes and the lengths of their tasks vary. The time
is that of the CPU, from the start of the simulated cluster to the finished result.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from typing import NamedTuple

from yarn.resource import Resource
from yarn.settings.scheduler import PREFIX
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import RunOptions, run_what_if, what_if_configuration
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication, WorkloadNode

NODE = Resource(65_536, 32)
NODES_IN_RACK = 40
TASK = Resource(2048, 1)
TASK_LOG_MEAN_S = 4.0
TASK_LOG_SIGMA = 0.8
"""The lengths of tasks are lognormal: the median is a minute, the mean 75 s."""
QUEUES = ("etl", "adhoc", "reports", "science")
SETTINGS = {
    f"{PREFIX}root.queues": ",".join(QUEUES),
    **{f"{PREFIX}root.{queue}.capacity": "25" for queue in QUEUES},
    **{f"{PREFIX}root.{queue}.user-limit-factor": "4" for queue in QUEUES},
}
HOUR_MS = 3_600_000


class Shape(NamedTuple):
    nodes: int
    applications: int
    containers: int
    hours: int


SHAPES = {
    "hour_of_100_nodes": Shape(100, 42, 833, 1),
    "hour_of_1000_nodes": Shape(1000, 208, 4167, 1),
    "day_of_100_nodes": Shape(100, 1000, 20_000, 24),
}
FURTHER = {
    "day_of_1000_nodes": Shape(1000, 5000, 100_000, 24),
}
"""Too long for every run: python -c 'from benchmarks.what_if import *; print(run(FURTHER["day_of_1000_nodes"]))'"""


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{figure: seconds of CPU, or containers for a second of CPU}."""
    figures: dict[str, float] = {}
    for name, shape in SHAPES.items():
        progress(name)
        cpu_s, result = run(shape)
        figures[f"cpu_s_{name}"] = round(cpu_s, 1)
        figures[f"containers_per_cpu_s_{name}"] = round(len(result.containers) / cpu_s)
    return figures


def run(shape: Shape, seed: int = 1) -> tuple[float, WhatIfResult]:
    """(seconds of CPU, what came of it)."""
    racks = (f"/rack-{number // NODES_IN_RACK}" for number in range(shape.nodes))
    nodes = [WorkloadNode(f"n{number:05}", NODE, rack) for number, rack in enumerate(racks)]
    workload, conf = drawn_workload(shape, seed), what_if_configuration(None, SETTINGS).conf
    gc.collect()
    started_s = time.process_time()
    result = run_what_if(conf, workload, nodes, RunOptions(seed, shape.hours * HOUR_MS))
    return time.process_time() - started_s, result


def drawn_workload(shape: Shape, seed: int) -> Workload:
    """The applications, in the order of their submission."""
    draw = random.Random(seed)
    mean = shape.containers / shape.applications
    applications = [
        WorkloadApplication(
            f"app-{number}",
            submit_ms,
            f"user-{draw.randrange(20)}",
            draw.choice(QUEUES),
            (TaskGroup(TASK, _durations(draw, max(1, round(draw.expovariate(1 / mean))))),),
        )
        for number, submit_ms in enumerate(
            sorted(draw.randrange(shape.hours * HOUR_MS) for _ in range(shape.applications))
        )
    ]
    return Workload(tuple(applications))


def _durations(draw: random.Random, count: int) -> tuple[int, ...]:
    return tuple(round(1000 * draw.lognormvariate(TASK_LOG_MEAN_S, TASK_LOG_SIGMA)) for _ in range(count))
