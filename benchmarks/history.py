"""Measures what the history of a cluster costs: its share of a busy ResourceManager's time, and its memory.

The ResourceManager is never idle here: between two samples it handles requests and heartbeats for as many seconds of
CPU as the sampler waits. Samples are timed apart from the work, because two runs of the same work differ by more.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

from benchmarks.core_driver import CoreDriver, cpu_s, queues
from rm.core.history.cluster_history import COARSE, FINE, NODE_COLUMNS, QUEUE_COLUMNS, ClusterHistory
from rm.core.history.curves import StepCurves
from rm.scheduler.model.health import SchedulerHealth
from rm.shell.history_sampler import HistorySampler
from yarn.resource import Resource

QUEUES, NODES, APPLICATIONS = 500, 200, 1_000
NODE = Resource(16_384, 16)
SAMPLES = 5
STEPS = 200
"""Requests and heartbeats between two looks at the time."""


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"percent_busy": samples in per cent of all CPU, "sample_ms" and "sample_ms_quiet": CPU of one, with changes and
    without, "kb_day": memory after a day in which every queue and node changed at every sample}.
    """
    progress(f"{QUEUES} queues, {NODES} nodes, {APPLICATIONS} applications")
    cluster = CoreDriver(NODES, queues(QUEUES), NODE)
    cluster.core.scheduler.context.health = SchedulerHealth(cluster.core.scheduler.context.none)
    for number in range(APPLICATIONS):
        cluster.run_application(number + 1, f"root.q{number % QUEUES}", "user", 20)
    cluster.beat_times(2 * NODES)
    sampler = HistorySampler(ClusterHistory(cluster.core.context), lambda: cluster.now_ms)
    sampler.sample()
    sampled_s = worked_s = 0.0
    for number in range(SAMPLES):
        progress(f"sample {number + 1} of {SAMPLES}")
        waited_s = 0.0
        wait_s = FINE.step_ms / 1000
        while waited_s < wait_s:
            waited_s += cpu_s(lambda: _work(cluster), sweep=False)
        cluster.now_ms += FINE.step_ms
        worked_s += waited_s
        sampled_s += cpu_s(sampler.sample)
    cluster.now_ms += FINE.step_ms
    for _ in range(APPLICATIONS):  # until each application has been explained
        sampler.sample()
    cluster.now_ms += FINE.step_ms
    return {
        "percent_busy": round(100 * sampled_s / (sampled_s + worked_s), 2),
        "sample_ms": round(1000 * sampled_s / SAMPLES, 1),
        "sample_ms_quiet": round(1000 * cpu_s(sampler.sample), 2),
        "kb_day": _kb_of_a_day(progress),
    }


def _work(cluster: CoreDriver) -> None:
    """Changes of requests, each followed by the heartbeat of a node."""
    attempts = cluster.attempts
    for number in range(STEPS):
        cluster.request(attempts[(cluster.now_ms + number) % len(attempts)], 20 + number % 7)
        cluster.beat()


def _kb_of_a_day(progress: Callable[[str], None]) -> float:
    """The memory of the curves of queues and nodes in both resolutions, each row different from the one before."""
    progress("the memory of a day")
    gc.collect()
    tracemalloc.start()
    kept = []
    for resolution in (FINE, COARSE):
        for count, width in ((QUEUES, len(QUEUE_COLUMNS)), (NODES, len(NODE_COLUMNS))):
            curves = StepCurves(width, resolution)
            for number in range(resolution.rows_max):
                curves.note(number, {str(name): (number,) * width for name in range(count)})
            kept.append(curves)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return round(size / 1024)
