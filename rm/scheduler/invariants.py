"""What must hold of a scheduler after every step, as checks that know nothing of how it was reached.

The numbers are those of the project's list of invariants: room on nodes adds up (I-01 to I-03), usage adds up from
containers to users, leaves and parents (I-04 to I-06), no queue is above its maximum (I-08), nothing pending is
negative (I-14), reservations are one a node and have an owner who asks (I-18, I-19).

Hadoop itself breaks some of them, and so does this scheduler: a reservation whose ask has changed its size since is
filled with the old size on the node and the new one in the application (I-02, I-04); a user's usage is forgotten with
the entry when containers are kept (I-06); what a queue holds stays when its maximum or the cluster shrinks (I-08).
`exempt` names what a test brings about on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from rm.lifecycles.rm_container import RMContainerState
from rm.scheduler.application import FiCaSchedulerApp
from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.leaf_queue import LeafQueue
from rm.scheduler.node import SchedulerNode
from rm.scheduler.parent_queue import ParentQueue
from rm.scheduler.queue import CSQueue
from rm.scheduler.usage import NO_LABEL
from yarn.asks import ANY
from yarn.resource import Resource


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
        total = _sum(scheduler, (container.resource for container in node.containers.values()))
        if total != node.allocated:
            yield f"{node.node_id}: containers {total}, allocated {node.allocated}"


def _leaf_containers(scheduler: CapacityScheduler) -> Iterator[str]:
    for leaf in _leaves(scheduler):
        held = _sum(scheduler, (_held(attempt) for attempt in _attempts(scheduler) if attempt.leaf is leaf))
        if held != leaf.usage.used(NO_LABEL):
            yield f"{leaf.path}: containers and reservations {held}, used {leaf.usage.used(NO_LABEL)}"


def _parents(scheduler: CapacityScheduler) -> Iterator[str]:
    for queue in scheduler.queues.values():
        if not isinstance(queue, ParentQueue):
            continue
        for name, amount in _AMOUNTS.items():
            below = _sum(scheduler, (amount(child) for child in queue.children))
            if below != amount(queue):
                yield f"{queue.path}: {name} {amount(queue)}, of its children {below}"


def _users(scheduler: CapacityScheduler) -> Iterator[str]:
    for leaf in _leaves(scheduler):
        total = _sum(scheduler, (user.usage.used(NO_LABEL) for user in leaf.users.users.values()))
        if total != leaf.usage.used(NO_LABEL):
            yield f"{leaf.path}: users {total}, used {leaf.usage.used(NO_LABEL)}"


def _maximum(scheduler: CapacityScheduler) -> Iterator[str]:
    calculator = scheduler.context.calculator
    for queue in scheduler.queues.values():
        used, maximum = queue.usage.used(NO_LABEL), queue.effective_maximum(NO_LABEL)
        if not calculator.fits_in(used, maximum):
            yield f"{queue.path}: {used} used of at most {maximum}"


def _pending(scheduler: CapacityScheduler) -> Iterator[str]:
    for attempt in _attempts(scheduler):
        if attempt.is_stopped:
            continue
        asked = _sum(
            scheduler,
            (row.terms.capability * row.count for _, row in attempt.asks.rows() if row.terms.resource_name == ANY),
        )
        if asked != attempt.usage.pending(NO_LABEL):
            yield f"{attempt}: asks {asked}, pending {attempt.usage.pending(NO_LABEL)}"
    for leaf in _leaves(scheduler):
        live = [attempt for attempt in leaf.attempts.values() if not attempt.is_stopped]
        total = _sum(scheduler, (attempt.usage.pending(NO_LABEL) for attempt in live))
        if total != leaf.usage.pending(NO_LABEL):
            yield f"{leaf.path}: applications have {total} pending, the queue {leaf.usage.pending(NO_LABEL)}"


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


def _attempts(scheduler: CapacityScheduler) -> Iterator[FiCaSchedulerApp]:
    for application in scheduler.applications.values():
        if application.current_attempt is not None:
            yield application.current_attempt


def _leaves(scheduler: CapacityScheduler) -> Iterator[LeafQueue]:
    return (queue for queue in scheduler.queues.values() if isinstance(queue, LeafQueue))


def _held(attempt: FiCaSchedulerApp) -> Resource:
    return attempt.usage.used(NO_LABEL) + attempt.usage.reserved(NO_LABEL)


def _sum(scheduler: CapacityScheduler, amounts: Iterator[Resource]) -> Resource:
    return sum(amounts, start=scheduler.context.none)


_AMOUNTS: dict[str, Callable[[CSQueue], Resource]] = {
    "used": lambda queue: queue.usage.used(NO_LABEL),
    "reserved": lambda queue: queue.usage.reserved(NO_LABEL),
    "pending": lambda queue: queue.usage.pending(NO_LABEL),
}

_CHECKS: dict[str, Callable[[CapacityScheduler], Iterator[str]]] = {
    "I-01": _node_room,
    "I-02": _no_over_commit,
    "I-03": _node_containers,
    "I-04": _leaf_containers,
    "I-05": _parents,
    "I-06": _users,
    "I-08": _maximum,
    "I-14": _pending,
    "I-18": _reservations,
    "I-19": _reservation_owners,
}
