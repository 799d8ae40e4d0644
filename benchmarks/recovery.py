"""Measures how long a killed ResourceManager takes until it serves again, for different numbers of stored applications.

Most applications have ended; the AMs of the others keep running. `*_cpu_s` is the CPU time that the new process has
used when it is ready. A busy machine changes this less than the time.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from rm.core.effects import SaveApplication, SaveAttempt, StoreEffect
from rm.core.states import RMAppAttemptState, RMAppState
from rm.core.stored_state import ApplicationAttemptStateData, ApplicationStateData, Saving
from rm.shell.sqlite_store import SQLiteStateStore
from wire.cluster_secret import read_client_token
from wire.protocols.client import ApplicationClientProtocol
from wire.retry import RetryPolicy
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import Container, ContainerLaunchContext
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import Resource
from yarn.settings import resourcemanager
from yarn.states import FinalApplicationStatus
from yarnling.cluster.directory import STATE_STORE
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

APPLICATIONS = (1_000, 10_000)
RUNNING = 100
RUNS = 3
START_MS = 1_700_000_000_000
RETRY = RetryPolicy(max_wait_ms=60_000, interval_ms=5)
SETTINGS = {
    resourcemanager.RECOVERY_ENABLED.key: "true",
    "yarn.resourcemanager.max-completed-applications": "10000",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}
_AM_LAUNCH = ContainerLaunchContext(
    ("python3 -m a.master --with some --arguments 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr",),
    {f"VARIABLE_{number}": "a value of some length" for number in range(10)},
    tokens=bytes(300),
)


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"ready_s_1000", "served_s_1000", "cpu_s_1000", ...: seconds}, medians."""
    figures = {}
    for count in APPLICATIONS:
        progress(f"{count} stored applications")
        with TemporaryDirectory(prefix="yarnling-recovery-") as directory:
            runs = asyncio.run(_restarts(Path(directory), count))
        for name, values in zip(("ready_s", "served_s", "cpu_s"), zip(*runs, strict=True), strict=True):
            figures[f"{name}_{count}"] = round(statistics.median(values), 3)
    return figures


async def _restarts(directory: Path, count: int) -> list[tuple[float, float, float]]:
    async with LocalCluster(
        1, settings=SETTINGS, fast=True, options=ClusterOptions(directory=directory / "cluster")
    ) as cluster:
        await cluster.kill_rm()
        file = cluster.directory.path / STATE_STORE
        with closing(SQLiteStateStore.open(file, str(file))) as store:
            store.write(_stored(count))
        await cluster.restart_rm()
        return [await _restart(cluster, count) for _ in range(RUNS)]


async def _restart(cluster: LocalCluster, count: int) -> tuple[float, float, float]:
    started_s = time.monotonic()
    await cluster.kill_rm()
    rm = await cluster.restart_rm()
    ready_s = time.monotonic() - started_s
    cpu = psutil.Process(rm.pid).cpu_times()
    address, token = cluster.addresses[resourcemanager.ADDRESS.key], read_client_token(cluster.configuration)
    async with ApplicationClientProtocol(address, token=token, retry=RETRY) as client:
        await client.get_application_report(ApplicationId(START_MS, count))
    served_s = time.monotonic() - started_s
    return ready_s, served_s, cpu.user + cpu.system


def _stored(count: int) -> Iterator[StoreEffect]:
    for number in range(1, count + 1):
        app_id = ApplicationId(START_MS, number)
        attempt_id = ApplicationAttemptId(app_id, 1)
        is_over = number <= count - RUNNING
        submission = ApplicationSubmissionContext(
            app_id, ContainerLaunchContext() if is_over else _AM_LAUNCH, Resource(1024, 1), name=f"application {number}"
        )
        application = ApplicationStateData(
            submission,
            f"user{number % 10}",
            START_MS + number,
            launch_ms=START_MS + number + 500,
            state=RMAppState.FINISHED if is_over else None,
            finish_ms=START_MS + number + 9000 if is_over else 0,
        )
        yield SaveApplication(application, Saving.NEW)
        node = NodeId(f"host{number % 50}", 45454)
        attempt = ApplicationAttemptStateData(
            attempt_id,
            Container(ContainerId(attempt_id, 1), node, f"{node.host}:8042", Resource(1024, 1), 0),
            START_MS + number + 100,
            RMAppAttemptState.FINISHED if is_over else None,
            final_status=FinalApplicationStatus.SUCCEEDED if is_over else None,
        )
        yield SaveAttempt(attempt, Saving.NEW)
