"""Kills the ResourceManager at random moments, and measures how long it takes to be back."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from dataclasses import dataclass, field

from wire.cluster_secret import read_client_token
from wire.protocols.client import ApplicationClientProtocol
from wire.retry import RetryPolicy
from yarn.settings import resourcemanager
from yarnling.cluster.launcher import DaemonFailed
from yarnling.cluster.local_cluster import LocalCluster

WAIT_S_MAX = 3.0
"""The time to wait for a submission after which to kill."""
PAUSE_S_MAX = 1.2
START_S_MAX = 0.15
"""The time, in seconds, within which a starting ResourceManager is killed."""
QUICKLY = RetryPolicy(max_wait_ms=60_000, interval_ms=10)
MOMENTS = ("whenever", "submitting", "acknowledged", "just back", "starting")


class Moments:
    """When to kill. `submitting` and `acknowledged` are notified by users; `over` is set when no kills follow."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.submitting = asyncio.Condition()
        self.acknowledged = asyncio.Condition()

    async def notify(self, condition: asyncio.Condition) -> None:
        async with condition:
            condition.notify_all()


class Died(AssertionError):
    """The ResourceManager exited without being killed."""


@dataclass
class Killer:
    """Kills the ResourceManager `kills_max` times.

    `*_ms` are the times from a kill until it was ready, or had answered a client.
    """

    cluster: LocalCluster
    load: Moments
    draw: random.Random
    kills_max: int
    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MOMENTS, 0))
    ready_ms: list[float] = field(default_factory=list)
    served_ms: list[float] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(self.kills.values())

    async def run(self) -> None:
        while self.count < self.kills_max:
            moment = self.draw.choice(MOMENTS[:4])
            await self._wait_for(moment)
            killed_s = await self._kill(moment)
            while self.count < self.kills_max and self.draw.random() < 0.3:
                killed_s = await self._kill_while_it_starts()
            await self._start(killed_s)

    async def _wait_for(self, moment: str) -> None:
        match moment:
            case "whenever":
                await asyncio.sleep(self.draw.uniform(0, PAUSE_S_MAX))
            case "submitting":
                await self._next(self.load.submitting)
                await asyncio.sleep(self.draw.uniform(0, 0.015))
            case "acknowledged":
                await self._next(self.load.acknowledged)
                # At once, while its AM is allocated, or while its containers are.
                await asyncio.sleep(self.draw.choice((0.0, 0.05, 1.0)) * self.draw.random())
            case _:
                await asyncio.sleep(self.draw.uniform(0, 0.2))

    async def _next(self, condition: asyncio.Condition) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S_MAX), condition:
                await condition.wait()

    async def _kill(self, moment: str) -> float:
        status = self.cluster.rm.exit_status
        if status is not None:
            raise Died(f"the ResourceManager exited with {status} after {self.count} kills: {self.cluster.rm.log_file}")
        self.kills[moment] += 1
        killed_s = time.monotonic()
        await self.cluster.kill_rm()
        return killed_s

    async def _kill_while_it_starts(self) -> float:
        """Kill the ResourceManager between its fork and its ready line, or soon after."""
        dead = self.cluster.rm
        async with asyncio.TaskGroup() as tasks:
            starting = tasks.create_task(self._start_killed())
            while self.cluster.rm is dead and not starting.done():  # noqa: ASYNC110  no event shows that a process was requested
                await asyncio.sleep(0)
            await asyncio.sleep(self.draw.uniform(0, START_S_MAX))
            return await self._kill("starting")

    async def _start_killed(self) -> None:
        with contextlib.suppress(DaemonFailed):
            await self.cluster.restart_rm()

    async def _start(self, killed_s: float) -> None:
        await self.cluster.restart_rm()
        self.ready_ms.append((time.monotonic() - killed_s) * 1000)
        # The client reconnects with the users' backoff: channels of a process to one address share their failures.
        address = self.cluster.addresses[resourcemanager.ADDRESS.key]
        token = read_client_token(self.cluster.configuration)
        async with ApplicationClientProtocol(address, token=token, retry=QUICKLY) as rm:
            await rm.get_cluster_metrics()
        self.served_ms.append((time.monotonic() - killed_s) * 1000)
