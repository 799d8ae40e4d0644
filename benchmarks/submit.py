"""Measures one ResourceManager with many applications: 10,000 submitted as fast as a client can, and 2,000 running.

The submitting client, the ResourceManager and the nodes are separate processes. Meanwhile another client, in this
process, calls getClusterMetrics. The applications are emulated AMs (docs/emulated-containers.md). Each AM is placed,
launched by a call to its node, registers, sends heartbeats and unregisters over the wire, but has no process. Every
submission must be answered and every application must succeed; otherwise the benchmark fails and reports no figures.

Times of calls are wall time, so other work on the machine changes them. us_rm_a_submission is CPU time.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.bytecode import compile_sources
from yarn.applications import ApplicationFilter
from yarn.queues import QueueStatistics
from yarn.settings import resourcemanager
from yarn.states import YarnApplicationState
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

TABLE = """
rules:
  - {match: {kind: master, environment: {STAYS: '1'}}, registers: true, stages: [{lasts: forever}]}
  - {match: {kind: master}, registers: true, stages: [{lasts: 1s, jitter: 50%}]}
"""
STAYS = "STAYS=1"
PROBE_INTERVAL_S = 0.02
IDLE_S = 3.0
LOOK_INTERVAL_S = 1.0
"""The seconds between two counts of the ended applications. Each count reads the reports of all applications."""
STUCK_S = 120.0
"""The run is aborted if no application starts or ends for this many seconds."""
FAILURES_SHOWN_MAX = 5


@dataclass(frozen=True)
class Sizes:
    """The size of the run. `window` is the number of submissions in progress at a time."""

    submitted: int = 10_000
    running: int = 2_000
    nodes: int = 400
    pack: int = 200
    window: int = 64
    hold_s: float = 20.0


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{figure: value}. The names of figures of the second part end in _running."""
    compile_sources()
    return asyncio.run(run(Sizes(), progress))


async def run(sizes: Sizes, progress: Callable[[str], None]) -> dict[str, float]:
    """Run both parts on one cluster. Raises RuntimeError if a submission is not answered or an application fails."""
    settings = {
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
        # The results are read when all applications have ended; by default the ResourceManager keeps only the last
        # thousand.
        resourcemanager.MAX_COMPLETED_APPLICATIONS.key: str(sizes.submitted + sizes.running),
    }
    with tempfile.TemporaryDirectory() as name:
        table = Path(name) / "table.yaml"
        table.write_text(TABLE)
        progress(f"{sizes.nodes} NodeManagers start")
        async with LocalCluster(
            nodes=sizes.nodes, settings=settings, options=ClusterOptions(pack=sizes.pack, emulated=table)
        ) as cluster:
            bench = _Bench(cluster, Path(name) / "result.json", progress)
            async with bench.probe() as idle_ms:
                await asyncio.sleep(IDLE_S)
            figures = {"metrics_p99_ms_idle": _p99(idle_ms)}
            figures |= await bench.submissions(sizes)
            figures |= bench.memory("")
            figures |= await bench.running(sizes)
            figures |= bench.memory("_running")
    return figures


class _Bench:
    """A running cluster and its measurements."""

    def __init__(self, cluster: LocalCluster, result: Path, progress: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._result = result
        self._progress = progress
        self._rm = psutil.Process(cluster.rm.pid)

    async def submissions(self, sizes: Sizes) -> dict[str, float]:
        """Submit applications, and wait until all have ended."""
        started, rm_s = time.perf_counter(), self._cpu_s()
        async with self.probe() as metrics_ms:
            self._progress(f"{sizes.submitted} submissions")
            found = await self._submit(sizes.submitted, sizes.window)
        submitting_s = self._cpu_s() - rm_s
        await self._until("have ended", lambda now: now.apps_completed, sizes.submitted)
        return {
            "submissions_per_s": round(sizes.submitted / found.passed_s, 1),
            "submissions_per_s_first_tenth": found.rates[0],
            "submissions_per_s_last_tenth": found.rates[1],
            "us_rm_a_submission": round(submitting_s / sizes.submitted * 1e6),
            "reply_p50_ms": round(statistics.median(found.reply_ms), 2),
            "reply_p99_ms": _p99(found.reply_ms),
            "metrics_p99_ms": _p99(metrics_ms),
            "all_ended_s": round(time.perf_counter() - started, 1),
            "us_rm_an_application": round((self._cpu_s() - rm_s) / sizes.submitted * 1e6),
        }

    async def running(self, sizes: Sizes) -> dict[str, float]:
        """Submit AMs that keep running, and measure when all of them run."""
        started = time.perf_counter()
        self._progress(f"{sizes.running} submissions of AMs that stay")
        await self._submit(sizes.running, sizes.window, STAYS)
        await self._until("run", lambda now: now.apps_running, sizes.running)
        figures = {"all_running_s": round(time.perf_counter() - started, 1)}
        self._progress(f"{sizes.running} run, {sizes.hold_s:g} s")
        held, rm_s = time.perf_counter(), self._cpu_s()
        async with self.probe() as metrics_ms:
            await asyncio.sleep(sizes.hold_s)
        figures["rm_percent_running"] = round((self._cpu_s() - rm_s) / (time.perf_counter() - held) * 100, 1)
        figures["metrics_p99_ms_running"] = _p99(metrics_ms)
        now = await self._statistics()
        if now.apps_running != sizes.running:
            raise RuntimeError(f"{now.apps_running} of {sizes.running} applications still run after {sizes.hold_s:g} s")
        return figures

    def memory(self, name: str) -> dict[str, float]:
        memory = self._rm.memory_full_info()
        return {f"rm_{kind}_mb{name}": round(getattr(memory, kind) / (1 << 20), 1) for kind in ("rss", "pss")}

    @asynccontextmanager
    async def probe(self) -> AsyncIterator[list[float]]:
        """Call getClusterMetrics from another client while the context is open. Yields the ms of each reply."""
        taken: list[float] = []

        async def call() -> None:
            while True:
                started = time.perf_counter()
                await self._cluster.client.metrics()
                taken.append((time.perf_counter() - started) * 1000)
                await asyncio.sleep(PROBE_INTERVAL_S)

        async with asyncio.TaskGroup() as tasks:
            probing = tasks.create_task(call())
            yield taken
            probing.cancel()

    async def _submit(self, count: int, window: int, *variables: str) -> _Submitted:
        arguments = [str(self._cluster.directory.conf), str(count), str(window), str(self._result), *variables]
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.submitting_client", *arguments, cwd=Path(__file__).parents[1]
        )
        if await client.wait() != 0:
            raise RuntimeError(f"the submitting client exited with {client.returncode}")
        found = json.loads(self._result.read_text())
        if found["errors"]:
            shown = "; ".join(found["errors"][:FAILURES_SHOWN_MAX])
            raise RuntimeError(f"{len(found['errors'])} of {count} submissions were not answered: {shown}")
        return _Submitted(found["passed_s"], found["reply_ms"], found["replied_s"])

    async def _until(self, what: str, count: Callable[[QueueStatistics], int], wanted: int) -> None:
        """Wait until `wanted` applications are counted.

        Raises RuntimeError if one has failed, or if nothing happens any more.
        """
        last, since = -1, time.perf_counter()
        while True:
            now = await self._statistics()
            if now.apps_failed or now.apps_killed:
                raise RuntimeError(await self._failures(now))
            if count(now) == wanted:
                return
            if count(now) != last:
                last, since = count(now), time.perf_counter()
            elif time.perf_counter() - since > STUCK_S:
                raise RuntimeError(f"{last} of {wanted} applications {what}, and no more for {STUCK_S:g} s")
            self._progress(f"{last} of {wanted} applications {what}")
            await asyncio.sleep(LOOK_INTERVAL_S)

    async def _statistics(self) -> QueueStatistics:
        return (await self._cluster.client.queue("default")).statistics

    async def _failures(self, now: QueueStatistics) -> str:
        ends = frozenset({YarnApplicationState.FAILED, YarnApplicationState.KILLED})
        found = await self._cluster.client.applications(ApplicationFilter(states=ends, limit=FAILURES_SHOWN_MAX))
        shown = "; ".join(f"{app.application_id}: {app.diagnostics}" for app in found)
        return f"{now.apps_failed} applications failed, {now.apps_killed} were killed: {shown}"

    def _cpu_s(self) -> float:
        times = self._rm.cpu_times()
        return times.user + times.system


@dataclass(frozen=True)
class _Submitted:
    """The measurements of the submitting client. `replied_s` are the times of the replies since the first call."""

    passed_s: float
    reply_ms: list[float]
    replied_s: list[float]

    @property
    def rates(self) -> tuple[float, float]:
        """Submissions per second in the first and in the last tenth.

        The two rates are equal if submissions do not become slower.
        """
        tenth = max(1, len(self.replied_s) // 10)
        first, last = self.replied_s[tenth - 1], self.replied_s[-1] - self.replied_s[-1 - tenth]
        return round(tenth / first, 1), round(tenth / last, 1)


def _p99(times_ms: list[float]) -> float:
    return round(statistics.quantiles(times_ms, n=100)[98], 2)
