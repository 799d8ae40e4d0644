"""Measures the load on a ResourceManager of many NodeManagers at Hadoop's heartbeat interval, idle and with containers.

The nodes first run in processes of their own, then packed. The ApplicationMasters run in this process: they keep
emulated containers running and time their allocate calls. Shares of a core are CPU time, which other work on the
machine hardly changes. Times of calls are wall time.
"""

from __future__ import annotations

import asyncio
import io
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import psutil
from rich.console import Console

from wire.caller import RM_CALLER
from wire.channel import Channels
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.retry import RetryPolicy
from wire.watching import calls_of
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ANY, Container, ContainerLaunchContext, ResourceRequest, Token
from yarn.ids import ApplicationId, NodeId
from yarn.protocols.container_management import StartContainerRequest
from yarn.protocols.master import AllocateRequest, AllocateResponse, RegisterApplicationMasterRequest
from yarn.resource import Resource
from yarn.settings import resourcemanager, yarnling
from yarn.states import FINAL_APPLICATION_STATES
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.snapshot import node_table, state_table
from yarnling.report.listing import PIPE_WIDTH, Listing

FLEETS = {"processes": (500, 1), "packed_1000": (1_000, 500), "packed": (10_000, 500)}
"""{name of the fleet in figures: (number of nodes, nodes per process)}."""
SETTLE_S = 5.0
MEASURED_S = 20.0
COUNTED_S = 5.0
VIEWS = 5
PROBE_INTERVAL_S = 0.02
AMS = 10
AM_INTERVAL_S = 0.1
WINDOW = 20
"""The number of containers that an AM keeps running. Each container lasts between 0.5 and 1.5 seconds."""
TASK = Resource(1024, 1)
START_RETRY = RetryPolicy(max_wait_ms=20_000, interval_ms=100)
SETTINGS = {
    yarnling.EMULATION_TABLE.key: "default",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"<figure>_<fleet>_<idle or loaded>": value}; `_figures` describes the figures."""
    figures: dict[str, float] = {}
    for name, (nodes, pack) in FLEETS.items():
        found = asyncio.run(fleet(nodes, pack, lambda text, name=name: progress(f"{name}: {text}")))  # type: ignore[misc]
        figures |= {f"{figure}_{name}": value for figure, value in found.items()}
    return figures


async def fleet(nodes: int, pack: int, progress: Callable[[str], None]) -> dict[str, float]:
    """The figures of one fleet."""
    progress(f"{nodes} NodeManagers start")
    started = time.perf_counter()
    async with LocalCluster(nodes=nodes, settings=SETTINGS, options=ClusterOptions(pack=pack)) as cluster:
        figures = {"ready_s": round(time.perf_counter() - started, 2)}
        await asyncio.sleep(SETTLE_S)
        progress(f"idle, {MEASURED_S:g} s")
        async with _ams(cluster, 1, interval_s=PROBE_INTERVAL_S, window=0) as idle:
            figures |= await _figures(cluster, idle, "idle")
            figures |= await _heartbeats(cluster)
        figures |= await _views(cluster)
        progress(f"{AMS} applications, {MEASURED_S:g} s")
        async with _ams(cluster, AMS, interval_s=AM_INTERVAL_S, window=WINDOW) as loaded:
            await asyncio.sleep(SETTLE_S)
            figures |= await _figures(cluster, loaded, "loaded")
        figures["rm_mb"] = round(psutil.Process(cluster.rm.pid).memory_info().rss / (1 << 20), 1)
    return figures


async def _figures(cluster: LocalCluster, taken: _Taken, name: str) -> dict[str, float]:
    """The percentage of a core that the RM and all NodeManagers use, the ms of allocate calls, and containers per
    second.
    """
    rm = [psutil.Process(cluster.rm.pid)]
    nodes = [psutil.Process(pid) for pid in {node.daemon.pid for node in cluster.nodes}]
    taken.clear()
    started, rm_s, nodes_s = time.perf_counter(), _cpu_s(rm), _cpu_s(nodes)
    await asyncio.sleep(MEASURED_S)
    passed_s = time.perf_counter() - started
    calls = statistics.quantiles(taken.allocate_ms, n=100)
    figures = {
        f"rm_percent_{name}": round((_cpu_s(rm) - rm_s) / passed_s * 100, 1),
        f"nodes_percent_{name}": round((_cpu_s(nodes) - nodes_s) / passed_s * 100, 1),
        f"allocate_p50_ms_{name}": round(calls[49], 2),
        f"allocate_p99_ms_{name}": round(calls[98], 2),
    }
    if taken.ended:
        figures[f"containers_per_s_{name}"] = round(taken.ended / passed_s, 1)
    return figures


def _cpu_s(processes: Iterable[psutil.Process]) -> float:
    return sum(times.user + times.system for process in processes for times in (process.cpu_times(),))


async def _heartbeats(cluster: LocalCluster) -> dict[str, float]:
    """Heartbeat calls per second, as an observer of the RM counts them, and the RM's CPU per call, including the
    observation.
    """
    beats = 0

    async def count() -> None:
        nonlocal beats
        async for call in calls_of(cluster.directory.watch, RM_CALLER):
            if call["rpc"] == "nodeHeartbeat":
                beats += 1
            elif call["rpc"] == "packHeartbeat":
                beats += len(call["request"]["nodes"])

    rm = [psutil.Process(cluster.rm.pid)]
    started, rm_s = time.perf_counter(), _cpu_s(rm)
    with suppress(TimeoutError):
        async with asyncio.timeout(COUNTED_S):
            await count()
    passed_s = time.perf_counter() - started
    return {
        "heartbeats_per_s": round(beats / passed_s),
        "rm_us_a_heartbeat": round((_cpu_s(rm) - rm_s) / max(beats, 1) * 1e6, 1),
    }


async def _views(cluster: LocalCluster) -> dict[str, float]:
    """The ms of CPU that the RM and this client spend on the list of all nodes, and on their summary.

    The client also makes the table that `status` prints. What the RM does beside it is counted too.
    """

    async def listed() -> Listing:
        return node_table(await cluster.client.nodes())

    async def summarised() -> Listing:
        return state_table(await cluster.client.node_groups())

    rm, figures = [psutil.Process(cluster.rm.pid)], {}
    console = Console(file=io.StringIO(), width=PIPE_WIDTH)
    for name, view in (("list", listed), ("summary", summarised)):
        rm_s, client_s = _cpu_s(rm), time.process_time()
        for _ in range(VIEWS):
            console.print(await view(), crop=False)
        figures[f"rm_ms_{name}"] = round((_cpu_s(rm) - rm_s) / VIEWS * 1000, 1)
        figures[f"client_ms_{name}"] = round((time.process_time() - client_s) / VIEWS * 1000, 1)
    return figures


@dataclass
class _Taken:
    """The measurements of the AMs: the time of each allocate call, and how many of their containers ended."""

    allocate_ms: list[float] = field(default_factory=list)
    ended: int = 0

    def clear(self) -> None:
        self.allocate_ms.clear()
        self.ended = 0


@asynccontextmanager
async def _ams(cluster: LocalCluster, count: int, *, interval_s: float, window: int) -> AsyncIterator[_Taken]:
    """Run `count` applications with their AMs in this process while the context is open. Yields their figures."""
    taken = _Taken()
    async with Channels() as channels, asyncio.TaskGroup() as tasks:
        running = []
        for _ in range(count):
            app_id = (await cluster.client.new_application()).application_id
            await cluster.client.submit(ApplicationSubmissionContext(app_id, unmanaged_am=True, max_app_attempts=1))
            token = await cluster.until(partial(_token, cluster, app_id))
            proxy = ApplicationMasterProtocol(
                cluster.addresses[resourcemanager.SCHEDULER_ADDRESS.key], token=token, channels=channels
            )
            am = _AM(proxy, channels, taken, tasks, window)
            running.append(tasks.create_task(am.run(interval_s)))
        try:
            yield taken
        finally:
            for task in running:
                task.cancel()
        for app in await cluster.client.applications():
            if app.state not in FINAL_APPLICATION_STATES:
                await cluster.client.kill(app.application_id)


async def _token(cluster: LocalCluster, app_id: ApplicationId) -> Token | None:
    """The AMRM token of an unmanaged AM, once the ResourceManager expects it to register."""
    return (await cluster.client.report(app_id)).am_rm_token


class _AM:
    """An ApplicationMaster that keeps `window` containers running."""

    def __init__(
        self, proxy: ApplicationMasterProtocol, channels: Channels, taken: _Taken, tasks: asyncio.TaskGroup, window: int
    ) -> None:
        self._proxy = proxy
        self._channels = channels
        self._taken = taken
        self._tasks = tasks
        self._missing = window
        self._node_tokens: dict[NodeId, Token] = {}

    async def run(self, interval_s: float) -> None:
        await self._proxy.register_application_master(RegisterApplicationMasterRequest())
        response_id, asks = 0, self._asks()
        while True:
            started = time.perf_counter()
            response = await self._proxy.allocate(AllocateRequest(response_id, 0.5, asks))
            self._taken.allocate_ms.append((time.perf_counter() - started) * 1000)
            response_id = response.response_id
            self._take(response)
            # A request replaces the previous one, and is sent again only when more containers are needed.
            asks = self._asks() if response.completed else ()
            await asyncio.sleep(interval_s)

    def _asks(self) -> tuple[ResourceRequest, ...]:
        """A request for the missing containers.

        Some may be allocated before the request arrives, so a few too many can run for a moment.
        """
        return (ResourceRequest(1, ANY, TASK, self._missing),) if self._missing > 0 else ()

    def _take(self, response: AllocateResponse) -> None:
        self._node_tokens |= {grant.node_id: grant.token for grant in response.nm_tokens if grant.token is not None}
        self._missing += len(response.completed) - len(response.allocated)
        self._taken.ended += len(response.completed)
        for container in response.allocated:
            self._tasks.create_task(self._start(container))

    async def _start(self, container: Container) -> None:
        assert container.token is not None, "the ResourceManager signs what it gives"
        proxy = ContainerManagementProtocol(
            str(container.node_id),
            token=self._node_tokens[container.node_id],
            retry=START_RETRY,
            channels=self._channels,
        )
        await proxy.start_containers((StartContainerRequest(ContainerLaunchContext(("true",)), container.token),))
