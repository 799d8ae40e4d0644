"""Booking a proposal: checked once more against the limits on the way up, then applied whole (tryCommit).

A proposal that is refused leaves no trace but the chances that its selection counted. What could have changed only
in another thread is not checked again: selection and commit are one step here. The two checks that can fail are the
user's limit, computed anew, and the maximum of each queue above with the container counted in.
"""

from __future__ import annotations

from rm.scheduler.completion import complete_in_queue, preempted_status, unreserve, unreserved_status
from rm.scheduler.context import RESPECT, SchedulerContext
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.assignment import Excess, Proposal
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.rm_container import (
    FINAL,
    RMContainer,
    RMContainerKill,
    RMContainerReleased,
    RMContainerReserved,
    RMContainerStart,
)
from rm.scheduler.model.usage import NO_LABEL
from rm.scheduler.view.reasons import Reason
from yarn.containers import Container
from yarn.resource import Resource


def commit(proposal: Proposal, context: SchedulerContext) -> bool:
    """Book the proposal; False if a limit refuses it."""
    context.revision += 1
    refusal = _refusal(proposal, context)
    if refusal is not None:
        reason, asked, bound = refusal
        proposal.application.refusals.note(
            proposal.node.node_id, reason, context.now_ms, asked, bound, key=proposal.key
        )
        return False
    if context.watch is not None:
        context.watch(proposal)
    if proposal.is_allocation:
        _allocate(proposal, context)
    elif proposal.reserved is None:
        _reserve(proposal, context)
    else:
        _reserve_again(proposal, proposal.reserved, context)
    return True


def commit_excess(excess: Excess, context: SchedulerContext) -> None:
    """Release a reservation that nobody asks for any more."""
    context.revision += 1
    _give_up(excess.container, excess.application, context)


# Accept


def _refusal(proposal: Proposal, context: SchedulerContext) -> tuple[Reason, Resource, Resource] | None:
    """Why it cannot be booked. Limits are checked for what is new only: a reservation was charged when it was made."""
    if not proposal.node.is_running:
        return Reason.COMMIT_NODE_STATE, proposal.resource, proposal.node.unallocated
    if proposal.to_kill and not _can_make_room(proposal, context):
        return Reason.COMMIT_NO_ROOM, proposal.resource, proposal.node.unallocated
    if proposal.reserved is not None:
        return None
    application, partition = proposal.application, proposal.node.partition
    leaf, calculator = application.leaf, context.calculator
    released = _released(proposal)
    limit = leaf.note_user_limit(application, partition, proposal.mode, None)
    user = leaf.users.users.get(application.user)
    if user is None:
        return Reason.COMMIT_USER_LIMIT, proposal.resource, context.none
    used = user.usage.used(partition)
    if released is not None:
        used = used - released
    if calculator.greater(context.cluster_resource, used, limit):
        return Reason.COMMIT_USER_LIMIT, used, limit
    added = proposal.resource if released is None else proposal.resource - released
    queue: CSQueue | None = leaf
    while queue is not None:
        maximum = (
            queue.effective_maximum(partition) if proposal.mode is RESPECT else context.partition_resource(partition)
        )
        after = queue.usage.used(partition) + added
        if not calculator.fits_in(after, maximum):
            return Reason.COMMIT_QUEUE_MAXIMUM, after, maximum
        queue = queue.parent
    return None


def _can_make_room(proposal: Proposal, context: SchedulerContext) -> bool:
    """False if one to be killed is over already (its room is free once its NM says so), or if its application is gone
    and without its room the rest does not suffice."""
    room, killables = proposal.node.unallocated, context.killables
    proposal.to_kill = [container for container in proposal.to_kill if killables.attempt_of(container) is not None]
    for container in proposal.to_kill:
        if container.state in FINAL:
            return False
        room = room + container.resource
    return context.calculator.fits_in(proposal.resource, room)


def _released(proposal: Proposal) -> Resource | None:
    """What goes for it, of whichever queue, as Hadoop counts it; None for nothing."""
    if not proposal.going:
        return None
    first, *others = (container.resource for container in proposal.going)
    return sum(others, start=first)


# Apply


def _allocate(proposal: Proposal, context: SchedulerContext) -> None:
    application, node, reserved = proposal.application, proposal.node, proposal.reserved
    if reserved is None:
        container = _new_container(proposal, context)
    else:
        # The reservation's Container is used as it is, though the ask may have changed its size since.
        container = _rm_container(reserved.container, proposal, context)
        unreserve(application, node, reserved)
    if not application.updates.take(container, node):
        application.newly_allocated[container.id] = container
    application.hold(container.id, container)
    container.asks = application.asks.allocate(proposal.kind, node.name, node.rack, proposal.key)
    part = application.usage.booked(node.partition)
    part.used = part.used + proposal.resource
    container.handle(RMContainerStart(), context.now_ms)
    node.allocate_container(container)
    for killed in proposal.to_kill:
        _kill(killed, application, context)
    if proposal.to_release is not None:
        _give_up(proposal.to_release, application, context)
    if reserved is None:
        _book(proposal, container)


def _reserve(proposal: Proposal, context: SchedulerContext) -> None:
    application, node = proposal.application, proposal.node
    container = _new_container(proposal, context)
    application.leaf.change_reserved_metric(node.partition, container.resource)
    application.reserve(proposal.key, container, node.partition)
    container.handle(RMContainerReserved(), context.now_ms)
    node.reserved_container = container
    _book(proposal, container)
    application.leaf.change_reserved(node.partition, proposal.resource)


def _reserve_again(proposal: Proposal, container: RMContainer, context: SchedulerContext) -> None:
    counts = proposal.application.re_reservations
    counts[proposal.key] = counts.get(proposal.key, 0) + 1
    container.handle(RMContainerReserved(), context.now_ms)


def _book(proposal: Proposal, container: RMContainer) -> None:
    """Charge the leaf, the user and all queues above."""
    application, partition = proposal.application, proposal.node.partition
    application.leaf.allocate(application, partition, proposal.resource, container)
    application.leaf.active.usage_changed(application)
    application.leaf.users.get_or_add(application.user).refusals.clear(proposal.node.node_id)
    queue: CSQueue | None = application.leaf.parent
    while queue is not None:
        queue.book_container(partition, proposal.resource)
        queue = queue.parent


def _give_up(reserved: RMContainer, application: FiCaSchedulerApp, context: SchedulerContext) -> None:
    node = context.nodes[reserved.node_id]
    complete_in_queue(reserved, unreserved_status(reserved.id), RMContainerReleased, application, node)


def _kill(container: RMContainer, application: FiCaSchedulerApp, context: SchedulerContext) -> None:
    """End a killable container of another leaf; one of the same leaf stays, as in Hadoop, on a node too full."""
    owner = context.killables.attempt_of(container)
    if owner is not None and owner.leaf is not application.leaf:
        node = context.nodes[container.node_id]
        complete_in_queue(container, preempted_status(container.id), RMContainerKill, owner, node)


def _new_container(proposal: Proposal, context: SchedulerContext) -> RMContainer:
    key, node = proposal.key, proposal.node
    container = Container(
        proposal.application.next_container_id(),
        node.node_id,
        node.http_address,
        proposal.resource,
        key.priority,
        allocation_request_id=key.allocation_request_id,
    )
    return _rm_container(container, proposal, context)


def _rm_container(container: Container, proposal: Proposal, context: SchedulerContext) -> RMContainer:
    application = proposal.application
    keyed = application.asks.at(proposal.key)
    return RMContainer(
        container,
        proposal.key,
        user=application.user,
        queue=application.leaf.remembered_as,
        partition=keyed.partition if keyed is not None else NO_LABEL,
        started_ms=context.now_ms,
        notify=context.notify,
    )
