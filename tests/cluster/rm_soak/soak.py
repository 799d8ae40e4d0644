"""A run of the soak, or many, and their figures."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.cluster.rm_soak import checks
from tests.cluster.rm_soak.checks import Tally
from tests.cluster.rm_soak.killer import Killer
from tests.cluster.rm_soak.load import Load
from tests.cluster.rm_soak.storm import Storm, storm
from tests.cluster.test_rm_restart import SETTINGS
from yarn.settings.yarnling import CHECK_INVARIANTS, EVENT_LOG
from yarnling.cluster.directory import STATE_STORE
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.processes import those_that_name

USERS = ("ann", "bob", "cay", "dan", "eve")
NODES = 3
SETTLE_S = 30.0
"""The time to wait after the last application until heartbeats have reported the last containers."""
STUCK_S = 120.0
"""The time applications may take to end after the last kill."""
KILL_S = 12.0
"""The time one kill may take on average."""

QUICK = {
    **SETTINGS,
    # An AM whose start was under way when the RM was killed expires after this time: fifteen seconds, which a busy
    # machine needs to start one.
    "yarn.am.liveness-monitor.expiry-interval-ms": "300000",
    "yarn.resourcemanager.am.max-attempts": "50",
    "yarn.cluster.max-application-priority": "9",
    "yarn.scheduler.capacity.root.queues": "a,b",
    "yarn.scheduler.capacity.root.a.capacity": "50",
    "yarn.scheduler.capacity.root.b.capacity": "50",
    "yarn.scheduler.capacity.root.a.maximum-capacity": "100",
    "yarn.scheduler.capacity.root.b.maximum-capacity": "100",
    "yarn.scheduler.capacity.root.a.user-limit-factor": "4",
    "yarn.scheduler.capacity.root.b.user-limit-factor": "4",
    CHECK_INVARIANTS.key: "true",
}

CROWDED = {
    **QUICK,
    "yarn.scheduler.capacity.maximum-applications": "1000000",
    "yarn.resourcemanager.max-completed-applications": "1000000",
    "yarn.resourcemanager.state-store.max-completed-applications": "1000000",
    CHECK_INVARIANTS.key: "false",
}
"""With thousands of waiting applications, checking all of them after each step would take too long."""


@dataclass
class Figures:
    """The results of one run or several. Times are in ms, measured from a kill."""

    seeds: list[int] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    submissions: int = 0
    containers: int = 0
    containers_twice: int = 0
    containers_refused: int = 0
    attempts: int = 0
    masters_expired: int = 0
    applications_killed: int = 0
    epochs: int = 0
    ready_ms: list[float] = field(default_factory=list)
    served_ms: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        for name, value in vars(other).items():
            if isinstance(value, Counter | int):
                setattr(self, name, getattr(self, name) + value)
            else:
                getattr(self, name).extend(value)

    def summary(self) -> dict[str, Any]:
        """The figures, with times as median and 99th percentile."""
        values = asdict(self)
        for name in ("ready_ms", "served_ms"):
            times = sorted(values.pop(name)) or [0.0]
            values[name] = {"median": round(statistics.median(times)), "p99": round(times[int(len(times) * 0.99)])}
            values[name]["max"] = round(times[-1])
        return {"kills_in_all": sum(self.kills.values()), **values, "kills": dict(self.kills)}


async def soak(seed: int, kills: int, directory: Path, *, record: bool = False) -> Figures:
    """Users work on a cluster whose ResourceManager is killed `kills` times; returns what was wrong at the end."""
    draw = random.Random(seed)
    tally = Tally()
    directory.mkdir(parents=True, exist_ok=True)
    settings = dict(QUICK)
    if record:
        (directory / "events").mkdir()
        settings[EVENT_LOG.key] = str(directory / "events")
    where = directory / "cluster"
    async with LocalCluster(
        NODES, memory_mb=4096, vcores=16, fast=True, settings=settings, options=ClusterOptions(directory=where)
    ) as cluster:
        load = Load(cluster, directory)
        killer = Killer(cluster, load, random.Random(draw.random()), kills)
        wrong = await _work(load, killer, [random.Random(draw.random()) for _ in USERS])
        if cluster.rm.exit_status is not None:
            # Another process has taken one of its ports, so the cluster cannot be checked.
            return _figures(seed, killer, load, tally, [*wrong, "the ResourceManager does not run"])
        for one in load.submitted:
            wrong += await checks.check_application(cluster, one, tally)
        wrong += await _settled(cluster)
        wrong += _left(cluster)
    wrong += checks.check_store(cluster.directory.path / STATE_STORE, load.submitted)
    wrong += checks.check_log(cluster.rm.log_file, load.submitted, tally)
    wrong += [f"process left: {process}" for process in those_that_name(where)]
    return _figures(seed, killer, load, tally, wrong)


async def storm_soak(seed: int, kills: int, directory: Path) -> Figures:
    """Thousands of submissions and changes on a cluster without nodes."""
    draw = random.Random(seed)
    async with LocalCluster(
        0, fast=True, settings=CROWDED, options=ClusterOptions(directory=directory / "cluster")
    ) as cluster:
        killer = Killer(cluster, Storm(cluster), random.Random(draw.random()), kills)
        wrong = await storm(cluster, killer, draw)
        assert isinstance(killer.load, Storm)
        words = killer.load.words
    wrong += checks.check_log(cluster.rm.log_file, [], Tally())
    figures = Figures([seed], Counter(killer.kills), len(words), ready_ms=killer.ready_ms, served_ms=killer.served_ms)
    figures.applications_killed = sum(word.is_killed for word in words)
    figures.wrong = [f"seed {seed}: {text}" for text in wrong]
    return figures


async def _work(load: Load, killer: Killer, draws: list[random.Random]) -> list[str]:
    """Wait until all kills are done and all applications are over; returns what was lost."""
    wrong: list[str] = []
    try:
        async with asyncio.TaskGroup() as tasks:
            users = [tasks.create_task(load.user(name, draw)) for name, draw in zip(USERS, draws, strict=True)]
            async with asyncio.timeout(KILL_S * killer.kills_max):
                await killer.run()
            load.over.set()
            await asyncio.wait(users, timeout=STUCK_S)
            for user in users:
                user.cancel()
    except* TimeoutError:
        wrong = [f"{killer.count} kills took more than {KILL_S:g} s each"]
    except* Exception as errors:
        wrong = [repr(error) for error in errors.exceptions]
    return [*load.lost, *wrong]


async def _settled(cluster: LocalCluster) -> list[str]:
    deadline_s = time.monotonic() + SETTLE_S
    while (wrong := await checks.check_cluster(cluster)) and time.monotonic() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    return wrong


def _left(cluster: LocalCluster) -> list[str]:
    """Container processes that still run although all applications are over."""
    fork_server = psutil.Process(cluster.rm.pid).ppid()
    daemons = {fork_server, cluster.rm.pid, *(node.daemon.pid for node in cluster.nodes)}
    return [
        f"still runs: {process}" for process in those_that_name(cluster.directory.path) if process.pid not in daemons
    ]


def _figures(seed: int, killer: Killer, load: Load, tally: Tally, wrong: list[str]) -> Figures:
    return Figures(
        [seed],
        Counter(killer.kills),
        len(load.submitted),
        tally.containers,
        tally.twice,
        tally.refused,
        tally.attempts,
        tally.expired,
        sum(one.killed for one in load.submitted),
        tally.epochs,
        killer.ready_ms,
        killer.served_ms,
        [f"seed {seed}: {text}" for text in wrong],
    )
