"""Half an hour of a small production cluster, on nodes that come and go, which is simulated and recorded.

They come and go at known times, or as an autoscaler decides.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.yarnling.recorder.simulated_production import SimulatedRecorder
from yarn.configuration import Configuration
from yarn.resource import Resource
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import RunOptions, run_what_if, what_if_configuration
from yarnling.workload.autoscaling import MemoryPolicy, NodeScaling
from yarnling.workload.model import (
    NodeChange,
    NodeEvent,
    NodeSchedule,
    TaskGroup,
    Workload,
    WorkloadApplication,
    WorkloadNode,
)

MINUTE_MS = 60_000
EVERY_MS = 10_000
AM_START_MS, TASK_START_MS = 3000, 1000
SETTINGS = {
    "yarn.scheduler.capacity.root.queues": "etl,adhoc",
    "yarn.scheduler.capacity.root.etl.capacity": "60",
    "yarn.scheduler.capacity.root.etl.maximum-capacity": "90",
    "yarn.scheduler.capacity.root.etl.user-limit-factor": "2",
    "yarn.scheduler.capacity.root.adhoc.capacity": "40",
    "yarn.scheduler.capacity.root.adhoc.user-limit-factor": "2",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.25",
    "yarn.nm.liveness-monitor.expiry-interval-ms": "60000",
}
NODES = tuple(WorkloadNode(f"h{number}", Resource(10240, 10)) for number in range(1, 9))
SCHEDULE = NodeSchedule(
    (
        NodeEvent(4 * MINUTE_MS, "h8", NodeChange.JOIN),
        NodeEvent(12 * MINUTE_MS, "h7", NodeChange.DRAIN, timeout_s=600),
        NodeEvent(14 * MINUTE_MS, "h6", NodeChange.LOST),
        NodeEvent(18 * MINUTE_MS, "h6", NodeChange.JOIN),
    )
)

FIXED = tuple(WorkloadNode(f"h{number}", Resource(10240, 10)) for number in range(1, 4))
ADDED = tuple(WorkloadNode(f"task-{number}", Resource(10240, 10)) for number in range(1, 8))
SCALED = NodeSchedule(
    scaling=NodeScaling(
        tuple(node.host for node in ADDED), 10240, MemoryPolicy(0.7, 1.0), start_ms=MINUTE_MS, drain_timeout_s=600
    )
)
"""Three nodes, and up to seven others by Dataproc's rule."""


def configuration() -> Configuration:
    return what_if_configuration(None, SETTINGS).conf


def workload() -> Workload:
    """Pipelines of maps and reduces, and queries, more than the cluster can run at once in the first half."""
    return Workload(tuple(sorted(_applications(random.Random("a day")), key=lambda each: each.submit_ms)))


def _applications(draw: random.Random) -> Iterator[WorkloadApplication]:
    def group(count: int, memory_mb: int, seconds: tuple[int, int], after: int | None = None) -> TaskGroup:
        durations = tuple(draw.randint(seconds[0] * 1000, seconds[1] * 1000) for _ in range(count))
        return TaskGroup(Resource(memory_mb, 1), durations, after=after)

    for number in range(56):
        submit_ms = round(draw.triangular(0, 22 * MINUTE_MS, 8 * MINUTE_MS))
        starts = {"am_start_ms": AM_START_MS, "task_start_ms": TASK_START_MS}
        if number % 2:
            groups = (group(draw.randint(6, 16), 2048, (30, 90)), group(draw.randint(2, 5), 4096, (40, 120), after=0))
            kind, queue = "MAPREDUCE", "root.etl"
        else:
            groups = (group(draw.randint(3, 10), 2048, (30, 150)),)
            kind, queue = "SPARK", "root.adhoc"
        yield WorkloadApplication(f"a{number}", submit_ms, "ann", queue, groups, Resource(1024, 1), kind, **starts)  # type: ignore[arg-type]


def record_a_day(
    directory: Path, nodes: Sequence[WorkloadNode] = NODES, schedule: NodeSchedule = SCHEDULE
) -> WhatIfResult:
    """Run the day in full, and record it into the directory; returns what happened."""
    conf = configuration()
    recorder = SimulatedRecorder(directory, conf, every_ms=EVERY_MS)
    options = RunOptions(until_ms=120 * MINUTE_MS, hashed=True, observe=recorder.observe)
    result = run_what_if(conf, workload(), nodes, options, schedule=schedule)
    recorder.poll()
    return result
