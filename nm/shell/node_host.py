"""A NodeManager process: its nodes, and the server, the RM connection and the background loops that they share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Protocol

from nm.emulation.application_master import EmulatedApplicationMasters
from nm.launcher.processes import kill_orphans
from nm.shell.auxiliary_services import AuxiliaryServices
from nm.shell.disks import DiskLoop
from nm.shell.host_environment import HostEnvironment
from nm.shell.log_monitor import LogMonitorLoop
from nm.shell.monitor import MonitorLoop
from nm.shell.node_manager import NodeManager, SharedServices
from nm.shell.resource_tracker import ResourceTrackerCalls, TrackerAccess, TrackerConnection
from nm.shell.server import CONTAINER_KEYS, NM_KEYS, ContainerManagerServer
from wire.channel import Channels
from wire.connection_limits import allow_descriptors
from wire.protocols.tracker import ResourceTracker
from wire.tokens import NodeTokenSecretManager
from yarn.configuration import Configuration

_DELETIONS_WAIT_S = 5.0
"""The seconds that deletions may continue when the process ends. The next NodeManager with these directories deletes
the rest."""
DESCRIPTORS_OF_NODE = 128
"""File descriptors that a node needs at least: 20 when it is idle, 4 for each container, 1 to 3 for each AM."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class NodeWebServices(Protocol):
    """The web services of one node (nm.shell.web), which a process imports only if it serves them."""

    async def bind(self) -> int: ...

    async def start(self, manager: NodeManager, log_dirs: tuple[str, ...]) -> None: ...

    async def stop(self) -> None: ...


class Hosting(Protocol):
    """The differences between a process with one node (OneNode) and a process with a pack (nm.pack.host.NodePack)."""

    environment: HostEnvironment
    server: ContainerManagerServer
    web: NodeWebServices | None

    def connect(
        self, host: NodeHost, rm: TrackerAccess, channels: Channels, tasks: asyncio.TaskGroup
    ) -> TrackerConnection:
        """Connect the host's nodes to the RM; the calls run in `tasks`."""
        ...


class OneNode:
    """A process with one node, which handles all calls of AMs and makes its own calls to the RM."""

    def __init__(self, conf: Configuration, web: NodeWebServices | None = None) -> None:
        """Raises YarnException if the limit of open files is too low."""
        allow_descriptors(DESCRIPTORS_OF_NODE, "a NodeManager")
        self.web = web
        self.environment = HostEnvironment.of_one_node(conf)
        self.server = ContainerManagerServer(self.environment)
        (self._service,) = self.server.services
        self.server.serve(self._service, self._service.authenticate, self._service.token_of)

    def connect(
        self, host: NodeHost, rm: TrackerAccess, channels: Channels, tasks: asyncio.TaskGroup
    ) -> ResourceTrackerCalls:
        (node,) = host.nodes
        token = NodeTokenSecretManager(rm.cluster_secret).create(node.node_id)
        return ResourceTrackerCalls(
            node.node_id,
            ResourceTracker(rm.target, token=token, retry=rm.retry, channels=channels, timeout_s=rm.timeout_s),
            rm.retry,
            container_tokens=self._service.container_tokens,
            nm_keys=self.server.nm_keys,
            tasks=tasks,
            send=node.take_answer,
            keys_changed=partial(host.store_keys, self.server),
        )


class NodeHost:
    """The nodes of this process. If the RM shuts one of them down, the others continue.

    `stopped` is done when the last node has stopped. Its result is the nodes' failures if all nodes failed, else "".
    """

    def __init__(self, nodes: list[NodeManager], shared: SharedServices) -> None:
        self.nodes = nodes
        self.stopped: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._environment = shared.environment
        self._cgroups = shared.cgroups
        self._running = list(nodes)
        self.monitors = MonitorLoop(
            lambda: [node.monitor for node in self._running], shared.monitor_settings.interval_ms
        )
        self._logs = LogMonitorLoop(lambda: [node.log_monitor for node in self._running], shared.log_monitor_settings)
        self._disks = DiskLoop(
            lambda: [node.disks for node in self._running], shared.disk_settings.interval_ms, shared.samples
        )

    @staticmethod
    @asynccontextmanager
    async def start(hosting: Hosting, environ: Mapping[str, str], stopping: asyncio.Event) -> AsyncIterator[NodeHost]:
        """Run the nodes while the context is open. When it closes, no process of a container is left,
        except of a node that leaves them to the next NodeManager.

        Set `stopping` to shut the nodes down; `stopped` is done when they have stopped. Raises YarnException, and
        leaves nothing behind, if the nodes cannot start.
        """
        environment, server, services = hosting.environment, hosting.server, AsyncExitStack()
        web, http_port = hosting.web, 0
        try:
            environment.lock_directories()
            server.recover_keys(environment.stored)
            node_ids = await server.listen()
            if web is not None:
                http_port = await web.bind()
            shared = SharedServices(environment, environ, http_port)
            auxiliary = [
                await services.enter_async_context(AuxiliaryServices.opened(environment, node_id.host))
                for node_id in node_ids
            ]
            nodes = [
                NodeManager(shared, node_id, service, own_services)
                for node_id, service, own_services in zip(node_ids, server.services, auxiliary, strict=True)
            ]
            for node in nodes:
                node.shell.state_changed = partial(server.send_change, node.node_id)
            if web is not None:
                await web.start(nodes[0], tuple(environment.directories[node_ids[0].host].log_dirs))
            host, rm = NodeHost(nodes, shared), TrackerAccess.read(environment.conf)
            async with Channels() as channels, asyncio.TaskGroup() as tasks:
                connection = hosting.connect(host, rm, channels, tasks)
                masters = _emulated_masters(shared, channels, tasks)
                shutting_down = tasks.create_task(host._shut_down_when(stopping))
                async with host._run(connection, masters, tasks):
                    yield host
                shutting_down.cancel()
        finally:
            await services.aclose()
            if web is not None:
                await web.stop()
            await server.close()
            environment.close()

    async def wait_registered(self) -> bool:
        """Wait until each node has registered or stopped. Returns True if any node has registered."""
        for node in self.nodes:
            outcomes: list[asyncio.Future[Any]] = [node.registered, node.shell.stopped]
            await asyncio.wait(outcomes, return_when=asyncio.FIRST_COMPLETED)
        return any(node.registered.done() for node in self.nodes)

    def store_keys(self, server: ContainerManagerServer) -> None:
        """Store the RM's keys for tokens, which all nodes of the process share, with the first node."""
        recovery = self.nodes[0].recovery
        if recovery is not None:
            for keys, kind in ((server.container_keys, CONTAINER_KEYS), (server.nm_keys, NM_KEYS)):
                recovery.write_keys(kind, keys.current, keys.previous)

    def _node_stopped(self, node: NodeManager, tasks: asyncio.TaskGroup, _: asyncio.Future[str]) -> None:
        self._running.remove(node)
        if self._running:
            tasks.create_task(_close(node))
            return
        failures = [node.shell.stopped.result() for node in self.nodes]
        self.stopped.set_result("; ".join(dict.fromkeys(failures)) if all(failures) else "")

    async def _shut_down_when(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        for node in self.nodes:
            _logger.info("stopping node=%s", node.node_id)
            node.shut_down()

    @asynccontextmanager
    async def _run(
        self, connection: TrackerConnection, masters: EmulatedApplicationMasters | None, tasks: asyncio.TaskGroup
    ) -> AsyncIterator[None]:
        """Start the nodes and the loops.

        When the context closes, kill the remaining containers and end nodes and loops.
        """
        deleter = self._environment.deleter
        loops = [tasks.create_task(part.run()) for part in (self.monitors, self._logs, self._disks, deleter)]
        for node, calls in zip(self.nodes, connection.calls, strict=True):
            node.shell.stopped.add_done_callback(partial(self._node_stopped, node, tasks))
            node.start(calls, tasks, masters)
        try:
            yield
        finally:
            await connection.join()
            connection.cancel()
            await self._kill_processes()
            if masters is not None:
                masters.close()
            if self._cgroups is not None:
                self._cgroups.close()
            await _finish_deletions(self._environment)
            for loop in loops:
                loop.cancel()
            for node in self.nodes:
                node.close()

    async def _kill_processes(self) -> None:
        """Send KILL to the remaining processes of containers: to their process groups, then to all that carry their
        tag.
        """
        await asyncio.gather(*(node.kill_processes() for node in self.nodes))
        if any(node.launcher.has_launched for node in self.nodes):
            left = {str(one) for node in self.nodes if node.shell.leaves_containers for one in node.core.containers}
            await asyncio.to_thread(kill_orphans, self._environment.local_dirs, left)


def _emulated_masters(
    shared: SharedServices, channels: Channels, tasks: asyncio.TaskGroup
) -> EmulatedApplicationMasters | None:
    """The emulated AMs; None if no rule of the table has AMs that register with the RM."""
    table = shared.settings.emulation
    if table is None or not table.has_masters:
        return None
    return EmulatedApplicationMasters(shared.environment.conf, channels, tasks)


async def _close(node: NodeManager) -> None:
    """Close a node that has stopped while other nodes of its process continue."""
    if failure := node.shell.stopped.result():
        _logger.error("stopped node=%s: %s", node.node_id, failure)
    await node.kill_processes()
    node.close()


async def _finish_deletions(environment: HostEnvironment) -> None:
    try:
        async with asyncio.timeout(_DELETIONS_WAIT_S):
            await environment.deleter.join()
    except TimeoutError:
        _logger.warning(
            "stopped deleting files after %g s; the next NodeManager with these directories deletes the rest",
            _DELETIONS_WAIT_S,
        )
