"""A NodeManager: its core and the parts around it. nm.shell.node_host runs it in a process."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nm.core import NodeManagerCore
from nm.core.container_limits import NodeCpu
from nm.core.emulation import EmulationTable
from nm.core.events import Event, Recover, ShutDown, Start
from nm.core.launch_script import NodeEnvironment
from nm.core.settings import CoreSettings, NodeFacts, core_settings, node_resource, physical_resource
from nm.core.status_updater import RM_INVALID_IDENTIFIER
from nm.emulation.application_master import EmulatedApplicationMasters
from nm.emulation.launcher import EmulatedLauncher
from nm.launcher.cgroups import CgroupsUnusable, CpuCgroups
from nm.launcher.containers_launcher import ContainersLauncher, Launchers
from nm.launcher.deletion import DeletionService
from nm.launcher.directories import NodeDirectories
from nm.launcher.reacquired_containers import ReacquiredContainers
from nm.localizer.archives import ArchiveLimits
from nm.localizer.fetch import Localizer
from nm.localizer.sources import Mounts
from nm.shell.auxiliary_services import AuxiliaryServices
from nm.shell.disks import DiskChecker, DiskSettings, SharedSamples
from nm.shell.effects import LogAggregation, NodeParts, NodeShell
from nm.shell.host_environment import HostEnvironment, hardware, java_version
from nm.shell.log_monitor import LogMonitor, LogMonitorSettings
from nm.shell.monitor import ContainersMonitor, MonitorSettings
from nm.shell.resource_tracker import TrackerCalls
from nm.shell.services import ContainerManagementService
from wire.core_shell import WallClock
from wire.event_log import open_event_log
from yarn.configuration import Configuration
from yarn.ids import NodeId
from yarn.machine import Refuse, Reply
from yarn.settings import nodemanager
from yarn.settings.release import RELEASE
from yarn.settings.yarnling import EMULATION_TABLE

if TYPE_CHECKING:
    from nm.shell.recovery_writer import RecoveryWriter

_EXITS_WAIT_S = 1.0
"""The time the wrappers of killed containers may take to exit, when the node ends."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class NodeCoreStart(Struct, frozen=True):
    """The arguments of the core's constructor: the first line of its event log."""

    node_id: NodeId
    facts: NodeFacts
    settings: CoreSettings


class SharedServices:
    """Common parts of the nodes of a process: settings, clock, the machine's resources, the NM's environment variables.

    `http_port` is the port of the node's web services, 0 if there are none. `notice` is added to the nodes' health
    reports, `inherited` {variable: value} to their containers' environments.
    """

    def __init__(self, environment: HostEnvironment, environ: Mapping[str, str], http_port: int = 0) -> None:
        conf, machine = environment.conf, hardware()
        self.environment = environment
        self.clock: Callable[[], int] = WallClock()
        version = RELEASE.of(conf).version
        self.facts = NodeFacts(node_resource(conf, machine), physical_resource(machine), http_port, version)
        zone_ms = (time.localtime().tm_gmtoff or 0) * 1000
        self.settings = core_settings(conf, zone_ms, emulation_of(conf))
        self.disk_settings = DiskSettings.read(conf)
        self.monitor_settings = MonitorSettings.read(conf)
        self.log_monitor_settings = LogMonitorSettings.read(conf)
        self.samples = SharedSamples()
        node_cpu = NodeCpu.read(conf, self.facts.resource.vcores, machine.cores, machine.threads)
        self.cgroups, self.notice = _open_cgroups(conf, node_cpu)
        self.environ = environ
        self.inherited = {name: environ[name] for name in nodemanager.ENV_WHITELIST.of(conf) if name in environ}
        self.java_version = java_version(environ)

    @property
    def conf(self) -> Configuration:
        return self.environment.conf


class NodeManager:
    """A node. `registered` is done once the node has registered with the RM, `shell.stopped` once it has ended."""

    def __init__(
        self,
        shared: SharedServices,
        node_id: NodeId,
        service: ContainerManagementService,
        auxiliary: AuxiliaryServices,
    ) -> None:
        self.node_id = node_id
        self.service = service
        self.facts, self.clock = shared.facts, shared.clock
        self.settings = shared.settings
        if auxiliary.metadata:
            self.settings = replace(self.settings, auxiliary_services=tuple(auxiliary.metadata.items()))
        self._auxiliary = auxiliary
        self.core = NodeManagerCore(node_id, self.facts, self.settings)
        start = NodeCoreStart(node_id, self.facts, self.settings)
        self.shell = NodeShell(self.core, self.clock, open_event_log(shared.conf, f"nodemanager-{node_id}", start))
        self.registered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        environment, send = shared.environment, self.shell.send
        directories = environment.directories[node_id.host]
        sampled = shared.samples.of if environment.is_pack else None
        self.disks = DiskChecker(directories, shared.disk_settings, send, self.clock, sampled, shared.notice)
        table = self.settings.emulation
        emulated = EmulatedLauncher(table or EmulationTable(), send)
        reacquired = ReacquiredContainers(
            directories,
            send,
            exit_code_wait_ms=nodemanager.EXIT_CODE_FILE_TIMEOUT.of(shared.conf),
            cgroups=shared.cgroups,
        )
        self.launcher = Launchers(self._make_launcher(shared, directories), reacquired, emulated)
        self.monitor = ContainersMonitor(
            self.launcher,
            send,
            shared.monitor_settings,
            self.facts.resource.vcores,
            emulating=table is not None,
            packed=environment.is_pack,
        )
        self.log_monitor = LogMonitor(self.launcher, directories, send, shared.log_monitor_settings)
        fetches = nodemanager.LOCALIZER_FETCH_THREAD_COUNT.of(shared.conf)
        self._localizer = Localizer(
            directories, send, fetches, ArchiveLimits.read(shared.conf), Mounts.read(shared.conf)
        )
        self._deletion = DeletionService(directories, environment.deleter)
        self._directories, self._conf = directories, shared.conf
        self._started_before = environment.started_before(node_id.host)
        self._stored = environment.stored.get(node_id.host)
        self.recovery = self._recovery_writer()

    def start(self, calls: TrackerCalls, tasks: asyncio.TaskGroup, masters: EmulatedApplicationMasters | None) -> None:
        """Answer calls, and register with the RM through `calls`.

        `masters` is needed if the emulation table has AMs that register.
        """
        self.launcher.emulated.masters = masters
        self._localizer.use(tasks)
        self.shell.parts = NodeParts(
            calls,
            self._localizer,
            self.launcher,
            self.monitor,
            self.log_monitor,
            self._deletion,
            self.service,
            self._auxiliary,
            self._log_aggregation(tasks),
            self.recovery,
        )
        self.service.open(self.node_id, self.shell, self.recovery)
        self.disks.check()
        if self._stored is not None:
            self.shell.send(Recover(self._stored.state))
        self.shell.send(Start(self._started_before))

    def take_answer(self, event: Event) -> None:
        """Pass an answer of the RM to the core."""
        self.shell.send(event)
        if not self.registered.done() and self.core.status.rm_identifier != RM_INVALID_IDENTIFIER:
            self.registered.set_result(None)

    def shut_down(self) -> None:
        """Have the node unregister from the RM, then end its containers. `shell.stopped` is done when it has ended."""
        self.shell.send(ShutDown())

    async def kill_processes(self) -> None:
        """Send KILL to the process groups that containers have left behind, and wait for their wrappers to exit.

        A node that leaves its containers to the next NodeManager does nothing.
        """
        if self.launcher.has_launched and not self.shell.leaves_containers:
            self.launcher.kill_all()
            with suppress(TimeoutError):
                async with asyncio.timeout(_EXITS_WAIT_S):
                    await self.launcher.wait_idle()

    def close(self) -> None:
        """Refuse calls from now on, and stop the core's timers."""
        self.service.close()
        self.shell.close()
        if self.shell.leaves_containers:
            self.launcher.leave_all()
        if self.recovery is not None:
            self.recovery.close()

    def _recovery_writer(self) -> RecoveryWriter | None:
        if self._stored is None:
            return None
        # Imported here so that only a NodeManager that recovers has the module in its memory.
        from nm.shell.recovery_writer import RecoveryWriter

        return RecoveryWriter(self._stored.store, answer=self._answer, fail=self.shell.stop)

    def _answer(self, answer: Reply | Refuse) -> None:
        if isinstance(answer, Reply):
            self.shell.answer(answer.call, answer.value)
        else:
            self.shell.refuse(answer.call, answer.error)

    def _log_aggregation(self, tasks: asyncio.TaskGroup) -> LogAggregation | None:
        if not self.settings.aggregate_logs:
            return None
        # Imported here so that only a NodeManager that aggregates logs has the module in its memory.
        from nm.launcher.log_aggregation import LogAggregator, RemoteLogs

        return LogAggregator(self.node_id, self._directories, RemoteLogs.read(self._conf), self.shell.send, tasks)

    def _make_launcher(self, shared: SharedServices, directories: NodeDirectories) -> ContainersLauncher:
        conf = shared.conf
        environment = NodeEnvironment(
            self.node_id,
            self.facts.http_port,
            nodemanager.USER_HOME_DIR.of(conf),
            shared.inherited,
            nodemanager.ADMIN_ENV.of(conf),
            shared.environ,
            shared.java_version,
            self._auxiliary.metadata,
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
            cgroups=shared.cgroups,
        )


def _open_cgroups(conf: Configuration, node: NodeCpu) -> tuple[CpuCgroups | None, str]:
    """The cgroups that limit containers to their vcores, and a notice if they are configured but cannot be used."""
    try:
        cgroups = CpuCgroups.open(conf, node)
    except CgroupsUnusable as error:
        notice = f"containers are not limited to their vcores: {error}"
        _logger.warning("%s", notice)
        return None, notice
    if cgroups is None:
        _logger.info("containers are not limited to their vcores: %s is false", nodemanager.RESOURCE_CPU_ENABLED.key)
    else:
        _logger.info("containers are limited to their vcores cgroup=%s strict=%s", cgroups.directory, node.strict)
    return cgroups, ""


def emulation_of(conf: Configuration) -> EmulationTable | None:
    """The emulation table; None if no container is emulated. A process reads it once, also for those that it forks."""
    if EMULATION_TABLE.maybe_of(conf) is None:
        return None
    # Imported here: few nodes emulate containers, and every other one would have the YAML library in its memory.
    from nm.emulation.table_file import read_emulation

    return read_emulation(conf)
