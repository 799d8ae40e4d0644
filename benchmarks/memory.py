"""The private memory of an idle NodeManager."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable

import psutil

from yarnling.cluster.local_cluster import LocalCluster

NODES = 10
SETTLE_S = 5.0
"""The number of seconds to wait before measuring.

Heartbeats continue meanwhile, so the figures include pages that a NodeManager writes to only while it works.
"""


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"private_mb": a NodeManager's unique set size in MiB, the median of ten; "rm_private_mb": the RM's}."""
    progress(f"{NODES} NodeManagers, {SETTLE_S:g} s of heartbeats")
    return asyncio.run(_private_mb())


async def _private_mb() -> dict[str, float]:
    async with LocalCluster(nodes=NODES, fast=True) as cluster:
        await asyncio.sleep(SETTLE_S)
        nodes = [_uss_mb(node.daemon.pid) for node in cluster.nodes]
        return {
            "private_mb": round(statistics.median(nodes), 2),
            "rm_private_mb": round(_uss_mb(cluster.rm.pid), 2),
        }


def _uss_mb(pid: int) -> float:
    return float(psutil.Process(pid).memory_full_info().uss) / (1 << 20)
