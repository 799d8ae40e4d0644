"""The speed of a simulated cluster: virtual seconds, and whole lives of containers, for each second of CPU.

Hadoop's intervals, invariants not checked, messages not encoded but where the name says so. Quiet heartbeats are left
out, except in the shapes of ALL_HEARTBEATS, which are measured alternately with the others. Under load 20 or 40
applications keep every node full of containers of a minute, in `churn` of five seconds. The start of the cluster and
the first minute are not timed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from yarn.resource import Resource
from yarn.settings import resourcemanager, scheduler
from yarnling.cluster.configuration import composed, node_sizes
from yarnling.faults.history import History, ProcessRole
from yarnling.faults.plan import WorkPlan
from yarnling.simulation.client import SimulatedClient
from yarnling.simulation.cluster import ClusterShape, SimulatedCluster
from yarnling.simulation.conditions import STEADY
from yarnling.simulation.engine import Engine
from yarnling.simulation.workload import emulation_table

NODE = Resource(1024, 8)
"""Eight containers."""
SETTINGS = {
    scheduler.MINIMUM_ALLOCATION_MB.key: "128",
    f"{scheduler.PREFIX}maximum-am-resource-percent": "0.9",
    resourcemanager.RECOVERY_ENABLED.key: "true",
}
RAMP_MS = 70_000


class Shape(NamedTuple):
    nodes: int
    is_loaded: bool
    virtual_s: int
    encode: bool = False
    container_s: float = 60.0
    applications: int = 20


SHAPES = {
    "10_idle": Shape(10, False, 86_400),
    "100_idle": Shape(100, False, 86_400),
    "1000_idle": Shape(1000, False, 86_400),
    "10000_idle": Shape(10_000, False, 7200),
    "10_loaded": Shape(10, True, 600),
    "100_loaded": Shape(100, True, 60),
    "1000_loaded": Shape(1000, True, 20, applications=40),
    "100_loaded_encoded": Shape(100, True, 30, encode=True),
    "100_churn": Shape(100, True, 20, container_s=5.0),
}
ALL_HEARTBEATS = {
    "10_idle": Shape(10, False, 600),
    "100_idle": Shape(100, False, 60),
    "1000_idle": Shape(1000, False, 10),
    "10_loaded": Shape(10, True, 300),
    "100_loaded": Shape(100, True, 60),
    "1000_loaded": Shape(1000, True, 10, applications=40),
    "100_churn": Shape(100, True, 20, container_s=5.0),
}


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{figure: virtual seconds, or containers, for a second of CPU}."""
    figures: dict[str, float] = {}
    for name, shape in SHAPES.items():
        progress(name)
        figures |= _figures(name, shape, all_heartbeats=False)
        if name in ALL_HEARTBEATS:
            figures |= _figures(f"{name}_all_heartbeats", ALL_HEARTBEATS[name], all_heartbeats=True)
    return figures


def _figures(name: str, shape: Shape, *, all_heartbeats: bool) -> dict[str, float]:
    virtual, lives = run(shape, all_heartbeats=all_heartbeats)
    figures: dict[str, float] = {f"virtual_s_per_cpu_s_{name}": round(virtual)}
    if shape.is_loaded:
        figures[f"containers_per_cpu_s_{name}"] = round(lives)
    return figures


def run(shape: Shape, *, all_heartbeats: bool) -> tuple[float, float]:
    """(virtual seconds, containers that ended) for each second of CPU."""
    engine, history = Engine(1), History()
    conf = composed(None, SETTINGS, node_sizes(NODE.memory_mb, NODE.vcores))
    slots = shape.nodes * NODE.memory_mb // 128
    rounds = 2 + (RAMP_MS / 1000 + shape.virtual_s) / shape.container_s if shape.is_loaded else 0
    tasks = int(slots * rounds / shape.applications) + 1
    works = (WorkPlan(applications=shape.applications, tasks=tasks, seconds=shape.container_s),)
    cluster = SimulatedCluster(
        engine,
        conf,
        ClusterShape(shape.nodes, resource=NODE).machines(),
        emulation_table(works, 1),
        history,
        directory=Path(),
        conditions=STEADY,
        encode=shape.encode,
        all_heartbeats=all_heartbeats,
    )
    client = SimulatedClient(cluster, history)
    cluster.start()
    engine.run(engine.now_ms + 2_000)
    if shape.is_loaded:
        client.submit_all(works)
        engine.run(engine.now_ms + RAMP_MS)
    ended_before = _ended(history)
    gc.collect()
    gc.freeze()
    gc.disable()
    started_s = time.process_time()
    engine.run(engine.now_ms + shape.virtual_s * 1000)
    cpu_s = time.process_time() - started_s
    gc.enable()
    gc.unfreeze()
    return shape.virtual_s / cpu_s, (_ended(history) - ended_before) / cpu_s


def _ended(history: History) -> int:
    return sum(1 for span in history.spans if span.role is ProcessRole.CONTAINER and span.status == 0)
