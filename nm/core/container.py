"""One container on a node: what is to run, how far it is, how it ended. Its transitions are in container_lifecycle."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from nm.core.context import NodeContext
from nm.core.diagnostics import TERMINATED_BEFORE_LAUNCH, time_stamp
from nm.core.effects import (
    ChangeMonitoring,
    DeleteContainerFiles,
    LaunchContainer,
    MonitorContainer,
    Signal,
    SignalProcess,
)
from nm.core.resource_cache import ResourceKey, ResourceLocalized
from nm.core.start_checks import link_parts
from yarn.containers import (
    ContainerLaunchContext,
    ContainerRetryContext,
    ContainerStatus,
    ContainerTokenIdentifier,
    NMContainerStatus,
)
from yarn.ids import ContainerId
from yarn.machine import Machine
from yarn.states import ContainerExitStatus, ContainerRetryPolicy, ContainerState, ContainerSubState, ExecutionType


class NMContainerState(Enum):
    """ContainerState of the NM, in Hadoop's spelling."""

    NEW = 1
    LOCALIZING = 2
    LOCALIZATION_FAILED = 3
    SCHEDULED = 4
    RUNNING = 5
    RELAUNCHING = 6
    EXITED_WITH_SUCCESS = 7
    EXITED_WITH_FAILURE = 8
    KILLING = 9
    CONTAINER_CLEANEDUP_AFTER_KILL = 10
    DONE = 11


class InitContainer(Struct, frozen=True):
    """Its application is ready on this node."""

    container_id: ContainerId


class KillContainer(Struct, frozen=True):
    """End it; why, as an exit status and as a text."""

    container_id: ContainerId
    exit_status: int
    diagnostics: str


class UpdateDiagnosticsMsg(Struct, frozen=True):
    """Add a text to its diagnostics."""

    container_id: ContainerId
    text: str


class ContainerResourcesCleanedup(Struct, frozen=True):
    """Its files are released."""

    container_id: ContainerId


class ContainerExitedWithSuccess(Struct, frozen=True):
    """Its process ended with exit code 0."""

    container_id: ContainerId


class ContainerExitedWithFailure(Struct, frozen=True):
    """Its process ended with another exit code, or could not be started."""

    container_id: ContainerId
    exit_code: int
    diagnostics: str


class ContainerKilledOnRequest(Struct, frozen=True):
    """Its process was ended by SIGTERM or SIGKILL, or with the exit code of one, or was never started."""

    container_id: ContainerId
    exit_code: int
    diagnostics: str


class UpdateContainerToken(Struct, frozen=True):
    """Its size, or its execution type, is that of another token from now on."""

    container_id: ContainerId
    token: ContainerTokenIdentifier


class ContainerRelaunchDue(Struct, frozen=True):
    """Its retry interval is over."""

    container_id: ContainerId


class ContainerDone(Struct, frozen=True):
    """It has reached its final state: the ResourceManager is to be told soon."""

    container_id: ContainerId


class ApplicationContainerFinished(Struct, frozen=True):
    """To an application: one of its containers is done."""

    container_id: ContainerId


_BYTES_PER_MB = 1 << 20

_S = NMContainerState
_SUB_STATES = {
    _S.NEW: ContainerSubState.SCHEDULED,
    _S.LOCALIZING: ContainerSubState.SCHEDULED,
    _S.SCHEDULED: ContainerSubState.SCHEDULED,
    _S.RELAUNCHING: ContainerSubState.SCHEDULED,
    _S.RUNNING: ContainerSubState.RUNNING,
    _S.KILLING: ContainerSubState.RUNNING,
    _S.LOCALIZATION_FAILED: ContainerSubState.COMPLETING,
    _S.EXITED_WITH_SUCCESS: ContainerSubState.COMPLETING,
    _S.EXITED_WITH_FAILURE: ContainerSubState.COMPLETING,
    _S.CONTAINER_CLEANEDUP_AFTER_KILL: ContainerSubState.COMPLETING,
    _S.DONE: ContainerSubState.DONE,
}


class NMContainer:
    """In the node's containers from its accepted start until the RM has seen its end.

    `exit_status` is INVALID (-1000) until something ends it; `launches` counts the starts of its process.
    `emulation` names the rule by which it is emulated, empty if it is run.
    """

    def __init__(self, token: ContainerTokenIdentifier, launch: ContainerLaunchContext, context: NodeContext) -> None:
        settings = context.settings
        self.id = token.container_id
        self.user = token.user
        self.token = token
        self.launch_context = launch
        self.exit_status: int = ContainerExitStatus.INVALID
        self.launches = 0
        self.retries = SlidingWindowRetryPolicy(launch.retry, settings.retry_minimum_interval_ms)
        self.emulation = context.emulation_of(token, launch)
        self.created_ms = context.dispatcher.now_ms
        self.machine = Machine(NMContainerState.NEW)
        self._context = context
        self._diagnostics = ""
        self._pending: dict[ResourceKey, str] = {}
        self._links: dict[str, str] = {}
        self._counters = [0, 0, 0, 0, 0]
        self._relaunch_waits = False

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_waiting_for_files(self) -> bool:
        return bool(self._pending)

    @property
    def is_done(self) -> bool:
        return self.machine.state is NMContainerState.DONE

    def status(self) -> ContainerStatus:
        """As heartbeats and AMs see it: RUNNING from the accepted start, COMPLETE once DONE."""
        return ContainerStatus(
            self.id,
            ContainerState.COMPLETE if self.is_done else ContainerState.RUNNING,
            self.exit_status,
            self._diagnostics,
            self.token.resource,
            self.token.execution_type,
            _SUB_STATES[self.machine.state],
        )

    def registration_status(self) -> NMContainerStatus:
        """As a registration lists it."""
        token = self.token
        return NMContainerStatus(
            self.id,
            ContainerState.COMPLETE if self.is_done else ContainerState.RUNNING,
            token.resource,
            token.priority,
            self.exit_status,
            self._diagnostics,
            token.creation_time_ms,
            token.version,
            token.node_label_expression,
            token.execution_type,
            token.allocation_request_id,
        )

    # What the transitions do

    def add_diagnostics(self, text: str) -> None:
        """Add a stamped piece; what is over the limit goes at the front."""
        settings = self._context.settings
        stamp = time_stamp(self._context.dispatcher.now_ms, settings.utc_offset_ms)
        self._diagnostics = (self._diagnostics + stamp + text)[-settings.diagnostics_max_chars :]

    def request_resources(self) -> bool:
        """Ask the caches for every file; False if there is none. An emulated container needs none of its files.

        A file under two link names gets one link, the last named (ResourceSet keys by the file).
        """
        if self.emulation:
            return False
        self._pending = {
            ResourceKey.of(resource): "/".join(link_parts(link))
            for link, resource in self.launch_context.local_resources.items()
        }
        self._counters[4] = -self._context.dispatcher.now_ms if self._pending else 0
        requests = {ResourceKey.of(resource): resource for resource in self.launch_context.local_resources.values()}
        for resource in requests.values():
            self._context.resources.request(self.id, self.user, resource)
        return bool(self._pending)

    def take_resource(self, localized: ResourceLocalized) -> bool:
        """Note where a file is; True if it was the last one that was waited for."""
        link = self._pending.pop(localized.key, None)
        if link is None:
            return False
        self._links[link] = localized.path
        self._counters[1 if localized.cached else 0] += localized.size_bytes
        self._counters[3 if localized.cached else 2] += 1
        if self._pending:
            return False
        self._counters[4] += self._context.dispatcher.now_ms
        return True

    def launch(self) -> None:
        """Have its process started, or started again."""
        self.launches += 1
        self._relaunch_waits = False
        self._context.dispatcher.emit(
            LaunchContainer(
                self.id,
                self.launches,
                self.user,
                self.launch_context.commands,
                self.launch_context.environment,
                self._links,
                ",".join(map(str, self._counters)),
                self.token.resource,
                self.emulation,
                self.launch_context.tokens,
                self._cpu()[1],
            )
        )

    def start_monitoring(self) -> None:
        self._context.dispatcher.emit(MonitorContainer(self.id, self.launches, *self._memory_limits()))

    def change_monitoring(self) -> None:
        """Its size is another: what it may use changes with it."""
        self._context.dispatcher.emit(ChangeMonitoring(self.id, *self._memory_limits(), *self._cpu()))

    def _memory_limits(self) -> tuple[int, int]:
        """Bytes of physical and of virtual memory."""
        physical = self.token.resource.memory_mb * _BYTES_PER_MB
        return physical, int(self._context.settings.virtual_memory_ratio * physical)

    def _cpu(self) -> tuple[int, bool]:
        """Vcores, and whether it makes way for others."""
        return self.token.resource.vcores, self.token.execution_type is ExecutionType.OPPORTUNISTIC

    def maybe_relaunch_later(self, exit_code: int) -> bool:
        """Plan another start after the retry interval, if the retry context has one left for this code."""
        now_ms = self._context.dispatcher.now_ms
        if not self.retries.should_retry(exit_code, now_ms):
            return False
        self.retries.count_restart(now_ms)
        self._relaunch_waits = True
        self._context.dispatcher.send_after(self.retries.interval_ms, ContainerRelaunchDue(self.id))
        return True

    def cancel_relaunch(self) -> None:
        """Killed between two tries: there is no process whose end could be waited for."""
        if self._relaunch_waits:
            self._relaunch_waits = False
            self._context.dispatcher.send(
                ContainerKilledOnRequest(self.id, ContainerExitStatus.TERMINATED, TERMINATED_BEFORE_LAUNCH)
            )

    def end_processes(self) -> None:
        """TERM to its process group, KILL a moment later."""
        delay_ms = self._context.settings.sigkill_delay_ms
        kill = SignalProcess(self.id, self.launches, Signal.KILL)
        if delay_ms > 0:
            self._context.dispatcher.emit(SignalProcess(self.id, self.launches, Signal.TERM))
            self._context.emit_after(delay_ms, kill)
        else:
            self._context.dispatcher.emit(kill)

    def end_leftovers(self) -> None:
        """End what its process has left behind, which has ended itself; an emulated one leaves nothing."""
        if not self.emulation:
            self.end_processes()

    def signal(self, signal: Signal, command: str) -> None:
        """A signal that a user ordered."""
        self._context.dispatcher.emit(SignalProcess(self.id, self.launches, signal, command))

    def clean_up(self) -> None:
        """Give back its files and have its directories deleted."""
        self._context.resources.release(self.id)
        if not self.emulation:
            self._context.delete_later(DeleteContainerFiles(self.id, self.user))
        self._context.dispatcher.send(ContainerResourcesCleanedup(self.id))

    def finished(self) -> None:
        """It is DONE: report that to its application and to the RM."""
        self._context.dispatcher.send(ApplicationContainerFinished(self.id))
        self._context.dispatcher.send(ContainerDone(self.id))

    def relaunch_if_due(self) -> None:
        """Start it again, unless it was killed meanwhile."""
        if self._relaunch_waits:
            self.launch()


RETRY_FOREVER = -1
_NEVER_RETRIED = (ContainerExitStatus.SUCCESS, ContainerExitStatus.FORCE_KILLED, ContainerExitStatus.TERMINATED)


class SlidingWindowRetryPolicy:
    """The retries that one container has left.

    With a validity interval only the restarts within it count, so a container that fails rarely never runs out.
    """

    __slots__ = ("_context", "_remaining", "_restarts_ms", "interval_ms")

    def __init__(self, context: ContainerRetryContext, minimum_interval_ms: int) -> None:
        """`minimum_interval_ms`: a shorter interval of the AM is raised to it, so that no loop is tight."""
        self._context = context
        self._remaining = context.max_retries
        self._restarts_ms: list[int] = []
        self.interval_ms = max(context.retry_interval_ms, minimum_interval_ms)

    @property
    def is_set(self) -> bool:
        return self._context.policy is not ContainerRetryPolicy.NEVER_RETRY

    def should_retry(self, exit_code: int, now_ms: int) -> bool:
        """True if a process that ended with `exit_code` is to be started again; TERM and KILL never are."""
        if exit_code in _NEVER_RETRIED or not self._covers(exit_code):
            return False
        return self._context.max_retries == RETRY_FOREVER or self._left(now_ms) > 0

    def count_restart(self, now_ms: int) -> None:
        """Note a restart; it uses up one retry."""
        if self._context.failures_validity_interval_ms > 0:
            self._restarts_ms = [*self._valid_restarts(now_ms), now_ms]
        else:
            self._remaining -= 1

    def _covers(self, exit_code: int) -> bool:
        if self._context.policy is ContainerRetryPolicy.RETRY_ON_SPECIFIC_ERROR_CODES:
            return exit_code in self._context.error_codes
        return self.is_set

    def _left(self, now_ms: int) -> int:
        if self._context.failures_validity_interval_ms > 0:
            return self._context.max_retries - len(self._valid_restarts(now_ms))
        return self._remaining

    def _valid_restarts(self, now_ms: int) -> list[int]:
        oldest_ms = now_ms - self._context.failures_validity_interval_ms
        return [at_ms for at_ms in self._restarts_ms if at_ms >= oldest_ms]
