"""The daemons of a local cluster: how its ResourceManager and NodeManagers are configured, started and ended."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import logging
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.errors import InvalidArgumentException
from yarn.settings import high_availability, nodemanager, resourcemanager, yarnling
from yarnling.cluster import hadoop_clients
from yarnling.cluster.configuration import (
    ANY_PORT,
    ORIGIN,
    RM_ADDRESSES,
    ClusterConfiguration,
    compose,
    file_values,
    first_addresses,
    log_dirs,
    node_overrides,
    web_address,
    with_queue_store,
    with_remote_logs,
)
from yarnling.cluster.directory import NODES_MAX, STATE_STORE, ClusterDirectory, NodePlace
from yarnling.cluster.fork_messages import NM, RM, DaemonRequest
from yarnling.cluster.launcher import LOG_FILE, Daemon, DaemonFailed, Launcher, log_ends, log_tail
from yarnling.cluster.loop_launcher import LoopLauncher
from yarnling.cluster.node_recovery import NodeRecoveryPlaces
from yarnling.cluster.nodes import Node
from yarnling.cluster.open_files import check_open_files
from yarnling.cluster.port_reservations import PortReservations
from yarnling.cluster.processes import end_orphans
from yarnling.cluster.resource_managers import ids_of
from yarnling.cluster.state import write_private

ADDED_MAX = 1000
"""Nodes that can be added later. The ResourceManager reads the table of racks only once, so it must already list
them."""
PRIVATE_MODE = 0o700
WEB_KEY = resourcemanager.WEBAPP_ADDRESS.key
NO_WEB = "127.0.0.1:0"
LATE_SHOWN_MAX = 5
"""Of how many daemons that are not ready the last log line is shown."""
LATE_KEPT_MAX = 20
"""Of how many of them the end of the log is kept."""
EXIT_TIMEOUT_S = 30.0
"""The time a NodeManager may take to end its containers and unregister; it needs a quarter of a second."""

_logger = logging.getLogger(__name__)


class RouteOverride(Struct, frozen=True):
    """A node's way to the other processes: `settings` of its NodeManager, and the HADOOP_CONF_DIR of its
    containers (None: the cluster's)."""

    settings: dict[str, str]
    conf_dir: Path | None = None


class RouteOverrides(Protocol):
    """Routes other than the direct ones between the processes, for example through proxies that inject faults."""

    async def of_node(self, place: NodePlace, values: Mapping[str, str]) -> RouteOverride:
        """Called before each start of the node; `values` {key: value} are those of the cluster's files."""
        ...


class ClusterDaemons:
    """The plan of a cluster. `settings` {key: value} win over `own`, and both over the files of `conf_dir`.

    `pack` is the number of nodes that share a process; None: as configured. `loopback`: daemons are tasks of the
    running event loop instead of processes. `web_port` is the first port tried for the RM's web services, if they are
    enabled and have no address in the settings; 0: any free one. `name` is the cluster's name in the error that another
    cluster reports if the directory is in use.
    """

    def __init__(
        self,
        conf_dir: Path | None,
        settings: Mapping[str, str],
        own: Mapping[str, str],
        *,
        nodes: int,
        racks: int,
        pack: int | None = None,
        routes: RouteOverrides | None = None,
        loopback: bool = False,
        web_port: int = 0,
        name: str = "",
    ) -> None:
        self._conf_dir = conf_dir
        self._given_settings = settings
        self._own = own
        self._racks = racks
        self._pack = pack
        self.routes = routes
        self._loopback = loopback
        self._web_port = web_port
        self._name = name
        self._node_count = nodes
        self.nodes_max = min(nodes + ADDED_MAX, NODES_MAX)
        self._launcher: Launcher | LoopLauncher | None = None
        self._opened: ClusterDirectory | None = None
        self._ports = PortReservations()
        self._recovery = NodeRecoveryPlaces(self._ports.reserve)
        self._files_of_user: hadoop_clients.Files | None = None
        self._node_environment: dict[str, str] = {}
        self.addresses: dict[str, str] = {}
        self.log_dirs: list[Path] = []
        self.nodes: list[Node] = []

    @cached_property
    def composed(self) -> ClusterConfiguration:
        """The configuration without its places. Raises ConfigurationException for files that cannot be read."""
        return compose(self._conf_dir, self._given_settings, self._own)

    @property
    def _settings(self) -> Mapping[str, str]:
        return self.composed.overrides

    def open(self, path: Path | None, *, discard_state: bool = False) -> None:
        """Make the cluster's directory, `path` or a temporary one, and start the launcher of its daemons.

        The state of an earlier cluster in `path` is kept to be resumed, unless `discard_state`. Raises YarnException,
        with nothing changed, if another cluster uses the directory, recovery is off and there is such state, or this
        process may open too few files.
        """
        self.configuration: Configuration = self.composed.accepted().conf
        self._check_open_files(self._node_count)
        if hadoop_clients.are_served(self.configuration):
            self._files_of_user = hadoop_clients.files_of_user(self._conf_dir)
            self._node_environment |= hadoop_clients.node_environment(os.environ)
            if notice := hadoop_clients.java_notice(os.environ):
                _logger.info("%s", notice)
        self.directory = self._opened = ClusterDirectory.make(path, self._name)
        store = self.directory.path / (self.configuration.get(yarnling.STATE_STORE_FILE.key) or STATE_STORE)
        recovery = resourcemanager.RECOVERY_ENABLED.of(self.configuration)
        self.directory.check_state(store, recovery=recovery, discard=discard_state)
        if not self.directory.temporary:
            end_orphans([self.directory.path])
        self.directory.prepare(store, discard=discard_state)
        if self._files_of_user is not None:
            self.directory.make_files(os.environ.get("HADOOP_USER_NAME") or getpass.getuser())
        secret_file = {yarnling.CLUSTER_SECRET_FILE.key: str(self.directory.secret_file)}
        conf = self.configuration.overridden(secret_file, ORIGIN)
        for with_own_place in (with_remote_logs, with_queue_store):
            conf = with_own_place(conf, self._settings, self.directory.path)
        self.configuration = conf
        numbers = range(1, self.nodes_max + 1)
        self.directory.write_racks([self.directory.node(number, self._racks) for number in numbers])
        kind = LoopLauncher if self._loopback else Launcher
        self._launcher = kind(self.directory.path, temporary=self.directory.temporary)
        self._launcher.open()

    async def close(self) -> None:
        """End every process; calling it again is a no-op."""
        try:
            if self._launcher is not None:
                await self._launcher.close()
        finally:
            self._ports.close()
            self.release_directory()

    def release_directory(self) -> None:
        """Let another cluster use the directory, now that no process of this one does."""
        if self._opened is not None:
            self._opened.release()

    @property
    def is_open(self) -> bool:
        """True once the directory has been made, also after the cluster has ended."""
        return self._launcher is not None

    @property
    def launcher(self) -> Launcher | LoopLauncher:
        """Raises InvalidArgumentException before `open`."""
        if self._launcher is None:
            raise InvalidArgumentException("the cluster is not up (enter its context: with LocalCluster() as cluster)")
        return self._launcher

    @property
    def rm(self) -> Daemon:
        """The ResourceManager; of several the first that runs, or the first of all."""
        return next((daemon for daemon in self.rms if daemon.exit_status is None), self.rms[0])

    @property
    def rms(self) -> list[Daemon]:
        """All ResourceManagers, including those that have ended."""
        return [self.launcher.daemons[name] for name in self.rm_ids or ("rm",)]

    @property
    def rm_ids(self) -> tuple[str, ...]:
        """The ids of several ResourceManagers; empty if there is one."""
        return ids_of(self.configuration)

    def rm_of(self, rm_id: str) -> Daemon:
        """The ResourceManager with an id; "" for the only one, or the first that runs."""
        if not rm_id:
            return self.rm
        if rm_id not in self.rm_ids:
            ids = ", ".join(self.rm_ids) or "one without an id"
            raise InvalidArgumentException(f"{rm_id}: there is no such ResourceManager (there are: {ids})")
        return self.launcher.daemons[rm_id]

    async def start_rm(self) -> None:
        """Start the first ResourceManager, or all, and write their addresses into the cluster's files."""
        if self.rm_ids:
            await self._start_rms()
            return
        first = first_addresses(self._settings)
        reserved = {key: self._ports.reserve(address) for key, address in first.items()}
        if yarnling.WEB_ENABLED.of(self.configuration):
            reserved[resourcemanager.WEBAPP_ADDRESS.key] = self._reserved_web_address()
        self._write_files(reserved)
        rm = await self._launch("rm", RM, {})
        self.addresses |= {key: rm.facts["addresses"][key] for key in reserved}
        self._write_files(self.addresses)

    async def _start_rms(self) -> None:
        """Start several ResourceManagers, the first one before the others, so that it is usually the active one."""
        has_web = yarnling.WEB_ENABLED.of(self.configuration)
        reserved: dict[str, str] = {}
        for rm_id in self.rm_ids:
            of_this = {key: self._settings.get(f"{key}.{rm_id}", ANY_PORT) for key in RM_ADDRESSES}
            found = {key: self._ports.reserve(address) for key, address in of_this.items()}
            # Others name it in redirects, so the key is needed without web services, too.
            found[WEB_KEY] = self._web_address_of(rm_id) if has_web else NO_WEB
            reserved |= {f"{key}.{rm_id}": address for key, address in found.items()}
        self.addresses |= reserved
        self._write_files(reserved)
        for rm_id in self.rm_ids:
            await self._launch_rm(rm_id)

    def _web_address_of(self, rm_id: str) -> str:
        named = self._settings.get(f"{WEB_KEY}.{rm_id}")
        return self._reserved_web_address() if named is None else self._ports.reserve(named)

    async def _launch_rm(self, rm_id: str) -> Daemon:
        if not rm_id:
            return await self._launch("rm", RM, {})
        return await self._launch(rm_id, RM, {high_availability.RM_ID.key: rm_id})

    def _reserved_web_address(self) -> str:
        key, address = resourcemanager.WEBAPP_ADDRESS.key, web_address(self._settings, self._web_port)
        if key in self._settings or not self._web_port:
            return self._ports.reserve(address)
        return self._ports.reserve_from(address)

    async def restart_rm(self, rm_id: str = "") -> Daemon:
        """Start a ResourceManager at the same addresses. Raises InvalidArgumentException if it is running.

        `rm_id`: that of one of several; "" for the first that has ended.
        """
        ended = [name for name in self.rm_ids if self.rm_of(name).exit_status is not None]
        rm_id = rm_id or next(iter(ended), "")
        if self.rm_of(rm_id).exit_status is None:
            raise InvalidArgumentException("the ResourceManager is running (kill it first)")
        return await self._launch_rm(rm_id)

    def pause_rm(self, rm_id: str = "") -> None:
        self.launcher.pause(self._running_rm(rm_id))

    def resume_rm(self, rm_id: str = "") -> None:
        self.launcher.resume(self._running_rm(rm_id))

    def _running_rm(self, rm_id: str) -> Daemon:
        rm = self.rm_of(rm_id)
        if rm.exit_status is not None:
            raise InvalidArgumentException("the ResourceManager is not running (restart it first)")
        return rm

    async def kill_rm(self, rm_id: str = "") -> None:
        """Kill the ResourceManager, even while it starts. Raises InvalidArgumentException if it has ended."""
        rm = self._running_rm(rm_id)
        await rm.spawned.wait()
        if rm.exit_status is None:
            self.launcher.kill(rm, descendants=False)
        await rm.exited.wait()

    def node(self, number: int) -> Node:
        """Node `number`, from 1. Raises InvalidArgumentException if there is none."""
        if not 1 <= number <= len(self.nodes):
            raise InvalidArgumentException(f"node {number}: there are nodes 1 to {len(self.nodes)}")
        return self.nodes[number - 1]

    def log_dirs_of(self, node: Node) -> list[Path]:
        """The directories with the logs of the node's containers."""
        return log_dirs(node.place, self._settings)

    async def start_nodes(
        self, count: int, sizes: Mapping[str, str] | None = None, *, arrived: Callable[[], None] = lambda: None
    ) -> list[Node]:
        """Start so many more; they have registered when this returns. `arrived` is called after each process.

        Raises DaemonFailed for the first that cannot; then none of them is left. Raises YarnException, before any is
        started, if this process may open too few files.
        """
        self._check_open_files(len(self.nodes) + count)
        first = len(self.nodes) + 1
        packs = self._packs(first, first + count - 1)
        own_sizes = sizes or {}
        failed: DaemonFailed | None = None
        starting: list[asyncio.Task[Daemon]] = []

        async def launched(places: list[NodePlace]) -> Daemon:
            daemon = await self._launch_nodes(places, own_sizes)
            arrived()
            return daemon

        try:
            async with asyncio.TaskGroup() as tasks:
                starting += [tasks.create_task(launched(places)) for places in packs]
        except* DaemonFailed as failures:
            failed = next(error for error in failures.exceptions if isinstance(error, DaemonFailed))
        if failed is not None:
            # Not from within `except*`: Python 3.11.2 would make a group of it.
            await self._kill_half_started(packs)
            raise failed
        daemons = [(place, task.result()) for places, task in zip(packs, starting, strict=True) for place in places]
        started = [Node(place, daemon, own_sizes) for place, daemon in daemons]
        self.nodes += started
        self.log_dirs += [path for node in started for path in self.log_dirs_of(node)]
        return started

    def progress(self, count: int) -> str:
        """The number of the first `count` nodes that have registered, and what the other daemons logged last."""
        packs = {places[0].process: len(places) for places in self._packs(1, count)}
        known = self.launcher.daemons
        ready = {name for name, daemon in known.items() if daemon.facts}
        late = [name for name in (*(self.rm_ids or ("rm",)), *packs) if name not in ready]
        logged = {name: log_tail(self.directory.log_file(name), 1) for name in late[:LATE_SHOWN_MAX]}
        lines = [f"{sum(packs.get(name, 0) for name in ready)} of {count} nodes have registered"]
        lines += [
            f"{name} logged last:{line}" if line else f"{name} has logged nothing" for name, line in logged.items()
        ]
        if len(late) > len(logged):
            lines.append(f"and {len(late) - len(logged)} more that are not ready")
        return "\n".join(lines)

    def logs_of_failure(self, kept: Path | None) -> str:
        """The place of the logs after a failed start. Those in a temporary directory are copied to `kept`."""
        if not self.directory.temporary:
            return f"the logs are in {self.directory.logs}"
        if kept is None:
            return "the logs are deleted with the temporary directory (name one to keep them: --directory DIR)"
        unready = [
            daemon.log_file
            for name, daemon in self.launcher.daemons.items()
            if name not in (*self.rm_ids, "rm") and not daemon.facts
        ]
        names = self.rm_ids or ("rm",)
        logs = [self.directory.log_file(name) for name in names]
        files = [self.directory.path / LOG_FILE, *logs, *unready[:LATE_KEPT_MAX]]
        try:
            write_private(kept, log_ends(files))
        except OSError as error:
            return f"the logs are deleted with the temporary directory ({kept}: {error.strerror})"
        return f"the ends of the logs are in {kept}"

    async def restart_node(self, number: int) -> Node:
        """Start a node that has ended, on the same host and directories, with the other nodes of its process."""
        node = self.node(number)
        if node.alive:
            raise InvalidArgumentException(f"{node.name} is running (kill it first)")
        together = self.pack_of(number)
        daemon = await self._launch_nodes([other.place for other in together], node.sizes)
        for other in together:
            other.daemon = daemon
        return node

    def pack_of(self, number: int) -> list[Node]:
        """The nodes that share the process of node `number`, including that node."""
        process = self.node(number).place.process
        return [node for node in self.nodes if node.place.process == process]

    async def end_node(self, number: int) -> None:
        """Have a NodeManager end its containers, unregister and exit (SIGTERM)."""
        self._check_alone(number, "be removed", "decommission it, or end the cluster")
        daemon = self.living(number).daemon
        self.launcher.terminate(daemon)
        async with asyncio.timeout(EXIT_TIMEOUT_S):
            await daemon.exited.wait()

    async def kill_node(self, number: int, *, containers: bool) -> None:
        self._check_alone(number, "be killed", "kill_pack kills them all")
        await self.kill_pack(number, containers=containers)

    async def kill_pack(self, number: int, *, containers: bool) -> None:
        """Kill the process of a node with all nodes in it. Raises InvalidArgumentException if it has ended."""
        daemon = self.living(number).daemon
        # In a thread, because it looks at every process of the machine.
        await asyncio.to_thread(self.launcher.kill, daemon, descendants=containers)
        await daemon.exited.wait()

    def pause_node(self, number: int) -> None:
        self._check_alone(number, "be paused", "start the cluster without packs")
        self.launcher.pause(self.living(number).daemon)

    def resume_node(self, number: int) -> None:
        self.launcher.resume(self.living(number).daemon)

    def living(self, number: int) -> Node:
        """Node `number`. Raises InvalidArgumentException if there is none, or it has ended."""
        node = self.node(number)
        if not node.alive:
            raise InvalidArgumentException(f"{node.name} ({node.id}) is not running (restart it first)")
        return node

    def _check_alone(self, number: int, verb: str, remedy: str) -> None:
        """Raises InvalidArgumentException if the node shares its process: the other nodes would be affected too."""
        place = self.node(number).place
        if place.is_packed:
            raise InvalidArgumentException(
                f"{place.name} is one of {len(self.pack_of(number))} nodes of a process, {place.process}, "
                f"and cannot {verb} without the others ({remedy})"
            )

    def _check_open_files(self, nodes: int) -> None:
        processes = -(-nodes // self._pack_size())
        check_open_files(nodes, processes, in_process=self._loopback, proxies=self.routes is not None)

    def _pack_size(self) -> int:
        return self._pack or yarnling.PACK.of(self.configuration)

    def _packs(self, first: int, last: int) -> list[list[NodePlace]]:
        """The nodes from `first` to `last`, grouped by process."""
        size = self._pack_size()
        return [
            self.directory.pack(number, min(number + size - 1, last), self._racks)
            for number in range(first, last + 1, size)
        ]

    async def _launch_nodes(self, places: list[NodePlace], sizes: Mapping[str, str]) -> Daemon:
        overrides = {**node_overrides(places, self._settings), **sizes}
        home = self.directory.path / places[0].process
        self._make_private(home)
        if nodemanager.RECOVERY_ENABLED.of(self.configuration):
            overrides |= self._recovery.overrides(places[0], home, {**self._settings, **overrides})
        if self.routes is None:
            return await self._launch(places[0].process, NM, overrides)
        (place,) = places
        route = await self.routes.of_node(place, self._file_values(self.addresses))
        return await self._launch(place.process, NM, overrides | route.settings, route.conf_dir)

    def _make_private(self, home: Path) -> None:
        """Make the process's directory unreadable for others: Hadoop's modes below it would let the group read tokens.

        If it cannot be made, neither can the directories below it, and the NodeManager reports that.
        """
        with contextlib.suppress(OSError):
            home.mkdir(mode=PRIVATE_MODE, exist_ok=True)
            home.chmod(PRIVATE_MODE)

    async def _kill_half_started(self, packs: list[list[NodePlace]]) -> None:
        """Kill the nodes of a failed `start_nodes`: the next nodes get their names and directories."""
        started = [self.launcher.daemons.get(places[0].process) for places in packs]
        for daemon in started:
            if daemon is not None and daemon.pid and daemon.exit_status is None:
                self.launcher.discard(daemon)
                await daemon.exited.wait()

    async def _launch(
        self, name: str, package: str, overrides: dict[str, str], containers_conf: Path | None = None
    ) -> Daemon:
        conf = self.directory.conf
        log_file = str(self.directory.log_file(name))
        environment: dict[str, str | None] = {**self._node_environment, "HADOOP_CONF_DIR": str(containers_conf or conf)}
        request = DaemonRequest(name, package, str(conf), log_file, overrides, environment)
        return await self.launcher.start(request)

    def _write_files(self, addresses: Mapping[str, str]) -> None:
        of_clients, log4j = None, ""
        if self._files_of_user is not None:
            of_clients = hadoop_clients.files(self._files_of_user, self._settings, self.directory, os.environ)
            log4j = hadoop_clients.log4j_properties(self._conf_dir)
        self.directory.write_configuration(self._file_values(addresses), of_clients, log4j)

    def _file_values(self, addresses: Mapping[str, str]) -> dict[str, str]:
        values = file_values(self.configuration, addresses, self.directory, racks=self._racks > 1, name=self._name)
        return values if self._files_of_user is None else hadoop_clients.site_of_clients(values, self._settings)
