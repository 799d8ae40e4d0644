"""The record of a placement, made when the proposal is booked and before it changes the request."""

from __future__ import annotations

from rm.scheduler.model.context import IGNORE, SchedulerContext
from rm.scheduler.model.origin import PASSED_NODES_MAX, PassedNode, PlacementOrigin
from rm.scheduler.model.requests import NodeType, RequestsOfKey
from rm.scheduler.placement.allocator import Proposal, off_switch_delay, rack_delay
from yarn.containers import ANY


def origin_of(proposal: Proposal, context: SchedulerContext) -> PlacementOrigin | None:
    """The record; None if the request does not exist any more.

    The refusals of other nodes are noted only if the request names places: then they are why it came here. For other
    requests that would cost more than all the rest, at each placement.
    """
    key, reserved = proposal.key, proposal.reserved
    of_key = proposal.application.requests.at(key)
    if of_key is None:
        return None
    places = len(of_key.rows) - 1
    passed: tuple[PassedNode, ...] = ()
    if places:
        refusals, node_id = proposal.application.refusals, proposal.node.node_id
        passed = refusals.last_of(key, of_key.since_ms, node_id, PASSED_NODES_MAX)
    return PlacementOrigin(
        of_key.since_ms,
        proposal.kind,
        proposal.opportunities,
        places,
        _delay(proposal, of_key, context) if places and reserved is None else None,
        None if reserved is None else reserved.started_ms,
        passed,
        tuple([container.id for container in proposal.to_kill]) if proposal.to_kill else (),
        proposal.mode is IGNORE,
    )


def _delay(proposal: Proposal, of_key: RequestsOfKey, context: SchedulerContext) -> float | None:
    """The number of offers that had to be missed before a node of this locality was accepted."""
    if proposal.kind is NodeType.NODE_LOCAL:
        return None
    if proposal.kind is NodeType.RACK_LOCAL:
        return rack_delay(context)
    return off_switch_delay(context, of_key, of_key.count(ANY))
