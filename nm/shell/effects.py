"""Carries out the effects of a NodeManager's core. Each effect is one call of a part of the node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

from nm.core.effects import (
    AggregateLogs,
    ChangeMonitoring,
    DeleteApplicationFiles,
    DeleteApplicationLogs,
    DeleteContainerFiles,
    DeleteResource,
    Effect,
    EndNode,
    EraseStoredState,
    FetchResource,
    ForgetApplicationKeys,
    InitAuxiliaryService,
    LaunchContainer,
    LeaveContainers,
    MonitorContainer,
    ReacquireContainer,
    SendHeartbeat,
    SendRegistration,
    SendUnregistration,
    SignalProcess,
    StopAuxiliaryServices,
)
from nm.core.events import Event, StartContainers, StopContainers, UpdateContainers
from nm.core.stored_state import StoreEffect
from nm.launcher.containers_launcher import Launchers
from nm.launcher.deletion import DeletionService
from nm.localizer.fetch import Localizer
from nm.shell.auxiliary_services import AuxiliaryServices
from nm.shell.log_monitor import LogMonitor
from nm.shell.monitor import ContainersMonitor
from nm.shell.resource_tracker import TrackerCalls
from nm.shell.services import ContainerManagementService
from wire.core_shell import Core, CoreShell
from wire.event_log import EventLog
from yarn.machine import InvariantsBroken, Refuse, Reply, StateChanged, Tick, Warn

if TYPE_CHECKING:
    # Only a NodeManager that recovers has the store in its memory.
    from nm.shell.recovery_writer import RecoveryWriter

_logger = logging.getLogger(f"yarnling.{__name__}")

_RecoveryEffect: TypeAlias = ReacquireContainer | LeaveContainers | EraseStoredState | StoreEffect
_ACKNOWLEDGED = StartContainers | StopContainers | UpdateContainers
"""Calls whose answer waits until everything before it is stored: an earlier, equal call may not be stored yet."""


class LogAggregation(Protocol):
    """Collects logs in the remote log directory (nm.launcher.log_aggregation.LogAggregator)."""

    def aggregate(self, effect: AggregateLogs) -> None: ...


class NodeParts(Struct, frozen=True):
    """The parts that carry out a node's effects.

    A part may answer with an event, but only in a later turn of the event loop: never before the call has returned.
    """

    tracker: TrackerCalls
    localizer: Localizer
    launcher: Launchers
    monitor: ContainersMonitor
    log_monitor: LogMonitor
    deletion: DeletionService
    service: ContainerManagementService
    auxiliary: AuxiliaryServices
    logs: LogAggregation | None = None
    recovery: RecoveryWriter | None = None


class NodeShell(CoreShell[Event, Effect]):
    """Runs one core. `stopped` is done when the core has ended the node; its result is the failure, or "".

    Set `parts` before the first event. `state_changed` is called at each transition. `leaves_containers`: the processes
    of containers are to run on when the node has ended.
    """

    def __init__(self, core: Core[Event, Effect], clock: Callable[[], int], event_log: EventLog | None = None) -> None:
        super().__init__(core, clock, tick=Tick(), event_log=event_log)
        self.parts: NodeParts | None = None
        self.state_changed: Callable[[StateChanged], None] | None = None
        self.leaves_containers = False
        self.stopped: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def carry_out_step(self, event: Event, effects: list[Effect]) -> None:
        """Carry out all effects in order, those on the store first: what is acknowledged is stored."""
        writer = self.parts.recovery if self.parts is not None else None
        if writer is None:
            super().carry_out_step(event, effects)
            return
        stored = [effect for effect in effects if isinstance(effect, StoreEffect)]
        writer.write(stored)
        holds_answers = writer.is_behind and bool(stored or isinstance(event, _ACKNOWLEDGED))
        for effect in effects:
            if holds_answers and isinstance(effect, Reply | Refuse):
                writer.hold(effect)
            elif not isinstance(effect, StoreEffect):
                self.carry_out(effect)

    def carry_out(self, effect: Effect) -> None:
        parts = self.parts
        assert parts is not None, "set before the first event"
        match effect:
            case StateChanged():
                # First, because it is the most frequent.
                self._log_change(effect)
            case SendHeartbeat(request, at_once):
                parts.tracker.send_heartbeat(request, at_once=at_once)
            case SendRegistration(request):
                parts.tracker.send_registration(request)
            case SendUnregistration():
                parts.tracker.send_unregistration()
            case Reply(call, value):
                self.answer(call, value)
            case Refuse(call, error):
                self.refuse(call, error)
            case FetchResource():
                parts.localizer.fetch(effect)
            case LaunchContainer():
                parts.launcher.launch(effect)
            case SignalProcess():
                parts.launcher.signal(effect)
            case MonitorContainer():
                parts.monitor.watch(effect)
                parts.log_monitor.watch(effect)
            case ChangeMonitoring():
                parts.monitor.change(effect)
                parts.launcher.change_cpu(effect)
            case DeleteResource() | DeleteContainerFiles() | DeleteApplicationFiles() | DeleteApplicationLogs():
                parts.deletion.delete(effect)
            case AggregateLogs():
                assert parts.logs is not None, "the core aggregates only if this is configured"
                parts.logs.aggregate(effect)
            case InitAuxiliaryService(service, application_id, user, data):
                parts.auxiliary.init_application(service, application_id, user, data)
            case StopAuxiliaryServices(application_id):
                parts.auxiliary.stop_application(application_id)
            case ForgetApplicationKeys(application_id):
                parts.service.forget_keys(application_id)
            case Warn(text):
                _logger.warning("%s", text)
            case InvariantsBroken(violations):
                for violation in violations:
                    _logger.critical("invariant broken: %s", violation)
                self.stop(f"invariants are broken: {'; '.join(violations)}")
            case EndNode(failure):
                self.stop(failure)
            case _:
                self._carry_out_recovery(parts, effect)

    def _carry_out_recovery(self, parts: NodeParts, effect: _RecoveryEffect) -> None:
        """Carry out an effect that only a node with recovery has."""
        assert parts.recovery is not None, "the core recovers only what is stored"
        match effect:
            case ReacquireContainer():
                parts.launcher.reacquire(effect)
            case LeaveContainers():
                self.leaves_containers = True
            case EraseStoredState():
                parts.recovery.erase()
            case _:
                raise AssertionError("effects on the store are written before all others")

    def stop(self, failure: str) -> None:
        """End the node, because of `failure` if it is not empty; a second call is a no-op."""
        if not self.stopped.done():
            self.stopped.set_result(failure)

    def _log_change(self, change: StateChanged) -> None:
        _logger.info(
            "%s=%s event=%s from=%s to=%s", change.kind, change.subject, change.event, change.source, change.target
        )
        if self.state_changed is not None:
            self.state_changed(change)
