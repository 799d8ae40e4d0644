"""The clusters of a pytest process: those of single tests, and those that tests share."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

from yarn.applications import ApplicationReport
from yarn.errors import YarnException
from yarn.states import FinalApplicationStatus
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.client import EXPLAIN_S
from yarnling.cluster.explanations import explained, waiting
from yarnling.cluster.running_cluster import RunningCluster
from yarnling.report.escapes import in_line
from yarnling.testing import failure_logs
from yarnling.testing.failure_logs import Section
from yarnling.testing.spec import ClusterSpec

NAME_LENGTH_MAX = 80
FAILED = frozenset({FinalApplicationStatus.FAILED, FinalApplicationStatus.KILLED})


class Clusters:
    """The clusters that are up. `keep_in`: a directory below which the clusters' files are kept; None: temporary files.

    Under pytest-xdist each process uses its own directory in it, `worker`.
    """

    def __init__(self, keep_in: Path | None, worker: str) -> None:
        self._keep_in = None if keep_in is None else keep_in / worker
        self._started = 0
        self._up: list[BlockingCluster] = []
        self._marks: dict[Path, int] = {}
        self._began_ms = 0

    @contextlib.contextmanager
    def start(self, spec: ClusterSpec, name: str) -> Iterator[BlockingCluster]:
        """A cluster while the context is open; the name of its directory contains `name`, that of the test."""
        with spec.cluster(self._directory(name)) as cluster:
            self._up.append(cluster)
            try:
                yield cluster
            finally:
                self._up.remove(cluster)

    def note_beginning(self) -> None:
        """Record that a test begins: log lines written before, and applications that ended, belong to earlier tests."""
        self._marks = {}
        self._began_ms = time.time_ns() // 1_000_000
        for cluster in self._up:
            self._marks |= failure_logs.mark(cluster)

    def causes(self) -> list[Section]:
        """The reasons why applications wait, or have failed since the test began, for each cluster."""
        return [
            (f"{self._prefix(cluster)}{heading}", text)
            for cluster in self._up
            for heading, text in _causes(cluster, self._began_ms)
        ]

    def sections(self, lines_max: int) -> list[Section]:
        """Return the lines that all clusters have logged since the test began."""
        found: list[Section] = []
        for cluster in self._up:
            logged = failure_logs.sections(cluster, self._marks, lines_max)
            found += [(f"{self._prefix(cluster)}{heading}", text) for heading, text in logged]
        return found

    def _prefix(self, cluster: BlockingCluster) -> str:
        """The cluster's directory, if there are several clusters."""
        return f"{cluster.directory.path.name}: " if len(self._up) > 1 else ""

    def _directory(self, name: str) -> Path | None:
        if self._keep_in is None:
            return None
        self._started += 1
        plain = re.sub(r"[^\w.-]+", "-", name).strip("-")[-NAME_LENGTH_MAX:]
        return self._keep_in / f"{self._started:03}-{plain}"


class Pool:
    """Clusters that the tests of one scope share, one for each spec; closing `stack` ends them."""

    def __init__(self, clusters: Clusters, stack: contextlib.ExitStack) -> None:
        self._clusters = clusters
        self._stack = stack
        self._shared: dict[ClusterSpec, tuple[BlockingCluster, contextlib.ExitStack]] = {}

    def get(self, spec: ClusterSpec, name: str) -> BlockingCluster:
        """The cluster of that spec; replaced by a new one if a test has added nodes or ended a daemon."""
        if spec in self._shared:
            cluster, own = self._shared[spec]
            if _is_unchanged(cluster, spec):
                return cluster
            own.close()
        own = self._stack.enter_context(contextlib.ExitStack())
        cluster = own.enter_context(self._clusters.start(spec, name))
        self._shared[spec] = cluster, own
        return cluster


def _causes(cluster: BlockingCluster, began_ms: int) -> list[Section]:
    """The sections with a text; none if the ResourceManager does not answer."""
    if cluster.rm.exit_status is not None:
        return []
    try:
        waiting, failed = cluster.portal.call(_applications, cluster.original, began_ms)
    except (TimeoutError, YarnException):
        return []
    sections = (("yarnling explain", waiting), ("yarnling failed applications", failed))
    return [(heading, "\n".join(lines)) for heading, lines in sections if lines]


async def _applications(cluster: RunningCluster, began_ms: int) -> tuple[list[str], list[str]]:
    """The output of `yarnling explain`, and the diagnostics of applications that have failed since then."""
    async with asyncio.timeout(EXPLAIN_S):
        nodes = await cluster.client.nodes()
        applications = sorted(await cluster.client.applications(), key=lambda report: report.application_id)
        found = await waiting(cluster.client, applications)
    failed = [report for report in applications if report.final_status in FAILED and report.finish_time_ms >= began_ms]
    return (
        [line.plain for explanation in found for line in explained(explanation, nodes)],
        [line for report in failed for line in _outcome(report)],
    )


def _outcome(report: ApplicationReport) -> Iterator[str]:
    yield in_line(f"{report.application_id} ({report.name}): {report.final_status.name}")
    yield from (in_line(f"    {line}") for line in report.diagnostics.strip().splitlines())


def _is_unchanged(cluster: BlockingCluster, spec: ClusterSpec) -> bool:
    nodes = cluster.nodes
    return cluster.rm.exit_status is None and len(nodes) == spec.nodes and all(node.alive for node in nodes)
