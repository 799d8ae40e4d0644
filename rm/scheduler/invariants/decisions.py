"""Invariants that can be checked only when something is booked or reported, not from the state afterwards.

When a container is booked: I-09 its user was not above the user limit before; I-13 its size is within the bounds; I-14
it was requested; I-16 its node is running; I-20 its node is not reserved for another application; I-23 its node is not
blacklisted, and is in the requested partition or a shared one; I-46 the wait after a restart is over. When a container
ends: I-31 it ends once. When a container is preempted: I-53 a queue loses containers to others only if it held more
than its guarantee when the round began; I-54 the victims of one round add up to no more than the configured share of
the cluster; I-55 a container is killed no sooner than the configured wait after its AM was asked to release it.

They are checked if `yarn.yarnling.check-invariants` is set, and in every test. Otherwise they cost one comparison per
booking.
"""

from __future__ import annotations

from collections.abc import Iterator

from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import RESPECT, SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.notices import ContainerFinished, Notice, PreemptionDecided
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.placement.allocator import Proposal
from rm.scheduler.placement.visit import Placement
from rm.scheduler.preemption.preemption_round import PreemptionReason
from yarn.containers import ANY
from yarn.ids import ContainerId, NodeId
from yarn.nodes import NO_LABEL
from yarn.resource_calculator import multiplied

REMEMBERED_MAX = 10_000
"""The number of containers requested from AMs that are remembered. The oldest is dropped first; its wait is not
checked."""

_FOR_ANOTHER_QUEUE = frozenset({PreemptionReason.GUARANTEE.name, PreemptionReason.BALANCE.name})
"""Reasons for which I-53 holds. Preemption for queues of higher priority and for reservations may go below the
guarantee."""


class CommitWatch:
    """Watches the bookings of one scheduler from its start. `take` returns the violations found in a step."""

    def __init__(self, context: SchedulerContext, placement: Placement) -> None:
        self._context = context
        self._found: list[str] = []
        self._ended: dict[tuple[ContainerId, NodeId], int] = {}
        self._booked_on: dict[NodeId, None] = {}
        self._orders = PreemptionWatch(context, placement.applications)
        placement.watch = self.look_at_booking

    def take(self) -> list[str]:
        """The violations since the last call, with invariant number and amounts; call it at the end of each step."""
        self._orders.end_step()
        found, self._found = self._found, []
        return found

    def take_booked_nodes(self) -> tuple[NodeId, ...]:
        """The nodes on which something was booked since the last call."""
        booked_on, self._booked_on = tuple(self._booked_on), {}
        return booked_on

    def look_at_booking(self, proposal: Proposal) -> None:
        """Check a booking. Called when the proposal was accepted and nothing of it is booked yet."""
        self._booked_on[proposal.node.node_id] = None
        if self._context.placing_from_ms is not None:
            until_ms = self._context.placing_from_ms
            self._found.append(f"I-46: {proposal.application}: nothing is placed until {until_ms} ms have passed")
        self._found += _faults_of_place(proposal)
        if proposal.reserved is None:
            self._found += self._faults_of_size(proposal)

    def look_at_notice(self, notice: Notice) -> None:
        """Check a notice. Called for every notice of the scheduler."""
        if isinstance(notice, PreemptionDecided):
            self._found += self._orders.faults_of(notice)
        if not isinstance(notice, ContainerFinished):
            return
        status = notice.status
        # A node that the RM does not know may register with a container that ended elsewhere; it is recovered.
        earlier = self._ended.setdefault((status.container_id, notice.node_id), int(status.exit_status))
        if earlier != int(status.exit_status):
            self._found.append(f"I-31: {status.container_id}: ended with {earlier}, and with {int(status.exit_status)}")

    def _faults_of_size(self, proposal: Proposal) -> Iterator[str]:
        """Violations of I-09 and I-13. Only new containers are checked: a reservation was checked when it was made."""
        context, application = self._context, proposal.application
        calculator, size = context.calculator, proposal.resource
        least = context.minimum_allocation
        if proposal.key.container_id is None and not (
            calculator.fits_in(least, size) and calculator.fits_in(size, context.settings.maximum_allocation)
        ):
            yield f"I-13: {application}: {size} is not within {least} and {context.settings.maximum_allocation}"
        user = LeafQueue.of(application).users.users.get(application.user)
        assert user is not None, "a proposal was accepted for a user without an entry"
        used = user.usage.used(proposal.node.partition)
        for container in proposal.going:
            used = used - container.resource
        if calculator.greater(context.cluster_resource, used, user.limit):
            yield f"I-09: {application}: user {user.name} holds {used}, and may hold {user.limit}"
        yield from self._faults_of_queues(proposal)

    def _faults_of_queues(self, proposal: Proposal) -> Iterator[str]:
        """I-08: a new container takes no queue above its maximum, which no change of the cluster excuses here."""
        partition, added = proposal.node.partition, proposal.resource
        if proposal.mode is not RESPECT:
            return
        for container in proposal.going:
            added = added - container.resource
        for queue in proposal.application.leaf.and_above():
            after, maximum = queue.usage.used(partition) + added, queue.effective_maximum(partition)
            if not self._context.calculator.fits_in(after, maximum):
                yield f"I-08 (at a commit): {queue.path} would use {after} of {partition!r}, and may use {maximum}"


def _faults_of_place(proposal: Proposal) -> Iterator[str]:
    """Violations of I-14 to I-23.

    The partition is checked for new containers only: a request's label may change while there is a reservation.
    """
    application, node = proposal.application, proposal.node
    of_key = application.requests.at(proposal.key)
    row = of_key.rows.get(ANY) if of_key is not None else None
    if row is None or row.count <= 0:
        yield f"I-14: {application}: nothing of {proposal.key} is requested"
    if not node.is_running:
        yield f"I-16: {application}: {node.node_id} is not running"
    holder = node.reserved_container
    if holder is not proposal.reserved:
        yield f"I-20: {application}: {node.node_id} is reserved for {holder.id if holder is not None else 'none'}"
    if application.is_blacklisted(node.name, node.rack):
        yield f"I-23: {application}: {node.name} in {node.rack} is blacklisted"
    # A reservation is filled even if the label or the size of its request has changed since.
    if proposal.reserved is None and of_key is not None and of_key.partition not in (node.partition, NO_LABEL):
        yield f"I-23: {application}: {node.node_id} is of partition '{node.partition}', requested '{of_key.partition}'"


class PreemptionWatch:
    """Checks the preemptions of one scheduler; exists only where invariants are checked."""

    def __init__(self, context: SchedulerContext, applications: ApplicationTable) -> None:
        self._context = context
        self._applications = applications
        self._requested_ms: dict[ContainerId, int] = {}
        self._round_ms = 0
        self._in_round = context.none

    def end_step(self) -> None:
        """Start a new sum of victims: a step has at most one round."""
        self._in_round = self._context.none

    def faults_of(self, order: PreemptionDecided) -> Iterator[str]:
        """Violations of the invariants. Call it before the container is killed."""
        container = self._applications.container(order.container_id)
        if container is None:
            return
        if order.reason in _FOR_ANOTHER_QUEUE:
            yield from self._below_guarantee(container)
        if order.reason != PreemptionReason.QUEUE_PRIORITY.name:
            yield from self._too_much(container, order.clock_ms)
        if order.step == "requested":
            self._note_request(order)
        else:
            yield from self._too_soon(order)

    def _below_guarantee(self, container: RMContainer) -> Iterator[str]:
        """I-53, by what the round saw at its start: then it drops reservations, and what one selector has chosen is
        hardly taken into account by the next (TempQueuePerPartition.deduct).

        Not checked for a queue that the round could not identify, because another one has its name.
        """
        if not container.preemption_steps:
            return
        context, queue = self._context, container.preemption_steps[-1].victim
        if context.calculator.less_or_equal(context.cluster_resource, queue.used, queue.guaranteed):
            held = f"{queue.path} uses only {queue.used} of its guarantee of {queue.guaranteed}"
            yield f"I-53: {container.id} is preempted, but {held}"

    def _too_much(self, container: RMContainer, clock_ms: int) -> Iterator[str]:
        context = self._context
        if clock_ms != self._round_ms:
            self._round_ms, self._in_round = clock_ms, context.none
        self._in_round = self._in_round + container.resource
        most = multiplied(context.cluster_resource, context.settings.preemption.total_per_round)
        if not context.calculator.fits_in(self._in_round, most):
            yield f"I-54: {container.id}: the round preempts {self._in_round}, more than the allowed {most}"

    def _too_soon(self, order: PreemptionDecided) -> Iterator[str]:
        settings, requested_ms = self._context.settings.preemption, self._requested_ms.pop(order.container_id, None)
        is_balance = order.reason == PreemptionReason.BALANCE.name and settings.balance_wait_ms > 0
        wait_ms = settings.balance_wait_ms if is_balance else settings.wait_before_kill_ms
        passed_ms = order.clock_ms - requested_ms if requested_ms is not None else wait_ms
        if passed_ms < wait_ms:
            yield f"I-55: {order.container_id} is killed {passed_ms} ms after its AM was asked, before {wait_ms} ms"

    def _note_request(self, order: PreemptionDecided) -> None:
        self._requested_ms[order.container_id] = order.clock_ms
        if len(self._requested_ms) > REMEMBERED_MAX:
            del self._requested_ms[next(iter(self._requested_ms))]
