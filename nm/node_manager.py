"""A running NodeManager: its core, its server and its parts, put together and taken apart again."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from nm.core import NodeManagerCore
from nm.disks import DiskChecker, DiskSettings
from nm.events import Event, ShutDown, Start
from nm.launch_script import NodeEnvironment
from nm.launcher.containers_launcher import ContainersLauncher
from nm.launcher.deletion import DeletionService
from nm.launcher.directories import NM_PRIVATE, PLAIN_MODE, NodeDirectories, make_dir, make_node_dirs
from nm.launcher.leftovers import end_leftovers, lock_directories, stale_paths
from nm.localizer.service import Localizer
from nm.monitor import ContainersMonitor, MonitorSettings, hardware
from nm.node_parts import RunningParts
from nm.node_resources import node_resource, physical_resource
from nm.resource_tracker import ResourceTrackerCalls
from nm.services import ContainerManagementService
from nm.settings import CoreSettings, NodeFacts, core_settings
from nm.shell import NodeShell
from nm.status_updater import RM_INVALID_IDENTIFIER
from wire.address import Address
from wire.cluster_secret import read_cluster_secret
from wire.core_shell import WallClock
from wire.event_log import open_event_log
from wire.protocols import container_management
from wire.proxies import ResourceTrackerProxy
from wire.retry import RetryPolicy
from wire.server import RpcServer
from wire.tokens import ContainerTokenSecretManager, KeyRing, NMTokenSecretManager, NodeTokenSecretManager
from wire.watching import CallWatch
from yarn.configuration import Configuration
from yarn.ids import NodeId
from yarn.settings import nodemanager, resourcemanager
from yarn.settings.yarnling import LISTEN_BEYOND_LOOPBACK

_EXITS_WAIT_S = 1.0
"""What killed containers' wrappers get to end, at the node's end."""
_DELETIONS_WAIT_S = 5.0
"""What the deletion of their files gets then; the next NM over these directories deletes the rest."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CoreStart:
    """What the core was made of: the first line of its event log."""

    node_id: NodeId
    facts: NodeFacts
    settings: CoreSettings


class NodeManager:
    """A node that serves. `registered` is done once the RM has taken it, `shell.stopped` when it is to end."""

    def __init__(self, conf: Configuration, node_id: NodeId) -> None:
        machine, clock = hardware(), WallClock()
        self.node_id = node_id
        self.facts = NodeFacts(node_resource(conf, machine), physical_resource(machine))
        self.settings = core_settings(conf, utc_offset_ms=(time.localtime().tm_gmtoff or 0) * 1000)
        self.core = NodeManagerCore(node_id, self.facts, self.settings)
        start = CoreStart(node_id, self.facts, self.settings)
        self.shell = NodeShell(self.core, clock, open_event_log(conf, f"nodemanager-{node_id}", start))
        self.clock = clock
        self.registered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @staticmethod
    @asynccontextmanager
    async def start(
        conf: Configuration, environ: Mapping[str, str], stopping: asyncio.Event
    ) -> AsyncIterator[NodeManager]:
        """Serve and register while the context is open; at its end no process of a container is left.

        `stopping` set: the node shuts down, and `shell.stopped` is done when it has.
        Raises YarnException for what keeps the node from starting; nothing is left behind then.
        """
        ground = _Ground(conf, environ)
        door = _Door(conf)
        held = _take_directories(ground)
        try:
            node = NodeManager(conf, await door.listen())
            secret = read_cluster_secret(conf)
            async with _tracker_proxy(conf, node.node_id, secret) as proxy, asyncio.TaskGroup() as tasks:
                calls = ResourceTrackerCalls(
                    node.node_id,
                    proxy,
                    _tracker_retry(conf),
                    container_tokens=door.container_tokens,
                    nm_keys=door.nm_tokens.keys,
                    tasks=tasks,
                    send=node._heard_of_resource_manager,
                )
                order = tasks.create_task(node._shut_down_when(stopping))
                async with node._running(ground, door, calls, tasks):
                    yield node
                order.cancel()
        finally:
            await door.close()
            for descriptor in held:
                os.close(descriptor)

    async def wait_registered(self) -> bool:
        """True once the RM has taken the node; False if the node is to end before that."""
        ends: list[asyncio.Future[Any]] = [self.registered, self.shell.stopped]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return self.registered.done()

    async def _shut_down_when(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        _logger.info("stopping node=%s", self.node_id)
        self.shell.send(ShutDown())

    @asynccontextmanager
    async def _running(
        self, ground: _Ground, door: _Door, calls: ResourceTrackerCalls, tasks: asyncio.TaskGroup
    ) -> AsyncIterator[None]:
        """Have every part at work while the context is open; then end what is left of containers."""
        conf, directories, deletion = ground.conf, ground.directories, ground.deletion
        send = self.shell.send
        disks = DiskChecker(directories, DiskSettings.read(conf), send, self.clock)
        launcher = _launcher(ground, self, disks)
        watcher = ContainersMonitor(launcher, send, MonitorSettings.read(conf), self.facts.resource.vcores)
        localizer = Localizer(directories, send, tasks, nodemanager.LOCALIZER_FETCH_THREAD_COUNT.of(conf))
        self.shell.parts = RunningParts(calls, localizer, launcher, watcher, deletion, door.service)
        door.service.open(self.node_id, self.shell)
        disks.look()
        loops = [tasks.create_task(part.run()) for part in (watcher, disks, deletion)]
        send(Start())
        try:
            yield
        finally:
            await calls.join()
            calls.cancel()
            await _end_processes(launcher, directories)
            await _finish(deletion)
            for loop in loops:
                loop.cancel()
            self.shell.close()

    def _heard_of_resource_manager(self, event: Event) -> None:
        self.shell.send(event)
        if not self.registered.done() and self.core.status.rm_identifier != RM_INVALID_IDENTIFIER:
            self.registered.set_result(None)


class _Ground:
    """What a node stands on: its configuration, the NM's variables, its directories and who empties them."""

    def __init__(self, conf: Configuration, environ: Mapping[str, str]) -> None:
        self.conf = conf
        self.environ = environ
        self.directories = NodeDirectories(
            nodemanager.LOCAL_DIRS.of(conf), nodemanager.LOG_DIRS.of(conf), random.Random()
        )
        self.deletion = DeletionService(self.directories)


class _Door:
    """The server that masters call, with the keys that their tokens are checked under."""

    def __init__(self, conf: Configuration) -> None:
        self.container_tokens = ContainerTokenSecretManager(KeyRing())
        self.nm_tokens = NMTokenSecretManager(KeyRing())
        self.service = ContainerManagementService(self.container_tokens, self.nm_tokens)
        self._address = Address.read(conf, nodemanager.ADDRESS)
        self._watch = CallWatch.read(conf)
        self._server = RpcServer(
            self._address,
            observers=() if self._watch is None else (self._watch,),
            beyond_loopback=LISTEN_BEYOND_LOOPBACK.of(conf),
        )
        self._server.add(container_management.RPCS, self.service, self.service.authenticate)

    async def listen(self) -> NodeId:
        """Take the port; it is part of the node's name."""
        node_id = NodeId(self._address.host, await self._server.start())
        if self._watch is not None:
            await self._watch.open(str(node_id))
        return node_id

    async def close(self) -> None:
        if self._watch is not None:
            await self._watch.close()
        await self._server.stop()


def _take_directories(ground: _Ground) -> list[int]:
    """Make the local directories ours, and end what an earlier NM has left in them. Raises DirectoriesInUse."""
    local_dirs = ground.directories.local_dirs
    for local in local_dirs:
        _make(partial(make_dir, mode=PLAIN_MODE), local)
    held = lock_directories(local_dirs)
    if any(_has_entries(f"{local}/{NM_PRIVATE}") for local in local_dirs):
        for process in end_leftovers(local_dirs):
            _logger.warning("killed a process that an earlier NodeManager left pid=%d", process.pid)
    for path in stale_paths(local_dirs):
        ground.deletion.delete_tree(path)
    for local in local_dirs:
        _make(make_node_dirs, local)
    return held


def _make(make: Callable[[str], None], local: str) -> None:
    """What cannot be made now is left out by the disk checker, which says so in the node's health."""
    try:
        make(local)
    except OSError as error:
        _logger.warning("cannot use local directory=%s problem=%s", local, error.strerror)


def _has_entries(directory: str) -> bool:
    try:
        return bool(os.listdir(directory))
    except OSError:
        return False


def _launcher(ground: _Ground, node: NodeManager, disks: DiskChecker) -> ContainersLauncher:
    conf, environ = ground.conf, ground.environ
    environment = NodeEnvironment(
        node.node_id,
        node.facts.http_port,
        nodemanager.USER_HOME_DIR.of(conf),
        {name: environ[name] for name in nodemanager.ENV_WHITELIST.of(conf) if name in environ},
        nodemanager.ADMIN_ENV.of(conf),
        environ,
    )
    return ContainersLauncher(
        environment,
        ground.directories,
        node.shell.send,
        stderr_pattern=nodemanager.STDERR_PATTERN.of(conf),
        stderr_tail_bytes=nodemanager.STDERR_TAIL_BYTES.of(conf),
        debug=nodemanager.LOG_CONTAINER_DEBUG_INFO.of(conf),
        kill_wait_ms=nodemanager.PROCESS_KILL_WAIT.of(conf),
        disks_problem=disks.problem,
    )


def _tracker_retry(conf: Configuration) -> RetryPolicy:
    return RetryPolicy.read(conf, nodemanager.NM_CONNECT_MAX_WAIT, nodemanager.NM_CONNECT_RETRY_INTERVAL)


def _tracker_proxy(conf: Configuration, node_id: NodeId, secret: bytes) -> ResourceTrackerProxy:
    host, port = resourcemanager.RESOURCE_TRACKER_ADDRESS.of(conf)
    token = NodeTokenSecretManager(secret).create(node_id)
    return ResourceTrackerProxy(f"{host}:{port}", token=token, retry=_tracker_retry(conf))


async def _end_processes(launcher: ContainersLauncher, directories: NodeDirectories) -> None:
    """KILL what is left of containers: in their groups first, then whatever else carries their tag."""
    if not launcher.has_launched:
        return
    launcher.kill_all()
    with suppress(TimeoutError):
        async with asyncio.timeout(_EXITS_WAIT_S):
            await launcher.idle.wait()
    await asyncio.to_thread(end_leftovers, directories.local_dirs)


async def _finish(deletion: DeletionService) -> None:
    try:
        async with asyncio.timeout(_DELETIONS_WAIT_S):
            await deletion.join()
    except TimeoutError:
        _logger.warning("deletions are not finished after %g s", _DELETIONS_WAIT_S)
