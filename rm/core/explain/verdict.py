"""The verdict: what one resource request waits for now, decided by rule from the present state.

First come the causes that hold before any node is looked at (the application may not start, its label has no nodes).
Otherwise each node that could serve the request gets the first of the scheduler's checks that fails there:

    n1  NODE_FULL         512 MB free, 1024 needed
    n2  BLACKLIST
    n3  NODE_FULL         512 MB free, 1024 needed       verdict: NODE_FULL, the check that comes last

The verdict is the failed check that comes last in the scheduler's order, because the node where it fails came closest
to a container. Nodes of the request's own partition decide before those of shared partitions. The refusals that the
scheduler remembers are the details, and they decide only where the present state would allow a container.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import islice

from msgspec import Struct

from rm.core.explain.obstacles import in_use, serves
from rm.core.explain.turn import Ahead, Overtaking, kept_for, overtaken
from rm.scheduler.capacity.limits import present_limit
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.context import IGNORE, RESPECT, SchedulerContext, SchedulingMode
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.refusals import Reason, Refusal
from rm.scheduler.model.requests import NodeType, RequestsOfKey, SchedulerKey
from rm.scheduler.placement.allocator import is_under_guarantee, off_switch_delay, rack_delay
from yarn.containers import ANY
from yarn.ids import NodeId
from yarn.resource import Resource

VERDICTS_MAX = 20
"""The number of resource requests of one application that get a verdict, in the order in which they are served."""
_OF_LEAF = (Reason.QUEUE_FIFO, Reason.QUEUE_HEADROOM, Reason.QUEUE_MAXIMUM)
"""Reasons for which a leaf passes over an application before it looks at its requests."""
_OF_PARENT = (Reason.QUEUE_MAXIMUM,)
"""Reasons for which a parent passes over the queues below."""


class Cause(Enum):
    """The reason why a request waits. The value orders the scheduler's checks; a later one is closer to a container.

    Below 10 are causes that hold on all nodes.
    """

    PARALLEL_LIMIT = 0
    AM_QUEUE_LIMIT = 1
    AM_USER_LIMIT = 2
    AFTER_RESTART = 3
    NO_NODE = 4
    LABEL_NOT_ACCESSIBLE = 5
    LABEL_WITHOUT_NODES = 6
    LABEL_WITHOUT_CAPACITY = 7
    RESERVATION = 8
    NODE_STATE = 10
    PLACE = 11
    BLACKLIST = 12
    TOO_LARGE = 13
    QUEUE_MAXIMUM = 14
    USER_LIMIT = 15
    PARTITION_FULL = 16
    RESERVED_FOR_OTHERS = 17
    NODE_FULL = 18
    AM_ON_SHARED_LABEL = 19
    LOCALITY_DELAY = 20
    REFUSED = 21
    OTHERS_FIRST = 22
    NEXT_HEARTBEAT = 23


_AM_CAUSES = {Reason.AM_QUEUE_LIMIT: Cause.AM_QUEUE_LIMIT, Reason.AM_USER_LIMIT: Cause.AM_USER_LIMIT}


_FULL = (Cause.NODE_FULL, Cause.PARTITION_FULL)


class Finding(Struct, frozen=True):
    """The first check that fails on a node, or for all nodes.

    `needed` was compared with `has`: for limits what is used with what may be used; for nodes what is requested with
    what is free; for OTHERS_FIRST what the application ahead requests with what is left. LOCALITY_DELAY counts
    scheduling opportunities instead: `opportunities` of more than `delay`.
    `queue`: the path of the queue whose limit it is. `holder`: the application that has the node's reservation.
    `refusal`: the remembered refusal, for REFUSED and OTHERS_FIRST; `ahead`: who comes first, for OTHERS_FIRST.
    """

    cause: Cause
    needed: Resource | None = None
    has: Resource | None = None
    queue: str = ""
    holder: str = ""
    since_ms: int | None = None
    opportunities: int = 0
    delay: float = 0
    refusal: Refusal | None = None
    ahead: Ahead | None = None


class Verdict(Struct, frozen=True):
    """The reason why the request of a key waits. `nodes` {node that could serve it: the check that fails there}; only
    the nodes that the cause needs if nothing but the cause was asked for.

    `overtaking`: the containers that others got since the request, if it lacks only free capacity.
    """

    key: SchedulerKey
    partition: str
    requested: Resource
    since_ms: int
    finding: Finding
    node_id: NodeId | None
    nodes: dict[NodeId, Finding]
    overtaking: Overtaking | None = None

    @property
    def cause(self) -> Cause:
        return self.finding.cause


def verdicts_of(
    attempt: FiCaSchedulerApp, context: SchedulerContext, unusable: Mapping[NodeId, str] | None = None
) -> Iterator[Verdict]:
    """Find a verdict for each pending request, one after the other, the first VERDICTS_MAX of them. Changes nothing.

    `unusable` {node: state}: nodes of the scheduler that get no containers, for example because they are being
    decommissioned.
    """
    at_start = _before_the_am(attempt, context)
    for request in _waiting(attempt, context, unusable or {}):
        yield request.verdict(at_start)


def verdict_without_nodes(
    attempt: FiCaSchedulerApp,
    context: SchedulerContext,
    unusable: Mapping[NodeId, str],
    key: tuple[int, int] | None,
) -> Verdict | None:
    """The verdict on one of the requests of `verdicts_of`, without the nodes that do not matter; None if it is gone.

    `key`: the priority and the allocation request id; None for the first request.
    """
    for request in _waiting(attempt, context, unusable):
        if key in (None, (request.key.priority, request.key.allocation_request_id)):
            return request.verdict(_before_the_am(attempt, context), all_nodes=False)
    return None


def _waiting(
    attempt: FiCaSchedulerApp, context: SchedulerContext, unusable: Mapping[NodeId, str]
) -> Iterator[_WaitingRequest]:
    """The pending requests of the attempt, the first VERDICTS_MAX of them."""
    for key in islice(attempt.requests.keys, VERDICTS_MAX):
        of_key = attempt.requests.at(key)
        if of_key is not None and ANY in of_key.rows:
            yield _WaitingRequest(attempt, context, key, of_key, unusable)


def limit_of_attempt(attempt: FiCaSchedulerApp, context: SchedulerContext) -> Cause | None:
    """The limit of the queue or of the user that the attempt waits for, without a look at any node; None: no limit.

    While its AM waits, this is the AM limit, otherwise the limit that refuses its first request on nodes of the
    request's own partition.
    """
    at_start = _before_the_am(attempt, context)
    if at_start is not None:
        return at_start.cause
    for key in islice(attempt.requests.keys, 1):
        of_key = attempt.requests.at(key)
        if of_key is not None and ANY in of_key.rows:
            return _WaitingRequest(attempt, context, key, of_key, {}).limit_of_own_partition()
    return None


def _before_the_am(attempt: FiCaSchedulerApp, context: SchedulerContext) -> Finding | None:
    """The reasons why the whole application is offered no nodes."""
    if not attempt.is_runnable:
        return Finding(Cause.PARALLEL_LIMIT, since_ms=attempt.started_ms)
    refusal = LeafQueue.of(attempt).am_refusal(attempt)
    if refusal is not None and refusal.reason in _AM_CAUSES:
        return Finding(_AM_CAUSES[refusal.reason], refusal.asked, refusal.bound, attempt.leaf.path)
    if context.placing_from_ms is not None and context.now_ms <= context.placing_from_ms:
        return Finding(Cause.AFTER_RESTART, since_ms=context.placing_from_ms)
    return None


class _WaitingRequest:
    """The examination of one request."""

    __slots__ = ("_any", "_attempt", "_context", "_leaf", "_limits", "_of_key", "_required", "_unusable", "key")

    def __init__(
        self,
        attempt: FiCaSchedulerApp,
        context: SchedulerContext,
        key: SchedulerKey,
        of_key: RequestsOfKey,
        unusable: Mapping[NodeId, str],
    ) -> None:
        self._attempt = attempt
        self._leaf = LeafQueue.of(attempt)
        self._context = context
        self.key = key
        self._of_key = of_key
        self._any = of_key.rows[ANY]
        self._required = self._any.terms.capability
        self._unusable = unusable
        self._limits: dict[str, Finding | None] = {}

    def verdict(self, at_start: Finding | None, *, all_nodes: bool = True) -> Verdict:
        """The verdict; without `all_nodes` a node that gets a container at its next heartbeat is the only one in it."""
        nodes = {} if at_start is not None else self._on_nodes(all_nodes=all_nodes)
        everywhere = at_start or self._on_all_nodes(nodes)
        if everywhere is not None:
            node_id, finding = None, everywhere
        else:
            node_id, finding = self._closest(nodes)
            reserved = self._own_reservation()
            if reserved is not None and finding.cause is not Cause.NEXT_HEARTBEAT:
                node_id, finding = reserved
        partition = self._of_key.partition
        since_ms, overtaking = self._of_key.since_ms, None
        if finding.cause in _FULL:
            usable = {node_id for node_id, found in nodes.items() if found.cause.value >= Cause.QUEUE_MAXIMUM.value}
            overtaking = overtaken(self._attempt, self._required, since_ms, usable.__contains__, partition)
        return Verdict(self.key, partition, self._required, since_ms, finding, node_id, nodes, overtaking)

    def _closest(self, nodes: dict[NodeId, Finding]) -> tuple[NodeId, Finding]:
        """The node that came closest to a container, and the check that failed there; own partition first.

        Of equal ones, it is the node with the most memory, free or in all.
        """

        def closeness(entry: tuple[NodeId, Finding]) -> tuple[bool, int, int]:
            node_id, finding = entry
            node = self._context.nodes[node_id]
            is_own = node.partition == self._of_key.partition
            memory_mb = finding.has.memory_mb if finding.has is not None else 0
            return finding.cause is Cause.NEXT_HEARTBEAT or is_own, finding.cause.value, memory_mb

        return max(nodes.items(), key=closeness)

    def _on_all_nodes(self, nodes: dict[NodeId, Finding]) -> Finding | None:
        partition = self._of_key.partition
        if not self._context.nodes:
            return Finding(Cause.NO_NODE)
        if not nodes:
            return Finding(Cause.LABEL_WITHOUT_NODES)
        closed = [queue.path for queue in self._leaf.and_above() if not queue.is_accessible(partition)]
        if closed:
            return Finding(Cause.LABEL_NOT_ACCESSIBLE, queue=closed[0])
        if partition:
            # Not the root: it lacks capacity only if all its children do, and capacity for it alone does not help.
            below_root = [queue for queue in self._leaf.and_above() if not queue.is_root]
            without = [queue.path for queue in below_root if queue.effective_maximum(partition).is_none()]
            if without:
                return Finding(Cause.LABEL_WITHOUT_CAPACITY, queue=without[-1])
        return None

    def _own_reservation(self) -> tuple[NodeId, Finding] | None:
        """The oldest reservation that the request holds, without those on nodes that get no containers."""
        held = self._attempt.reserved.get(self.key) or {}
        usable = [reserved for reserved in held.values() if not self._is_unusable(reserved.node_id)]
        if not usable:
            return None
        container = min(usable, key=lambda reserved: reserved.started_ms)
        free = self._context.nodes[container.node_id].unallocated
        return container.node_id, Finding(Cause.RESERVATION, container.resource, free, since_ms=container.started_ms)

    def limit_of_own_partition(self) -> Cause | None:
        limit = self._limit(self._of_key.partition, RESPECT)
        return None if limit is None else limit.cause

    def _limit(self, partition: str, mode: SchedulingMode) -> Finding | None:
        """The limit of a queue or of the user that refuses the request on nodes of the partition.

        That the partition is full comes last: with free capacity the request would still wait for the user's limit.
        """
        if partition not in self._limits:
            queue = self._queue_limit(partition, mode)
            is_full = queue is None or queue.cause is Cause.PARTITION_FULL
            self._limits[partition] = (self._user_limit(partition, mode) or queue) if is_full else queue
        return self._limits[partition]

    def _queue_limit(self, partition: str, mode: SchedulingMode) -> Finding | None:
        """The maximum that refuses the request, of the lowest queue; of its parent, if the maximums are the same."""
        found: Finding | None = None
        maximum_below: Resource | None = None
        for queue in self._leaf.and_above():
            maximum = self._maximum(queue, partition, mode)
            after = in_use(queue, partition) + self._required - self._own_reserved(partition)
            is_same = maximum_below is not None and maximum == maximum_below
            if (found is None or is_same) and not self._context.calculator.fits_in(after, maximum):
                cause = Cause.PARTITION_FULL if queue.is_root else Cause.QUEUE_MAXIMUM
                found = Finding(cause, after, maximum, queue.path)
                maximum_below = maximum
            elif found is not None:
                return found
        return found

    def _own_reserved(self, partition: str) -> Resource:
        """The reservations that the application could give up for the request."""
        if self._context.settings.reservations_continue_looking and self._attempt.reserved.get(self.key):
            return self._attempt.usage.reserved(partition)
        return self._context.none

    def _maximum(self, queue: CSQueue, partition: str, mode: SchedulingMode) -> Resource:
        return queue.effective_maximum(partition) if mode is RESPECT else self._context.partition_resource(partition)

    def _user_limit(self, partition: str, mode: SchedulingMode) -> Finding | None:
        user = self._leaf.users.users.get(self._attempt.user)
        if user is None:
            return None
        used = user.usage.used(partition) - self._own_reserved(partition)
        limit = present_limit(self._leaf.users, self._attempt.user, partition, mode)
        if not self._context.calculator.greater(self._context.cluster_resource, used, limit):
            return None
        return Finding(Cause.USER_LIMIT, used, limit, self._leaf.path)

    def _on_nodes(self, *, all_nodes: bool) -> dict[NodeId, Finding]:
        """{node: the first check that fails there}, for all nodes of partitions that may serve the request.

        A node that is only waited for decides the verdict: unless all are needed, the others are not looked at.
        """
        context, partition, refused = self._context, self._of_key.partition, self._last_refusals()
        found: dict[NodeId, Finding] = {}
        for node_id, node in context.nodes.items():
            if not serves(node, partition, context):
                continue
            finding = self._on_node(node)
            if finding.cause is Cause.NEXT_HEARTBEAT:
                if node_id in refused:
                    finding = self._refused(node_id, refused[node_id])
                elif not all_nodes:
                    return {node_id: finding}
            found[node_id] = finding
        return found

    def _refused(self, node_id: NodeId, refusal: Refusal) -> Finding:
        """The refusals at the last heartbeat, perhaps because others come first."""
        ahead = kept_for(self._attempt, node_id, refusal, self._of_key.partition)
        if ahead is None:
            return Finding(Cause.REFUSED, refusal.asked, refusal.bound, refusal=refusal)
        return Finding(Cause.OTHERS_FIRST, ahead.requested, ahead.left, ahead.queue, refusal=refusal, ahead=ahead)

    def _last_refusals(self) -> dict[NodeId, Refusal]:
        """The last refusal on each node, of this request, or of its queues before they looked at this request."""
        since_ms = self._of_key.since_ms
        found = {node: own for node, own in self._attempt.refusals.since(since_ms) if own.key == self.key}
        for queue in self._leaf.and_above():
            reasons = _OF_LEAF if queue is self._leaf else _OF_PARENT
            for node_id, refusal in queue.refusals.since(since_ms):
                known = found.get(node_id)
                if refusal.reason in reasons and (known is None or refusal.at_ms > known.at_ms):
                    found[node_id] = refusal
        return found

    def _on_node(self, node: SchedulerNode) -> Finding:
        """The first check that fails on the node, in the scheduler's order."""
        calculator, required = self._context.calculator, self._required
        kind = self._kind(node)
        if self._is_unusable(node.node_id):
            return Finding(Cause.NODE_STATE)
        if kind is None:
            return Finding(Cause.PLACE)
        if self._attempt.is_blacklisted(node.name, node.rack):
            return Finding(Cause.BLACKLIST)
        if not calculator.fits_in(required, node.total):
            return Finding(Cause.TOO_LARGE, required, node.total)
        mode = RESPECT if node.partition == self._of_key.partition else IGNORE
        limit = self._limit(node.partition, mode)
        if limit is not None and limit.cause is not Cause.PARTITION_FULL:
            return limit
        return self._free_on(node) or limit or self._delay_on(node, kind, mode) or Finding(Cause.NEXT_HEARTBEAT)

    def _is_unusable(self, node_id: NodeId) -> bool:
        return node_id in self._unusable or not self._context.nodes[node_id].is_running

    def _free_on(self, node: SchedulerNode) -> Finding | None:
        """The reservation of another application, or too little free capacity."""
        reserved = node.reserved_container
        if reserved is not None and reserved.id.application_id != self._attempt.attempt_id.application_id:
            return Finding(
                Cause.RESERVED_FOR_OTHERS,
                reserved.resource,
                node.unallocated,
                holder=str(reserved.id.application_id),
                since_ms=reserved.started_ms,
            )
        killable = node.killable and is_under_guarantee(self._leaf, node.partition)
        free = node.within_reach if killable else node.unallocated
        if not self._context.calculator.fits_in(self._required, free):
            return Finding(Cause.NODE_FULL, self._required, free)
        return None

    def _delay_on(self, node: SchedulerNode, kind: NodeType, mode: SchedulingMode) -> Finding | None:
        """The reasons that postpone a container on a node with enough free capacity."""
        attempt, settings = self._attempt, self._context.settings
        if mode is IGNORE and attempt.is_waiting_for_master and not settings.am_allow_non_exclusive:
            return Finding(Cause.AM_ON_SHARED_LABEL)
        if kind is NodeType.NODE_LOCAL:
            return None
        opportunities = attempt.opportunities.get(self.key, 0) + 1
        delays = [off_switch_delay(self._context, self._of_key, self._any.count)]
        if kind is NodeType.RACK_LOCAL:
            delays.append(rack_delay(self._context))
        if not self._any.terms.relax_locality:
            del delays[0]
        if opportunities > min(delays):
            return None
        return Finding(Cause.LOCALITY_DELAY, opportunities=opportunities - 1, delay=min(delays))

    def _kind(self, node: SchedulerNode) -> NodeType | None:
        """The best locality that the node offers to the request; None if the request excludes the node."""
        rows = self._of_key.rows
        rack = rows.get(node.rack)
        on_rack = rack is not None and rack.count > 0
        if on_rack and self._of_key.count(node.name) > 0:
            return NodeType.NODE_LOCAL
        if rack is not None and on_rack:
            return NodeType.RACK_LOCAL if rack.terms.relax_locality else None
        return NodeType.OFF_SWITCH if self._any.terms.relax_locality else None
