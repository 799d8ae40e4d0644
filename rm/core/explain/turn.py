"""Whose turn it was: the application that is served before another one, and by which figure it comes first.

A parent offers a node to its least used child first. If the request of that child is larger than what is left to the
parent, the rest is kept for it: the limits of the children after it are lowered by that much, and all that Hadoop's
diagnostics say of them is that they hit their max-capacity limit. An example:

    root        3072 MB left
    root.adhoc  uses 85.0 % of its guarantee, requests 4096 MB    comes first, and does not fit
    root.etl    uses 85.4 % of its guarantee, requests 1024 MB    would fit, and waits

In a leaf the first application that does not fit into the queue's headroom ends the offer for those after it. Both are
read from the refusals of the same visit; who comes first, from the present order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import Enum

from msgspec import Struct

from rm.scheduler.capacity.limits import has_pending, present_limit
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.application_order import FairOrderingPolicy, GivenOrderingPolicy
from rm.scheduler.model.context import RESPECT, SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.refusals import Reason, Refusal
from rm.scheduler.model.rm_container import RMContainer, RMContainerState
from yarn.ids import ApplicationId, NodeId
from yarn.resource import Resource


class Figure(Enum):
    """The criteria of an order: of queues the first four, of applications in a leaf the others."""

    WITH_GUARANTEE = 1
    BELOW_GUARANTEE = 2
    QUEUE_PRIORITY = 3
    USED_CAPACITY = 4
    GUARANTEE = 5
    APPLICATION_PRIORITY = 6
    OLDER = 7
    FAIR_SHARE = 8


class Precedence(Struct, frozen=True):
    """The order of two queues or applications.

    `first` comes before `second` by the figure: paths of queues, or ids of applications in one leaf.
    `values`: the figure of both; capacities are fractions of the guarantee or, without one, of the cluster.
    """

    figure: Figure
    first: str
    second: str
    values: tuple[float, float]


class Ahead(Struct, frozen=True):
    """An application that comes first. The free amount `left` is kept for its request `requested`, but is too small."""

    application_id: ApplicationId
    queue: str
    requested: Resource
    left: Resource
    precedence: Precedence | None


class Overtaking(Struct, frozen=True):
    """The containers that other applications were given since a request that the same containers would have satisfied.

    `count`: of all; `of_queue`: in the leaf `queue`, where most of them were placed. `precedence`: if that is another
    leaf, why it comes first, else why an application in it does; None if it comes later by now.
    """

    count: int
    of_queue: int
    queue: str
    precedence: Precedence | None


def kept_for(attempt: FiCaSchedulerApp, node_id: NodeId, refusal: Refusal, partition: str) -> Ahead | None:
    """The application for which the refusal kept the free amount; None if unknown, or if it comes later by now."""
    leaf = LeafQueue.of(attempt)
    if refusal.reason is Reason.QUEUE_HEADROOM and refusal.key is None:
        return _in_leaf(leaf, attempt, node_id, refusal, partition)
    for other in _leaves_beside(leaf, partition):
        of_leaf = other.refusals.on(node_id)
        if of_leaf is not None and _is_same_visit(of_leaf, refusal):
            found = _in_leaf(other, attempt, node_id, refusal, partition)
            if found is not None:
                return found
    return None


def _in_leaf(
    leaf: LeafQueue, attempt: FiCaSchedulerApp, node_id: NodeId, refusal: Refusal, partition: str
) -> Ahead | None:
    """The application of the leaf that did not fit in the refusal's visit."""
    for other in leaf.active:
        own = other.refusals.on(node_id)
        if other is attempt or own is None or own.asked is None or own.bound is None:
            continue
        if _is_same_visit(own, refusal):
            first = precedence(other, attempt, partition)
            return Ahead(other.attempt_id.application_id, leaf.path, own.asked, own.bound, first)
    return None


def _is_same_visit(found: Refusal, refusal: Refusal) -> bool:
    return found.reason is Reason.QUEUE_HEADROOM and found.at_ms == refusal.at_ms


def _leaves_beside(leaf: LeafQueue, partition: str) -> Iterator[LeafQueue]:
    """All other leaves, the nearest first: those below the siblings of the leaf and of each queue above it."""
    for queue in leaf.and_above():
        siblings = [] if queue.parent is None else [child for child in queue.parent.children if child is not queue]
        for sibling in sorted(siblings, key=lambda child: child.key_for_order(partition)):
            yield from _leaves(sibling)


def _leaves(queue: CSQueue) -> Iterator[LeafQueue]:
    if isinstance(queue, LeafQueue):
        yield queue
    elif isinstance(queue, ParentQueue):
        for child in queue.children:
            yield from _leaves(child)


def overtaken(
    attempt: FiCaSchedulerApp, required: Resource, since_ms: int, accepts: Callable[[NodeId], bool], partition: str
) -> Overtaking | None:
    """Containers of at least this size that others were given after `since_ms` on nodes that the request `accepts`."""
    own, context = attempt.attempt_id.application_id, attempt.leaf.context
    placed = [
        container
        for container in _placed_since(since_ms, context)
        if container.id.application_id != own
        and accepts(container.node_id)
        and context.calculator.fits_in(required, container.resource)
    ]
    if not placed:
        return None
    counts = Counter(container.queue for container in placed)
    name, of_queue = max(counts.items(), key=lambda entry: (entry[1], entry[0]))
    *_, root = attempt.leaf.and_above()
    leaf = next((leaf for leaf in _leaves(root) if leaf.remembered_as == name), None)
    if leaf is None:
        return Overtaking(len(placed), of_queue, name, None)
    return Overtaking(len(placed), of_queue, leaf.path, _precedence_in(leaf, attempt, placed, partition))


def _precedence_in(
    leaf: LeafQueue, attempt: FiCaSchedulerApp, placed: Iterable[RMContainer], partition: str
) -> Precedence | None:
    """The reason why the leaf comes first now, or in the attempt's own leaf, an application that was given containers.

    None if it requests nothing more, or if its user is above the limit: then it would not be served first.
    """
    if leaf is not attempt.leaf:
        return _of_leaves(leaf, attempt.leaf, partition) if has_pending(leaf, partition, RESPECT) else None
    given = {container.id.application_id for container in placed}
    others = (one for one in leaf.active if one.attempt_id.application_id in given and _may_be_served(one, partition))
    return next((first for one in others if (first := _of_applications(one, attempt)) is not None), None)


def _may_be_served(attempt: FiCaSchedulerApp, partition: str) -> bool:
    leaf = LeafQueue.of(attempt)
    user = leaf.users.users.get(attempt.user)
    if user is None or not attempt.usage.is_pending():
        return False
    limit = present_limit(leaf.users, attempt.user, partition, RESPECT)
    return not leaf.context.calculator.greater(leaf.context.cluster_resource, user.usage.used(partition), limit)


def _placed_since(since_ms: int, context: SchedulerContext) -> Iterator[RMContainer]:
    """The containers that were placed after this time, those that have ended since included."""
    for node in context.nodes.values():
        for container in node.containers.values():
            if container.started_ms > since_ms:
                yield container
    for container, ended_ms in context.ended.last_first():
        if ended_ms <= since_ms:
            return
        if container.started_ms > since_ms and container.state is not RMContainerState.RESERVED:
            yield container


def precedence(first: FiCaSchedulerApp, second: FiCaSchedulerApp, partition: str) -> Precedence | None:
    """The figure by which `first` is offered a node of the partition before `second`; None if it is not."""
    if first.leaf is second.leaf:
        return _of_applications(first, second)
    return _of_leaves(first.leaf, second.leaf, partition)


def _of_leaves(first: CSQueue, second: CSQueue, partition: str) -> Precedence | None:
    """The order of the two children of their nearest common parent."""
    above_first, above_second = ([*leaf.and_above()][::-1] for leaf in (first, second))
    pairs = zip(above_first, above_second, strict=False)
    return next((_of_queues(one, other, partition) for one, other in pairs if one is not other), None)


def _of_queues(first: CSQueue, second: CSQueue, partition: str) -> Precedence | None:
    """The first part of the sort key that differs (CSQueue.key_for_order)."""
    figures = [Figure.WITH_GUARANTEE, Figure.USED_CAPACITY, Figure.GUARANTEE]
    if first.parent is not None and first.parent.orders_by_priority:
        figures[1:1] = [Figure.BELOW_GUARANTEE, Figure.QUEUE_PRIORITY]
    keys = first.key_for_order(partition), second.key_for_order(partition)
    for figure, one, other in zip(figures, *keys, strict=True):
        if one != other:
            if keys[0] > keys[1]:
                return None
            return Precedence(figure, first.path, second.path, _values(figure, first, second, partition))
    return None


def _values(figure: Figure, first: CSQueue, second: CSQueue, partition: str) -> tuple[float, float]:
    if figure is Figure.QUEUE_PRIORITY:
        return first.configuration.priority, second.configuration.priority
    own, other = first.capacities.at(partition), second.capacities.at(partition)
    if figure is Figure.GUARANTEE:
        return own.absolute_capacity, other.absolute_capacity
    if own.absolute_capacity <= 0 and other.absolute_capacity <= 0:
        return own.absolute_used_capacity, other.absolute_used_capacity
    return own.used_capacity, other.used_capacity


def _of_applications(first: FiCaSchedulerApp, second: FiCaSchedulerApp) -> Precedence | None:
    order = LeafQueue.of(first).active
    if isinstance(order, GivenOrderingPolicy):
        return None
    if order.key_of(first) > order.key_of(second):
        return None
    names = str(first.attempt_id.application_id), str(second.attempt_id.application_id)
    if isinstance(order, FairOrderingPolicy):
        used = float(first.ordered_used_mb), float(second.ordered_used_mb)
        return Precedence(Figure.FAIR_SHARE if used[0] < used[1] else Figure.OLDER, *names, used)
    if first.priority != second.priority:
        return Precedence(Figure.APPLICATION_PRIORITY, *names, (first.priority, second.priority))
    return Precedence(Figure.OLDER, *names, (0, 0))
