"""Counts the calls that are lost when one process has many clients, each of which has calls in progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

from wire.files.hadoop_xml import load_configuration
from yarn.errors import YarnException
from yarnling.cluster.client import Client
from yarnling.cluster.local_cluster import LocalCluster

CLIENTS = 100
AT_ONCE = 1_000
ROUNDS = 2


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"calls", "calls_lost", "s": time of all calls, "p99_s": of a call}."""
    return asyncio.run(_measure(progress))


async def _measure(progress: Callable[[str], None]) -> dict[str, float]:
    lost = 0
    took_s: list[float] = []

    async def call(client: Client) -> None:
        nonlocal lost
        started = time.perf_counter()
        try:
            await client.new_application()
        except YarnException:
            lost += 1
        took_s.append(time.perf_counter() - started)

    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(LocalCluster(nodes=0))
        conf = load_configuration(cluster.directory.conf)
        clients = [await stack.enter_async_context(Client(cluster.addresses, conf=conf)) for _ in range(CLIENTS)]
        began = time.perf_counter()
        for number in range(ROUNDS):
            progress(f"round {number + 1} of {ROUNDS}: {AT_ONCE} calls of {CLIENTS} clients at a time")
            await asyncio.gather(*(call(clients[one % CLIENTS]) for one in range(AT_ONCE)))
        all_s = time.perf_counter() - began
    return {
        "calls": len(took_s),
        "calls_lost": lost,
        "s": round(all_s, 2),
        "p99_s": round(sorted(took_s)[len(took_s) * 99 // 100], 2),
    }
