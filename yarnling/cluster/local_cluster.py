"""LocalCluster: a ResourceManager and NodeManagers as processes of this machine, for a test, a script or a shell.

    with LocalCluster(nodes=4, fast=True) as cluster:
        result = cluster.run("echo hello", containers=3)

    async with LocalCluster(nodes=4, fast=True) as cluster:          the same with asyncio
        result = await cluster.run("echo hello", containers=3)

It is ready when every NodeManager has registered; ports are free ones, so that several clusters run side by side. When
the context ends, for whatever reason, every process and (unless a directory was named) every file is gone within two
seconds.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from yarn.errors import InvalidArgumentException, YarnException
from yarn.settings import FAST_TIME_FACTOR, yarnling
from yarn.settings.yarnling import PACK_MAX
from yarnling.cluster import resource_managers
from yarnling.cluster.blocking import BlockingCluster, Portal
from yarnling.cluster.configuration import emulation_setting, node_sizes, unknown_keys
from yarnling.cluster.daemons import ClusterDaemons, RouteOverrides
from yarnling.cluster.directory import NODES_MAX
from yarnling.cluster.hadoop_clients import settings_for
from yarnling.cluster.launcher import DaemonFailed
from yarnling.cluster.running_cluster import RunningCluster

START_TIMEOUT_S = 120.0
"""The time a starting cluster may go without another daemon that is ready, in seconds, before it is given up."""

_logger = logging.getLogger(__name__)


class ClusterOptions(Struct, frozen=True):
    """The rarer options of a LocalCluster.

    `racks`: how many; nodes are assigned in turn. `pack`: nodes that share a process, for clusters of thousands; None:
    as yarn.yarnling.pack says. `directory`: where the cluster's files are kept; None: a temporary one, deleted at the
    end. `discard_state`: delete the applications that an earlier cluster with recovery left in `directory`, instead of
    resuming them. `emulated`: containers are emulated by the ready-made table (True) or the one in a file
    (docs/emulated-containers.md). `loopback`: daemons run in this process's event loop, which is quicker; they cannot
    be killed or paused. `network_faults`: route connections through proxies, for `partition_node` and `slow_node`.
    `routes`: other routes between the processes; not with `pack`. `hadoop_classpath`: with `hadoop=True`, where AMs of
    MapReduce and other programs find Hadoop's jars, for example "/opt/hadoop/*"; Spark and Flink bring their own.
    `web`: serve web pages, or do not; None: as configured. `web_port`: the first port tried for them; 0: any free one.
    `control_socket`: the socket of the supervisor, for web pages that change the cluster. `name` is the
    cluster's name in the error that another cluster reports if the directory is in use. `log_warnings`: log the
    configuration's warnings, which are also in the cluster's `warnings`. `failure_log`: the file that gets the ends of
    the logs if the start fails and the directory is temporary.
    """

    racks: int = 1
    pack: int | None = None
    directory: Path | str | None = None
    discard_state: bool = False
    emulated: bool | Path | str = False
    loopback: bool = False
    network_faults: bool = False
    routes: RouteOverrides | None = None
    rms: int = 1
    hadoop_classpath: str | None = None
    web: bool | None = None
    web_port: int = 0
    control_socket: Path | None = None
    name: str = ""
    log_warnings: bool = True
    failure_log: Path | None = None


class LocalCluster(RunningCluster):
    """A cluster from entry to exit of its context; `with` gives a BlockingCluster, which has the same methods.

    `memory_mb`, `vcores`: of each node. `conf`: a directory with Hadoop's files. `settings` {key: value} win over it,
    and over what the cluster sets itself (addresses, directories, node sizes). `fast` divides every timer by 20
    (FAST_TIME_FACTOR). `hadoop`: answer Hadoop's own clients, such as spark-submit, which find the cluster through
    `hadoop_environment` (docs/hadoop-clients.md).
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
        hadoop: bool = False,
        options: ClusterOptions = ClusterOptions(),  # noqa: B008  immutable
    ) -> None:
        _check(nodes, options)
        own = node_sizes(memory_mb, vcores) | settings_for(hadoop, options.hadoop_classpath) | _requested(options)
        if fast:
            own[yarnling.TIME_FACTOR.key] = str(FAST_TIME_FACTOR)
        self._node_count = nodes
        self._options = options
        self._blocking: BlockingCluster | None = None
        if "IPython" in sys.modules:
            from yarnling.cluster.notebook import register_records

            register_records()
        super().__init__(
            ClusterDaemons(
                None if conf is None else Path(conf),
                _checked(settings or {}),
                own,
                nodes=nodes,
                racks=options.racks,
                pack=1 if options.network_faults else options.pack,
                routes=options.routes,
                loopback=options.loopback,
                web_port=options.web_port,
                name=options.name,
            )
        )

    def __repr__(self) -> str:
        if not self._daemons.is_open:
            return f"<LocalCluster not started, {self._node_count} nodes>"
        living = sum(node.alive for node in self.nodes)
        return f"<LocalCluster in {self.directory.path}, {living} of {len(self.nodes)} nodes running>"

    def _repr_html_(self) -> str | None:
        """The processes only: the caller's event loop, in which this cluster runs, is busy meanwhile."""
        return self.processes_html() if self._daemons.is_open else None

    async def __aenter__(self) -> LocalCluster:
        try:
            async with asyncio.timeout(START_TIMEOUT_S) as patience:
                await self._start(partial(_renew, patience))
        except TimeoutError:
            progress = self._daemons.progress(self._node_count)
            problem = f"the cluster is not ready, and no node has registered for {START_TIMEOUT_S:g} s: {progress}"
            raise YarnException(await self._stop_failed(problem)) from None
        except DaemonFailed as failure:
            raise DaemonFailed(await self._stop_failed(failure.message)) from None
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def __enter__(self) -> BlockingCluster:
        portal = Portal()
        try:
            portal.call(self.__aenter__)
        except BaseException:
            self._close(portal)
            raise
        self._blocking = BlockingCluster(self, portal)
        return self._blocking

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._blocking is not None
        self._close(self._blocking.portal)

    def _close(self, portal: Portal) -> None:
        try:
            portal.call(self.stop)
        finally:
            portal.close()

    async def stop(self) -> None:
        """End every process of the cluster; calling it again is a no-op."""
        clients, self._clients = list(self._clients.values()), {}
        try:
            for client in clients:
                await client.close()
        finally:
            await self._daemons.close()
            if self._network is not None:
                await self._network.close()

    async def _stop_failed(self, problem: str) -> str:
        """End a cluster that could not start. Returns the problem, and where its logs are."""
        logs = self._daemons.logs_of_failure(self._options.failure_log)
        await self.stop()
        return f"{problem}\n{logs}"

    async def _start(self, arrived: Callable[[], None]) -> None:
        """Start all daemons. `arrived` is called whenever one is ready."""
        path = self._options.directory
        self._daemons.open(None if path is None else Path(path), discard_state=self._options.discard_state)
        if self._options.log_warnings:
            for sentence in self.warnings:
                _logger.warning("configuration: %s", sentence)
        if self._options.network_faults:
            self._add_network()
        await self._daemons.start_rm()
        arrived()
        await self._daemons.start_nodes(self._node_count, arrived=arrived)


def _renew(patience: asyncio.Timeout) -> None:
    if not patience.expired():
        patience.reschedule(asyncio.get_running_loop().time() + START_TIMEOUT_S)


def _check(nodes: int, options: ClusterOptions) -> None:
    """Raise InvalidArgumentException for numbers out of bounds and for options that exclude one another."""
    if options.discard_state and options.directory is None:
        problem = "a temporary directory has no state of an earlier cluster"
        raise InvalidArgumentException(f"discard_state = True: {problem} (name the directory whose state it is)")
    if options.network_faults and (options.routes is not None or options.pack not in (None, 1)):
        raise InvalidArgumentException("network_faults = True: cannot be used with pack or routes (leave those out)")
    if options.rms > 1 and (options.network_faults or options.routes is not None):
        raise InvalidArgumentException(f"rms = {options.rms}: cannot be used with network_faults or routes")
    _check_count("nodes", nodes, 0, NODES_MAX)
    _check_count("racks", options.racks, 1, max(1, nodes))
    if options.pack is not None:
        _check_count("pack", options.pack, 1, PACK_MAX)


def _requested(options: ClusterOptions) -> dict[str, str]:
    """{key: value} for the options that are keys of the configuration as well."""
    keys = emulation_setting(options.emulated) | resource_managers.settings_for(options.rms)
    if options.network_faults:
        keys[yarnling.NETWORK_FAULTS.key] = "true"
    if options.web is not None:
        keys[yarnling.WEB_ENABLED.key] = str(options.web).lower()
    if options.control_socket is not None:
        keys[yarnling.CONTROL_SOCKET.key] = str(options.control_socket)
    return keys


def _check_count(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidArgumentException(f"{name} = {value}: must be {least} to {most}")


def _checked(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings. Raises InvalidArgumentException for values that are not texts and for misspelled keys, all at once.

    A key that neither yarnling nor Hadoop knows is refused if it resembles a known one. Others are only logged:
    `${...}` in values may refer to any key.
    """
    problems = [
        f"{key} = {value!r}: must be a string (write {str(value)!r})"
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
