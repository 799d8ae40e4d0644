"""Decides whether one application gets a container on one node: Hadoop's RegularContainerAllocator.

Keys are tried in order; for each key first the host, then the rack, then any node. Delay scheduling counts visits: each
node offered to a key is a scheduling opportunity, and only after enough missed ones a less local node is accepted. A
visit ends with a proposal, or with how to continue; refusals are kept with their numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from enum import Enum
from typing import TypeAlias

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.context import IGNORE, RESPECT, SchedulerContext, SchedulingMode
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.refusals import Reason
from rm.scheduler.model.requests import NodeType, RequestRow, RequestsOfKey, SchedulerKey, SortedKeys
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.usage import ResourceLimits
from yarn.containers import ANY
from yarn.java.binary32 import f32, truncated
from yarn.nodes import NO_LABEL
from yarn.resource import INT32_MAX, Resource


class SkippedType(Enum):
    """Nothing was placed; the value states how to continue (CSAssignment.SkippedType).

    NONE: stop with this queue. OTHER: try the next application. QUEUE_LIMIT: stop with this queue; its parent then
    blocks the headroom that the queue could not use.
    """

    NONE = "NONE"
    OTHER = "OTHER"
    QUEUE_LIMIT = "QUEUE_LIMIT"


class Proposal:
    """A container to be booked: placed (`is_allocation`) or reserved; `kind` is its locality.

    `reserved` is the reservation that it fills, or that still could not be filled. `to_release` is a reservation on
    another node that is given up for it, `to_kill` are killable containers whose resources it needs. Nothing is booked
    before `commit` has accepted it; then `is_booked` is set. `may_hold_from`, only with asynchronous scheduling: the
    number of tries to fill its reservations from which on the key may have one more; None if it may already.
    `opportunities`: how often a node was offered to the key since its last local placement, this node included.
    """

    __slots__ = (
        "application",
        "is_allocation",
        "is_booked",
        "key",
        "kind",
        "may_hold_from",
        "mode",
        "node",
        "opportunities",
        "reserved",
        "resource",
        "to_kill",
        "to_release",
    )

    def __init__(
        self,
        application: FiCaSchedulerApp,
        node: SchedulerNode,
        key: SchedulerKey,
        resource: Resource,
        kind: NodeType,
        *,
        is_allocation: bool,
    ) -> None:
        self.application = application
        self.node = node
        self.key = key
        self.resource = resource
        self.kind = kind
        self.is_allocation = is_allocation
        self.is_booked = False
        self.may_hold_from: int | None = None
        self.opportunities = 0
        self.reserved: RMContainer | None = None
        self.to_release: RMContainer | None = None
        self.to_kill: list[RMContainer] = []
        self.mode: SchedulingMode = RESPECT

    @property
    def going(self) -> list[RMContainer]:
        """The containers to be killed and the reservation to be given up for this proposal, in any queue."""
        return self.to_kill if self.to_release is None else [*self.to_kill, self.to_release]


class UnneededReservation:
    """A reservation whose request no longer exists: it is to be released."""

    __slots__ = ("application", "container")

    def __init__(self, application: FiCaSchedulerApp, container: RMContainer) -> None:
        self.application = application
        self.container = container


Assignment: TypeAlias = Proposal | UnneededReservation | SkippedType


class SkipReason(Enum):
    """A key, or a locality of it, was not served (AllocationState).

    LOCALITY: try the next locality. PRIORITY: try the next key; the visit does not count as a missed opportunity.
    APPLICATION: try the next application. QUEUE: its queue has too little headroom for the request, stop the queue.
    """

    LOCALITY = "LOCALITY_SKIPPED"
    PRIORITY = "PRIORITY_SKIPPED"
    APPLICATION = "APP_SKIPPED"
    QUEUE = "QUEUE_SKIPPED"


Outcome: TypeAlias = Proposal | SkipReason

KEYS_A_VISIT_MAX = 1000
"""The most keys that one visit tries. Applications have a few dozen; with 100,000 keys that fit no node, every
heartbeat of every node would take a quarter of a second."""


def assign_to_application(
    leaf: LeafQueue,
    application: FiCaSchedulerApp,
    node: SchedulerNode,
    limits: ResourceLimits,
    mode: SchedulingMode,
    reserved: RMContainer | None,
) -> Assignment:
    """Offer the node to the application; `reserved`: only to fill or end this reservation."""
    if reserved is not None:
        return _Visit(leaf, application, node, limits, mode, reserved).assign_reserved(reserved)
    looked_at = node.partition if mode is RESPECT else NO_LABEL
    if application.usage.pending(looked_at).is_none():
        application.refusals.note(node.node_id, Reason.APPLICATION_SATISFIED, leaf.context.now_ms)
        return SkippedType.OTHER
    return _Visit(leaf, application, node, limits, mode, None).assign()


class _Visit:
    """An offer of a node to an application."""

    __slots__ = (
        "_application",
        "_calculator",
        "_context",
        "_leaf",
        "_limits",
        "_mode",
        "_node",
        "_reserved",
        "_settings",
    )

    def __init__(
        self,
        leaf: LeafQueue,
        application: FiCaSchedulerApp,
        node: SchedulerNode,
        limits: ResourceLimits,
        mode: SchedulingMode,
        reserved: RMContainer | None,
    ) -> None:
        context = leaf.context
        self._leaf = leaf
        self._application = application
        self._node = node
        self._limits = limits
        self._mode = mode
        self._reserved = reserved
        self._context = context
        self._calculator = context.calculator
        self._settings = context.settings

    def assign(self) -> Assignment:
        """The result of the first key that is not skipped; with very many keys, of this visit's part of them."""
        keys = self._application.requests.keys
        outcome = self._assign_first(keys) if len(keys) <= KEYS_A_VISIT_MAX else self._assign_part(keys)
        if isinstance(outcome, Proposal):
            return outcome
        return SkippedType.QUEUE_LIMIT if outcome is SkipReason.QUEUE else SkippedType.OTHER

    def assign_reserved(self, reserved: RMContainer) -> Assignment:
        """Fill the reservation, count a failed try, or end it if its request no longer exists."""
        of_key = self._application.requests.at(reserved.key)
        if of_key is None or of_key.count(ANY) == 0:
            return UnneededReservation(self._application, reserved)
        outcome = self._try_on_node(reserved.key, of_key)
        return outcome if isinstance(outcome, Proposal) else SkippedType.NONE

    def _assign_first(self, keys: Iterable[SchedulerKey]) -> Outcome:
        for key in keys:
            outcome = self._assign_key(key)
            if outcome is not SkipReason.PRIORITY:
                return outcome
        return SkipReason.PRIORITY

    def _assign_part(self, keys: SortedKeys) -> Outcome:
        """Try KEYS_A_VISIT_MAX keys now, and the following ones at the node's next visit.

        After a placement the next visit tries the same part again, so that a late key does not wait for all parts each
        time. If the application is skipped for another reason, the next visit starts with the first key, as it would
        without parts.
        """
        self._context.note_node_check()
        application, node_id = self._application, self._node.node_id
        passed = application.passed_keys.get(node_id)
        part = keys.after(passed, KEYS_A_VISIT_MAX) or keys.after(None, KEYS_A_VISIT_MAX)
        outcome = self._assign_first(part)
        if outcome is SkipReason.PRIORITY and len(part) == KEYS_A_VISIT_MAX:
            application.note_passed(node_id, part[-1])
        elif not isinstance(outcome, Proposal):
            application.forget_passed(node_id)
        return outcome

    def _assign_key(self, key: SchedulerKey) -> Outcome:
        """The checks that do not depend on the locality, then the node itself."""
        application, node = self._application, self._node
        of_key = application.requests.at(key)
        if of_key is None:
            return self._skip(SkipReason.PRIORITY, Reason.REQUEST_GONE, key)
        any_row = of_key.rows.get(ANY)
        if any_row is None or any_row.count <= 0:
            return self._skip(SkipReason.PRIORITY, Reason.REQUEST_SATISFIED, key)
        required = any_row.terms.capability
        if self._mode is IGNORE and application.is_waiting_for_master and not self._settings.am_allow_non_exclusive:
            return self._skip(SkipReason.APPLICATION, Reason.REQUEST_AM_ON_SHARED_LABEL, key, required)
        matches = of_key.partition == (node.partition if self._mode is RESPECT else NO_LABEL)
        if not matches and not self._settings.release.checks_requests_first:
            return self._skip(SkipReason.PRIORITY, Reason.NODE_PARTITION, key, required)
        continue_looking = self._settings.reservations_continue_looking
        if not continue_looking and not self._may_hold_one_more(key, of_key, required):
            return self._skip(SkipReason.PRIORITY, Reason.REQUEST_RESERVED_ENOUGH, key, required)
        headroom = self._limits.headroom
        if continue_looking and application.reserved:
            headroom = headroom + application.usage.reserved(node.partition)
        if not self._calculator.fits_in(required, headroom):
            return self._skip(SkipReason.QUEUE, Reason.QUEUE_HEADROOM, key, required, headroom)
        if of_key.partition == NO_LABEL:
            missed = application.add_missed_non_partitioned(key)
            if self._mode is IGNORE and missed < self._context.node_count:
                return self._skip(SkipReason.APPLICATION, Reason.REQUEST_OWN_PARTITION_FIRST, key, required)
        if not matches:
            return self._skip(SkipReason.PRIORITY, Reason.NODE_PARTITION, key, required)
        return self._try_on_node(key, of_key)

    def _may_hold_one_more(self, key: SchedulerKey, of_key: RequestsOfKey, required: Resource) -> bool:
        """True if more is requested than reserved; waiting long allows additional reservations
        (shouldAllocOrReserveNewContainer).
        """
        application = self._application
        by_node = application.reserved.get(key)
        wanted = of_key.count(ANY)
        if not by_node:
            return wanted > 0
        tries = application.re_reservations.get(key, 0)
        return _allows_one_more(tries, len(by_node), wanted, self._size_factor(required))

    def _may_hold_one_more_from(self, key: SchedulerKey, of_key: RequestsOfKey) -> int:
        """The number of tries to fill its reservations from which on the key may have one more of them."""
        held, wanted = len(self._application.reserved[key]), of_key.count(ANY)
        factor = min(self._size_factor(row.terms.capability) for row in of_key.rows.values())
        return bisect_left(range(INT32_MAX), 1, key=lambda tries: _allows_one_more(tries, held, wanted, factor))

    def _size_factor(self, required: Resource) -> float:
        """The size of a request, from 0 to 1: the larger, the longer it waits for a further reservation."""
        leaf = self._leaf
        return min(
            self._calculator.ratio(required, leaf.configuration.maximum_allocation), leaf.minimum_allocation_factor
        )

    def _try_on_node(self, key: SchedulerKey, of_key: RequestsOfKey) -> Outcome:
        """Check the blacklist, then locality; counts an opportunity unless the key does not accept such a node."""
        self._context.note_node_check()
        application, node = self._application, self._node
        if application.is_blacklisted(node.name, node.rack):
            return self._skip(SkipReason.APPLICATION, Reason.NODE_BLACKLISTED, key)
        opportunities = application.opportunities.get(key, 0) + 1
        outcome = self._by_locality(key, of_key, opportunities)
        if outcome is SkipReason.PRIORITY and self._reserved is None:
            return outcome
        application.count_opportunity(key, may_wait=len(of_key.rows) > 1)
        if isinstance(outcome, Proposal):
            outcome.opportunities = opportunities
            if self._reserved is None:
                self._reset_opportunities(key, outcome)
        return outcome

    def _reset_opportunities(self, key: SchedulerKey, proposal: Proposal) -> None:
        """Restart the count of opportunities after a local placement or first reservation."""
        if proposal.kind is NodeType.NODE_LOCAL or (
            proposal.kind is NodeType.RACK_LOCAL and self._settings.rack_locality_full_reset
        ):
            self._application.restart_opportunities(key)
        if self._node.partition == NO_LABEL:
            self._application.restart_missed_non_partitioned(key)

    def _by_locality(self, key: SchedulerKey, of_key: RequestsOfKey, opportunities: int) -> Outcome:
        node, rows = self._node, of_key.rows
        host_row, rack_row, any_row = rows.get(node.name), rows.get(node.rack), rows.get(ANY)
        rack_wanted = rack_row is not None and rack_row.count > 0
        if host_row is not None and host_row.count > 0 and rack_wanted:
            outcome = self._place(key, of_key, host_row, NodeType.NODE_LOCAL)
            if isinstance(outcome, Proposal):
                return outcome
        if rack_row is not None and rack_wanted:
            if not rack_row.terms.relax_locality:
                return self._skip(SkipReason.PRIORITY, Reason.NODE_STRICT_LOCALITY, key)
            if rack_delay(self._context) < opportunities:
                outcome = self._place(key, of_key, rack_row, NodeType.RACK_LOCAL)
                if isinstance(outcome, Proposal):
                    return outcome
        if any_row is None or any_row.count <= 0:
            return self._skip(SkipReason.PRIORITY, Reason.NODE_LOCALITY, key)
        if not any_row.terms.relax_locality:
            return self._skip(SkipReason.PRIORITY, Reason.NODE_STRICT_LOCALITY, key)
        if not self._off_switch_delay_is_over(of_key, any_row.count, opportunities):
            return self._skip(SkipReason.APPLICATION, Reason.NODE_OFF_SWITCH_DELAY, key, any_row.terms.capability)
        outcome = self._place(key, of_key, any_row, NodeType.OFF_SWITCH)
        return SkipReason.APPLICATION if outcome is SkipReason.LOCALITY else outcome

    def _off_switch_delay_is_over(self, of_key: RequestsOfKey, wanted: int, opportunities: int) -> bool:
        if self._reserved is not None or len(of_key.rows) == 1:
            return True
        return off_switch_delay(self._context, of_key, wanted) < opportunities

    def _place(self, key: SchedulerKey, of_key: RequestsOfKey, row: RequestRow, kind: NodeType) -> Outcome:
        """Place a container if it fits, else reserve if one more reservation is allowed (assignContainer)."""
        node, calculator, limits = self._node, self._calculator, self._limits
        wanted = row.terms.capability
        if not calculator.fits_in(wanted, node.total):
            return self._skip(SkipReason.LOCALITY, Reason.NODE_TOTAL_TOO_SMALL, key, wanted, node.total)
        may_hold = self._may_hold_one_more(key, of_key, wanted)
        must_free = calculator.max_of(
            self._context.cluster_resource, wanted - limits.headroom, limits.amount_needed_unreserve
        )
        is_short = calculator.is_any_above_zero(must_free)
        looks_on = self._reserved is None and self._settings.reservations_continue_looking
        fitting, to_kill = calculator.available_containers(node.unallocated, wanted), list[RMContainer]()
        if fitting == 0 and node.killable:
            fitting, to_kill = self._with_killable(wanted)
        if fitting > 0:
            proposal = Proposal(self._application, node, key, wanted, kind, is_allocation=True)
            proposal.to_kill = to_kill
            if looks_on and (is_short or not may_hold):
                # Give up one of its own reservations, to stay within the limits or within what is requested.
                proposal.to_release = self._application.reservation_to_give_up(key, must_free if is_short else wanted)
                if proposal.to_release is None:
                    return self._skip(SkipReason.LOCALITY, Reason.NODE_NOTHING_TO_UNRESERVE, key, wanted)
        elif (may_hold or self._reserved is not None) and not (looks_on and is_short):
            self._note(Reason.NODE_FULL, wanted, node.unallocated, key)
            proposal = Proposal(self._application, node, key, wanted, kind, is_allocation=False)
        else:
            return self._skip(SkipReason.LOCALITY, Reason.NODE_FULL, key, wanted, node.unallocated)
        proposal.reserved = self._reserved
        if self._reserved is not None and not may_hold and self._context.repeated is not None:
            proposal.may_hold_from = self._may_hold_one_more_from(key, of_key)
        proposal.mode = self._mode
        return proposal

    def _with_killable(self, wanted: Resource) -> tuple[int, list[RMContainer]]:
        """(1, killable containers to kill); (0, []) if they free too little or the leaf is not below its guarantee."""
        if not is_under_guarantee(self._leaf, self._node.partition):
            return 0, []
        free, to_kill = self._node.unallocated, list[RMContainer]()
        for container in self._node.killable_in_hash_order():
            to_kill.append(container)
            free = free + container.resource
            if self._calculator.fits_in(wanted, free):
                return 1, to_kill
        return 0, []

    def _skip(
        self,
        skip: SkipReason,
        reason: Reason,
        key: SchedulerKey,
        asked: Resource | None = None,
        bound: Resource | None = None,
    ) -> SkipReason:
        self._note(reason, asked, bound, key)
        return skip

    def _note(
        self,
        reason: Reason,
        asked: Resource | None = None,
        bound: Resource | None = None,
        key: SchedulerKey | None = None,
    ) -> None:
        self._application.refusals.note(self._node.node_id, reason, self._context.now_ms, asked, bound, key=key)


def _allows_one_more(tries: int, held: int, wanted: int, size_factor: float) -> bool:
    """True if more is requested than reserved, or if so many tries to fill the reservations have failed."""
    starvation = truncated(f32(f32(tries / held) * f32(1 - size_factor)))
    return starvation + wanted - held > 0


def rack_delay(context: SchedulerContext) -> int:
    """A key accepts a node on a requested rack after more scheduling opportunities than this."""
    return min(context.node_count, context.settings.node_locality_delay)


def off_switch_delay(context: SchedulerContext, of_key: RequestsOfKey, wanted: int) -> float:
    """A key accepts any node after more scheduling opportunities than this.

    Requests for `*` alone never wait; others wait as configured, or in proportion to the number of names with rows.
    """
    node_count, places = context.node_count, len(of_key.rows)
    if node_count == 0:
        return float(INT32_MAX)
    if places == 1:
        return 0
    additional = context.settings.rack_locality_additional_delay
    if additional > -1:
        return min(node_count, context.settings.node_locality_delay + additional)
    wait_factor = min(f32(max(places - 1, 0) / node_count), 1.0)
    return min(float(node_count), f32(wanted * wait_factor))


def is_under_guarantee(leaf: LeafQueue, partition: str) -> bool:
    """True if killable containers of other queues may be killed for it (setPreemptionAllowed)."""
    own = leaf.capacities.at(partition)
    if own.effective_minimum.is_none():
        return own.absolute_used_capacity < own.absolute_capacity
    context = leaf.context
    return context.calculator.less(context.cluster_resource, leaf.usage.used(partition), own.effective_minimum)
