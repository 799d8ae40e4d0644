"""The daemons of a cluster: their environment, and kills that look at every process of the machine."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from wire.files.hadoop_xml import to_xml
from yarn.errors import InvalidArgumentException
from yarnling.cluster.daemons import ClusterDaemons, RouteOverride
from yarnling.cluster.directory import ClusterDirectory, NodePlace
from yarnling.cluster.hadoop_clients import settings_for
from yarnling.cluster.launcher import Daemon, environment_of_daemons
from yarnling.cluster.nodes import Node


async def test_the_event_loop_is_not_blocked_while_a_node_is_killed() -> None:
    daemon, seen = Daemon("nm-1", Path("nm-1.log"), pid=7), threading.Event()

    def kill(whom: Daemon, *, descendants: bool) -> None:
        assert (whom, descendants) == (daemon, True)
        assert seen.wait(60), "the event loop is blocked"
        daemon.exited.set()

    fake = SimpleNamespace(living=lambda number: SimpleNamespace(daemon=daemon), launcher=SimpleNamespace(kill=kill))
    asyncio.get_running_loop().call_soon(seen.set)
    await ClusterDaemons.kill_pack(fake, 1, containers=True)  # type: ignore[arg-type]


async def test_a_node_that_has_ended_is_not_killed_once_more(tmp_path: Path) -> None:
    """As with `yarnling kill-node`, nothing is killed, and the caller gets an error."""
    daemons = ClusterDaemons(None, {}, {}, nodes=1, racks=1)
    daemon = Daemon("nm-1", tmp_path / "nm-1.log", pid=7)
    daemon.facts, daemon.exit_status = {"node_id": "127.0.0.2:1"}, -9
    daemons.nodes.append(Node(ClusterDirectory(tmp_path, temporary=False).node(1, 1), daemon))
    with pytest.raises(InvalidArgumentException, match=r"nm-1 \(127.0.0.2:1\) is not running"):
        await daemons.kill_node(1, containers=True)
    with pytest.raises(InvalidArgumentException, match="is not running"):
        await daemons.kill_pack(1, containers=True)


def test_daemons_find_the_packages_without_an_installation() -> None:
    first = environment_of_daemons()["PYTHONPATH"].split(os.pathsep)[0]
    assert Path(first, "yarnling", "cluster", "launcher.py").exists()
    assert Path(first, "rm", "daemon.py").exists()


class Seen(Exception):
    """A node was about to start."""


class Routes:
    """Notes the configuration from which that of a node's containers is made."""

    values: Mapping[str, str]

    async def of_node(self, place: NodePlace, values: Mapping[str, str]) -> RouteOverride:
        self.values = values
        raise Seen


async def test_containers_behind_network_faults_get_the_files_for_clients(tmp_path: Path) -> None:
    """With HA, an ApplicationMaster in Java would ask for ever where the ResourceManager is."""
    settings = settings_for(True, None)
    conf = tmp_path / "yarn-site.xml"
    conf.write_text(to_xml({"yarn.resourcemanager.ha.enabled": "true"}))
    routes = Routes()
    daemons = ClusterDaemons(conf, settings, {}, nodes=1, racks=1, routes=routes, loopback=True)
    daemons.open(tmp_path / "cluster")
    try:
        with pytest.raises(ExceptionGroup):
            await daemons.start_nodes(1)
    finally:
        await daemons.close()
    assert routes.values["yarn.resourcemanager.ha.enabled"] == "false"
    assert routes.values["yarn.nodemanager.remote-app-log-dir"] == f"file:{tmp_path}/cluster/remote-logs"
