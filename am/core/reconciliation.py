"""After an RM restart, asks the NodeManagers which of the AM's containers still run.

    reconciliation.handle(event, now_ms) -> [QueryNode | MarkLost | StopOrphan]
    reconciliation.next_deadline_ms() -> int | None

A restarted RM knows only the containers that NMs report to it. If a container and its node are lost before the AM has
heard of it, no process knows the container any more, and the AM would wait for it forever (Hadoop's AMs do). So after a
resync the AM queries the status of all containers that the old RM allocated, until each of them has ended. One query is
not enough: a node may be lost after it has answered and before it has registered with the new RM.

A container that its NM does not know has ended, like a container of a lost node (exit status -100). An NM that has not
answered for the RM's NM expiry time counts as lost. Such an NM may still run, and the RM may still reach it. So the
containers of that NM are also released, and they are stopped if the NM answers later.

A container whose start failed is queried too: it stays allocated, an AM may wait for its end, and a start without an
answer may have been carried out.
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
from yarn.machine import Dispatcher, Tick
from yarn.states import ContainerExitStatus, ContainerState

CHECKS_PER_EXPIRY = 4
"""The number of queries to an NM within the NM expiry time."""
MISSED_CHECKS_MIN = 2
"""The number of queries in a row that an NM must leave unanswered before it counts as lost.

One is not enough: if the AM itself was stalled, its last query is unanswered.
"""


class NodeAnswered(Struct, frozen=True):
    """The answer to QueryNode: the statuses of those `queried` containers that the NM has."""

    node_id: NodeId
    queried: tuple[ContainerId, ...]
    statuses: tuple[ContainerStatus, ...]


class NodeUnreachable(Struct, frozen=True):
    """The NM did not answer QueryNode."""

    node_id: NodeId


class CheckDue(Struct, frozen=True):
    """The next query of an NM is due."""

    node_id: NodeId


class QueryNode(Struct, frozen=True):
    """Ask an NM for the status of containers. NodeAnswered or NodeUnreachable follows."""

    node_id: NodeId
    container_ids: tuple[ContainerId, ...]


class MarkLost(Struct, frozen=True):
    """Report containers as ended, because the RM may never do so. `release`: the containers may still run."""

    statuses: tuple[ContainerStatus, ...]
    release: bool = False


class StopOrphan(Struct, frozen=True):
    """Stop a container that was reported as lost, but runs on an NM that is reachable again."""

    container_id: ContainerId
    node_id: NodeId


ReconciliationEvent: TypeAlias = Event | NodeAnswered | NodeUnreachable | Tick
ReconciliationEffect: TypeAlias = QueryNode | MarkLost | StopOrphan


@dataclass(slots=True)
class KnownContainer:
    """A container of the AM. `is_start_settled`: its start is not in progress any more; it succeeded or failed.

    `is_old`: an earlier RM allocated it. `is_given_up`: it was reported as lost, without proof.
    """

    node_id: NodeId
    is_start_settled: bool
    is_old: bool = False
    is_given_up: bool = False


@dataclass(slots=True)
class QueriedNode:
    """An NM that is queried about `containers`. `heard_ms` is the time of its last answer, or of the resync.

    `is_queried`: a query is in progress. Otherwise a CheckDue is scheduled for `due_ms`.
    """

    heard_ms: int
    due_ms: int
    containers: dict[ContainerId, None] = field(default_factory=dict[ContainerId, None])
    is_queried: bool = False
    missed: int = 0


class Reconciliation:
    """Tracks the containers of one attempt. `expiry_ms` is how long an NM may be silent before it counts as lost."""

    def __init__(self, expiry_ms: int) -> None:
        self._expiry_ms = expiry_ms
        self._interval_ms = max(1, expiry_ms // CHECKS_PER_EXPIRY)
        self._containers: dict[ContainerId, KnownContainer] = {}
        self._nodes: dict[NodeId, QueriedNode] = {}
        self._dispatcher: Dispatcher[ReconciliationEffect] = Dispatcher()
        self._register_handlers()

    def handle(self, event: ReconciliationEvent, now_ms: int) -> list[ReconciliationEffect]:
        """Handle one event and return its effects. Events that concern no container are ignored.

        `now_ms` never decreases.
        """
        self._dispatcher.begin(now_ms)
        if self._dispatcher.handles(type(event)):
            self._dispatcher.deliver(event)
        self._dispatcher.drain()
        return self._dispatcher.take_effects()

    def next_deadline_ms(self) -> int | None:
        """The time (ms) at which the shell must send Tick; None if nothing is scheduled."""
        return self._dispatcher.next_deadline_ms()

    def _register_handlers(self) -> None:
        on = self._dispatcher.on
        on(ContainersAllocated, self._allocated)
        on(ContainersFromPreviousAttempts, self._adopted)
        on(ContainerStarted, self._start_settled)
        on(ContainerStartFailed, self._start_settled)
        on(ContainersCompleted, self._completed)
        on(Resynced, self._resynced)
        on(NodeAnswered, self._answered)
        on(NodeUnreachable, self._unreachable)
        on(CheckDue, self._check)

    def _allocated(self, event: ContainersAllocated) -> None:
        for allocation in event.allocations:
            container = allocation.container
            self._containers[container.id] = KnownContainer(container.node_id, is_start_settled=False)

    def _adopted(self, event: ContainersFromPreviousAttempts) -> None:
        for container in event.containers:
            self._containers.setdefault(container.id, KnownContainer(container.node_id, is_start_settled=True))

    def _start_settled(self, event: ContainerStarted | ContainerStartFailed) -> None:
        if event.container_id in self._containers:
            self._containers[event.container_id].is_start_settled = True
            self._maybe_watch(event.container_id)

    def _completed(self, event: ContainersCompleted) -> None:
        for status in event.statuses:
            self._forget(status.container_id)

    def _resynced(self, _: Resynced) -> None:
        """Handle a resync: an earlier RM allocated all containers known so far.

        The silence of an NM is measured from now on.
        """
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
        """Start to query an old container.

        A container whose start is in progress is not queried: its NM may not have it yet.
        """
        container = self._containers[container_id]
        if not (container.is_old and container.is_start_settled):
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
        """Compare the containers in an NM's answer with those that should run there."""
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
    """The completion status of a container of a lost node (SchedulerUtils.createAbnormalContainerStatus)."""
    return ContainerStatus(container_id, ContainerState.COMPLETE, ContainerExitStatus.ABORTED, f"Lost: {why}")
