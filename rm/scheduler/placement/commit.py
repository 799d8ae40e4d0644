"""Booking a proposal: check it again against the limits of the user and the queues, then apply all of it (tryCommit).

A refused proposal changes nothing, except that its selection has counted opportunities. Conditions that only another
thread could have changed are not checked again: selection and commit are one step here.
"""

from __future__ import annotations

from collections.abc import Callable

from rm.scheduler.capacity.booking import (
    book,
    complete_in_queue,
    preempted_status,
    take_request,
    unreserve,
    unreserved_status,
)
from rm.scheduler.capacity.limits import note_user_limit
from rm.scheduler.model.application import ApplicationTable, FiCaSchedulerApp
from rm.scheduler.model.context import RESPECT, SchedulerContext
from rm.scheduler.model.health import SchedulerHealth
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.refusals import Reason
from rm.scheduler.model.rm_container import FINAL, RMContainer
from rm.scheduler.model.rm_container_events import (
    RMContainerKill,
    RMContainerReleased,
    RMContainerReserved,
    RMContainerStart,
)
from rm.scheduler.placement.allocator import Proposal, UnneededReservation
from rm.scheduler.placement.container_updates import keep_temporary
from rm.scheduler.placement.origins import origin_of
from yarn.containers import Container
from yarn.nodes import NO_LABEL
from yarn.resource import Resource


def _note(health: SchedulerHealth, proposal: Proposal, now_ms: int) -> None:
    """Count the proposal, for reports."""
    queue, node_id, size = proposal.application.leaf.path, proposal.node.node_id, proposal.resource
    if proposal.is_allocation:
        health.note_allocation(queue, node_id, proposal.kind, size, now_ms)
    else:
        health.note_reservation(queue, node_id, size, now_ms)


class Commit:
    """Books proposals. `watch` is called with each accepted proposal before it is booked."""

    __slots__ = ("_applications", "_context", "watch")

    def __init__(self, context: SchedulerContext, applications: ApplicationTable) -> None:
        self._context = context
        self._applications = applications
        self.watch: Callable[[Proposal], None] | None = None

    def commit(self, proposal: Proposal) -> bool:
        """Book the proposal; False if a limit refuses it."""
        context = self._context
        context.change_count += 1
        refusal = refusal_at_commit(proposal, self._applications, context)
        if refusal is not None:
            reason, asked, bound = refusal
            refusals, node_id = proposal.application.refusals, proposal.node.node_id
            refusals.note(node_id, reason, context.now_ms, asked, bound, key=proposal.key)
            if context.repeated is not None:
                context.repeated_count += 1
            return False
        if self.watch is not None:
            self.watch(proposal)
        if proposal.is_allocation:
            self._allocate(proposal)
        elif proposal.reserved is None:
            self._reserve(proposal)
        else:
            self._reserve_again(proposal, proposal.reserved)
        if context.health is not None:
            _note(context.health, proposal, context.now_ms)
        return True

    def release(self, unneeded: UnneededReservation) -> None:
        """End a reservation whose request no longer exists."""
        self._context.note_change()
        self._unreserve(unneeded.container, unneeded.application)

    def _allocate(self, proposal: Proposal) -> None:
        application, node, reserved = proposal.application, proposal.node, proposal.reserved
        if reserved is None:
            container = self._new_container(proposal)
        else:
            # The reservation's Container is used unchanged, although the size of the request may have changed since.
            container = self._rm_container(reserved.container, proposal)
            unreserve(application, node, reserved)
        if container.key not in application.updates.increases or not keep_temporary(application, container, node):
            application.newly_allocated[container.id] = container
        application.note_news()
        container.origin = origin_of(proposal, self._context)
        application.hold(container.id, container)
        container.asks = take_request(application, proposal.kind, node, proposal.key)
        part = application.usage.booked(node.partition)
        part.used = part.used + proposal.resource
        container.handle(RMContainerStart(), self._context.now_ms)
        node.allocate_container(container)
        for killed in proposal.to_kill:
            self._kill(killed, application)
        if proposal.to_release is not None:
            self._unreserve(proposal.to_release, application)
        if reserved is None:
            self._book(proposal, container)

    def _reserve(self, proposal: Proposal) -> None:
        application, node = proposal.application, proposal.node
        container = self._new_container(proposal)
        application.leaf.change_reserved_metric(node.partition, container.resource)
        application.reserve(proposal.key, container, node.partition)
        container.origin = origin_of(proposal, self._context)
        container.handle(RMContainerReserved(), self._context.now_ms)
        node.reserved_container = container
        self._book(proposal, container)
        application.leaf.change_reserved(node.partition, proposal.resource)

    def _reserve_again(self, proposal: Proposal, container: RMContainer) -> None:
        counts = proposal.application.re_reservations
        counts[proposal.key] = counts.get(proposal.key, 0) + 1
        if self._context.repeated is not None:
            # A higher count would only allow another reservation.
            self._context.note_repeated(counts, proposal.key, below=proposal.may_hold_from)
        container.handle(RMContainerReserved(), self._context.now_ms)

    def _book(self, proposal: Proposal, container: RMContainer) -> None:
        """Charge the leaf, the user and all queues above."""
        application, node = proposal.application, proposal.node
        leaf = LeafQueue.of(application)
        leaf.active.usage_changed(application)
        leaf.users.get_or_add(application.user).refusals.clear(node.node_id)
        book(leaf, application, container, node.partition, proposal.resource, self._applications)

    def _unreserve(self, reserved: RMContainer, application: FiCaSchedulerApp) -> None:
        node = self._context.nodes[reserved.node_id]
        complete_in_queue(reserved, unreserved_status(reserved.id), RMContainerReleased, application, node)

    def _kill(self, container: RMContainer, application: FiCaSchedulerApp) -> None:
        """Kill a killable container of another leaf; as in Hadoop one of the same leaf stays and overfills the node."""
        owner = self._applications.attempt_of(container.id.application_id)
        if owner is not None and owner.leaf is not application.leaf:
            node = self._context.nodes[container.node_id]
            complete_in_queue(container, preempted_status(container.id), RMContainerKill, owner, node)

    def _new_container(self, proposal: Proposal) -> RMContainer:
        key, node = proposal.key, proposal.node
        container = Container(
            proposal.application.next_container_id(),
            node.node_id,
            node.http_address,
            proposal.resource,
            key.priority,
            allocation_request_id=key.allocation_request_id,
        )
        return self._rm_container(container, proposal)

    def _rm_container(self, container: Container, proposal: Proposal) -> RMContainer:
        application, context = proposal.application, self._context
        of_key = application.requests.at(proposal.key)
        return RMContainer(
            container,
            proposal.key,
            user=application.user,
            queue=application.leaf.remembered_as,
            partition=of_key.partition if of_key is not None else NO_LABEL,
            started_ms=context.now_ms,
            notify=context.notify,
        )


def refusal_at_commit(
    proposal: Proposal, applications: ApplicationTable, context: SchedulerContext
) -> tuple[Reason, Resource, Resource] | None:
    """Why the proposal cannot be booked, with the two amounts compared; None if it can.

    A reservation that is filled is not checked against the limits: it was checked when it was made.
    """
    if not proposal.node.is_running:
        return Reason.COMMIT_NODE_STATE, proposal.resource, proposal.node.unallocated
    if proposal.to_kill and not _frees_enough(proposal, applications, context):
        return Reason.COMMIT_NO_ROOM, proposal.resource, proposal.node.unallocated
    if proposal.reserved is not None:
        return None
    application, partition = proposal.application, proposal.node.partition
    leaf, calculator = LeafQueue.of(application), context.calculator
    released = _released(proposal)
    limit = note_user_limit(leaf, application, partition, proposal.mode, None)
    user = leaf.users.users.get(application.user)
    if user is None:
        return Reason.COMMIT_USER_LIMIT, proposal.resource, context.none
    used = user.usage.used(partition)
    if released is not None:
        used = used - released
    if calculator.greater(context.cluster_resource, used, limit):
        return Reason.COMMIT_USER_LIMIT, used, limit
    added = proposal.resource if released is None else proposal.resource - released
    queue: CSQueue | None = application.leaf
    while queue is not None:
        maximum = (
            queue.effective_maximum(partition) if proposal.mode is RESPECT else context.partition_resource(partition)
        )
        after = queue.usage.used(partition) + added
        if not calculator.fits_in(after, maximum):
            return Reason.COMMIT_QUEUE_MAXIMUM, after, maximum
        queue = queue.parent
    return None


def _frees_enough(proposal: Proposal, applications: ApplicationTable, context: SchedulerContext) -> bool:
    """True if killing `to_kill` frees enough on the node.

    False if one of the containers to kill has already ended (the node frees its resources only when its NM reports
    that), or if an application was removed and the others are not enough.
    """
    free = proposal.node.unallocated
    proposal.to_kill = [
        container for container in proposal.to_kill if applications.attempt_of(container.id.application_id) is not None
    ]
    for container in proposal.to_kill:
        if container.state in FINAL:
            return False
        free = free + container.resource
    return context.calculator.fits_in(proposal.resource, free)


def _released(proposal: Proposal) -> Resource | None:
    """The resources that are released for the proposal, in any queue, as Hadoop counts them; None if there are none."""
    if not proposal.going:
        return None
    first, *others = (container.resource for container in proposal.going)
    return sum(others, start=first)
