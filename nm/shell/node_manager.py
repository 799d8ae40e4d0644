"""One NodeManager: its core and its parts, put together and taken apart again. Its process is nm.shell.node_host's."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from nm.core import NodeManagerCore
from nm.core.cpu_limits import NodeCpu
from nm.core.emulation.table import EmulationTable
from nm.core.events import Event, ShutDown, Start
from nm.core.launch_script import NodeEnvironment
from nm.core.node_resources import node_resource, physical_resource
from nm.core.settings import CoreSettings, NodeFacts, core_settings
from nm.core.status_updater import RM_INVALID_IDENTIFIER
from nm.launcher.cgroup_mounts import CgroupsUnusable
from nm.launcher.cgroups import CpuCgroups
from nm.launcher.containers_launcher import ContainersLauncher
from nm.launcher.deletion import DeletionService
from nm.launcher.directories import NodeDirectories
from nm.launcher.emulated_launcher import EmulatedLauncher
from nm.launcher.java_version import java_version
from nm.launcher.launchers import Launchers
from nm.localizer.service import Localizer
from nm.shell.disks import DiskChecker, DiskSettings, SharedSamples
from nm.shell.effects import NodeShell
from nm.shell.monitor import ContainersMonitor, MonitorSettings, hardware
from nm.shell.node_parts import RunningParts, TrackerCalls
from nm.shell.resources import Ground
from nm.shell.services import ContainerManagementService
from wire.core_shell import WallClock
from wire.event_log import open_event_log
from yarn.configuration import Configuration
from yarn.ids import NodeId
from yarn.settings import nodemanager
from yarn.settings.yarnling import EMULATION_TABLE

if TYPE_CHECKING:
    from nm.emulation.master import EmulatedMasters

_EXITS_WAIT_S = 1.0
"""What killed containers' wrappers get to end, at the node's end."""

_logger = logging.getLogger(__name__)


class CoreStart(Struct, frozen=True):
    """What the core was made of: the first line of its event log."""

    node_id: NodeId
    facts: NodeFacts
    settings: CoreSettings


class Common:
    """What the nodes of a process have in common: configuration, clock, what the machine has, the NM's variables."""

    def __init__(self, ground: Ground, environ: Mapping[str, str]) -> None:
        conf, machine = ground.conf, hardware()
        self.ground = ground
        self.clock: Callable[[], int] = WallClock()
        self.facts = NodeFacts(node_resource(conf, machine), physical_resource(machine))
        zone_ms = (time.localtime().tm_gmtoff or 0) * 1000
        self.settings = core_settings(conf, zone_ms, emulation_of(conf))
        self.disk_settings = DiskSettings.read(conf)
        self.monitor_settings = MonitorSettings.read(conf)
        self.samples = SharedSamples()
        node_cpu = NodeCpu.read(conf, self.facts.resource.vcores, machine.cores, machine.threads)
        self.cgroups, self.notice = _cgroups(conf, node_cpu)
        self.environ = environ
        self.whitelisted = {name: environ[name] for name in nodemanager.ENV_WHITELIST.of(conf) if name in environ}
        self.java_version = java_version(environ)

    @property
    def conf(self) -> Configuration:
        return self.ground.conf


class NodeManager:
    """A node that serves. `registered` is done once the RM has taken it, `shell.stopped` when it is to end."""

    def __init__(self, common: Common, node_id: NodeId, service: ContainerManagementService) -> None:
        self.node_id = node_id
        self.facts, self.settings, self.clock = common.facts, common.settings, common.clock
        self.core = NodeManagerCore(node_id, self.facts, self.settings)
        start = CoreStart(node_id, self.facts, self.settings)
        self.shell = NodeShell(self.core, self.clock, open_event_log(common.conf, f"nodemanager-{node_id}", start))
        self.registered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._service = service
        directories, send = common.ground.directories(node_id.host), self.shell.send
        sampled = common.samples.of if common.ground.is_pack else None
        self.disks = DiskChecker(directories, common.disk_settings, send, self.clock, sampled, common.notice)
        table = self.settings.emulation
        emulated = EmulatedLauncher(table or EmulationTable(), send)
        self.launcher = Launchers(self._make_launcher(common, directories), emulated)
        vcores = self.facts.resource.vcores
        self.monitor = ContainersMonitor(
            self.launcher,
            send,
            common.monitor_settings,
            vcores,
            emulating=table is not None,
            packed=common.ground.is_pack,
        )
        self._localizer = Localizer(directories, send, nodemanager.LOCALIZER_FETCH_THREAD_COUNT.of(common.conf))
        self._deletion = DeletionService(directories, common.ground.deleter)
        self._begun = common.ground.begun(node_id.host)

    def begin(self, calls: TrackerCalls, tasks: asyncio.TaskGroup, masters: EmulatedMasters | None) -> None:
        """Serve, and register. `masters` is needed if the table has masters that register."""
        self.launcher.emulated.masters = masters
        self._localizer.use(tasks)
        self.shell.parts = RunningParts(
            calls, self._localizer, self.launcher, self.monitor, self._deletion, self._service
        )
        self._service.open(self.node_id, self.shell)
        self.disks.look()
        self.shell.send(Start(self._begun))

    def heard_of_resource_manager(self, event: Event) -> None:
        """Take an answer of the RM."""
        self.shell.send(event)
        if not self.registered.done() and self.core.status.rm_identifier != RM_INVALID_IDENTIFIER:
            self.registered.set_result(None)

    def shut_down(self) -> None:
        """End the containers and take leave; `shell.stopped` is done when it has."""
        self.shell.send(ShutDown())

    async def end_processes(self) -> None:
        """KILL what is left of containers in their groups."""
        if self.launcher.has_launched:
            self.launcher.kill_all()
            with suppress(TimeoutError):
                async with asyncio.timeout(_EXITS_WAIT_S):
                    await self.launcher.wait_idle()

    def close(self) -> None:
        """Let nobody in any more."""
        self._service.close()
        self.shell.close()

    def _make_launcher(self, common: Common, directories: NodeDirectories) -> ContainersLauncher:
        conf = common.conf
        environment = NodeEnvironment(
            self.node_id,
            self.facts.http_port,
            nodemanager.USER_HOME_DIR.of(conf),
            common.whitelisted,
            nodemanager.ADMIN_ENV.of(conf),
            common.environ,
            common.java_version,
        )
        return ContainersLauncher(
            environment,
            directories,
            self.shell.send,
            stderr_pattern=nodemanager.STDERR_PATTERN.of(conf),
            stderr_tail_bytes=nodemanager.STDERR_TAIL_BYTES.of(conf),
            debug=nodemanager.LOG_CONTAINER_DEBUG_INFO.of(conf),
            kill_wait_ms=nodemanager.PROCESS_KILL_WAIT.of(conf),
            disks_problem=self.disks.problem,
            cgroups=common.cgroups,
        )


def _cgroups(conf: Configuration, node: NodeCpu) -> tuple[CpuCgroups | None, str]:
    """What holds containers to their vcores, or what the nodes have to say where it was asked for and cannot be."""
    try:
        cgroups = CpuCgroups.open(conf, node)
    except CgroupsUnusable as error:
        notice = f"containers are not held to their vcores: {error}"
        _logger.warning("%s", notice)
        return None, notice
    if cgroups is None:
        _logger.info("containers are not held to their vcores: %s is false", nodemanager.RESOURCE_CPU_ENABLED.key)
    else:
        _logger.info("containers are held to their vcores cgroup=%s strict=%s", cgroups.directory, node.strict)
    return cgroups, ""


def emulation_of(conf: Configuration) -> EmulationTable | None:
    """The table of emulated containers, if the nodes are to emulate any; a process and those it forks read it once."""
    if EMULATION_TABLE.maybe_of(conf) is None:
        return None
    # Imported here: few nodes want it, and every idle one would have the YAML library in its memory.
    from nm.emulation.table_file import read_emulation

    return read_emulation(conf)
