"""A cluster for all tests of this directory: three nodes that answer Hadoop's own clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import LocalCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[BlockingCluster]:
    settings = {"yarn.scheduler.minimum-allocation-mb": "256"}
    with LocalCluster(3, memory_mb=4096, settings=settings, hadoop=True) as cluster:
        yield cluster
