"""Applications on a LocalCluster: submit them, wait for conditions, find their AMs."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from am.client.submission import Submission
from tests.cluster.heartbeats import HeartbeatLog
from yarn.applications import ApplicationReport
from yarn.ids import ApplicationId
from yarn.settings.yarnling import CHECK_INVARIANTS
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

SETTINGS = {
    # These times are multiplied by the fast factor: a dead node is lost after one second.
    "yarn.nm.liveness-monitor.expiry-interval-ms": "20000",
    CHECK_INVARIANTS.key: "true",
}
DEADLINE_S = 120.0


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition outside this process; TimeoutError after the deadline."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110  files and processes set no event
            await asyncio.sleep(0.01)


class Cluster:
    """A LocalCluster with a staging root next to its files."""

    def __init__(self, local: LocalCluster, staging_root: Path, heartbeats: HeartbeatLog) -> None:
        self.local = local
        self.heartbeats = heartbeats
        self.client = local.client
        self.staging_root = staging_root

    async def submit(self, submission: Submission) -> ApplicationId:
        new = await self.client.new_application()
        await self.client.submit(submission.build(new.application_id, self.staging_root))
        return new.application_id

    async def run(self, submission: Submission) -> ApplicationReport:
        return await self.end_of(await self.submit(submission))

    async def end_of(self, application_id: ApplicationId) -> ApplicationReport:
        return await self.client.wait(application_id, timeout_s=DEADLINE_S)

    def job_status(self, application_id: ApplicationId) -> dict[str, Any]:
        """status.json of a map-reduce job; {} before it is first written."""
        path = self.staging_root / str(application_id) / "status.json"
        status: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return status

    async def until_job(self, application_id: ApplicationId, condition: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until the status of a map-reduce job satisfies a condition."""
        await until(lambda: bool(status := self.job_status(application_id)) and condition(status))

    async def node_of_am(self, application_id: ApplicationId) -> int:
        """The number of the node that the application's current AM runs on."""
        attempt = await self.client.attempt((await self.client.report(application_id)).current_attempt_id)
        assert attempt.am_container_id is not None
        am_container = await self.client.container(attempt.am_container_id)
        return next(n for n, node in enumerate(self.local.nodes, start=1) if node.id == am_container.node_id)

    async def stdouts(self, application_id: ApplicationId) -> list[str]:
        """The stdout of the application's containers, sorted, without those of its AMs."""
        am_containers = {attempt.am_container_id for attempt in await self.client.attempts(application_id)}
        logs = [log for log in self.client.logs(application_id) if log.name == "stdout"]
        return sorted(log.path.read_text() for log in logs if log.container_id not in am_containers)


@asynccontextmanager
async def cluster(tmp_path: Path, nodes: int = 3, **settings: str) -> AsyncIterator[Cluster]:
    heartbeats = HeartbeatLog(tmp_path / "events")
    local = LocalCluster(
        nodes=nodes,
        memory_mb=2048,
        vcores=16,
        fast=True,
        settings={**SETTINGS, **heartbeats.settings, **settings},
        options=ClusterOptions(directory=tmp_path / "cluster"),
    )
    async with local:
        yield Cluster(local, tmp_path / "staging", heartbeats)


def counts_in(output: Path) -> Counter[str]:
    """{word: count} of a word count's output."""
    counts: Counter[str] = Counter()
    for part in sorted(output.glob("part-r-*")):
        for line in part.read_text().splitlines():
            word, _, count = line.rpartition("\t")
            assert word not in counts, f"{word} is in two places of the output"
            counts[word] = int(count)
    return counts


def plain_counts(inputs: list[Path]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for path in inputs:
        counts.update(path.read_text().split())
    return counts
