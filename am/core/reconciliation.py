"""After an RM restart, ask the NodeManagers which of our containers still run.

    reconciliation.handle(event, now_ms) -> [QueryNode | MarkLost | StopOrphan]
    reconciliation.next_deadline_ms() -> int | None

A restarted RM knows what the NMs report to it. If a container ended together with its node, before its AM heard of it,
nobody knows of it any more, and the AM would wait forever (Hadoop's AMs do). So after a resync the AM queries the
status of all containers that the old RM allocated, until each has ended. One query is not enough: a node may be lost
after it has answered and before it has registered with the new RM.

A container that its NM does not have has ended like a container of a lost node (-100). An NM that has not answered for
as long as the RM would wait for it (NM expiry) counts as lost. It may still run, and the RM may still reach it: so its
containers are released too, and stopped should the NM answer later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Struct

from am.core.events import (
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    ContainerStarted,
    ContainerStartFailed,
    Event,
    Resynced,
)
from yarn.containers import ContainerStatus
from yarn.ids import ContainerId, NodeId
from yarn.machine import Dispatcher
from yarn.states import ContainerExitStatus, ContainerState

CHECKS_PER_EXPIRY = 4
"""How often an NM is queried within the time in which it may be silent."""
MISSED_CHECKS_MIN = 2
"""Queries in a row that an NM must miss: an AM that was itself stopped finds its last query unanswered."""


class NodeAnswered(Struct, frozen=True):
    """The answer to QueryNode: the statuses of those of the `queried` containers that the NM has."""

    node_id: NodeId
    queried: tuple[ContainerId, ...]
    statuses: tuple[ContainerStatus, ...]


class NodeUnreachable(Struct, frozen=True):
    """The NM did not answer QueryNode."""

    node_id: NodeId


class DeadlineReached(Struct, frozen=True):
    """Sent by the shell at `next_deadline_ms`."""


class CheckDue(Struct, frozen=True):
    """The time of the next query of an NM has come."""

    node_id: NodeId


class QueryNode(Struct, frozen=True):
    """Ask an NM for the status of containers; NodeAnswered or NodeUnreachable follows."""

    node_id: NodeId
    container_ids: tuple[ContainerId, ...]


class MarkLost(Struct, frozen=True):
    """Report ends that the RM may never report. `release`: the containers may still run."""

    statuses: tuple[ContainerStatus, ...]
    release: bool = False


class StopOrphan(Struct, frozen=True):
    """A container that was given up runs on an NM that is reachable again: stop it."""

    container_id: ContainerId
    node_id: NodeId


ReconciliationEvent: TypeAlias = Event | NodeAnswered | NodeUnreachable | DeadlineReached
ReconciliationEffect: TypeAlias = QueryNode | MarkLost | StopOrphan


@dataclass(slots=True)
class KnownContainer:
    """`is_old`: the RM that allocated it has gone. `is_given_up`: reported as lost, without a proof that it ended."""

    node_id: NodeId
    is_started: bool
    is_old: bool = False
    is_given_up: bool = False


@dataclass(slots=True)
class QueriedNode:
    """An NM that is queried about `containers`. `heard_ms`: its last answer, or the time of the resync.

    `is_queried`: a query is under way. Otherwise CheckDue is planned for `due_ms`.
    """

    heard_ms: int
    due_ms: int
    containers: dict[ContainerId, None] = field(default_factory=dict[ContainerId, None])
    is_queried: bool = False
    missed: int = 0


class Reconciliation:
    """The containers of one attempt. `expiry_ms`: how long an NM may be silent before it counts as lost."""

    def __init__(self, expiry_ms: int) -> None:
        self._expiry_ms = expiry_ms
        self._interval_ms = max(1, expiry_ms // CHECKS_PER_EXPIRY)
        self._containers: dict[ContainerId, KnownContainer] = {}
        self._nodes: dict[NodeId, QueriedNode] = {}
        self._dispatcher: Dispatcher[ReconciliationEffect] = Dispatcher()
        self._register_handlers()

    def handle(self, event: ReconciliationEvent, now_ms: int) -> list[ReconciliationEffect]:
        """The effects of one event; events that concern no container are ignored. `now_ms` never goes back."""
        self._dispatcher.begin(now_ms)
        if self._dispatcher.handles(type(event)):
            self._dispatcher.deliver(event)
        self._dispatcher.drain()
        return self._dispatcher.take_effects()

    def next_deadline_ms(self) -> int | None:
        """When the shell is to send DeadlineReached; None if nothing is planned."""
        return self._dispatcher.next_deadline_ms()

    def _register_handlers(self) -> None:
        on = self._dispatcher.on
        on(ContainersAllocated, self._allocated)
        on(ContainersFromPreviousAttempts, self._adopted)
        on(ContainerStarted, self._started)
        on(ContainerStartFailed, lambda event: self._forget(event.container_id))
        on(ContainersCompleted, self._completed)
        on(Resynced, self._resynced)
        on(NodeAnswered, self._answered)
        on(NodeUnreachable, self._unreachable)
        on(CheckDue, self._check)

    # Containers

    def _allocated(self, event: ContainersAllocated) -> None:
        for allocation in event.allocations:
            container = allocation.container
            self._containers[container.id] = KnownContainer(container.node_id, is_started=False)

    def _adopted(self, event: ContainersFromPreviousAttempts) -> None:
        for container in event.containers:
            self._containers.setdefault(container.id, KnownContainer(container.node_id, is_started=True))

    def _started(self, event: ContainerStarted) -> None:
        if event.container_id in self._containers:
            self._containers[event.container_id].is_started = True
            self._maybe_watch(event.container_id)

    def _completed(self, event: ContainersCompleted) -> None:
        for status in event.statuses:
            self._forget(status.container_id)

    def _resynced(self, _: Resynced) -> None:
        """All containers known so far were allocated by an RM that has gone. The silence of an NM counts from now."""
        now_ms = self._dispatcher.now_ms
        for node_id, node in self._nodes.items():
            node.heard_ms, node.missed = now_ms, 0
            if node.due_ms < now_ms + self._interval_ms:  # else this step has queried it already
                node.due_ms = now_ms
            self._plan_check(node_id)
        for container_id, container in self._containers.items():
            container.is_old = True
            self._maybe_watch(container_id)

    def _maybe_watch(self, container_id: ContainerId) -> None:
        """Query the container from now on if it is old. While its start is under way its NM need not have it yet."""
        container = self._containers[container_id]
        if not (container.is_old and container.is_started):
            return
        node = self._nodes.get(container.node_id)
        if node is None:
            now_ms = self._dispatcher.now_ms
            node = self._nodes[container.node_id] = QueriedNode(now_ms, now_ms)
            self._plan_check(container.node_id)
        node.containers[container_id] = None

    def _forget(self, container_id: ContainerId) -> None:
        container = self._containers.pop(container_id, None)
        node = None if container is None else self._nodes.get(container.node_id)
        if container is not None and node is not None:
            node.containers.pop(container_id, None)
            if not node.containers:
                del self._nodes[container.node_id]

    # Queries

    def _plan_check(self, node_id: NodeId) -> None:
        node = self._nodes[node_id]
        delay_ms = node.due_ms - self._dispatcher.now_ms
        if node.is_queried:
            return
        if delay_ms <= 0:
            self._dispatcher.send(CheckDue(node_id))
        else:
            self._dispatcher.send_after(delay_ms, CheckDue(node_id))

    def _check(self, event: CheckDue) -> None:
        now_ms = self._dispatcher.now_ms
        node = self._nodes.get(event.node_id)
        if node is not None and not node.is_queried and node.due_ms <= now_ms:
            node.is_queried = True
            node.due_ms = now_ms + self._interval_ms
            self._dispatcher.emit(QueryNode(event.node_id, tuple(node.containers)))

    def _answered(self, event: NodeAnswered) -> None:
        """Compare the NM's containers with those that are believed to run there."""
        if node := self._nodes.get(event.node_id):
            node.heard_ms, node.is_queried, node.missed = self._dispatcher.now_ms, False, 0
        statuses = {status.container_id: status for status in event.statuses}
        ended: list[ContainerStatus] = []
        for container_id in event.queried:
            container = self._containers.get(container_id)
            if container is None:
                continue
            status = statuses.get(container_id)
            if status is None or status.state is ContainerState.COMPLETE:
                self._forget(container_id)
                if not container.is_given_up:
                    ended.append(status or _lost(container_id, f"{event.node_id} does not have it any more"))
            elif container.is_given_up:
                self._dispatcher.emit(StopOrphan(container_id, event.node_id))
        if ended:
            self._dispatcher.emit(MarkLost(tuple(ended)))
        if event.node_id in self._nodes:
            self._plan_check(event.node_id)

    def _unreachable(self, event: NodeUnreachable) -> None:
        node = self._nodes.get(event.node_id)
        if node is None:
            return
        node.is_queried = False
        node.missed += 1
        self._plan_check(event.node_id)
        silent_ms = self._dispatcher.now_ms - node.heard_ms
        if silent_ms >= self._expiry_ms and node.missed >= MISSED_CHECKS_MIN:
            self._give_up(node, f"{event.node_id} has not answered for {silent_ms} ms")

    def _give_up(self, node: QueriedNode, why: str) -> None:
        lost = [one for one in node.containers if not self._containers[one].is_given_up]
        for container_id in lost:
            self._containers[container_id].is_given_up = True
        if lost:
            self._dispatcher.emit(MarkLost(tuple(_lost(one, why) for one in lost), release=True))


def _lost(container_id: ContainerId, why: str) -> ContainerStatus:
    """The end of a container of a lost node (SchedulerUtils.createAbnormalContainerStatus)."""
    return ContainerStatus(container_id, ContainerState.COMPLETE, ContainerExitStatus.ABORTED, f"Lost: {why}")
