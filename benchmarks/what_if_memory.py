"""The memory that a container which has ended costs in a simulated workload: what stays of it until the end of the run.

Two runs are compared that differ only in the number of containers, of which one has twice as many, half as long. Both
are measured at their ends, after a pause in which the time passed for which NMs and the RM keep what is over. A last
application wakes all NMs then: one without news looks at nothing.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

from benchmarks.lives import TASK, Full, full_workload, inputs
from yarn.settings.scheduler import PREFIX
from yarnling.whatif.run import HowFar, RunOptions, run_what_if, what_if_configuration
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication

NODES, MINUTES, CONTAINER_S = 20, 10, 30
KEPT_MS = 60_000
"""The time for which NMs keep containers that have ended, and tokens are valid."""
TASKS_OF_NODE = 16
SETTINGS = {
    "yarn.nodemanager.duration-to-track-stopped-containers": f"{KEPT_MS}",
    "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms": f"{KEPT_MS}",
    "yarn.resourcemanager.max-completed-applications": "2",
    f"{PREFIX}maximum-am-resource-percent": "1",
}


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"bytes_per_ended_container": ..., "containers": the number of containers in the larger run}."""
    progress(f"{NODES} nodes, {MINUTES} minutes, twice")
    extra_bytes, containers = growth(NODES, MINUTES, CONTAINER_S)
    return {"bytes_per_ended_container": round(extra_bytes / containers), "containers": 2 * containers}


def growth(nodes: int, minutes: int, container_s: int) -> tuple[int, int]:
    """(bytes, containers) that the run with containers of half the length holds more at its end."""
    few_bytes, few = _held(Full(nodes, minutes, container_s))
    many_bytes, many = _held(Full(nodes, minutes, container_s // 2))
    return many_bytes - few_bytes, many - few


def _held(case: Full) -> tuple[int, int]:
    """(bytes that the run holds, without the workload; the number of containers that have ended)."""
    conf, _, nodes, _ = inputs(case)
    conf = what_if_configuration(None, {**conf.values(), **SETTINGS}).conf
    last_ms = int(case.minutes * 60_000) + 3 * KEPT_MS
    workload = _with_a_last_application(full_workload(case), last_ms, case.nodes)
    held = 0

    def note(how_far: HowFar) -> bool:
        nonlocal held
        if how_far.now_ms >= last_ms:
            gc.collect()
            held = tracemalloc.get_traced_memory()[0]
        return True

    tracemalloc.start()
    try:
        result = run_what_if(conf, workload, nodes, RunOptions(), note)
    finally:
        tracemalloc.stop()
    return held, len(result.containers)


def _with_a_last_application(workload: Workload, submit_ms: int, nodes: int) -> Workload:
    """The workload, and an application with enough short tasks for all nodes."""
    tasks = TaskGroup(TASK, (1000,) * (nodes * TASKS_OF_NODE))
    return Workload((*workload.applications, WorkloadApplication("last", submit_ms, "user-0", "etl", (tasks,))))
