"""Whether one application gets a container on one node: Hadoop's RegularContainerAllocator.

Keys are tried in their order, at each key the host, then the rack, then anywhere. Waiting for a better place (delay
scheduling) counts visits: each look at a node is a chance, and only after enough missed chances a worse place will
do. A visit ends with a proposal, or with how the asker should go on; what was refused is kept with its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from rm.scheduler.context import IGNORE, RESPECT, SchedulingMode
from rm.scheduler.model.asks import AskRow, KeyedAsks, NodeType, SchedulerKey
from rm.scheduler.model.assignment import Assignment, Excess, Proposal, Skipped
from rm.scheduler.model.limits import ResourceLimits
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.sorted_keys import SortedKeys
from rm.scheduler.model.usage import NO_LABEL
from rm.scheduler.view.reasons import Reason
from yarn.asks import ANY
from yarn.java.binary32 import f32, truncated
from yarn.resource import Resource

if TYPE_CHECKING:
    from rm.scheduler.model.application import FiCaSchedulerApp


class Passed(Enum):
    """A key or a level of locality came to nothing (AllocationState).

    LOCALITY: try the next level. PRIORITY: try the next key; the visit does not count as a missed chance. APPLICATION:
    try the next application. QUEUE: its queue has too little room for the ask, stop the queue.
    """

    LOCALITY = "LOCALITY_SKIPPED"
    PRIORITY = "PRIORITY_SKIPPED"
    APPLICATION = "APP_SKIPPED"
    QUEUE = "QUEUE_SKIPPED"


Outcome: TypeAlias = Proposal | Passed

KEYS_A_VISIT_MAX = 1000
"""Keys that a visit may pass over. Applications have a few dozen; with 100,000 that no node suits, each heartbeat
of each node would take a quarter of a second."""


def assign_to_application(
    application: FiCaSchedulerApp,
    node: SchedulerNode,
    limits: ResourceLimits,
    mode: SchedulingMode,
    reserved: RMContainer | None,
) -> Assignment:
    """Offer the node to the application; `reserved`: only to fill (or give up) this reservation on it."""
    visit = _Visit(application, node, limits, mode, reserved)
    return visit.assign() if reserved is None else visit.assign_reserved(reserved)


class _Visit:
    """One application's look at one node."""

    __slots__ = ("_application", "_calculator", "_context", "_limits", "_mode", "_node", "_reserved", "_settings")

    def __init__(
        self,
        application: FiCaSchedulerApp,
        node: SchedulerNode,
        limits: ResourceLimits,
        mode: SchedulingMode,
        reserved: RMContainer | None,
    ) -> None:
        context = application.leaf.context
        self._application = application
        self._node = node
        self._limits = limits
        self._mode = mode
        self._reserved = reserved
        self._context = context
        self._calculator = context.calculator
        self._settings = context.settings

    def assign(self) -> Assignment:
        """The first key that is not passed over decides; with very many keys, the first of this visit's part."""
        application = self._application
        looked_at = self._node.partition if self._mode is RESPECT else NO_LABEL
        if application.usage.pending(looked_at).is_none():
            self._note(Reason.APPLICATION_SATISFIED)
            return Skipped.OTHER
        keys = application.asks.keys
        outcome = self._assign_first(keys) if len(keys) <= KEYS_A_VISIT_MAX else self._assign_part(keys)
        if isinstance(outcome, Proposal):
            return outcome
        return Skipped.QUEUE_LIMIT if outcome is Passed.QUEUE else Skipped.OTHER

    def assign_reserved(self, reserved: RMContainer) -> Assignment:
        """Fill the reservation, look at it again, or give it up if nobody asks for it any more."""
        keyed = self._application.asks.at(reserved.key)
        if keyed is None or keyed.count(ANY) == 0:
            return Excess(self._application, reserved)
        outcome = self._try_on_node(reserved.key, keyed)
        return outcome if isinstance(outcome, Proposal) else Skipped.NONE

    def _assign_first(self, keys: Iterable[SchedulerKey]) -> Outcome:
        for key in keys:
            outcome = self._assign_key(key)
            if outcome is not Passed.PRIORITY:
                return outcome
        return Passed.PRIORITY

    def _assign_part(self, keys: SortedKeys) -> Outcome:
        """Look at KEYS_A_VISIT_MAX keys, and at the following ones on the node's next visit.

        A visit that ends with a placement is followed by one of the same part, so that serving a late key does not wait
        for all parts each time. What stops the application for this visit sends the next one to the first key, as
        without parts.
        """
        application, node_id = self._application, self._node.node_id
        passed = application.passed_keys.get(node_id)
        part = keys.after(passed, KEYS_A_VISIT_MAX) or keys.after(None, KEYS_A_VISIT_MAX)
        outcome = self._assign_first(part)
        if outcome is Passed.PRIORITY and len(part) == KEYS_A_VISIT_MAX:
            application.note_passed(node_id, part[-1])
        elif not isinstance(outcome, Proposal) and application.passed_keys.pop(node_id, None) is not None:
            self._context.revision += 1
        return outcome

    # Before the node is looked at

    def _assign_key(self, key: SchedulerKey) -> Outcome:
        """The checks that do not depend on where on the node's way the ask stands, then the node itself."""
        application, node = self._application, self._node
        keyed = application.asks.at(key)
        if keyed is None:
            return self._pass(Passed.PRIORITY, Reason.REQUEST_GONE, key)
        any_row = keyed.rows.get(ANY)
        if any_row is None or any_row.count <= 0:
            return self._pass(Passed.PRIORITY, Reason.REQUEST_SATISFIED, key)
        required = any_row.terms.capability
        if self._mode is IGNORE and application.is_waiting_for_master and not self._settings.am_allow_non_exclusive:
            return self._pass(Passed.APPLICATION, Reason.REQUEST_AM_ON_SHARED_LABEL, key, required)
        if keyed.partition != (node.partition if self._mode is RESPECT else NO_LABEL):
            return self._pass(Passed.PRIORITY, Reason.NODE_PARTITION, key, required)
        continue_looking = self._settings.reservations_continue_looking
        if not continue_looking and not self._may_hold_one_more(key, keyed, required):
            return self._pass(Passed.PRIORITY, Reason.REQUEST_RESERVED_ENOUGH, key, required)
        headroom = self._limits.headroom
        if continue_looking and application.reserved:
            headroom = headroom + application.usage.reserved(node.partition)
        if not self._calculator.fits_in(required, headroom):
            return self._pass(Passed.QUEUE, Reason.QUEUE_HEADROOM, key, required, headroom)
        if keyed.partition == NO_LABEL:
            missed = application.add_missed_non_partitioned(key)
            self._context.revision += 1
            if self._mode is IGNORE and missed < self._context.node_count:
                return self._pass(Passed.APPLICATION, Reason.REQUEST_OWN_PARTITION_FIRST, key, required)
        return self._try_on_node(key, keyed)

    def _may_hold_one_more(self, key: SchedulerKey, keyed: KeyedAsks, required: Resource) -> bool:
        """shouldAllocOrReserveNewContainer: more wanted than reserved, counting long vain waits for more."""
        application = self._application
        by_node = application.reserved.get(key)
        wanted = keyed.count(ANY)
        if not by_node:
            return wanted > 0
        leaf = application.leaf
        factor = min(
            self._calculator.ratio(required, leaf.configuration.maximum_allocation), leaf.minimum_allocation_factor
        )
        waits = f32(application.re_reservations.get(key, 0) / len(by_node))
        starvation = truncated(f32(waits * f32(1 - factor)))
        return starvation + wanted - len(by_node) > 0

    # On the node

    def _try_on_node(self, key: SchedulerKey, keyed: KeyedAsks) -> Outcome:
        """Blacklist, then locality; the visit counts as a chance unless the key does not want such a node at all."""
        application, node = self._application, self._node
        if application.is_blacklisted(node.name, node.rack):
            return self._pass(Passed.APPLICATION, Reason.NODE_BLACKLISTED, key)
        chances = application.opportunities.get(key, 0) + 1
        application.opportunities[key] = chances
        outcome = self._by_locality(key, keyed, chances)
        if outcome is Passed.PRIORITY and self._reserved is None:
            application.opportunities[key] = chances - 1
            return outcome
        self._context.revision += 1
        if isinstance(outcome, Proposal) and self._reserved is None:
            self._reset_chances(key, outcome)
        return outcome

    def _reset_chances(self, key: SchedulerKey, proposal: Proposal) -> None:
        """A local placement (or first reservation) starts the waiting anew."""
        if proposal.kind is NodeType.NODE_LOCAL or (
            proposal.kind is NodeType.RACK_LOCAL and self._settings.rack_locality_full_reset
        ):
            self._application.opportunities.pop(key, None)
        if self._node.partition == NO_LABEL:
            self._application.missed_non_partitioned.pop(key, None)

    def _by_locality(self, key: SchedulerKey, keyed: KeyedAsks, chances: int) -> Outcome:
        node, rows = self._node, keyed.rows
        host_row, rack_row, any_row = rows.get(node.name), rows.get(node.rack), rows.get(ANY)
        rack_wanted = rack_row is not None and rack_row.count > 0
        if host_row is not None and host_row.count > 0 and rack_wanted:
            outcome = self._place(key, keyed, host_row, NodeType.NODE_LOCAL)
            if isinstance(outcome, Proposal):
                return outcome
        if rack_row is not None and rack_wanted:
            if not rack_row.terms.relax_locality:
                return self._pass(Passed.PRIORITY, Reason.NODE_STRICT_LOCALITY, key)
            if self._rack_delay_is_over(chances):
                outcome = self._place(key, keyed, rack_row, NodeType.RACK_LOCAL)
                if isinstance(outcome, Proposal):
                    return outcome
        if any_row is None or any_row.count <= 0:
            return self._pass(Passed.PRIORITY, Reason.NODE_LOCALITY, key)
        if not any_row.terms.relax_locality:
            return self._pass(Passed.PRIORITY, Reason.NODE_STRICT_LOCALITY, key)
        if not self._off_switch_delay_is_over(keyed, any_row.count, chances):
            return self._pass(Passed.APPLICATION, Reason.NODE_OFF_SWITCH_DELAY, key, any_row.terms.capability)
        outcome = self._place(key, keyed, any_row, NodeType.OFF_SWITCH)
        return Passed.APPLICATION if outcome is Passed.LOCALITY else outcome

    def _rack_delay_is_over(self, chances: int) -> bool:
        return min(self._context.node_count, self._settings.node_locality_delay) < chances

    def _off_switch_delay_is_over(self, keyed: KeyedAsks, wanted: int, chances: int) -> bool:
        """Asks for `*` alone never wait; others by configuration, or by how many places they name."""
        if self._reserved is not None:
            return True
        node_count, places = self._context.node_count, len(keyed.rows)
        if node_count == 0:
            return False
        if places == 1:
            return True
        additional = self._settings.rack_locality_additional_delay
        if additional > -1:
            return chances > min(node_count, self._settings.node_locality_delay + additional)
        wait_factor = min(f32(max(places - 1, 0) / node_count), 1.0)
        return min(float(node_count), f32(wanted * wait_factor)) < chances

    # Room

    def _place(self, key: SchedulerKey, keyed: KeyedAsks, row: AskRow, kind: NodeType) -> Outcome:
        """Place it if the node has the room, reserve if it has not and one more may be held (assignContainer)."""
        node, calculator, limits = self._node, self._calculator, self._limits
        wanted = row.terms.capability
        if not calculator.fits_in(wanted, node.total):
            return self._pass(Passed.LOCALITY, Reason.NODE_TOTAL_TOO_SMALL, key, wanted, node.total)
        may_hold = self._may_hold_one_more(key, keyed, wanted)
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
                # One of its own reservations is given up for this one: to stay in the limits, or in what is wanted.
                proposal.to_release = self._application.reservation_to_give_up(key, must_free if is_short else wanted)
                if proposal.to_release is None:
                    return self._pass(Passed.LOCALITY, Reason.NODE_NOTHING_TO_UNRESERVE, key, wanted)
        elif (may_hold or self._reserved is not None) and not (looks_on and is_short):
            self._note(Reason.NODE_FULL, wanted, node.unallocated, key)
            proposal = Proposal(self._application, node, key, wanted, kind, is_allocation=False)
        else:
            return self._pass(Passed.LOCALITY, Reason.NODE_FULL, key, wanted, node.unallocated)
        proposal.reserved = self._reserved
        proposal.mode = self._mode
        return proposal

    def _with_killable(self, wanted: Resource) -> tuple[int, list[RMContainer]]:
        """1 with the killable containers that have to go for it, 0 if that does not help; for a leaf under its
        guarantee only."""
        if not self._application.leaf.is_under_guarantee(self._node.partition):
            return 0, []
        room, to_kill = self._node.unallocated, list[RMContainer]()
        for container in self._node.killable_in_hash_order():
            to_kill.append(container)
            room = room + container.resource
            if self._calculator.fits_in(wanted, room):
                return 1, to_kill
        return 0, []

    # What was refused

    def _pass(
        self,
        passed: Passed,
        reason: Reason,
        key: SchedulerKey,
        asked: Resource | None = None,
        bound: Resource | None = None,
    ) -> Passed:
        self._note(reason, asked, bound, key)
        return passed

    def _note(
        self,
        reason: Reason,
        asked: Resource | None = None,
        bound: Resource | None = None,
        key: SchedulerKey | None = None,
    ) -> None:
        self._application.refusals.note(self._node.node_id, reason, self._context.now_ms, asked, bound, key=key)
