"""A real ZooKeeper for the tests of this directory. Without Java or its jars, they are skipped with one line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hadoop import toolchain
from tests.zookeeper.proxy import CuttingProxy
from tests.zookeeper.server import ZooKeeperServer


@pytest.fixture(scope="session")
def zookeeper_jars() -> Path:
    return toolchain.jars_or_skip("zookeeper")


@pytest.fixture(scope="module")
def zookeeper(zookeeper_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A server for the tests of a module; a test that kills or pauses it leaves it running."""
    server = ZooKeeperServer(zookeeper_jars, tmp_path_factory.mktemp("zookeeper"))
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture
def proxy(zookeeper: ZooKeeperServer) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(zookeeper.port)
    yield proxy
    proxy.close()
