"""The core of an ApplicationMaster: connects one application with the RM and the NMs.

    core.handle(event, now_ms) -> [ApplicationMasterEffect]
    core.next_deadline_ms() -> int | None

An event of the RM or of an NM goes to Reconciliation first and then to the application. The effects are the actions of
the application and the queries of Reconciliation, in that order of events. After Finish or Leave the application gets
no more events.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from am.core.actions import Action, Application, Finish, Launch, Leave
from am.core.events import ContainersCompleted, ContainerStarted, ContainerStartFailed, Event
from am.core.invariants import CheckedReconciliation
from am.core.reconciliation import (
    NodeAnswered,
    NodeUnreachable,
    Reconciliation,
    ReconciliationEffect,
)
from yarn.ids import ContainerId
from yarn.machine import Tick

ANSWER_TIMEOUT_EXPIRIES = 0.5
"""The time an NM may take to answer a query, as a fraction of the NM expiry interval.

So an NM that misses two answers has been silent for one expiry interval.
"""


class MarkedLost(Struct, frozen=True):
    """The shell has carried out MarkLost; these events are its result."""

    events: tuple[Event, ...]


class AbandonLaunch(Struct, frozen=True):
    """Stop trying to start a container that has ended. No ContainerStarted or ContainerStartFailed follows.

    A start without an answer would be repeated, and a restarted NM, which does not know the container, would run it
    again.
    """

    container_id: ContainerId


ApplicationMasterEvent: TypeAlias = Event | NodeAnswered | NodeUnreachable | MarkedLost | Tick
ApplicationMasterEffect: TypeAlias = Action | AbandonLaunch | ReconciliationEffect


class ApplicationMasterCore:
    """The core of an AM: runs the application, and reconciles its containers after a restart of the RM.

    `node_expiry_ms`: how long an NM may be silent, after an RM restart, before its containers count as lost.
    """

    def __init__(
        self,
        application: Application,
        node_expiry_ms: int,
        *,
        check_invariants: bool = False,
    ) -> None:
        self.answer_timeout_ms = round(node_expiry_ms * ANSWER_TIMEOUT_EXPIRIES)
        self._application = application
        self._reconciliation = (CheckedReconciliation if check_invariants else Reconciliation)(node_expiry_ms)
        self._launches: dict[ContainerId, None] = {}
        self._is_over = False

    def handle(self, event: ApplicationMasterEvent, now_ms: int) -> list[ApplicationMasterEffect]:
        """Handle one event and return its effects, in order. `now_ms` never decreases."""
        match event:
            case Tick() | NodeAnswered() | NodeUnreachable():
                return [*self._reconciliation.handle(event, now_ms)]
            case MarkedLost(events):
                # Reconciliation does not get them: it keeps querying a container that was given up.
                return [effect for lost in events for effect in self._to_application(lost, now_ms)]
            case _:
                return [*self._reconciliation.handle(event, now_ms), *self._to_application(event, now_ms)]

    def next_deadline_ms(self) -> int | None:
        """The time (ms) at which the shell must send Tick; None if nothing is scheduled."""
        return self._reconciliation.next_deadline_ms()

    def _to_application(self, event: Event, now_ms: int) -> list[ApplicationMasterEffect]:
        if self._is_over:
            return []
        abandoned = self._ended_launches(event)
        actions = self._application.handle(event, now_ms)
        for action in actions:
            if isinstance(action, Launch):
                self._launches[action.container.id] = None
            elif isinstance(action, Finish | Leave):
                self._is_over = True
        return [*abandoned, *actions]

    def _ended_launches(self, event: Event) -> list[AbandonLaunch]:
        """The launches that the event ends. Those of containers that have completed are to be abandoned."""
        match event:
            case ContainerStarted(container_id) | ContainerStartFailed(container_id):
                self._launches.pop(container_id, None)
                return []
            case ContainersCompleted(statuses):
                ended = [status.container_id for status in statuses if status.container_id in self._launches]
                for container_id in ended:
                    del self._launches[container_id]
                return [AbandonLaunch(container_id) for container_id in ended]
            case _:
                return []
