"""One container on a node: what is to run, how far it is, how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nm.diagnostics import TERMINATED_BEFORE_LAUNCH, time_stamp
from nm.effects import (
    ChangeMonitoring,
    DeleteContainerFiles,
    LaunchContainer,
    MonitorContainer,
    Signal,
    SignalContainer,
)
from nm.lifecycles.application import NMApplicationEvent
from nm.lifecycles.container import (
    CONTAINER_LIFECYCLE,
    Exit,
    Localized,
    NMContainerEvent,
    NMContainerState,
)
from nm.resource_cache import CachedResource, ResourceKey
from nm.retries import RetryPolicy
from nm.start_checks import link_parts
from yarn.containers import ContainerLaunchContext, ContainerStatus, ContainerTokenIdentifier, NMContainerStatus
from yarn.lifecycle import Machine
from yarn.states import ContainerExitStatus, ContainerState, ContainerSubState, ExecutionType

if TYPE_CHECKING:
    from nm.context import NodeContext

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
    `requested` are the cache entries that it holds, given back when it ends. `emulation` names the rule by which it is
    emulated, empty if it is run.
    """

    def __init__(self, token: ContainerTokenIdentifier, launch: ContainerLaunchContext, context: NodeContext) -> None:
        settings = context.settings
        self.id = token.container_id
        self.user = token.user
        self.token = token
        self.launch_context = launch
        self.exit_status: int = ContainerExitStatus.INVALID
        self.launches = 0
        self.retries = RetryPolicy(launch.retry, settings.retry_minimum_interval_ms)
        self.requested: list[CachedResource] = []
        self.emulation = context.emulation_of(token, launch)
        self.created_ms = context.outbox.now_ms
        self.machine: Machine[NMContainerState, NMContainerEvent] = Machine(CONTAINER_LIFECYCLE)
        self._context = context
        self._diagnostics = ""
        self._pending: dict[ResourceKey, str] = {}
        self._links: dict[str, str] = {}
        self._counters = [0, 0, 0, 0, 0]
        self._relaunch_waits = False

    def __str__(self) -> str:
        return str(self.id)

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

    def post(self, event: NMContainerEvent, detail: object = None) -> None:
        self._context.to_container(self.id, event, detail)

    # What the transitions do

    def add_diagnostics(self, text: str) -> None:
        """Add a stamped piece; what is over the limit goes at the front."""
        settings = self._context.settings
        stamp = time_stamp(self._context.outbox.now_ms, settings.utc_offset_ms)
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
        self._counters[4] = -self._context.outbox.now_ms if self._pending else 0
        requests = {ResourceKey.of(resource): resource for resource in self.launch_context.local_resources.values()}
        for resource in requests.values():
            self._context.resources.request(self, resource)
        return bool(self._pending)

    def take_resource(self, localized: Localized) -> bool:
        """Note where a file is; True if it was the last one that was waited for."""
        link = self._pending.pop(localized.key, None)
        if link is None:
            return False
        self._links[link] = localized.path
        self._counters[1 if localized.cached else 0] += localized.size_bytes
        self._counters[3 if localized.cached else 2] += 1
        if self._pending:
            return False
        self._counters[4] += self._context.outbox.now_ms
        return True

    def launch(self) -> None:
        """Have its process started, or started again."""
        self.launches += 1
        self._relaunch_waits = False
        self._context.outbox.emit(
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
        self._context.outbox.emit(MonitorContainer(self.id, self.launches, *self._memory_limits()))

    def change_monitoring(self) -> None:
        """Its size is another: what it may use changes with it."""
        self._context.outbox.emit(ChangeMonitoring(self.id, *self._memory_limits(), *self._cpu()))

    def _memory_limits(self) -> tuple[int, int]:
        """Bytes of physical and of virtual memory."""
        physical = self.token.resource.memory_mb * _BYTES_PER_MB
        return physical, int(self._context.settings.virtual_memory_ratio * physical)

    def _cpu(self) -> tuple[int, bool]:
        """Vcores, and whether it makes way for others."""
        return self.token.resource.vcores, self.token.execution_type is ExecutionType.OPPORTUNISTIC

    def maybe_relaunch_later(self, exit_code: int) -> bool:
        """Plan another start after the retry interval, if the retry context has one left for this code."""
        now_ms = self._context.outbox.now_ms
        if not self.retries.should_retry(exit_code, now_ms):
            return False
        self.retries.count_restart(now_ms)
        self._relaunch_waits = True
        self._context.outbox.after(self.retries.interval_ms, self._relaunch)
        return True

    def cancel_relaunch(self) -> None:
        """Killed between two tries: there is no process whose end could be waited for."""
        if self._relaunch_waits:
            self._relaunch_waits = False
            exit_ = Exit(ContainerExitStatus.TERMINATED, TERMINATED_BEFORE_LAUNCH)
            self.post(NMContainerEvent.CONTAINER_KILLED_ON_REQUEST, exit_)

    def end_processes(self) -> None:
        """TERM to its process group, KILL a moment later."""
        delay_ms = self._context.settings.sigkill_delay_ms
        if delay_ms > 0:
            self._signal(Signal.TERM)
            self._context.outbox.after(delay_ms, lambda: self._signal(Signal.KILL))
        else:
            self._signal(Signal.KILL)

    def end_leftovers(self) -> None:
        """End what its process has left behind, which has ended itself; an emulated one leaves nothing."""
        if not self.emulation:
            self.end_processes()

    def signal(self, signal: Signal, command: str) -> None:
        """A signal that a user ordered."""
        self._context.outbox.emit(SignalContainer(self.id, self.launches, signal, command))

    def clean_up(self) -> None:
        """Give back its files and have its directories deleted."""
        self._context.resources.release(self)
        if not self.emulation:
            self._context.delete_later(DeleteContainerFiles(self.id, self.user))
        self.post(NMContainerEvent.CONTAINER_RESOURCES_CLEANEDUP)

    def finished(self) -> None:
        """It is DONE: its application and the RM are to hear of it."""
        application_id = self.id.application_id
        self._context.to_application(application_id, NMApplicationEvent.APPLICATION_CONTAINER_FINISHED, self.id)
        self._context.on_container_done(self)

    def _relaunch(self) -> None:
        if self._relaunch_waits:
            self.launch()

    def _signal(self, signal: Signal) -> None:
        self._context.outbox.emit(SignalContainer(self.id, self.launches, signal))
