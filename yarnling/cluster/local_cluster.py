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
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from yarn.applications import ContainerReport
from yarn.configuration import Configuration
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import ApplicationId, ContainerId, as_id
from yarn.java.values import INT_MAX
from yarn.nodes import NodeReport
from yarn.settings import FAST_TIME_FACTOR, resourcemanager, scaled, yarnling
from yarn.settings.yarnling import PACK_MAX
from yarn.states import NodeState
from yarnling.cluster import conditions
from yarnling.cluster.client import Client
from yarnling.cluster.conditions import WAIT_S
from yarnling.cluster.configuration import emulation_setting, node_sizes, unknown_keys
from yarnling.cluster.daemons import ClusterDaemons, Detours, Node
from yarnling.cluster.decommissioning import ExcludedHosts, decommission
from yarnling.cluster.directory import NODES_MAX, ClusterDirectory
from yarnling.cluster.launcher import Daemon
from yarnling.cluster.processes import kill
from yarnling.cluster.unmanaged_master import NAME, UnmanagedMaster, unmanaged_master

if TYPE_CHECKING:
    from yarnling.cluster.blocking import BlockingCluster

START_TIMEOUT_S = 120.0
"""Hundreds of nodes on one slow core; a daemon that fails is told at once, whatever this is."""
START_TIMEOUT_S_A_NODE = 0.05
"""What each node of a large cluster adds to it."""


T = TypeVar("T")
_logger = logging.getLogger(__name__)


class LocalCluster:
    """A cluster from entry to exit of its context.

    `conf`: a directory with Hadoop's files. `settings` {key: value} win over it, and over what the cluster sets itself
    (addresses, directories, node sizes). `pack`: so many nodes share a process, for clusters of thousands; None is as
    many as yarn.yarnling.pack says. `fast` shortens every timer by FAST_TIME_FACTOR. `directory`: where its files are
    kept and stay; without one they are temporary. `emulated`: containers are played, by the ready-made table (True) or
    by the one in a file (docs/emulated-containers.md). `detours`: ways between its processes that are not straight, for
    nodes that share none. `loopback`: its daemons run in this process's event loop, which is quicker; they cannot be
    killed or paused then. With recovery (yarn.resourcemanager.recovery.enabled) a cluster resumes the applications that
    an earlier one left in its `directory`; `discard_state` deletes those first. `name`: how the refusal of another
    cluster names this one when it finds the directory in use.
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
        pack: int | None = None,
        directory: Path | str | None = None,
        emulated: bool | Path | str = False,
        detours: Detours | None = None,
        loopback: bool = False,
        discard_state: bool = False,
        name: str = "",
    ) -> None:
        if discard_state and directory is None:
            problem = "a temporary directory has no state of an earlier cluster"
            raise InvalidArgumentException(f"discard_state = True: {problem} (name the directory whose state it is)")
        _check_count("nodes", nodes, 0, NODES_MAX)
        _check_count("racks", racks, 1, max(1, nodes))
        if pack is not None:
            _check_count("pack", pack, 1, PACK_MAX)
        self._node_count = nodes
        self._settings = _checked(settings or {}) | emulation_setting(emulated)
        if fast:
            self._settings.setdefault(yarnling.TIME_FACTOR.key, str(FAST_TIME_FACTOR))
        self._path = None if directory is None else Path(directory)
        self._discard_state = discard_state
        self._daemons = ClusterDaemons(
            None if conf is None else Path(conf),
            self._settings,
            node_sizes(memory_mb, vcores),
            nodes=nodes,
            racks=racks,
            pack=pack,
            detours=detours,
            loopback=loopback,
            name=name,
        )
        self._clients: dict[str, Client] = {}
        self._blocking: BlockingCluster | None = None

    def __repr__(self) -> str:
        nodes = self._daemons.nodes
        if not self._daemons.is_open:
            return f"<LocalCluster not started, {self._node_count} nodes>"
        living = sum(node.alive for node in nodes)
        return f"<LocalCluster in {self.directory.path}, {living} of {len(nodes)} nodes run>"

    # Coming and going

    async def __aenter__(self) -> LocalCluster:
        timeout_s = START_TIMEOUT_S + START_TIMEOUT_S_A_NODE * self._node_count
        try:
            async with asyncio.timeout(timeout_s):
                await self._start()
        except TimeoutError:
            await self.stop()
            raise YarnException(f"the cluster was not ready in {timeout_s:g} s") from None
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def __enter__(self) -> BlockingCluster:
        from yarnling.cluster.blocking import BlockingCluster

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
            await self._daemons.close()

    async def wait_broken(self) -> str:
        """Return, with the reason, once nothing of it runs and nothing can be started: its fork server has ended."""
        return await self._daemons.launcher.wait_gone()

    # What it is made of

    @property
    def directory(self) -> ClusterDirectory:
        """Its files."""
        return self._daemons.directory

    @property
    def configuration(self) -> Configuration:
        """What its daemons go by, their own places apart; intervals are shortened already."""
        return scaled(self._daemons.configuration)

    @property
    def rm(self) -> Daemon:
        """The ResourceManager's process."""
        return self._daemons.rm

    @property
    def addresses(self) -> dict[str, str]:
        """{configuration key: host:port} of the ResourceManager's services."""
        return dict(self._daemons.addresses)

    @property
    def client(self) -> Client:
        """A client of the user who runs this."""
        return self.client_of("")

    def client_of(self, user: str) -> Client:
        """The client of `user` ("" is who runs this); closed with the cluster."""
        daemons = self._daemons
        assert daemons.launcher
        if user not in self._clients:
            self._clients[user] = Client(
                daemons.addresses,
                user=user,
                conf=self.configuration,
                log_dirs=daemons.log_dirs,
                staging_root=daemons.directory.staging,
            )
        return self._clients[user]

    @property
    def nodes(self) -> list[Node]:
        """Its NodeManagers, by their numbers; also those that have ended."""
        return self._daemons.nodes

    def unmanaged_master(
        self, queue: str = "default", *, name: str = NAME, user: str = ""
    ) -> AbstractAsyncContextManager[UnmanagedMaster]:
        """An ApplicationMaster in this process: `async with cluster.unmanaged_master() as master` (see there)."""
        client = self.client_of(user)
        return unmanaged_master(client, self._daemons.addresses, self.configuration, queue=queue, name=name)

    def node(self, number: int) -> Node:
        """Node `number`, from 1. Raises InvalidArgumentException if there is none."""
        return self._daemons.node(number)

    def pack_of(self, number: int) -> list[Node]:
        """The nodes of the process of node `number`, itself among them."""
        return self._daemons.pack_of(number)

    def log_dirs_of(self, node: Node) -> list[Path]:
        """Where the logs of the node's containers are."""
        return self._daemons.log_dirs_of(node)

    # Growing and shrinking

    async def add_nodes(self, count: int = 1, *, memory_mb: int | None = None, vcores: int | None = None) -> list[Node]:
        """Start more NodeManagers, of the others' size or another; they have registered when this returns."""
        self.check_added(count, memory_mb=memory_mb, vcores=vcores)
        return await self._daemons.start_nodes(count, node_sizes(memory_mb, vcores))

    def check_added(self, count: int, *, memory_mb: int | None = None, vcores: int | None = None) -> None:
        """Raises InvalidArgumentException, with everything that is wrong, if `add_nodes` cannot add these."""
        have, most = len(self.nodes), self._daemons.nodes_max
        asked = {"count": (count, most - have), "memory_mb": (memory_mb, INT_MAX), "vcores": (vcores, INT_MAX)}
        faults = [
            f"{name} = {value}: must be 1 to {limit}"
            for name, (value, limit) in asked.items()
            if value is not None and not 1 <= value <= limit
        ]
        if faults and not 1 <= count <= most - have:
            faults[0] += f" (the cluster has {have} nodes and was started for at most {most})"
        if faults:
            raise InvalidArgumentException("\n".join(faults))

    async def remove_node(self, number: int) -> None:
        """Have a NodeManager end its containers, take leave of the ResourceManager and end.

        Its number stays its own: `restart_node` brings it back.
        """
        await self._daemons.end_node(number)

    async def decommission_node(
        self, number: int, timeout_s: int | None = None, tell: Callable[[str], None] = lambda text: None
    ) -> None:
        """Have a node take nothing new and leave when its work is done, or killed at `timeout_s`.

        None: as `yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs` says. `tell` hears what it waits
        for. `restart_node` brings it back.
        """
        node = self._daemons.living(number)
        await decommission(self.client, self._excluded_hosts, node, timeout_s, tell)

    # Doing it harm

    async def kill_node(self, number: int, *, containers: bool = True) -> None:
        """SIGKILL to a NodeManager, and to its containers as if its machine had gone (unless `containers` is False).

        Raises InvalidArgumentException for a node that has ended already, and for one that shares its process with
        others; so do `pause_node` and `remove_node`.
        """
        await self._daemons.kill_node(number, containers=containers)

    async def kill_pack(self, number: int, *, containers: bool = True) -> None:
        """The same to the process of a node with all the nodes that it has; `restart_node` brings back all of them."""
        await self._daemons.kill_pack(number, containers=containers)

    def pause_node(self, number: int) -> None:
        """Let a NodeManager hang, as a machine that swaps does; its containers run on."""
        self._daemons.pause_node(number)

    def resume_node(self, number: int) -> None:
        self._daemons.resume_node(number)

    async def restart_node(self, number: int) -> Node:
        """Start a NodeManager that has ended, on the same host and directories."""
        node = self.node(number)
        is_back = not node.alive and self._excluded_hosts.discard(node.place.host)
        if is_back and self.rm.exit_status is None:
            await self.client.refresh_nodes()
        return await self._daemons.restart_node(number)

    async def kill_rm(self) -> None:
        """SIGKILL to the ResourceManager; nodes, ApplicationMasters and containers run on.

        Raises InvalidArgumentException if it has ended already.
        """
        await self._daemons.kill_rm()

    async def restart_rm(self) -> Daemon:
        """Start a ResourceManager that has ended, at the addresses that everybody knows.

        It takes its applications up if `yarn.resourcemanager.recovery.enabled` is true; else they are unknown.
        """
        return await self._daemons.restart_rm()

    async def kill_container(self, container_id: ContainerId | str) -> None:
        """SIGKILL to all processes of a container, once it has some: its NodeManager sees it fail with 137.

        Raises ContainerNotFoundException if it is no container, or has ended.
        """
        killed = as_id(ContainerId, container_id)
        for process in await conditions.wait_processes(self.client, killed, self._daemons.launcher.pid):
            kill(process)

    async def kill_master(self, app_id: ApplicationId | str) -> ContainerId:
        """SIGKILL to the application's current ApplicationMaster, once it has one; the container that it was."""
        master = await conditions.wait_master(self.client, app_id)
        await self.kill_container(master)
        return master

    @property
    def _excluded_hosts(self) -> ExcludedHosts:
        conf, setting = self._daemons.configuration, resourcemanager.NODES_EXCLUDE_PATH
        return ExcludedHosts(self.directory.excluded_hosts, setting.of(conf) if setting.key in conf else None)

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
        self, app_id: ApplicationId | str, count: int, timeout_s: float = WAIT_S, *, exactly: bool = False
    ) -> tuple[ContainerReport, ...]:
        """The running containers of an application without its ApplicationMaster's, once there are at least `count`.

        `exactly`: once there are neither more nor less, for example to wait until some have ended. Raises WaitTimeout.
        """
        return await conditions.wait_containers(self.client, app_id, count, timeout_s, exactly=exactly)

    async def _start(self) -> None:
        self._daemons.open(self._path, discard_state=self._discard_state)
        await self._daemons.start_rm()
        await self._daemons.start_nodes(self._node_count)


def _checked(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings. Raises InvalidArgumentException for values that are not texts and for misspelled keys, all at once.

    A key that neither yarnling nor Hadoop knows is refused if it looks like one that is known. Others are logged only:
    `${...}` in values may refer to any key.
    """
    problems = [
        f"{key} = {value!r}: must be a text (write {str(value)!r})"
        for key, value in settings.items()
        if not isinstance(value, str)
    ]
    for unknown in unknown_keys({key: str(value) for key, value in settings.items()}):
        if unknown.nearest is not None:
            problems.append(f"{unknown.key} is not a known key (perhaps {unknown.nearest})")
        else:
            _logger.warning("settings: neither yarnling nor Hadoop knows the key %s; it has no effect", unknown.key)
    if problems:
        raise InvalidArgumentException("\n".join(f"settings: {problem}" for problem in problems))
    return dict(settings)


def _check_count(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidArgumentException(f"{name} = {value}: must be {least} to {most}")
