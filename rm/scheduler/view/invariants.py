"""The scheduler's invariants, checked from its state alone after every step.

The numbers are those of docs/design/invariants.md: the resources of nodes add up (I-01 to I-03), usage adds up from
containers to users, leaves and parents (I-04 to I-06), no queue is above its maximum (I-08), usage by AMs (I-10) and
counts (I-11) add up, nothing pending is negative (I-14), a container is in one place (I-15), a node has at most one
reservation, which has an owner (I-18, I-19), containers held are alive (I-28), what an application keeps is bounded
(I-64). What must hold when an allocation is committed is in rm.scheduler.view.event_invariants.

Hadoop itself violates some of them, and so does this scheduler: see `BROKEN_BY_HADOOP`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Protocol

from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.rm_container import RMContainerState
from rm.scheduler.model.usage import ResourceUsage
from rm.scheduler.request_checks import BLACKLIST_MAX, REMEMBERED_RELEASES_MAX, REQUESTS_MAX
from yarn.containers import ANY
from yarn.ids import ContainerId
from yarn.resource import Resource

BROKEN_BY_HADOOP = {
    "I-02": "a node is resized below what it has allocated, a reservation is fulfilled after its request changed size, "
    "or a killable container has not completed when its resources were given to another",
    "I-04": "a reservation is fulfilled after its request changed size (the node has the old size, the queue the new), "
    "or a node changes its label while it runs a container that its application has released: that is moved too",
    "I-05": "a moved application leaves its reserved amounts with the queues it came from",
    "I-06": "a user's entry is dropped while containers of the user are still running, and with it their usage",
    "I-08": "the cluster, a partition or the maximum of a queue shrinks below what is used",
    "I-10": "an application held back by max-parallel-apps gets another priority (it is activated then, and once more "
    "when it may run), or the node of an AM changes its label when the AM has completed or is not yet active",
    "I-11": "decreasing a container's size lowers the queues' container count by one for good",
    "I-14 (miscounted)": "an AM requests a negative number of containers, which stay subtracted from what is pending, "
    "or more vcores than 32 bits hold, which are truncated",
}
"""{invariant: the decision of Hadoop's that violates it}. All other invariants always hold."""


class _HasUsage(Protocol):
    usage: ResourceUsage


def violations(scheduler: CapacityScheduler, exempt: Collection[str] = ()) -> list[str]:
    """A message for each violation, with the invariant's number and the amounts. `exempt`: numbers not to check."""
    return [
        f"{number}: {text}" for number, check in _CHECKS.items() if number not in exempt for text in check(scheduler)
    ]


def _node_room(scheduler: CapacityScheduler) -> Iterator[str]:
    for node in scheduler.nodes.values():
        if node.allocated + node.unallocated != node.total:
            yield f"{node.node_id}: allocated {node.allocated} + free {node.unallocated} != total {node.total}"


def _no_over_commit(scheduler: CapacityScheduler) -> Iterator[str]:
    calculator = scheduler.context.calculator
    for node in scheduler.nodes.values():
        if not calculator.fits_in(node.allocated, node.total):
            yield f"{node.node_id}: allocated {node.allocated} exceeds the total {node.total}"


def _node_containers(scheduler: CapacityScheduler) -> Iterator[str]:
    for node in scheduler.nodes.values():
        total = _sum(
            scheduler, (container.resource for container in node.containers.values() if not container.is_opportunistic)
        )
        if total != node.allocated:
            yield f"{node.node_id}: its containers add up to {total}, but {node.allocated} is allocated"


def _leaf_containers(scheduler: CapacityScheduler) -> Iterator[str]:
    for leaf in _leaves(scheduler):
        attempts = [attempt for attempt in _attempts(scheduler) if attempt.leaf is leaf]
        for partition in _partitions(leaf, *attempts):
            held = _sum(scheduler, (_held(attempt, partition) for attempt in attempts))
            if held != leaf.usage.used(partition):
                yield f"{_on(leaf, partition)}: its applications have {held}, the queue {leaf.usage.used(partition)}"


def _parents(scheduler: CapacityScheduler) -> Iterator[str]:
    for queue in scheduler.queues.values():
        if not isinstance(queue, ParentQueue):
            continue
        for partition in _partitions(queue, *queue.children):
            for name, amount in _AMOUNTS.items():
                below = _sum(scheduler, (amount(child.usage, partition) for child in queue.children))
                if below != amount(queue.usage, partition):
                    own = amount(queue.usage, partition)
                    yield f"{_on(queue, partition)}: {name} is {own}, but {below} for its children together"


def _users(scheduler: CapacityScheduler) -> Iterator[str]:
    for leaf in _leaves(scheduler):
        users = leaf.users.users.values()
        for partition in _partitions(leaf, *users):
            total = _sum(scheduler, (user.usage.used(partition) for user in users))
            if total != leaf.usage.used(partition):
                yield f"{_on(leaf, partition)}: its users use {total}, the queue {leaf.usage.used(partition)}"


def _maximum(scheduler: CapacityScheduler) -> Iterator[str]:
    """I-08: no queue is above its maximum.

    Not checked on a non-exclusive partition on which containers without a label run: these count against no maximum.
    """
    calculator = scheduler.context.calculator
    borrowed = {
        (queue, partition) for leaf in _leaves(scheduler) for partition in leaf.borrowed for queue in _up_from(leaf)
    }
    for queue in scheduler.queues.values():
        for partition in queue.usage.partitions():
            used, maximum = queue.usage.used(partition), queue.effective_maximum(partition)
            if (queue, partition) not in borrowed and not calculator.fits_in(used, maximum):
                yield f"{_on(queue, partition)}: used {used} exceeds the maximum {maximum}"


def _am_usage(scheduler: CapacityScheduler) -> Iterator[str]:
    for leaf in _leaves(scheduler):
        for partition in leaf.usage.partitions():
            there = [app for app in leaf.active if app.am_partition == partition]
            am_used = _sum(scheduler, (app.am_used(partition) for app in there))
            if am_used != leaf.usage.am_used(partition):
                yield f"{leaf.path}: active AMs use {am_used}, the queue counts {leaf.usage.am_used(partition)}"


def _counts(scheduler: CapacityScheduler) -> Iterator[str]:
    for leaf in _leaves(scheduler):
        attempts = [attempt for attempt in _attempts(scheduler) if attempt.leaf is leaf]
        live = [container for attempt in attempts for container in attempt.live_containers.values()]
        guaranteed = sum(not container.is_opportunistic for container in live)
        held = guaranteed + sum(len(attempt.reserved_containers) for attempt in attempts)
        if held != leaf.container_count:
            yield f"{leaf.path}: {held} containers and reservations, but the queue counts {leaf.container_count}"
    for queue in scheduler.queues.values():
        if not isinstance(queue, ParentQueue):
            continue
        below = sum(child.container_count for child in queue.children)
        if below != queue.container_count:
            yield f"{queue.path}: counts {queue.container_count} containers, but {below} for its children together"
        applications = sum(queue in _up_from(app.leaf) for app in scheduler.applications.values())
        if applications != queue.application_count:
            yield f"{queue.path}: {applications} applications, but the queue counts {queue.application_count}"


def _pending(scheduler: CapacityScheduler) -> Iterator[str]:
    return iter(()) if scheduler.context.pending_miscounted else _differences_of_pending(scheduler)


def _miscounted_pending(scheduler: CapacityScheduler) -> Iterator[str]:
    return _differences_of_pending(scheduler) if scheduler.context.pending_miscounted else iter(())


def _differences_of_pending(scheduler: CapacityScheduler) -> Iterator[str]:
    for attempt in _attempts(scheduler):
        if attempt.is_stopped:
            continue
        rows = [row for _, row in attempt.requests.rows() if row.terms.resource_name == ANY]
        for partition in attempt.usage.partitions():
            there = [row for row in rows if row.terms.partition == partition]
            asked = _sum(scheduler, (row.terms.capability * row.count for row in there))
            if asked != attempt.usage.pending(partition):
                pending = attempt.usage.pending(partition)
                yield f"{_on(attempt, partition)}: requests add up to {asked}, pending is {pending}"
        for key, row in attempt.requests.rows():
            if row.count < 0:
                yield f"{attempt}: {row.count} containers requested at {row.terms.resource_name} with {key}"
    for leaf in _leaves(scheduler):
        live = [attempt for attempt in leaf.attempts.values() if not attempt.is_stopped]
        for partition in _partitions(leaf, *live):
            total = _sum(scheduler, (attempt.usage.pending(partition) for attempt in live))
            if total != leaf.usage.pending(partition):
                queued = leaf.usage.pending(partition)
                yield f"{_on(leaf, partition)}: applications have {total} pending, the queue has {queued}"


def _bounds(scheduler: CapacityScheduler) -> Iterator[str]:
    """I-64: what one application keeps is within its limits, and its number of requests is counted correctly."""
    for attempt in _attempts(scheduler):
        rows = sum(1 for _ in attempt.requests.rows())
        if rows != attempt.requests.row_count or rows > REQUESTS_MAX:
            yield f"{attempt}: {rows} requests, counted as {attempt.requests.row_count}; the limit is {REQUESTS_MAX}"
        if len(attempt.blacklist) > BLACKLIST_MAX:
            yield f"{attempt}: {len(attempt.blacklist)} names on its blacklist; the limit is {BLACKLIST_MAX}"
        if len(attempt.pending_release) > REMEMBERED_RELEASES_MAX:
            kept = len(attempt.pending_release)
            yield f"{attempt}: {kept} remembered releases; the limit is {REMEMBERED_RELEASES_MAX}"


def _reservations(scheduler: CapacityScheduler) -> Iterator[str]:
    reserved = {
        container.id: container for attempt in _attempts(scheduler) for container in attempt.reserved_containers
    }
    for node in scheduler.nodes.values():
        if node.reserved_container is not None:
            yield from _reservation(node, reserved.pop(node.reserved_container.id, None) is not None)
    for container in reserved.values():
        yield f"{container}: its application has it reserved, but {container.node_id} does not"


def _reservation(node: SchedulerNode, owned: bool) -> Iterator[str]:
    container = node.reserved_container
    assert container is not None
    if not owned:
        yield f"{container}: reserved on {node.node_id}, but by no application"
    if container.state is not RMContainerState.RESERVED:
        yield f"{container}: reserved on {node.node_id}, but in state {container.state.name}"
    if container.node_id != node.node_id:
        yield f"{container}: reserved on {node.node_id}, but names the node {container.node_id}"


def _reservation_owners(scheduler: CapacityScheduler) -> Iterator[str]:
    """I-19: every reservation has an owner.

    A cancelled request keeps its reservation until the node's next heartbeat, which is not a violation.
    """
    for node in scheduler.nodes.values():
        container = node.reserved_container
        if container is None:
            continue
        application = scheduler.applications.get(container.id.application_id)
        attempt = application.current_attempt if application is not None else None
        if attempt is None or attempt.is_stopped:
            yield f"{container}: reserved for an attempt that has ended"
        if not scheduler.context.calculator.fits_in(container.resource, node.total):
            yield f"{container}: {container.resource} is reserved on a node with only {node.total}"


def _places(scheduler: CapacityScheduler) -> Iterator[str]:
    """I-15: a container is in one place.

    A completed container is on its node until the NM has reported its end, and nowhere else.
    """
    seen: dict[ContainerId, SchedulerNode] = {}
    for node in scheduler.nodes.values():
        for container_id in node.containers:
            if container_id in seen:
                yield f"{container_id}: both on {seen[container_id].node_id} and on {node.node_id}"
            seen[container_id] = node
    owners: dict[ContainerId, FiCaSchedulerApp] = {}
    for attempt in _attempts(scheduler):
        for held_as, container in attempt.live_containers.items():
            if held_as != container.id:
                continue  # A container that is being decreased is held twice: see container_updates._decrease.
            if container.id in owners:
                yield f"{container.id}: belongs to both {owners[container.id]} and {attempt}"
            owners[container.id] = attempt
            if container.id not in seen or seen[container.id].node_id != container.node_id:
                yield f"{container.id}: belongs to {attempt}, but is not on {container.node_id}"


def _states(scheduler: CapacityScheduler) -> Iterator[str]:
    for attempt in _attempts(scheduler):
        for container in attempt.live_containers.values():
            if container.state not in _ALIVE:
                yield f"{container.id}: live in {attempt}, but in state {container.state.name}"
        for container in attempt.reserved_containers:
            if container.state is not RMContainerState.RESERVED:
                yield f"{container.id}: reserved for {attempt}, but in state {container.state.name}"


def _up_from(leaf: CSQueue) -> Iterator[CSQueue]:
    queue: CSQueue | None = leaf
    while queue is not None:
        yield queue
        queue = queue.parent


def _partitions(*holders: _HasUsage) -> list[str]:
    """All partitions on which any of these usages ever had a booking."""
    return list(dict.fromkeys(partition for holder in holders for partition in holder.usage.partitions()))


def _on(holder: object, partition: str) -> str:
    return f"{holder} on {partition}" if partition else str(holder)


def _attempts(scheduler: CapacityScheduler) -> Iterator[FiCaSchedulerApp]:
    for application in scheduler.applications.values():
        if application.current_attempt is not None:
            yield application.current_attempt


def _leaves(scheduler: CapacityScheduler) -> Iterator[LeafQueue]:
    return (queue for queue in scheduler.queues.values() if isinstance(queue, LeafQueue))


def _held(attempt: FiCaSchedulerApp, partition: str) -> Resource:
    return attempt.usage.used(partition) + attempt.usage.reserved(partition)


def _sum(scheduler: CapacityScheduler, amounts: Iterator[Resource]) -> Resource:
    return sum(amounts, start=scheduler.context.none)


_AMOUNTS: dict[str, Callable[[ResourceUsage, str], Resource]] = {
    "used": ResourceUsage.used,
    "reserved": ResourceUsage.reserved,
    "pending": ResourceUsage.pending,
}

_ALIVE = frozenset({RMContainerState.ALLOCATED, RMContainerState.ACQUIRED, RMContainerState.RUNNING})

_CHECKS: dict[str, Callable[[CapacityScheduler], Iterator[str]]] = {
    "I-01": _node_room,
    "I-02": _no_over_commit,
    "I-03": _node_containers,
    "I-04": _leaf_containers,
    "I-05": _parents,
    "I-06": _users,
    "I-08": _maximum,
    "I-10": _am_usage,
    "I-11": _counts,
    "I-14": _pending,
    "I-14 (miscounted)": _miscounted_pending,
    "I-15": _places,
    "I-18": _reservations,
    "I-19": _reservation_owners,
    "I-28": _states,
    "I-64": _bounds,
}
