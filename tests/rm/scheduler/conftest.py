"""The cluster of scheduler tests: every invariant is checked when a test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.rm.scheduler.cluster import ONE_QUEUE, Cluster

StartCluster = Callable[..., Cluster]


@pytest.fixture
def start_cluster() -> Iterator[StartCluster]:
    """Starts a scheduler: one leaf `a` with `conf` on top, or only `conf` with `alone`.

    `exempt`: invariants that the test violates on purpose, as Hadoop does.
    """
    started: list[tuple[Cluster, tuple[str, ...]]] = []

    def start(conf: Mapping[str, str] | None = None, *, alone: bool = False, exempt: tuple[str, ...] = ()) -> Cluster:
        base = {} if alone else ONE_QUEUE
        cluster = Cluster({**base, **(conf or {})})
        started.append((cluster, exempt))
        return cluster

    yield start
    for cluster, exempt in started:
        assert cluster.violations(exempt) == []
