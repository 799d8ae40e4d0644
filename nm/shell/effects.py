"""The NodeManager's effects: calls to the RM, fetches, launches, signals, deletions, the log.

Who carries an effect out sends its answer in a later turn of the loop, never from within.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, assert_never

from nm.core.effects import (
    ChangeMonitoring,
    DeleteApplicationFiles,
    DeleteApplicationLogs,
    DeleteContainerFiles,
    DeleteResource,
    Effect,
    FetchResource,
    LaunchContainer,
    MonitorContainer,
    RegisterNode,
    SendHeartbeat,
    SignalContainer,
    Stop,
    UnregisterNode,
)
from nm.core.events import Event, Tick
from wire.core_shell import Core, CoreShell
from wire.event_log import EventLog
from yarn.machine import InvariantsBroken, Refuse, Reply, StateChanged, Warn

_logger = logging.getLogger(__name__)


class NodeParts(Protocol):
    """Who carries effects out, by kind; none of them sends an event before it has returned."""

    def call_resource_manager(self, effect: RegisterNode | SendHeartbeat | UnregisterNode) -> None: ...
    def fetch(self, effect: FetchResource) -> None: ...
    def launch(self, effect: LaunchContainer) -> None: ...
    def signal(self, effect: SignalContainer) -> None: ...
    def monitor(self, effect: MonitorContainer) -> None: ...
    def change_monitoring(self, effect: ChangeMonitoring) -> None: ...
    def delete(
        self, effect: DeleteResource | DeleteContainerFiles | DeleteApplicationFiles | DeleteApplicationLogs
    ) -> None: ...
    def application_finished(self, application_id: str) -> None: ...


class NodeShell(CoreShell[Event, Effect]):
    """Feeds one core. `stopped` is done with the core's last word: why the node failed, or ""."""

    def __init__(self, core: Core[Event, Effect], clock: Callable[[], int], event_log: EventLog | None = None) -> None:
        super().__init__(core, clock, tick=Tick(), event_log=event_log)
        self.parts: NodeParts | None = None
        self.state_changed: Callable[[StateChanged], None] = _unwatched
        self.stopped: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def carry_out(self, effect: Effect) -> None:
        parts = self.parts
        assert parts is not None, "set before the first event"
        match effect:
            case SendHeartbeat() | RegisterNode() | UnregisterNode():
                parts.call_resource_manager(effect)
            case Reply(call, value):
                self.answer(call, value)
            case Refuse(call, error):
                self.refuse(call, error)
            case FetchResource():
                parts.fetch(effect)
            case LaunchContainer():
                parts.launch(effect)
            case SignalContainer():
                parts.signal(effect)
            case MonitorContainer():
                parts.monitor(effect)
            case ChangeMonitoring():
                parts.change_monitoring(effect)
            case DeleteResource() | DeleteContainerFiles() | DeleteApplicationFiles() | DeleteApplicationLogs():
                parts.delete(effect)
            case StateChanged():
                self._note_change(effect, parts)
            case Warn(text):
                _logger.warning("%s", text)
            case InvariantsBroken(violations):
                for violation in violations:
                    _logger.critical("invariant broken: %s", violation)
                self._stop(f"invariants are broken: {'; '.join(violations)}")
            case Stop(failure):
                self._stop(failure)
            case _:
                assert_never(effect)

    def _stop(self, failure: str) -> None:
        if not self.stopped.done():
            self.stopped.set_result(failure)

    def _note_change(self, change: StateChanged, parts: NodeParts) -> None:
        _logger.info(
            "%s=%s event=%s from=%s to=%s", change.kind, change.subject, change.event, change.source, change.target
        )
        self.state_changed(change)
        if change.kind == "NMApplication" and change.target == "FINISHED":
            parts.application_finished(change.subject)


def _unwatched(change: StateChanged) -> None:
    """Nobody but the log is interested."""
