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
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from yarn.applications import ContainerReport
from yarn.configuration import Configuration
from yarn.errors import ContainerNotFoundException, InvalidArgumentException, YarnException
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeReport
from yarn.settings import FAST_TIME_FACTOR, scaled, yarnling
from yarn.states import ContainerState, NodeState
from yarnling import conditions
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
from yarnling.conditions import WAIT_S
from yarnling.container_processes import processes_of
from yarnling.launcher import Daemon, DaemonFailed, Launcher
from yarnling.processes import kill, kill_with_descendants
from yarnling.start_request import StartRequest

if TYPE_CHECKING:
    from yarnling.blocking import BlockingCluster

STARTING_MAX = 4 * (os.cpu_count() or 1)
"""NodeManagers that start at once. 300 at once on two cores took four times the CPU: they share pages that all of them
write to for the first time, and the kernel has them wait for one another."""
ADDED_MAX = 1000
"""Nodes that can join later. The ResourceManager reads the table of racks once, so theirs must be in it by then."""
LEAVE_S = 30.0
"""A NodeManager that takes leave ends its containers, which takes a quarter of a second."""
START_TIMEOUT_S = 120.0
"""Hundreds of nodes on one slow core; a daemon that fails is told at once, whatever this is."""


T = TypeVar("T")


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
        self._log_dirs: list[Path] = []
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
            self._clients[user] = Client(
                self._addresses,
                user=user,
                conf=self.configuration,
                log_dirs=self._log_dirs,
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

    # Growing and shrinking

    async def add_nodes(self, count: int = 1) -> list[Node]:
        """Start more NodeManagers, of the same size; they have registered when this returns."""
        most = min(self._node_count + ADDED_MAX, NODES_MAX)
        _check_count("nodes", len(self.nodes) + count, len(self.nodes) + 1, most)
        first = len(self.nodes) + 1
        return await self._start_nodes(self._places(first, first + count - 1))

    async def remove_node(self, number: int) -> None:
        """Have a NodeManager end its containers, take leave of the ResourceManager and end.

        Its number stays its own: `restart_node` brings it back.
        """
        daemon = self._living(number)
        os.kill(daemon.pid, signal.SIGTERM)
        # One that is paused hears nothing until it goes on.
        os.kill(daemon.pid, signal.SIGCONT)
        async with asyncio.timeout(LEAVE_S):
            await daemon.exited.wait()

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

    async def kill_rm(self) -> None:
        """SIGKILL to the ResourceManager; nodes, masters and containers run on."""
        if self.rm.exit_status is None:
            os.kill(self.rm.pid, signal.SIGKILL)
        await self.rm.exited.wait()

    async def restart_rm(self) -> Daemon:
        """Start a ResourceManager that has ended, at the addresses that everybody knows.

        It takes its applications up if `yarn.resourcemanager.recovery.enabled` is true; else they are unknown.
        """
        if self.rm.exit_status is None:
            raise InvalidArgumentException("the ResourceManager is running (kill it first)")
        return await self._launch("rm", "rm", {})

    async def kill_container(self, container_id: ContainerId) -> None:
        """SIGKILL to all processes of a container, once it has some: its NodeManager sees it fail with 137.

        Raises ContainerNotFoundException if it is no container, or has ended.
        """
        while not (processes := processes_of(container_id, self._launcher_open.pid)):
            report = await self.client.container(container_id)
            if report.state is ContainerState.COMPLETE:
                raise ContainerNotFoundException(f"{container_id} has ended")
            await asyncio.sleep(conditions.LOOK_S)
        for process in processes:
            kill(process)

    async def kill_master(self, app_id: ApplicationId) -> ContainerId:
        """SIGKILL to the application's current ApplicationMaster, once it has one; the container that it was."""

        async def current() -> ContainerId | None:
            attempt_id = (await self.client.report(app_id)).current_attempt_id
            attempts = {attempt.attempt_id: attempt for attempt in await self.client.attempts(app_id)}
            return attempts[attempt_id].am_container_id if attempt_id in attempts else None

        master = await self.until(current)
        assert master is not None
        await self.kill_container(master)
        return master

    # Waiting

    @overload
    async def until(self, condition: Callable[[], Awaitable[T]], timeout_s: float = WAIT_S) -> T: ...
    @overload
    async def until(self, condition: Callable[[], T], timeout_s: float = WAIT_S) -> T: ...
    async def until(self, condition: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
        """What `condition`, a function or a coroutine function, gives, as soon as that is true.

        Raises WaitTimeout with what it gave last.
        """
        return await conditions.until(condition, timeout_s)

    async def wait_nodes(
        self, count: int, state: NodeState = NodeState.RUNNING, timeout_s: float = WAIT_S
    ) -> tuple[NodeReport, ...]:
        """The nodes that the ResourceManager has in `state`, once there are exactly `count`. Raises WaitTimeout."""
        return await conditions.wait_nodes(self.client, count, state, timeout_s)

    async def wait_node(self, number: int, *states: NodeState, timeout_s: float = WAIT_S) -> NodeReport:
        """Node `number`, once the ResourceManager has it in one of `states` (without any: RUNNING)."""
        wanted = frozenset(states) or frozenset({NodeState.RUNNING})
        return await conditions.wait_node(self.client, self.node(number).id, wanted, timeout_s)

    async def wait_containers(
        self, app_id: ApplicationId, count: int, timeout_s: float = WAIT_S
    ) -> tuple[ContainerReport, ...]:
        """The running containers of an application but its master's, once there are exactly `count`."""
        return await conditions.wait_containers(self.client, app_id, count, timeout_s)

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
        self._directory.write_racks(self._places(1, min(self._node_count + ADDED_MAX, NODES_MAX)))
        self._write_files(first_addresses(self._settings))
        self._launcher = Launcher(self._directory.path, temporary=self._directory.temporary)
        self._launcher.open()
        rm = await self._launch("rm", "rm", {})
        self._addresses = {key: rm.facts["addresses"][key] for key in RM_ADDRESSES}
        self._write_files(self._addresses)
        await self._start_nodes(self._places(1, self._node_count))

    async def _start_nodes(self, places: list[NodePlace]) -> list[Node]:
        try:
            async with asyncio.TaskGroup() as tasks:
                starting = [tasks.create_task(self._launch_node(place)) for place in places]
        except* DaemonFailed as failures:
            raise failures.exceptions[0] from None
        started = [Node(place, task.result()) for place, task in zip(places, starting, strict=True)]
        self.nodes += started
        self._log_dirs += [path for node in started for path in self.log_dirs_of(node)]
        return started

    def _places(self, first: int, last: int) -> list[NodePlace]:
        return [self._directory.node(number, self._racks) for number in range(first, last + 1)]

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
