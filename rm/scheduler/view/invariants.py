"""What must hold of a scheduler after every step, as checks that know nothing of how it was reached.

The numbers are those of the project's list of invariants: room on nodes adds up (I-01 to I-03), usage adds up from
containers to users, leaves and parents (I-04 to I-06), no queue is above its maximum (I-08), what masters use adds up
(I-10) and so do counts (I-11), nothing pending is negative (I-14), a container is in one place (I-15), reservations are
one a node and have an owner who asks (I-18, I-19), what is held is alive (I-28), what an application keeps is bounded
(I-64). What must hold at the moment of a
booking, and of what is told, is in rm.scheduler.placement.commit_watch.

Hadoop itself breaks some of them, and so does this scheduler: see `BROKEN_BY_HADOOP`. `exempt` names what a test brings
about on purpose.
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
from yarn.asks import ANY
from yarn.ids import ContainerId
from yarn.resource import Resource

BROKEN_BY_HADOOP = {
    "I-02": "a node is made smaller than what it holds, a reservation is filled whose ask has changed its size, "
    "or what was killable has not ended yet where its room was given away",
    "I-04": "a reservation is filled whose ask has changed its size (the old on the node, the new in the queue), or "
    "a node changes its label on which something runs that its application has given back: that counts over too",
    "I-05": "a move leaves the amounts reserved by the application with the queues that it left",
    "I-06": "a user's entry is dropped while containers live on, and forgets what they use",
    "I-08": "the cluster, a partition or the maximum of a queue shrinks below what is held",
    "I-10": "a parked application gets another priority, and is activated now and once more when it is parked no more; "
    "or the node of a master changes its label when that is over or its application waits for activation",
    "I-11": "a container that shrinks takes one off the queues' count of containers for good",
    "I-14 (miscounted)": "an AM asks for a negative number of containers, which stay subtracted from what is pending, "
    "or for more vcores than 32 bits hold, which are cut",
}
"""Those that its decisions do not keep, and what breaks them; everything else holds always."""


class _HasUsage(Protocol):
    usage: ResourceUsage


def violations(scheduler: CapacityScheduler, exempt: Collection[str] = ()) -> list[str]:
    """Every invariant that does not hold, with its number and the amounts; empty if all is well."""
    return [
        f"{number}: {text}" for number, check in _CHECKS.items() if number not in exempt for text in check(scheduler)
    ]


def _node_room(scheduler: CapacityScheduler) -> Iterator[str]:
    for node in scheduler.nodes.values():
        if node.allocated + node.unallocated != node.total:
            yield f"{node.node_id}: {node.allocated} + {node.unallocated} != {node.total}"


def _no_over_commit(scheduler: CapacityScheduler) -> Iterator[str]:
    calculator = scheduler.context.calculator
    for node in scheduler.nodes.values():
        if not calculator.fits_in(node.allocated, node.total):
            yield f"{node.node_id}: {node.allocated} allocated of {node.total}"


def _node_containers(scheduler: CapacityScheduler) -> Iterator[str]:
    for node in scheduler.nodes.values():
        total = _sum(
            scheduler, (container.resource for container in node.containers.values() if not container.is_opportunistic)
        )
        if total != node.allocated:
            yield f"{node.node_id}: containers {total}, allocated {node.allocated}"


def _leaf_containers(scheduler: CapacityScheduler) -> Iterator[str]:
    for leaf in _leaves(scheduler):
        attempts = [attempt for attempt in _attempts(scheduler) if attempt.leaf is leaf]
        for partition in _partitions(leaf, *attempts):
            held = _sum(scheduler, (_held(attempt, partition) for attempt in attempts))
            if held != leaf.usage.used(partition):
                yield f"{_on(leaf, partition)}: held and reserved {held}, used {leaf.usage.used(partition)}"


def _parents(scheduler: CapacityScheduler) -> Iterator[str]:
    for queue in scheduler.queues.values():
        if not isinstance(queue, ParentQueue):
            continue
        for partition in _partitions(queue, *queue.children):
            for name, amount in _AMOUNTS.items():
                below = _sum(scheduler, (amount(child.usage, partition) for child in queue.children))
                if below != amount(queue.usage, partition):
                    own = amount(queue.usage, partition)
                    yield f"{_on(queue, partition)}: {name} {own}, of its children {below}"


def _users(scheduler: CapacityScheduler) -> Iterator[str]:
    for leaf in _leaves(scheduler):
        users = leaf.users.users.values()
        for partition in _partitions(leaf, *users):
            total = _sum(scheduler, (user.usage.used(partition) for user in users))
            if total != leaf.usage.used(partition):
                yield f"{_on(leaf, partition)}: users {total}, used {leaf.usage.used(partition)}"


def _maximum(scheduler: CapacityScheduler) -> Iterator[str]:
    """What is lent of a partition counts against no maximum; where anything is, nothing is said."""
    calculator = scheduler.context.calculator
    lent = {
        (queue, partition) for leaf in _leaves(scheduler) for partition in leaf.borrowed for queue in _up_from(leaf)
    }
    for queue in scheduler.queues.values():
        for partition in queue.usage.partitions():
            used, maximum = queue.usage.used(partition), queue.effective_maximum(partition)
            if (queue, partition) not in lent and not calculator.fits_in(used, maximum):
                yield f"{_on(queue, partition)}: {used} used of at most {maximum}"


def _masters(scheduler: CapacityScheduler) -> Iterator[str]:
    for leaf in _leaves(scheduler):
        for partition in leaf.usage.partitions():
            there = [app for app in leaf.active if app.am_partition == partition]
            masters = _sum(scheduler, (app.am_used(partition) for app in there))
            if masters != leaf.usage.am_used(partition):
                yield f"{leaf.path}: active masters {masters}, counted {leaf.usage.am_used(partition)}"


def _counts(scheduler: CapacityScheduler) -> Iterator[str]:
    for leaf in _leaves(scheduler):
        attempts = [attempt for attempt in _attempts(scheduler) if attempt.leaf is leaf]
        live = [container for attempt in attempts for container in attempt.live_containers.values()]
        guaranteed = sum(not container.is_opportunistic for container in live)
        held = guaranteed + sum(len(attempt.reserved_containers) for attempt in attempts)
        if held != leaf.container_count:
            yield f"{leaf.path}: {held} containers and reservations, counted {leaf.container_count}"
    for queue in scheduler.queues.values():
        if not isinstance(queue, ParentQueue):
            continue
        below = sum(child.container_count for child in queue.children)
        if below != queue.container_count:
            yield f"{queue.path}: {queue.container_count} containers, of its children {below}"
        applications = sum(queue in _up_from(app.leaf) for app in scheduler.applications.values())
        if applications != queue.application_count:
            yield f"{queue.path}: {applications} applications, counted {queue.application_count}"


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
                yield f"{_on(attempt, partition)}: asks {asked}, pending {attempt.usage.pending(partition)}"
        for key, row in attempt.requests.rows():
            if row.count < 0:
                yield f"{attempt}: {row.count} asked for at {row.terms.resource_name} of {key}"
    for leaf in _leaves(scheduler):
        live = [attempt for attempt in leaf.attempts.values() if not attempt.is_stopped]
        for partition in _partitions(leaf, *live):
            total = _sum(scheduler, (attempt.usage.pending(partition) for attempt in live))
            if total != leaf.usage.pending(partition):
                queued = leaf.usage.pending(partition)
                yield f"{_on(leaf, partition)}: applications have {total} pending, the queue {queued}"


def _bounds(scheduler: CapacityScheduler) -> Iterator[str]:
    """What one application keeps is within its limits, and counted right, for the limits go by the count."""
    for attempt in _attempts(scheduler):
        rows = sum(1 for _ in attempt.requests.rows())
        if rows != attempt.requests.row_count or rows > REQUESTS_MAX:
            yield f"{attempt}: {rows} requests, counted {attempt.requests.row_count}, at most {REQUESTS_MAX}"
        if len(attempt.blacklist) > BLACKLIST_MAX:
            yield f"{attempt}: {len(attempt.blacklist)} names on its blacklist, at most {BLACKLIST_MAX}"
        if len(attempt.pending_release) > REMEMBERED_RELEASES_MAX:
            kept = len(attempt.pending_release)
            yield f"{attempt}: {kept} remembered releases, at most {REMEMBERED_RELEASES_MAX}"


def _reservations(scheduler: CapacityScheduler) -> Iterator[str]:
    reserved = {
        container.id: container for attempt in _attempts(scheduler) for container in attempt.reserved_containers
    }
    for node in scheduler.nodes.values():
        if node.reserved_container is not None:
            yield from _reservation(node, reserved.pop(node.reserved_container.id, None) is not None)
    for container in reserved.values():
        yield f"{container}: reserved, but not on {container.node_id}"


def _reservation(node: SchedulerNode, owned: bool) -> Iterator[str]:
    container = node.reserved_container
    assert container is not None
    if not owned:
        yield f"{container}: reserved on {node.node_id} for nobody"
    if container.state is not RMContainerState.RESERVED:
        yield f"{container}: reserved on {node.node_id} and {container.state.name}"
    if container.node_id != node.node_id:
        yield f"{container}: of {container.node_id}, reserved on {node.node_id}"


def _reservation_owners(scheduler: CapacityScheduler) -> Iterator[str]:
    """An ask that was withdrawn leaves its reservation until the node's next heartbeat: that is no violation."""
    for node in scheduler.nodes.values():
        container = node.reserved_container
        if container is None:
            continue
        application = scheduler.applications.get(container.id.application_id)
        attempt = application.current_attempt if application is not None else None
        if attempt is None or attempt.is_stopped:
            yield f"{container}: reserved for an attempt that is over"
        if not scheduler.context.calculator.fits_in(container.resource, node.total):
            yield f"{container}: {container.resource} reserved on a node of {node.total}"


def _places(scheduler: CapacityScheduler) -> Iterator[str]:
    """A container that is over stays on its node until the NM has told so, and nowhere else."""
    seen: dict[ContainerId, SchedulerNode] = {}
    for node in scheduler.nodes.values():
        for container_id in node.containers:
            if container_id in seen:
                yield f"{container_id}: on {seen[container_id].node_id} and on {node.node_id}"
            seen[container_id] = node
    owners: dict[ContainerId, FiCaSchedulerApp] = {}
    for attempt in _attempts(scheduler):
        for held_as, container in attempt.live_containers.items():
            if held_as != container.id:
                continue  # It is about to shrink, and held twice until then: see ContainerUpdates.decrease.
            if container.id in owners:
                yield f"{container.id}: of {owners[container.id]} and of {attempt}"
            owners[container.id] = attempt
            if container.id not in seen or seen[container.id].node_id != container.node_id:
                yield f"{container.id}: held by {attempt}, but not on {container.node_id}"


def _states(scheduler: CapacityScheduler) -> Iterator[str]:
    for attempt in _attempts(scheduler):
        for container in attempt.live_containers.values():
            if container.state not in _ALIVE:
                yield f"{container.id}: held by {attempt} and {container.state.name}"
        for container in attempt.reserved_containers:
            if container.state is not RMContainerState.RESERVED:
                yield f"{container.id}: reserved for {attempt} and {container.state.name}"


def _up_from(leaf: CSQueue) -> Iterator[CSQueue]:
    queue: CSQueue | None = leaf
    while queue is not None:
        yield queue
        queue = queue.parent


def _partitions(*holders: _HasUsage) -> list[str]:
    """All that any of them ever booked anything on."""
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
    "I-10": _masters,
    "I-11": _counts,
    "I-14": _pending,
    "I-14 (miscounted)": _miscounted_pending,
    "I-15": _places,
    "I-18": _reservations,
    "I-19": _reservation_owners,
    "I-28": _states,
    "I-64": _bounds,
}
