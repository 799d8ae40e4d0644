"""A container on a node: its launch context, progress and exit. container_lifecycle.py has its transitions."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from nm.core.context import NodeContext
from nm.core.diagnostics import TERMINATED_BEFORE_LAUNCH, time_stamp
from nm.core.effects import (
    ChangeMonitoring,
    DeleteContainerFiles,
    InitAuxiliaryService,
    LaunchContainer,
    MonitorContainer,
    ReacquireContainer,
    Signal,
    SignalProcess,
)
from nm.core.resource_cache import ResourceLocalized
from nm.core.resource_key import ResourceKey
from nm.core.start_checks import link_parts
from nm.core.stored_state import ContainerProgress, RecoveredContainerStatus
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

RETRY_FOREVER = -1
_NEVER_RETRIED = (ContainerExitStatus.SUCCESS, ContainerExitStatus.FORCE_KILLED, ContainerExitStatus.TERMINATED)
_BYTES_PER_MB = 1 << 20


class NMContainerState(Enum):
    """The states of a container on a node (Hadoop's ContainerState of the NM)."""

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
    """To a container: its application is ready on this node."""

    container_id: ContainerId


class KillContainer(Struct, frozen=True):
    """To a container: end, with this exit status; `diagnostics` name the reason."""

    container_id: ContainerId
    exit_status: int
    diagnostics: str


class UpdateDiagnosticsMsg(Struct, frozen=True):
    """To a container: append `text` to its diagnostics."""

    container_id: ContainerId
    text: str


class ContainerResourcesCleanedup(Struct, frozen=True):
    """To a container: the files that it used are released."""

    container_id: ContainerId


class ContainerExitedWithSuccess(Struct, frozen=True):
    """To a container: its process ended with exit code 0."""

    container_id: ContainerId


class ContainerExitedWithFailure(Struct, frozen=True):
    """To a container: its process ended with an exit code other than 0, or could not be started."""

    container_id: ContainerId
    exit_code: int
    diagnostics: str


class ContainerKilledOnRequest(Struct, frozen=True):
    """To a container: its process ended after SIGTERM or SIGKILL, or with exit code 143 or 137, or
    was never started.
    """

    container_id: ContainerId
    exit_code: int
    diagnostics: str


class UpdateContainerToken(Struct, frozen=True):
    """To a container: change its size and execution type to those in `token`."""

    container_id: ContainerId
    token: ContainerTokenIdentifier


class ContainerRelaunchDue(Struct, frozen=True):
    """To a container: its retry interval has passed, so its process may be started again."""

    container_id: ContainerId


class ContainerDone(Struct, frozen=True):
    """To the node: a container is DONE; report it to the ResourceManager at once."""

    container_id: ContainerId


class ApplicationContainerFinished(Struct, frozen=True):
    """To an application: one of its containers is DONE."""

    container_id: ContainerId


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
    """A container that this node has accepted. The node keeps it until the RM has acknowledged its end.

    `exit_status` is INVALID (-1000) until the container ends or is killed. `launches` counts how often its process was
    started. `emulation` names the rule by which the container is emulated; empty if it runs as a process.

    `recovered` is the progress that an earlier NodeManager has stored, if it started the container. `is_reacquired`:
    its process was started by that one.
    """

    def __init__(
        self,
        token: ContainerTokenIdentifier,
        launch: ContainerLaunchContext,
        context: NodeContext,
        recovered: ContainerProgress | None = None,
    ) -> None:
        settings = context.settings
        self.id = token.container_id
        self.user = token.user
        self.token = token
        self.launch_context = launch
        self.exit_status: int = ContainerExitStatus.INVALID
        self.launches = 0
        self.retries = SlidingWindowRetryPolicy(launch.retry, settings.retry_minimum_interval_ms)
        self.emulation = context.emulation_of(token, launch)
        self.machine = Machine(NMContainerState.NEW)
        self._context = context
        self._diagnostics = ""
        self._pending: dict[ResourceKey, str] = {}
        self._links: dict[str, str] = {}
        self._counters = [0, 0, 0, 0, 0]
        self._relaunch_waits = False
        self._launched_ms = 0
        self.is_stopped = False
        self.is_reacquired = False
        self.recovered_status: RecoveredContainerStatus | None = None
        if recovered is not None:
            self._recover(recovered)

    def __str__(self) -> str:
        return str(self.id)

    def _recover(self, stored: ContainerProgress) -> None:
        self.recovered_status = stored.status
        self.launches, self._launched_ms = stored.launches, stored.launched_ms
        self.is_stopped = stored.is_killed
        if self.is_recovered_as_ended:
            self.exit_status = stored.exit_status
        self._diagnostics = stored.diagnostics[-self._context.settings.diagnostics_max_chars :]
        self.retries.recover(stored.remaining_retries, stored.restarts_ms)

    @property
    def is_recovered_as_ended(self) -> bool:
        """True if the container has ended, or was stopped before its first launch, under an earlier NodeManager."""
        if self.recovered_status is RecoveredContainerStatus.REQUESTED:
            return self.is_stopped
        return self.recovered_status is RecoveredContainerStatus.COMPLETED

    def progress(self) -> ContainerProgress:
        """The container's progress, for the next NodeManager."""
        status = RecoveredContainerStatus.REQUESTED if self.launches == 0 else RecoveredContainerStatus.LAUNCHED
        return ContainerProgress(
            RecoveredContainerStatus.COMPLETED if self.is_done else status,
            self.launches,
            self._launched_ms,
            self.is_stopped,
            self.exit_status,
            self._diagnostics,
            self.retries.remaining,
            self.retries.restarts_ms,
        )

    def note_progress(self) -> None:
        """Have the container's progress stored."""
        self._context.recorder.container_changed(self)

    def stop(self, status: int, text: str) -> None:
        """End the container for its AM; the next NodeManager ends it too, if this one cannot."""
        self.is_stopped = True
        self.note_progress()
        self._context.dispatcher.send(KillContainer(self.id, status, text))

    def take_token(self, token: ContainerTokenIdentifier) -> None:
        """Have the size and the execution type in `token`."""
        self.token = token
        self._context.recorder.container_accepted(token, self.launch_context)

    @property
    def is_waiting_for_files(self) -> bool:
        return bool(self._pending)

    @property
    def is_done(self) -> bool:
        return self.machine.state is NMContainerState.DONE

    def status(self) -> ContainerStatus:
        """The container's status for heartbeats and for AMs: COMPLETE once it is DONE, before that RUNNING."""
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
        """The container's status for the registration of the node."""
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

    def add_diagnostics(self, text: str) -> None:
        """Append a text with a time stamp to the diagnostics; above the size limit, drop the oldest characters."""
        settings = self._context.settings
        stamp = time_stamp(self._context.dispatcher.now_ms, settings.utc_offset_ms)
        self._diagnostics = (self._diagnostics + stamp + text)[-settings.diagnostics_max_chars :]
        self.note_progress()

    def request_resources(self) -> bool:
        """Pass the service data on, and request every file of the launch context; False if there are no files.

        An emulated container needs no files. If one file has two link names, only the last link is created, because
        Hadoop's ResourceSet is keyed by the file.
        """
        for service, data in self.launch_context.service_data.items():
            self._context.dispatcher.emit(InitAuxiliaryService(service, self.id.application_id, self.user, data.data))
            self._context.recorder.service_used(self.id.application_id, service, data)
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
        """Store the path of a fetched file; True if it was the last one that the container waited for."""
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
        """Start the container's process, for the first time or again. A process that runs already is reacquired."""
        now_ms = self._context.dispatcher.now_ms
        if self.recovered_status is RecoveredContainerStatus.LAUNCHED:
            self.recovered_status = None
            self.is_reacquired = True
            elapsed_ms = max(0, now_ms - self._launched_ms)
            self._context.dispatcher.emit(ReacquireContainer(self._launch_effect(), elapsed_ms))
            return
        self.launches += 1
        self._launched_ms = now_ms
        self._relaunch_waits = self.is_reacquired = False
        self.note_progress()
        self._context.dispatcher.emit(self._launch_effect())

    def _launch_effect(self) -> LaunchContainer:
        return LaunchContainer(
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

    def start_monitoring(self) -> None:
        self._context.dispatcher.emit(MonitorContainer(self.id, self.launches, *self._memory_limits()))

    def change_monitoring(self) -> None:
        """Apply the container's new size to its memory limits and its CPU share."""
        self._context.dispatcher.emit(ChangeMonitoring(self.id, *self._memory_limits(), *self._cpu()))

    def _memory_limits(self) -> tuple[int, int]:
        """(physical, virtual) memory limits in bytes."""
        physical = self.token.resource.memory_mb * _BYTES_PER_MB
        return physical, int(self._context.settings.virtual_memory_ratio * physical)

    def _cpu(self) -> tuple[int, bool]:
        """(vcores, whether the container is opportunistic)."""
        return self.token.resource.vcores, self.token.execution_type is ExecutionType.OPPORTUNISTIC

    def maybe_relaunch_later(self, exit_code: int) -> bool:
        """Schedule a relaunch after the retry interval, if the retry context allows one after this exit code.

        Returns True if a relaunch is scheduled.
        """
        now_ms = self._context.dispatcher.now_ms
        if not self.retries.should_retry(exit_code, now_ms):
            return False
        self.retries.count_restart(now_ms)
        self._relaunch_waits = True
        self._context.dispatcher.send_after(self.retries.interval_ms, ContainerRelaunchDue(self.id))
        return True

    def cancel_relaunch(self) -> None:
        """Cancel the relaunch of a container that was killed while waiting for it.

        The container has no process then, so no exit would ever be reported for it.
        """
        if self._relaunch_waits:
            self._relaunch_waits = False
            self._context.dispatcher.send(
                ContainerKilledOnRequest(self.id, ContainerExitStatus.TERMINATED, TERMINATED_BEFORE_LAUNCH)
            )

    def end_processes(self) -> None:
        """Send SIGTERM to the container's process group, and SIGKILL after the configured delay."""
        delay_ms = self._context.settings.sigkill_delay_ms
        kill = SignalProcess(self.id, self.launches, Signal.KILL)
        if delay_ms > 0:
            self._context.dispatcher.emit(SignalProcess(self.id, self.launches, Signal.TERM))
            self._context.emit_after(delay_ms, kill)
        else:
            self._context.dispatcher.emit(kill)

    def end_orphans(self) -> None:
        """End the processes that the container's exited process left behind; an emulated container has no processes."""
        if not self.emulation:
            self.end_processes()

    def signal(self, signal: Signal, command: str) -> None:
        """Send a signal that a user requested."""
        self._context.dispatcher.emit(SignalProcess(self.id, self.launches, signal, command))

    def clean_up(self) -> None:
        """Release the container's files and delete its directories."""
        self._context.resources.release(self.id)
        if not self.emulation:
            self._context.delete_later(DeleteContainerFiles(self.id, self.user))
        self._context.dispatcher.send(ContainerResourcesCleanedup(self.id))

    def finished(self) -> None:
        """Report to the container's application and to the RM that the container is DONE."""
        self.note_progress()
        self._context.dispatcher.send(ApplicationContainerFinished(self.id))
        self._context.dispatcher.send(ContainerDone(self.id))

    def relaunch_if_due(self) -> None:
        """Start the container's process again, unless the container was killed meanwhile."""
        if self._relaunch_waits:
            self.launch()


class SlidingWindowRetryPolicy:
    """Decides whether a failed container is relaunched, by the retry context of its AM (Hadoop's class of this name).

    With a validity interval, only the restarts within that interval count, so a container that fails rarely is always
    relaunched.
    """

    __slots__ = ("_context", "_remaining", "_restarts_ms", "interval_ms")

    def __init__(self, context: ContainerRetryContext, minimum_interval_ms: int) -> None:
        """`minimum_interval_ms` is the shortest retry interval; a shorter one in `context` is raised to it."""
        self._context = context
        self._remaining = context.max_retries
        self._restarts_ms: list[int] = []
        self.interval_ms = max(context.retry_interval_ms, minimum_interval_ms)

    @property
    def remaining(self) -> int:
        """The retries that are left, if no validity interval is set."""
        return self._remaining

    @property
    def restarts_ms(self) -> tuple[int, ...]:
        """The times of the restarts that count, if a validity interval is set."""
        return tuple(self._restarts_ms)

    def recover(self, remaining: int | None, restarts_ms: tuple[int, ...]) -> None:
        """Take over the restarts that an earlier NodeManager has counted."""
        self._remaining = self._context.max_retries if remaining is None else remaining
        self._restarts_ms = list(restarts_ms)

    @property
    def is_set(self) -> bool:
        return self._context.policy is not ContainerRetryPolicy.NEVER_RETRY

    def should_retry(self, exit_code: int, now_ms: int) -> bool:
        """True if a process that ended with `exit_code` is to be relaunched; always False for the codes of TERM and
        KILL.
        """
        if exit_code in _NEVER_RETRIED or not self._applies_to(exit_code):
            return False
        return self._context.max_retries == RETRY_FOREVER or self._retries_left(now_ms) > 0

    def count_restart(self, now_ms: int) -> None:
        """Record a restart, which uses up one of the allowed retries."""
        if self._context.failures_validity_interval_ms > 0:
            self._restarts_ms = [*self._valid_restarts(now_ms), now_ms]
        else:
            self._remaining -= 1

    def _applies_to(self, exit_code: int) -> bool:
        if self._context.policy is ContainerRetryPolicy.RETRY_ON_SPECIFIC_ERROR_CODES:
            return exit_code in self._context.error_codes
        return self.is_set

    def _retries_left(self, now_ms: int) -> int:
        if self._context.failures_validity_interval_ms > 0:
            return self._context.max_retries - len(self._valid_restarts(now_ms))
        return self._remaining

    def _valid_restarts(self, now_ms: int) -> list[int]:
        oldest_ms = now_ms - self._context.failures_validity_interval_ms
        return [at_ms for at_ms in self._restarts_ms if at_ms >= oldest_ms]
