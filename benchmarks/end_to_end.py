"""Measures containers per second end to end: RM, NodeManagers and an ApplicationMaster as processes, over gRPC.

`emulated`: short emulated containers, so that only the daemons and the calls are measured. Also the CPU time that each
kind of daemon spends on a container. `true`: 50 containers that run `true` as real processes, from submission to the
application's end. `dask`: no-op tasks of Dask on as many worker processes, if Dask is installed (extra `bench`).
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from am.client.launching import python_launch_context
from am.client.submission import ApplicationOptions, build_context
from am.programs.distributed_shell.client import parse
from benchmarks.bytecode import compile_sources
from yarn.states import FinalApplicationStatus
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

NODES = 4
WINDOW = 1_000
WARM_UP = 2_000
MEASURED = 10_000
TRUE_CONTAINERS = 50
TRUE_RUNS = 5
DASK_TASKS = 1_000

TABLE = """
rules:
  - {match: {kind: master}, run: real}
  - {stages: [{lasts: 10ms, jitter: 10ms}]}
"""
TRUE_MEMORY_MB = 64
SETTINGS = {
    # A heartbeat places as many containers as fit, instead of one.
    "yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments": "1000",
    "yarn.scheduler.minimum-allocation-mb": "1",
}


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"containers_per_s", "us_rm", "us_nm", "us_am", these four with "_packed", "true_50_s", "dask_tasks_per_s"}.

    us_* is CPU time per container in µs.
    """
    compile_sources()
    progress(f"{WARM_UP + MEASURED} emulated containers on {NODES} NodeManagers")
    figures = asyncio.run(emulated())
    progress(f"the same on {NODES} NodeManagers in one process")
    figures |= {f"{name}_packed": value for name, value in asyncio.run(emulated(pack=NODES)).items()}
    times = []
    for run in range(TRUE_RUNS):
        progress(f"{TRUE_CONTAINERS} containers of `true`, run {run + 1} of {TRUE_RUNS}")
        times.append(asyncio.run(true_s()))
    figures["true_50_s"] = round(statistics.median(times), 3)
    progress(f"{DASK_TASKS} no-op tasks of Dask")
    return figures | dask_figures()


async def emulated(
    window: int = WINDOW, warm_up: int = WARM_UP, measured: int = MEASURED, pack: int | None = None
) -> dict[str, float]:
    """Containers per second, and microseconds of CPU per container for each kind of daemon.

    `pack`: the number of NodeManagers in a process, as in ClusterOptions.
    """
    with tempfile.TemporaryDirectory() as name:
        table, result = Path(name) / "table.yaml", Path(name) / "result.json"
        table.write_text(TABLE)
        async with LocalCluster(
            nodes=NODES,
            memory_mb=100_000,
            vcores=1_000,
            settings=SETTINGS,
            fast=True,
            options=ClusterOptions(emulated=table, pack=pack),
        ) as cluster:
            daemons = [f"rm={cluster.rm.pid}", *(f"nm={pid}" for pid in {node.daemon.pid for node in cluster.nodes})]
            arguments = [str(window), str(warm_up), str(measured), str(result), *daemons]
            context = python_launch_context("benchmarks.churning_am", arguments)
            new = await cluster.client.new_application()
            submission = build_context(new.application_id, ApplicationOptions("churn"), context, "BENCHMARK")
            await cluster.client.submit(submission)
            report = await cluster.client.wait(new.application_id)
            if report.final_status is not FinalApplicationStatus.SUCCEEDED:
                logs = "\n".join(log.text() for log in cluster.client.logs(new.application_id))
                raise RuntimeError(f"the ApplicationMaster failed: {report.diagnostics}\n{logs}")
        found = json.loads(result.read_text())
    count = found["containers"]
    figures = {"containers_per_s": round(count / found["wall"], 1)}
    for kind in ("rm", "nm", "am"):
        figures[f"us_{kind}"] = round(found[kind] / count * 1e6, 1)
    return figures


async def true_s() -> float:
    """The seconds from the submission of the containers to the end of their application."""
    arguments = ["-shell_command", "true", "-num_containers", str(TRUE_CONTAINERS)]
    arguments += ["-container_memory", str(TRUE_MEMORY_MB)]
    # Each node has memory for sixteen containers: if it had memory for all, one node would get them all.
    memory_mb = TRUE_MEMORY_MB * 16
    async with LocalCluster(nodes=NODES, fast=True, settings=SETTINGS, memory_mb=memory_mb, vcores=64) as cluster:
        started_s = time.perf_counter()
        started = await cluster.client.start(parse(arguments))
        report = await cluster.client.wait(started.application_id)
        assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
        return time.perf_counter() - started_s


def dask_figures() -> dict[str, float]:
    """Dask's tasks per second on as many worker processes; empty if Dask is not installed."""
    try:
        from distributed import Client  # pyright: ignore[reportMissingImports]
        from distributed import LocalCluster as DaskCluster  # pyright: ignore[reportMissingImports]
    except ImportError:
        return {}
    with (
        DaskCluster(n_workers=NODES, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        rates = []
        for _ in range(3):
            started_s = time.perf_counter()
            client.gather(client.map(_nothing, range(DASK_TASKS), pure=False))
            rates.append(DASK_TASKS / (time.perf_counter() - started_s))
        started_s = time.perf_counter()
        client.gather(client.map(_nothing, range(TRUE_CONTAINERS), pure=False))
        return {
            "dask_tasks_per_s": round(statistics.median(rates), 1),
            "dask_50_s": round(time.perf_counter() - started_s, 3),
        }


def _nothing(_: int) -> None:
    """Do nothing: the no-op task that Dask runs."""
