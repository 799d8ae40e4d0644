"""Measures how long a cluster takes to start, until its last NodeManager has registered."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable

from benchmarks.bytecode import compile_sources
from yarnling.cluster.local_cluster import LocalCluster

RUNS = {1: 5, 4: 5, 10: 5, 100: 3, 300: 1, 500: 1}
"""{number of NodeManagers: number of runs}; the median is reported. Large clusters start slowly and vary less."""


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"ready_s_<nodes>": median seconds} for each size, including the start of the fork server."""
    compile_sources()
    figures = {}
    for nodes, runs in RUNS.items():
        times = []
        for run in range(runs):
            progress(f"{nodes} NodeManagers, run {run + 1} of {runs}")
            times.append(asyncio.run(_ready_s(nodes)))
        figures[f"ready_s_{nodes}"] = round(statistics.median(times), 3)
    return figures


async def _ready_s(nodes: int) -> float:
    started = time.perf_counter()
    async with LocalCluster(nodes=nodes):
        return time.perf_counter() - started
