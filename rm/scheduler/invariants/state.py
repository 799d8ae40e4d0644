"""The scheduler's invariants, checked from its state alone after every step.

The numbers are those of docs/design/invariants.md: the resources of nodes add up (I-01 to I-03), usage adds up from
containers to users, leaves and parents (I-04 to I-06), no queue is above its maximum (I-08), usage by AMs (I-10) and
counts (I-11) add up, nothing pending is negative (I-14), a container is in one place (I-15), a node has at most one
reservation, which has an owner (I-18, I-19), containers held are alive (I-28), what an application keeps is bounded
(I-64). What must hold when an allocation is committed is in rm.scheduler.invariants.decisions.

Hadoop itself violates some of them, and so does this scheduler: see `BROKEN_BY_HADOOP`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from itertools import chain
from typing import TypeAlias

from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.events.request_checks import BLACKLIST_MAX, REMEMBERED_RELEASES_MAX, REQUESTS_MAX
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.requests import RequestRow, SchedulerKey
from rm.scheduler.model.rm_container import RMContainerState
from rm.scheduler.model.usage import ResourceUsage
from yarn.containers import ANY
from yarn.ids import ContainerId
from yarn.resource import Resource

BROKEN_BY_HADOOP = {
    "I-02": "a node is resized below what it has allocated, a reservation is fulfilled after its request changed size, "
    "or a killable container has not completed when its resources were given to another",
    "I-04": "a reservation is fulfilled after its request changed size (the node has the old size, the queue the new), "
    "or a node changes its label while it runs a container that its application has released: that is moved too, or a "
    "killable container is killed while its application moves: the source subtracts it, though the target has it",
    "I-05": "a moved application leaves its reserved amounts with the queues it came from",
    "I-06": "a user's entry is dropped while containers of the user are still running, or while its usage is below "
    "zero (a killable container is killed while its application moves), and with it that usage",
    "I-08": "the cluster, a partition or the maximum of a queue shrinks below what is used",
    "I-10": "an application held back by max-parallel-apps gets another priority (it is activated then, and once more "
    "when it may run), or the node of an AM changes its label when the AM has completed or is not yet active",
    "I-11 (miscounted)": "decreasing a container's size lowers the queues' container count by one for good, or "
    "a killable container is killed while its application moves",
    "I-14 (miscounted)": "an AM requests a negative number of containers, which stay subtracted from what is pending, "
    "or more vcores than 32 bits hold, which are truncated",
}
"""{invariant: the decision of Hadoop's that violates it}. All other invariants always hold."""


_Row: TypeAlias = tuple[SchedulerKey, RequestRow]


class _State:
    """The objects of a scheduler, collected once for all checks of a step.

    `requests`: the rows of each attempt. `attempts_of`: the attempts of each leaf. `partitions`: all partitions on
    which a queue, a user or an attempt ever had a booking.
    """

    __slots__ = (
        "attempts",
        "attempts_of",
        "context",
        "leaves",
        "nodes",
        "none",
        "parents",
        "partitions",
        "requests",
        "scheduler",
    )

    def __init__(self, scheduler: CapacityScheduler) -> None:
        self.scheduler = scheduler
        self.context = scheduler.context
        self.none = scheduler.context.none
        self.nodes = list(scheduler.nodes.values())
        queues = list(scheduler.queues.values())
        self.leaves = [queue for queue in queues if isinstance(queue, LeafQueue)]
        self.parents = [queue for queue in queues if isinstance(queue, ParentQueue)]
        applications = scheduler.applications.values()
        self.attempts = [attempt for app in applications if (attempt := app.current_attempt) is not None]
        self.requests = [(attempt, list(attempt.requests.rows())) for attempt in self.attempts]
        self.attempts_of: dict[CSQueue, list[FiCaSchedulerApp]] = {leaf: [] for leaf in self.leaves}
        for attempt in self.attempts:
            if attempt.leaf in self.attempts_of:
                self.attempts_of[attempt.leaf].append(attempt)
        users = [user.usage for leaf in self.leaves for user in leaf.users.users.values()]
        usages = [queue.usage for queue in queues] + users + [attempt.usage for attempt in self.attempts]
        self.partitions = list(dict.fromkeys(chain.from_iterable([usage.partitions() for usage in usages])))


def violations(scheduler: CapacityScheduler, exempt: Collection[str] = ()) -> list[str]:
    """A message for each violation, with the invariant's number and the amounts. `exempt`: numbers not to check."""
    state = _State(scheduler)
    return [f"{number}: {text}" for number, check in _CHECKS.items() if number not in exempt for text in check(state)]


def _node_room(state: _State) -> Iterator[str]:
    for node in state.nodes:
        if node.allocated + node.unallocated != node.total:
            yield f"{node.node_id}: allocated {node.allocated} + free {node.unallocated} != total {node.total}"


def _no_over_commit(state: _State) -> Iterator[str]:
    calculator = state.context.calculator
    for node in state.nodes:
        if not calculator.fits_in(node.allocated, node.total):
            yield f"{node.node_id}: allocated {node.allocated} exceeds the total {node.total}"


def _node_containers(state: _State) -> Iterator[str]:
    for node in state.nodes:
        sizes = [container.resource for container in node.containers.values() if not container.is_opportunistic]
        total = _total(state.none, sizes)
        if total != node.allocated:
            yield f"{node.node_id}: its containers add up to {total}, but {node.allocated} is allocated"


def _leaf_containers(state: _State) -> Iterator[str]:
    for leaf in state.leaves:
        usages = [attempt.usage for attempt in state.attempts_of[leaf]]
        for partition in state.partitions:
            used = [usage.used(partition) for usage in usages]
            held = _total(state.none, used + [usage.reserved(partition) for usage in usages])
            if held != leaf.usage.used(partition):
                yield f"{_on(leaf, partition)}: its applications have {held}, the queue {leaf.usage.used(partition)}"


def _parents(state: _State) -> Iterator[str]:
    yield from _reserved_amounts(state)
    for queue in state.parents:
        usages = [child.usage for child in queue.children]
        for partition in state.partitions:
            for name, amount in _AMOUNTS.items():
                below = _total(state.none, [amount(usage, partition) for usage in usages])
                if below != amount(queue.usage, partition):
                    own = amount(queue.usage, partition)
                    yield f"{_on(queue, partition)}: {name} is {own}, but {below} for its children together"


def _reserved_amounts(state: _State) -> Iterator[str]:
    """I-05, at the leaves: the reserved amount of a leaf equals the sum over its applications."""
    for leaf in state.leaves:
        usages = [attempt.usage for attempt in state.attempts_of[leaf]]
        for partition in state.partitions:
            held = _total(state.none, [usage.reserved(partition) for usage in usages])
            if held != leaf.usage.reserved(partition):
                own = leaf.usage.reserved(partition)
                yield f"{_on(leaf, partition)}: its applications have {held} reserved, the queue {own}"


def _users(state: _State) -> Iterator[str]:
    for leaf, partition, total in _totals_of_users(state):
        used = leaf.usage.used(partition)
        if total != used:
            yield f"{_on(leaf, partition)}: its users use {total}, the queue {used}"


def _users_and_dropped(state: _State) -> Iterator[str]:
    """I-06, in a form that always holds: the usage of a leaf is that of its users and of dropped entries."""
    for leaf, partition, total in _totals_of_users(state):
        used, dropped = leaf.usage.used(partition), leaf.users.dropped.used(partition)
        if total + dropped != used:
            yield f"{_on(leaf, partition)}: its users use {total}, dropped ones used {dropped}, the queue {used}"


def _totals_of_users(state: _State) -> Iterator[tuple[LeafQueue, str, Resource]]:
    for leaf in state.leaves:
        usages = [user.usage for user in leaf.users.users.values()]
        for partition in state.partitions:
            yield leaf, partition, _total(state.none, [usage.used(partition) for usage in usages])


def _maximum(state: _State) -> Iterator[str]:
    """I-08: no queue is above its maximum.

    Not checked on a non-exclusive partition on which containers without a label run: these count against no maximum.
    """
    calculator = state.context.calculator
    borrowed = {
        (queue, partition) for leaf in state.leaves for partition in leaf.borrowed for queue in leaf.and_above()
    }
    for queue in state.scheduler.queues.values():
        for partition in queue.usage.partitions():
            used, maximum = queue.usage.used(partition), queue.effective_maximum(partition)
            if (queue, partition) not in borrowed and not calculator.fits_in(used, maximum):
                yield f"{_on(queue, partition)}: used {used} exceeds the maximum {maximum}"


def _am_usage(state: _State) -> Iterator[str]:
    for leaf in state.leaves:
        for partition in leaf.usage.partitions():
            there = [app.am_used(partition) for app in leaf.active if app.am_partition == partition]
            am_used = _total(state.none, there)
            if am_used != leaf.usage.am_used(partition):
                yield f"{leaf.path}: active AMs use {am_used}, the queue counts {leaf.usage.am_used(partition)}"


def _counts(state: _State) -> Iterator[str]:
    if not state.context.containers_miscounted:
        yield from _differences_of_containers(state)
    for leaf in state.leaves:
        yield from _of_other_queues(leaf, state.attempts_of[leaf])
    applications: Counter[CSQueue] = Counter()
    for queue, count in Counter([app.leaf for app in state.scheduler.applications.values()]).items():
        applications.update(dict.fromkeys(queue.parents(), count))
    for parent in state.parents:
        below = sum([child.container_count for child in parent.children])
        if below != parent.container_count:
            yield f"{parent.path}: counts {parent.container_count} containers, but {below} for its children together"
        if applications[parent] != parent.application_count:
            yield f"{parent.path}: {applications[parent]} applications, but the queue counts {parent.application_count}"


def _miscounted_containers(state: _State) -> Iterator[str]:
    return _differences_of_containers(state) if state.context.containers_miscounted else iter(())


def _differences_of_containers(state: _State) -> Iterator[str]:
    for leaf in state.leaves:
        attempts = state.attempts_of[leaf]
        live = [container for attempt in attempts for container in attempt.live_containers.values()]
        guaranteed = sum([not container.is_opportunistic for container in live])
        held = guaranteed + sum([len(by_node) for attempt in attempts for by_node in attempt.reserved.values()])
        if held != leaf.container_count:
            yield f"{leaf.path}: {held} containers and reservations, but the queue counts {leaf.container_count}"


def _of_other_queues(leaf: LeafQueue, attempts: list[FiCaSchedulerApp]) -> Iterator[str]:
    """Check the queue that a container carries, by which preemption finds its owner, also after a move.

    Containers of a queue whose name is ambiguous carry only that name (see `CSQueue.remembered_as`).
    """
    for attempt in attempts:
        for container in (*attempt.live_containers.values(), *attempt.reserved_containers):
            if container.queue not in (leaf.path, leaf.name):
                yield f"{leaf.path}: {container.id} of {attempt.attempt_id} is in {container.queue}"


def _pending(state: _State) -> Iterator[str]:
    return iter(()) if state.context.pending_miscounted else _differences_of_pending(state)


def _miscounted_pending(state: _State) -> Iterator[str]:
    return _differences_of_pending(state) if state.context.pending_miscounted else iter(())


def _differences_of_pending(state: _State) -> Iterator[str]:
    for attempt, rows in state.requests:
        if not attempt.is_stopped:
            yield from _pending_of_attempt(attempt, rows, state.none)
    for leaf in state.leaves:
        usages = [attempt.usage for attempt in leaf.attempts.values() if not attempt.is_stopped]
        for partition in state.partitions:
            total = _total(state.none, [usage.pending(partition) for usage in usages])
            if total != leaf.usage.pending(partition):
                queued = leaf.usage.pending(partition)
                yield f"{_on(leaf, partition)}: applications have {total} pending, the queue has {queued}"


def _pending_of_attempt(attempt: FiCaSchedulerApp, rows: list[_Row], none: Resource) -> Iterator[str]:
    requested: dict[str, Resource] = {}
    negative: list[str] = []
    for key, row in rows:
        terms, count = row.terms, row.count
        if terms.resource_name == ANY and count:
            requested[terms.partition] = requested.get(terms.partition, none) + terms.capability * count
        if count < 0:
            negative.append(f"{attempt}: {count} containers requested at {terms.resource_name} with {key}")
    for partition in attempt.usage.partitions():
        asked, pending = requested.get(partition, none), attempt.usage.pending(partition)
        if asked != pending:
            yield f"{_on(attempt, partition)}: requests add up to {asked}, pending is {pending}"
    yield from negative


def _bounds(state: _State) -> Iterator[str]:
    """I-64: what one application keeps is within its limits, and its number of requests is counted correctly."""
    for attempt, rows in state.requests:
        count, counted_as = len(rows), attempt.requests.row_count
        if count != counted_as or count > REQUESTS_MAX:
            yield f"{attempt}: {count} requests, counted as {counted_as}; the limit is {REQUESTS_MAX}"
        if len(attempt.blacklist) > BLACKLIST_MAX:
            yield f"{attempt}: {len(attempt.blacklist)} names on its blacklist; the limit is {BLACKLIST_MAX}"
        if len(attempt.pending_release) > REMEMBERED_RELEASES_MAX:
            kept = len(attempt.pending_release)
            yield f"{attempt}: {kept} remembered releases; the limit is {REMEMBERED_RELEASES_MAX}"


def _reservations(state: _State) -> Iterator[str]:
    holders = [attempt for attempt in state.attempts if attempt.reserved]
    reserved = {container.id: container for attempt in holders for container in attempt.reserved_containers}
    for node in state.nodes:
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


def _reservation_owners(state: _State) -> Iterator[str]:
    """I-19: every reservation has an owner.

    A cancelled request keeps its reservation until the node's next heartbeat, which is not a violation.
    """
    for node in state.nodes:
        container = node.reserved_container
        if container is None:
            continue
        application = state.scheduler.applications.get(container.id.application_id)
        attempt = application.current_attempt if application is not None else None
        if attempt is None or attempt.is_stopped:
            yield f"{container}: reserved for an attempt that has ended"
        if not state.context.calculator.fits_in(container.resource, node.total):
            yield f"{container}: {container.resource} is reserved on a node with only {node.total}"


def _places(state: _State) -> Iterator[str]:
    """I-15: a container is in one place.

    A completed container is on its node until the NM has reported its end, and nowhere else.
    """
    seen: dict[ContainerId, SchedulerNode] = {}
    for node in state.nodes:
        for container_id in node.containers:
            if container_id in seen:
                yield f"{container_id}: both on {seen[container_id].node_id} and on {node.node_id}"
            seen[container_id] = node
    owners: dict[ContainerId, FiCaSchedulerApp] = {}
    for attempt in state.attempts:
        for held_as, container in attempt.live_containers.items():
            if held_as != container.id:
                continue  # A container that is being decreased is held twice: see container_updates._decrease.
            owner, place = owners.setdefault(held_as, attempt), seen.get(held_as)
            if owner is not attempt:
                yield f"{held_as}: belongs to both {owner} and {attempt}"
            if place is None or place.node_id != container.node_id:
                yield f"{held_as}: belongs to {attempt}, but is not on {container.node_id}"


def _states(state: _State) -> Iterator[str]:
    for attempt in state.attempts:
        for container in attempt.live_containers.values():
            if container.state not in _ALIVE:
                yield f"{container.id}: live in {attempt}, but in state {container.state.name}"
        for container in attempt.reserved_containers if attempt.reserved else ():
            if container.state is not RMContainerState.RESERVED:
                yield f"{container.id}: reserved for {attempt}, but in state {container.state.name}"


def _on(holder: object, partition: str) -> str:
    return f"{holder} on {partition}" if partition else str(holder)


def _total(none: Resource, amounts: list[Resource]) -> Resource:
    """The sum of the amounts; `none` is the zero of the cluster."""
    memory_mb = vcores = 0
    for amount in amounts:
        if amount.extra:
            return sum(amounts, start=none)
        memory_mb += amount.memory_mb
        vcores += amount.vcores
    return none + Resource(memory_mb, vcores)


_AMOUNTS: dict[str, Callable[[ResourceUsage, str], Resource]] = {
    "used": ResourceUsage.used,
    "reserved": ResourceUsage.reserved,
    "pending": ResourceUsage.pending,
}

_ALIVE = (RMContainerState.RUNNING, RMContainerState.ACQUIRED, RMContainerState.ALLOCATED)

_CHECKS: dict[str, Callable[[_State], Iterator[str]]] = {
    "I-01": _node_room,
    "I-02": _no_over_commit,
    "I-03": _node_containers,
    "I-04": _leaf_containers,
    "I-05": _parents,
    "I-06": _users,
    "I-06 (with dropped entries)": _users_and_dropped,
    "I-08": _maximum,
    "I-10": _am_usage,
    "I-11": _counts,
    "I-11 (miscounted)": _miscounted_containers,
    "I-14": _pending,
    "I-14 (miscounted)": _miscounted_pending,
    "I-15": _places,
    "I-18": _reservations,
    "I-19": _reservation_owners,
    "I-28": _states,
    "I-64": _bounds,
}
