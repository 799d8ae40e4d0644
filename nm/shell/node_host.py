"""The process of a NodeManager, or of a pack of them: one server, one channel to the RM, a core and parts a node."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from nm.core.emulation.table import EmulationTable
from nm.launcher.leftovers import end_leftovers
from nm.pack.tracker import PackTracker
from nm.shell.disks import DiskLoop
from nm.shell.monitor import MonitorLoop
from nm.shell.node_manager import Common, NodeManager
from nm.shell.node_parts import TrackerCalls
from nm.shell.resource_tracker import ResourceTrackerCalls
from nm.shell.resources import Ground
from nm.shell.server import Door
from wire.channel import Channels
from wire.cluster_secret import read_cluster_secret
from wire.protocols.pack import PackTokenSecretManager, PackTrackerProtocol
from wire.protocols.tracker import ResourceTracker
from wire.retry import RetryPolicy
from wire.tokens import NodeTokenSecretManager
from yarn.configuration import Configuration
from yarn.protocols.pack import Pack
from yarn.settings import nodemanager, resourcemanager

if TYPE_CHECKING:
    from nm.emulation.master import EmulatedMasters

_DELETIONS_WAIT_S = 5.0
"""What the deletion of containers' files gets at the end; the next NM over these directories deletes the rest."""

_logger = logging.getLogger(__name__)


class NodeHost:
    """The nodes of this process. A node that is sent away by the RM leaves the others; the last one ends the process.

    `stopped` is done then: with the failures of them all, if each of them has failed, else with "".
    """

    def __init__(self, nodes: list[NodeManager], common: Common) -> None:
        self.nodes = nodes
        self.stopped: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._monitors = [node.monitor for node in nodes]
        self.monitors = MonitorLoop(self._monitors, common.monitor_settings.interval_ms)
        self._disks = [node.disks for node in nodes]

    @staticmethod
    @asynccontextmanager
    async def start(
        conf: Configuration, environ: Mapping[str, str], stopping: asyncio.Event
    ) -> AsyncIterator[NodeHost]:
        """Serve and register while the context is open; at its end no process of a container is left.

        `stopping` set: the nodes shut down, and `stopped` is done when they have.
        Raises YarnException for what keeps them from starting; nothing is left behind then.
        """
        ground = Ground(conf)
        door = Door(ground)
        held = ground.take()
        try:
            node_ids = await door.listen()
            common = Common(ground, environ)
            nodes = [
                NodeManager(common, node_id, service) for node_id, service in zip(node_ids, door.services, strict=True)
            ]
            for node in nodes:
                node.shell.state_changed = partial(door.send_change, node.node_id)
            host, secret = NodeHost(nodes, common), read_cluster_secret(conf)
            async with Channels() as channels, asyncio.TaskGroup() as tasks:
                way = _Way(host, door, secret, channels, tasks)
                order = tasks.create_task(host._shut_down_when(stopping))
                async with host._running(common, way, tasks):
                    yield host
                order.cancel()
        finally:
            await door.close()
            for descriptor in held:
                os.close(descriptor)

    async def wait_registered(self) -> bool:
        """True once the RM has taken each node that it takes; False if all are to end before that."""
        for node in self.nodes:
            ends: list[asyncio.Future[Any]] = [node.registered, node.shell.stopped]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return any(node.registered.done() for node in self.nodes)

    def _note_stop(self, node: NodeManager, tasks: asyncio.TaskGroup, _: asyncio.Future[str]) -> None:
        self._monitors.remove(node.monitor)
        self._disks.remove(node.disks)
        if self._monitors:
            tasks.create_task(_retired(node))
            return
        failures = [node.shell.stopped.result() for node in self.nodes]
        self.stopped.set_result("; ".join(dict.fromkeys(failures)) if all(failures) else "")

    async def _shut_down_when(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        for node in self.nodes:
            _logger.info("stopping node=%s", node.node_id)
            node.shut_down()

    @asynccontextmanager
    async def _running(self, common: Common, way: _Way, tasks: asyncio.TaskGroup) -> AsyncIterator[None]:
        """Have every part at work while the context is open; then end what is left of containers."""
        ground = common.ground
        disks = DiskLoop(self._disks, common.disk_settings.interval_ms, common.samples)
        loops = [tasks.create_task(part.run()) for part in (self.monitors, disks, ground.deleter)]
        for node, node_calls in zip(self.nodes, way.calls, strict=True):
            node.shell.stopped.add_done_callback(partial(self._note_stop, node, tasks))
            node.begin(node_calls, tasks, way.masters)
        try:
            yield
        finally:
            for end in way.ends:
                await end.join()
                end.cancel()
            await self._end_processes(ground)
            if way.masters is not None:
                way.masters.close()
            if common.cgroups is not None:
                common.cgroups.close()
            await _finish(ground)
            for loop in loops:
                loop.cancel()
            for node in self.nodes:
                node.close()

    async def _end_processes(self, ground: Ground) -> None:
        """KILL what is left of containers: in their groups first, then whatever else carries their tag."""
        await asyncio.gather(*(node.end_processes() for node in self.nodes))
        if any(node.launcher.has_launched for node in self.nodes):
            await asyncio.to_thread(end_leftovers, ground.local_dirs)


class _Way:
    """The way of the nodes to the RM: `calls` by node, `ends` what is joined and cancelled at the end.

    `masters`: the emulated masters of the nodes, if their table has any that register.
    """

    def __init__(self, host: NodeHost, door: Door, secret: bytes, channels: Channels, tasks: asyncio.TaskGroup) -> None:
        rm_host, rm_port = resourcemanager.RESOURCE_TRACKER_ADDRESS.of(door.conf)
        self._target = f"{rm_host}:{rm_port}"
        self._retry = RetryPolicy.read(
            door.conf, nodemanager.NM_CONNECT_MAX_WAIT, nodemanager.NM_CONNECT_RETRY_INTERVAL
        )
        self.masters = _emulated_masters(host.nodes[0].settings.emulation, door.conf, channels, tasks)
        self.calls: list[TrackerCalls] = []
        self.ends: list[ResourceTrackerCalls | PackTracker] = []
        if len(host.nodes) == 1:
            self._go_alone(host.nodes[0], door, secret, channels, tasks)
        else:
            self._go_together(host, door, secret, channels, tasks)

    def _go_alone(
        self, node: NodeManager, door: Door, secret: bytes, channels: Channels, tasks: asyncio.TaskGroup
    ) -> None:
        token = NodeTokenSecretManager(secret).create(node.node_id)
        calls = ResourceTrackerCalls(
            node.node_id,
            ResourceTracker(self._target, token=token, retry=self._retry, channels=channels),
            self._retry,
            container_tokens=door.services[0].container_tokens,
            nm_keys=door.nm_keys,
            tasks=tasks,
            send=node.heard_of_resource_manager,
        )
        self.calls.append(calls)
        self.ends.append(calls)

    def _go_together(
        self, host: NodeHost, door: Door, secret: bytes, channels: Channels, tasks: asyncio.TaskGroup
    ) -> None:
        token = PackTokenSecretManager(secret).create(Pack(host.nodes[0].node_id, len(host.nodes)))
        tracker = PackTracker(
            PackTrackerProtocol(self._target, token=token, retry=self._retry, channels=channels),
            self._retry,
            container_keys=door.container_keys,
            nm_keys=door.nm_keys,
            interval_ms=host.nodes[0].settings.heartbeat_interval_ms,
            tasks=tasks,
            utilization=lambda: host.monitors.machine if host.nodes[0].settings.emulation is None else None,
        )
        self.ends.append(tracker)
        for node, service in zip(host.nodes, door.services, strict=True):
            self.calls.append(tracker.add(node.node_id, service.container_tokens, node.heard_of_resource_manager))


def _emulated_masters(
    table: EmulationTable | None, conf: Configuration, channels: Channels, tasks: asyncio.TaskGroup
) -> EmulatedMasters | None:
    if table is None or not table.has_masters:
        return None
    # Imported here: other NodeManagers need nothing of the protocol of masters.
    from nm.emulation.master import EmulatedMasters

    return EmulatedMasters(conf, channels, tasks)


async def _retired(node: NodeManager) -> None:
    """End what is left of a node that has stopped while others of its process go on."""
    if failure := node.shell.stopped.result():
        _logger.error("stopped node=%s: %s", node.node_id, failure)
    await node.end_processes()
    node.close()


async def _finish(ground: Ground) -> None:
    try:
        async with asyncio.timeout(_DELETIONS_WAIT_S):
            await ground.deleter.join()
    except TimeoutError:
        _logger.warning("deletions are not finished after %g s", _DELETIONS_WAIT_S)
