"""LocalCluster: a ResourceManager and NodeManagers as processes of this machine, for a test, a script or a shell.

    async with LocalCluster(nodes=4, fast=True) as cluster:
        report = await cluster.client.submit(context)

    with LocalCluster(nodes=4, fast=True) as cluster:          the same without asyncio
        report = cluster.client.submit(context)

It is ready when every NodeManager has registered; ports are free ones, so that several clusters stand side by side. At
the end, however it comes, every process and (unless a directory was named) every file is gone within two seconds.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from yarn.configuration import Configuration
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import NodeId
from yarn.settings import FAST_TIME_FACTOR, scaled, yarnling
from yarnling.client import Client
from yarnling.cluster_configuration import (
    RM_ADDRESSES,
    composed,
    file_values,
    first_addresses,
    log_dirs,
    node_overrides,
    node_sizes,
)
from yarnling.cluster_directory import NODES_MAX, ClusterDirectory, NodePlace
from yarnling.launcher import Daemon, DaemonFailed, Launcher
from yarnling.processes import kill_with_descendants
from yarnling.start_request import StartRequest

if TYPE_CHECKING:
    from yarnling.blocking import BlockingCluster

STARTING_MAX = 4 * (os.cpu_count() or 1)
"""NodeManagers that start at once. 300 at once on two cores took four times the CPU: they share pages that all of them
write to for the first time, and the kernel has them wait for one another."""
START_TIMEOUT_S = 120.0
"""Hundreds of nodes on one slow core; a daemon that fails is told at once, whatever this is."""


@dataclass
class Node:
    """A NodeManager of the cluster. `id` is its NodeId once it was ready."""

    place: NodePlace
    daemon: Daemon

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def id(self) -> NodeId:
        return NodeId.parse(self.daemon.facts["node_id"])

    @property
    def alive(self) -> bool:
        return self.daemon.exit_status is None


class LocalCluster:
    """A cluster from entry to exit of its context.

    `conf`: a directory with Hadoop's files. `settings` {key: value} win over it, and over what the cluster sets itself
    (addresses, directories, node sizes). `fast` shortens every timer by FAST_TIME_FACTOR. `directory`: where its files
    are kept and stay; without one they are temporary.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        memory_mb: int | None = None,
        vcores: int | None = None,
        conf: Path | str | None = None,
        settings: Mapping[str, str] | None = None,
        fast: bool = False,
        racks: int = 1,
        directory: Path | str | None = None,
    ) -> None:
        _check_count("nodes", nodes, 0, NODES_MAX)
        _check_count("racks", racks, 1, max(1, nodes))
        self._node_count = nodes
        self._racks = racks
        self._sizes = node_sizes(memory_mb, vcores)
        self._conf = None if conf is None else Path(conf)
        self._settings = _checked(settings or {})
        if fast:
            self._settings.setdefault(yarnling.TIME_FACTOR.key, str(FAST_TIME_FACTOR))
        self._path = None if directory is None else Path(directory)
        self._launcher: Launcher | None = None
        self._addresses: dict[str, str] = {}
        self._clients: dict[str, Client] = {}
        self._blocking: BlockingCluster | None = None
        self._starting = asyncio.Semaphore(STARTING_MAX)
        self.nodes: list[Node] = []

    # Coming and going

    async def __aenter__(self) -> LocalCluster:
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._start()
        except TimeoutError:
            await self.stop()
            raise YarnException(f"the cluster was not ready in {START_TIMEOUT_S:g} s") from None
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def __enter__(self) -> BlockingCluster:
        from yarnling.blocking import BlockingCluster

        self._blocking = BlockingCluster(self)
        return self._blocking.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._blocking is not None
        self._blocking.close()

    async def stop(self) -> None:
        """End every process of the cluster; again is no error."""
        clients, self._clients = list(self._clients.values()), {}
        try:
            for client in clients:
                await client.close()
        finally:
            if self._launcher is not None:
                await self._launcher.close()

    # What it is made of

    @property
    def directory(self) -> ClusterDirectory:
        """Its files."""
        return self._directory

    @property
    def configuration(self) -> Configuration:
        """What its daemons go by, their own places apart; intervals are shortened already."""
        return scaled(self._configuration)

    @property
    def rm(self) -> Daemon:
        """The ResourceManager's process."""
        return self._launcher_open.daemons["rm"]

    @property
    def addresses(self) -> dict[str, str]:
        """{configuration key: host:port} of the ResourceManager's services."""
        return dict(self._addresses)

    @property
    def client(self) -> Client:
        """A client of the user who runs this."""
        return self.client_of("")

    def client_of(self, user: str) -> Client:
        """The client of `user` ("" is who runs this); closed with the cluster."""
        assert self._launcher_open
        if user not in self._clients:
            dirs = [path for node in self.nodes for path in self.log_dirs_of(node)]
            self._clients[user] = Client(
                self._addresses,
                user=user,
                conf=self.configuration,
                log_dirs=dirs,
                staging_root=self._directory.staging,
            )
        return self._clients[user]

    def node(self, number: int) -> Node:
        """Node `number`, from 1. Raises InvalidArgumentException if there is none."""
        if not 1 <= number <= len(self.nodes):
            raise InvalidArgumentException(f"node {number}: there are nodes 1 to {len(self.nodes)}")
        return self.nodes[number - 1]

    def log_dirs_of(self, node: Node) -> list[Path]:
        """Where the logs of the node's containers are."""
        return log_dirs(node.place, self._settings)

    # Doing it harm

    async def kill_node(self, number: int, *, containers: bool = True) -> None:
        """SIGKILL to a NodeManager, and to its containers as if its machine had gone (unless `containers` is False)."""
        daemon = self.node(number).daemon
        if daemon.exit_status is not None:
            return
        if containers:
            kill_with_descendants(daemon.pid)
        else:
            os.kill(daemon.pid, signal.SIGKILL)
        await daemon.exited.wait()

    def pause_node(self, number: int) -> None:
        """Let a NodeManager hang, as a machine that swaps does; its containers run on."""
        os.kill(self._living(number).pid, signal.SIGSTOP)

    def resume_node(self, number: int) -> None:
        os.kill(self._living(number).pid, signal.SIGCONT)

    async def restart_node(self, number: int) -> Node:
        """Start a NodeManager that has ended, on the same host and directories."""
        node = self.node(number)
        if node.alive:
            raise InvalidArgumentException(f"{node.name} is running (kill it first)")
        node.daemon = await self._launch_node(node.place)
        return node

    @property
    def _launcher_open(self) -> Launcher:
        if self._launcher is None:
            raise InvalidArgumentException("the cluster is not up (enter its context: with LocalCluster() as cluster)")
        return self._launcher

    def _living(self, number: int) -> Daemon:
        node = self.node(number)
        if not node.alive:
            raise InvalidArgumentException(f"{node.name} has ended (restart it first)")
        return node.daemon

    # Starting

    async def _start(self) -> None:
        self._configuration = composed(self._conf, self._settings, self._sizes)
        self._directory = ClusterDirectory.make(self._path)
        places = [self._directory.node(number, self._racks) for number in range(1, self._node_count + 1)]
        self._directory.write_racks(places)
        self._write_files(first_addresses(self._settings))
        self._launcher = Launcher(self._directory.path, temporary=self._directory.temporary)
        self._launcher.open()
        rm = await self._launch("rm", "rm", {})
        self._addresses = {key: rm.facts["addresses"][key] for key in RM_ADDRESSES}
        self._write_files(self._addresses)
        try:
            async with asyncio.TaskGroup() as tasks:
                starting = [tasks.create_task(self._launch_node(place)) for place in places]
        except* DaemonFailed as failures:
            raise failures.exceptions[0] from None
        self.nodes = [Node(place, task.result()) for place, task in zip(places, starting, strict=True)]

    async def _launch_node(self, place: NodePlace) -> Daemon:
        async with self._starting:
            return await self._launch(place.name, "nm", node_overrides(place, self._settings))

    async def _launch(self, name: str, package: str, overrides: dict[str, str]) -> Daemon:
        conf = str(self._directory.conf)
        log_file = str(self._directory.log_file(name))
        request = StartRequest(name, package, conf, log_file, overrides, {"HADOOP_CONF_DIR": conf})
        return await self._launcher_open.start(request)

    def _write_files(self, addresses: Mapping[str, str]) -> None:
        values = file_values(self._configuration, addresses, self._directory, racks=self._racks > 1)
        self._directory.write_configuration(values)


def _checked(settings: Mapping[str, str]) -> dict[str, str]:
    for key, value in settings.items():
        if not isinstance(value, str):
            raise InvalidArgumentException(f"settings: {key} = {value!r}: must be a text (write {str(value)!r})")
    return dict(settings)


def _check_count(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidArgumentException(f"{name} = {value}: must be {least} to {most}")
