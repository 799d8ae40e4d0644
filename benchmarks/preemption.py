"""Measures the speed of preemption: one queue's containers fill 5,000 nodes, and another queue is entitled to half.

`quiet`: rounds per second without pending requests, the cost of preemption in a cluster without demand. `choosing`:
rounds per second that each select half of all containers, none of which ends yet. `victims`: containers per second in
the round that kills them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable

from benchmarks.core_driver import CoreDriver, cpu_s, queues
from rm.core.resource_manager import ResourceManagerCore
from yarn.resource import Resource

NODES = 5_000
APPLICATIONS = 20
"""The number of applications in the queue that fills the cluster. Each has another user."""
ROUNDS = 5
RUNS = 3

_NODE = Resource(2_048, 2)
_WAIT_MS = 1_000
_MONITOR = "yarn.resourcemanager.monitor.capacity.preemption."
_PREEMPTION = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    _MONITOR + "monitoring_interval": str(10**12),
    _MONITOR + "max_wait_before_kill": str(_WAIT_MS),
    _MONITOR + "total_preemption_per_round": "1.0",
    _MONITOR + "natural_termination_factor": "1.0",
    "yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments": "10",
}


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{figure: number per second of CPU}."""
    progress(f"{NODES:,} nodes with {2 * NODES:,} containers")
    quiet, choosing, victims = zip(*(_run() for _ in range(RUNS)), strict=True)
    return {
        f"quiet_rounds_per_s_{NODES}": round(statistics.median(quiet), 1),
        f"choosing_rounds_per_s_{NODES}": round(statistics.median(choosing), 1),
        f"victims_per_s_{NODES}": round(statistics.median(victims)),
    }


def _run() -> tuple[float, float, float]:
    cluster = CoreDriver(NODES, queues(2) | _PREEMPTION, _NODE)
    owed = cluster.run_application(APPLICATIONS + 1, "root.q1", "owed", 0)
    rich = [cluster.run_application(number + 1, "root.q0", f"user{number}", 0) for number in range(APPLICATIONS)]
    for attempt_id in rich:
        cluster.request(attempt_id, 2 * NODES)
    cluster.beat_until_placed(2 * NODES - APPLICATIONS - 1)
    quiet = ROUNDS / cpu_s(lambda: _rounds(cluster.core, range(ROUNDS)))
    cluster.request(owed, NODES)
    choosing = ROUNDS / cpu_s(lambda: _rounds(cluster.core, range(ROUNDS)))
    before = cluster.container_count
    spent_s = cpu_s(lambda: _rounds(cluster.core, [_WAIT_MS + ROUNDS]))
    return quiet, choosing, (before - cluster.container_count) / spent_s


def _rounds(core: ResourceManagerCore, clock: Iterable[int]) -> None:
    for now_ms in clock:
        core.scheduler.monitor.run(now_ms)
