"""The invariants of an ApplicationMaster, checked after every step on its state.

AMRMClientState
A-01  the count of a row in the resource request table equals the number of outstanding requests for that row
A-02  a row with count 0 is kept only until it is sent
A-03  releases, updates and blacklist changes that are to be sent are also kept for a restart of the RM, and after it
      the unconfirmed ones are sent again
A-04  a request in flight is repeated unchanged until its outcome is known
A-05  the response id grows by one with each reply, and is 0 after a restart of the RM
A-06  a container is reported as allocated at most once, and never after it was released or reported as completed
A-07  a container is reported as completed at most once

Reconciliation
A-08  an NM is queried about exactly the containers on it that an earlier RM allocated, except those being started
A-09  for each such NM either a query is under way or the next one is planned
A-10  a query is sent only when none is under way

ContainerStarts
A-20  a start whose outcome is unknown is sent again or settled only after the NM was asked about it

ApplicationCore
A-11  a container is launched at most once, after it was allocated and before it completed
A-12  a container is released or stopped only between its allocation and its completion
A-13  no more requests are withdrawn than are outstanding
A-14  Finish or Leave is the last action

A-21 and A-22 are those of AMRMClientCore (am.core.client_invariants).

A-15 to A-19 are invariants of single applications (ApplicationCore.violations): the distributed shell (A-15), a gang
(A-16), an elastic application (A-17), and a map-reduce job (A-18, A-19).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from am.core.actions import Finish, Launch, Leave, ReleaseContainer, RequestContainer, StopContainer, WithdrawRequest
from am.core.am_rm_client_state import AMRMClientState
from am.core.container_starts import (
    ContainerFound,
    ContainerStarts,
    FindFailed,
    SendStarts,
    StartAbandoned,
    StartEffect,
    StartEvent,
    StartsAnswered,
    StartSettled,
    StartsFailed,
)
from am.core.events import ContainersAllocated, ContainersCompleted, ContainersFromPreviousAttempts, Event
from am.core.reconciliation import (
    NodeAnswered,
    NodeUnreachable,
    QueryNode,
    Reconciliation,
    ReconciliationEffect,
    ReconciliationEvent,
)
from am.core.requests import ContainerRequest, RackOf, RowKey, default_rack_of, row_key
from yarn.containers import ContainerStatus, UpdateContainerRequest
from yarn.errors import CallOutcomeUnknown, InternalError
from yarn.ids import ContainerId, NodeId
from yarn.protocols.container_management import StartContainerRequest
from yarn.protocols.master import AllocateRequest, AllocateResponse

RESPONSE_ID_MASK = 0x7FFF_FFFF
"""A mask for response ids: after the largest Java int they start again at 0."""


class CheckedAMRMClientState(AMRMClientState):
    """An AMRMClientState that raises InternalError if a call leaves it in an inconsistent state."""

    def __init__(self, rack_of: RackOf = default_rack_of, *, asks_again: bool = False) -> None:
        super().__init__(rack_of, asks_again=asks_again)
        self._sent: AllocateRequest | None = None
        self._allocated: set[ContainerId] = set()
        self._released: set[ContainerId] = set()
        self._reported: set[ContainerId] = set()

    def add_request(self, request: ContainerRequest) -> None:
        super().add_request(request)
        self._check()

    def remove_request(self, request: ContainerRequest) -> bool:
        removed = super().remove_request(request)
        self._check()
        return removed

    def release(self, container_id: ContainerId) -> None:
        super().release(container_id)
        self._released.add(container_id)
        self._check()

    def mark_lost(self, statuses: tuple[ContainerStatus, ...], *, release: bool) -> list[Event]:
        events = super().mark_lost(statuses, release=release)
        self._check(*self._of_events(events))
        return events

    def update(self, request: UpdateContainerRequest) -> None:
        super().update(request)
        self._check()

    def change_blacklist(self, additions: Iterable[str] = (), removals: Iterable[str] = ()) -> None:
        super().change_blacklist(additions, removals)
        self._check()

    def next_request(self, progress: float) -> AllocateRequest:
        request = super().next_request(progress)
        if self._sent is not None and request != self._sent:
            self._check(f"A-04: {request} follows {self._sent}, whose outcome is unknown")
        self._sent = request
        self._check()
        return request

    def handle_reply(self, response: AllocateResponse) -> list[Event]:
        events = super().handle_reply(response)
        broken = list(self._of_events(events))
        if self._sent is not None and response.response_id != (self._sent.response_id + 1) & RESPONSE_ID_MASK:
            broken.append(f"A-05: reply {response.response_id} to request {self._sent.response_id}")
        self._sent = None
        self._check(*broken)
        return events

    def handle_refused(self) -> None:
        super().handle_refused()
        self._sent = None
        self._check()

    def handle_not_registered(self) -> None:
        super().handle_not_registered()
        self._sent = None
        self._check(*self._of_restart())

    def _check(self, *broken: str) -> None:
        found = [*broken, *self._of_rows(), *self._of_unconfirmed()]
        if found:
            raise InternalError(f"invariants broken: {'; '.join(found)}")

    def _of_rows(self) -> Iterator[str]:
        rows, unsent = self._table.rows, self._table.unsent
        wanted = Counter[RowKey](row_key(row) for request in self.requests() for row in self._table.rows_of(request))
        for key in sorted({*rows, *wanted}):
            count = rows[key].count if key in rows else 0
            if count != wanted[key]:
                yield f"A-01: row {key} counts {count}, {wanted[key]} requests are outstanding"
            if key in rows and count == 0 and key not in unsent:
                yield f"A-02: row {key} is kept with count 0"
        for key in unsent:
            if key not in rows:
                yield f"A-02: row {key} is to be sent and does not exist"

    def _of_restart(self) -> Iterator[str]:
        if self._response_id:
            yield f"A-05: response id {self._response_id} after a restart"
        for container_id in self._unconfirmed_releases:
            if container_id not in self._releases:
                yield f"A-03: the release of {container_id} is not sent again after a restart"
        for container_id in self._unconfirmed_updates:
            if container_id not in self._updates:
                yield f"A-03: the update of {container_id} is not sent again after a restart"

    def _of_unconfirmed(self) -> Iterator[str]:
        for container_id in self._releases:
            if container_id not in self._unconfirmed_releases:
                yield f"A-03: the release of {container_id} would be lost by a restart of the ResourceManager"
        for container_id in self._updates:
            if container_id not in self._unconfirmed_updates:
                yield f"A-03: the update of {container_id} would be lost by a restart of the ResourceManager"
        for name, added in self._blacklist_changes.items():
            if added != (name in self._blacklist):
                yield f"A-03: {name} is to be sent as {'added to' if added else 'removed from'} the blacklist"

    def _of_events(self, events: Iterable[Event]) -> Iterator[str]:
        for event in events:
            if isinstance(event, ContainersCompleted):
                for status in event.statuses:
                    if status.container_id in self._reported:
                        yield f"A-07: {status.container_id} is reported as completed again"
                    self._reported.add(status.container_id)
            elif isinstance(event, ContainersAllocated):
                for allocation in event.allocations:
                    container_id = allocation.container.id
                    if container_id in self._allocated | self._released | self._reported:
                        yield f"A-06: {container_id} is reported as allocated, and is not new"
                    self._allocated.add(container_id)


class CheckedReconciliation(Reconciliation):
    """A Reconciliation that raises InternalError if a step leaves it in an inconsistent state."""

    def __init__(self, expiry_ms: int) -> None:
        super().__init__(expiry_ms)
        self._under_way: set[NodeId] = set()

    def handle(self, event: ReconciliationEvent, now_ms: int) -> list[ReconciliationEffect]:
        self._under_way = {node_id for node_id, node in self._nodes.items() if node.is_queried}
        if isinstance(event, NodeAnswered | NodeUnreachable):
            self._under_way.discard(event.node_id)
        effects = super().handle(event, now_ms)
        broken = [*self._of_nodes(), *self._of_queries(effects)]
        if broken:
            raise InternalError(f"invariants broken by {event}: {'; '.join(broken)}")
        return effects

    def _of_nodes(self) -> Iterator[str]:
        for node_id, node in self._nodes.items():
            wanted = {
                container_id
                for container_id, container in self._containers.items()
                if container.node_id == node_id and container.is_old and container.is_start_settled
            }
            if not wanted or set(node.containers) != wanted:
                yield f"A-08: {node_id} is queried about {list(node.containers)}, and should be about {sorted(wanted)}"
            deadline_ms = self.next_deadline_ms()
            if not node.is_queried and (deadline_ms is None or deadline_ms > node.due_ms):
                yield f"A-09: the next query of {node_id} is due at {node.due_ms} ms, and is not planned"

    def _of_queries(self, effects: Iterable[ReconciliationEffect]) -> Iterator[str]:
        for effect in effects:
            if isinstance(effect, QueryNode):
                if effect.node_id in self._under_way:
                    yield f"A-10: {effect.node_id} is queried twice at a time"
                self._under_way.add(effect.node_id)


class CheckedContainerStarts(ContainerStarts):
    """ContainerStarts that raises InternalError if a start is repeated or settled without a query."""

    def __init__(self, max_wait_ms: int, interval_ms: int) -> None:
        super().__init__(max_wait_ms, interval_ms)
        self._unknown: dict[int, StartContainerRequest] = {}
        self._under_way: list[tuple[int, StartContainerRequest]] = []

    def handle(self, event: StartEvent, now_ms: int) -> list[StartEffect]:
        match event:
            case StartsAnswered() | StartsFailed():
                if isinstance(event, StartsFailed) and isinstance(event.error, CallOutcomeUnknown):
                    self._unknown.update(self._under_way)
                self._under_way = []
            case ContainerFound(number) | FindFailed(number) | StartAbandoned(number):
                self._unknown.pop(number, None)
            case _:
                pass
        effects = super().handle(event, now_ms)
        if broken := [problem for effect in effects for problem in self._of_effect(effect)]:
            raise InternalError(f"invariants broken by {event}: {'; '.join(broken)}")
        return effects

    def _of_effect(self, effect: StartEffect) -> Iterator[str]:
        match effect:
            case SendStarts(requests):
                self._under_way = [(start.number, start.request) for start in self._sent]
                if any(request is unknown for request in requests for unknown in self._unknown.values()):
                    yield "A-20: a start whose outcome is unknown is sent again"
            case StartSettled(number):
                if number in self._unknown:
                    yield f"A-20: start {number} is settled, and its outcome is unknown"
            case _:
                pass


class ApplicationAudit:
    """Compares the events of one ApplicationCore with its actions, step by step."""

    def __init__(self) -> None:
        self._requested: Counter[ContainerRequest] = Counter()
        self._held: dict[ContainerId, bool] = {}
        """{container that has not completed: whether it was launched}."""

    def violations(self, event: object, actions: Sequence[object]) -> list[str]:
        """The invariants that do not hold after a step, each with its number; empty if all hold."""
        self._note_event(event)
        broken = [problem for action in actions for problem in self._of_action(action)]
        broken += [
            f"A-14: {action} is not the last action" for action in actions[:-1] if isinstance(action, Finish | Leave)
        ]
        return broken

    def note_completed(self, container_id: ContainerId) -> None:
        """Record that a container completed. Applications whose own event replaces ContainersCompleted call this."""
        self._held.pop(container_id, None)

    def _note_event(self, event: object) -> None:
        match event:
            case ContainersAllocated(allocations):
                for allocation in allocations:
                    self._held[allocation.container.id] = False
                    if allocation.request is not None and self._requested[allocation.request] > 0:
                        self._requested[allocation.request] -= 1
            case ContainersFromPreviousAttempts(containers):
                for container in containers:
                    self._held[container.id] = True
            case ContainersCompleted(statuses):
                for status in statuses:
                    self.note_completed(status.container_id)
            case _:
                pass

    def _of_action(self, action: object) -> Iterator[str]:
        match action:
            case RequestContainer(request):
                self._requested[request] += 1
            case WithdrawRequest(request):
                self._requested[request] -= 1
                if self._requested[request] < 0:
                    yield f"A-13: {request} is withdrawn and was not outstanding"
            case Launch(container):
                if self._held.get(container.id) is not False:
                    yield f"A-11: {container.id} is launched and was not allocated, or was launched before"
                self._held[container.id] = True
            case ReleaseContainer(container_id) | StopContainer(container_id, _):
                if container_id not in self._held:
                    yield f"A-12: {container_id} is released or stopped and was not allocated, or has completed"
            case _:
                pass
