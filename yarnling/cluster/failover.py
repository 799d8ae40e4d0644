"""Kills the active one of several ResourceManagers, and measures how long the cluster does without one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from am.core.events import ContainersAllocated
from am.core.requests import ContainerRequest
from yarn.errors import InvalidArgumentException, YarnException
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus
from yarnling.cluster.client import WaitTimeout
from yarnling.cluster.local_cluster import LocalCluster

PROBE = "failover probe"
"""The name of the application that measures when containers are allocated again."""
PROBE_MB = 128
PROBE_TIMEOUT_S = 60.0


class FailoverTimes(Struct, frozen=True):
    """Seconds since the active ResourceManager was killed; None for what did not happen in time.

    `active`: another one is active. `nodes`: all nodes have registered with it. `allocation`: it has allocated a
    container to an application that was submitted afterwards.
    """

    killed: str
    leads: str
    active_s: float | None
    nodes_s: float | None
    allocation_s: float | None

    @property
    def sentence(self) -> str:
        if self.active_s is None:
            return f"{self.killed} is gone, and no other ResourceManager has become active"
        parts = [f"{self.leads} is active after {self.active_s:.2f} s"]
        if self.nodes_s is not None:
            parts.append(f"all nodes are back after {self.nodes_s:.2f} s")
        if self.allocation_s is not None:
            parts.append(f"the first container was allocated after {self.allocation_s:.2f} s")
        return "; ".join(parts)


async def fail_over(
    cluster: LocalCluster, killed: str, expected_nodes: int, *, probe: bool, report: Callable[[str], object]
) -> FailoverTimes:
    """Kill the active ResourceManager `killed`, and wait until another has taken its place.

    `probe`: measure the first allocation with an application of one container.
    """
    started_s = time.monotonic()
    await cluster.kill_rm(killed)

    def so_far() -> float:
        return time.monotonic() - started_s

    report("waiting until another ResourceManager is active")
    try:
        leads = await cluster.until(cluster.active_rm)
    except WaitTimeout:
        return FailoverTimes(killed, "", None, None, None)
    active_s, nodes_s, allocation_s = so_far(), None, None
    report(f"{leads} is active; waiting for {expected_nodes} node{'' if expected_nodes == 1 else 's'}")
    with suppress(WaitTimeout):
        await cluster.wait_nodes(expected_nodes)
        nodes_s = so_far()
    if probe and expected_nodes:
        report("waiting for the first container")
        with suppress(TimeoutError, YarnException):
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                allocation_s = await _first_allocation(cluster, so_far)
    return FailoverTimes(killed, leads, active_s, nodes_s, allocation_s)


async def _first_allocation(cluster: LocalCluster, so_far: Callable[[], float]) -> float:
    """The time at which an application of one container has it."""
    async with cluster.unmanaged_am(name=PROBE) as am:
        await am.rm.register()
        am.rm.add_request(ContainerRequest(Resource(PROBE_MB, 1), priority=0))
        async for event in am.rm.events():
            if isinstance(event, ContainersAllocated):
                at_s = so_far()
                for allocation in event.allocations:
                    am.rm.release(allocation.container.id)
                await am.rm.unregister(FinalApplicationStatus.SUCCEEDED)
                return at_s
    raise YarnException(f"the application {PROBE!r} was ended before it had a container")


async def active_or_refuse(cluster: LocalCluster) -> str:
    """The id of the active ResourceManager. Raises InvalidArgumentException if none is active."""
    active = await cluster.active_rm()
    if not active:
        raise InvalidArgumentException(
            "no ResourceManager is active (yarnling rmadmin -getAllServiceState shows the state of each)"
        )
    return active
