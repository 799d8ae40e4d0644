"""Books the requests of applications: pending amounts up the tree, and whether their users are active.

An attempt's requests (AppSchedulingInfo) do not know about queues. They return what has changed; it is applied here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.requests import Change, DemandChange, NodeType, PendingChanged, RequestTerms, SchedulerKey
from yarn.asks import ResourceRequest


def update_requests(application: FiCaSchedulerApp, requests: Sequence[ResourceRequest]) -> bool:
    """Apply an AM's new rows; True if anything pending changed."""
    is_changed, changes = application.requests.update(requests)
    _apply(application, changes)
    return is_changed


def put_requests(application: FiCaSchedulerApp, key: SchedulerKey, rows: list[tuple[RequestTerms, int]]) -> None:
    """Replace the rows of one key."""
    _apply(application, application.requests.put(key, rows))


def restore_requests(application: FiCaSchedulerApp, key: SchedulerKey, terms: Iterable[RequestTerms]) -> None:
    """Request a lost container again that its AM never saw."""
    _apply(application, application.requests.restore(key, terms))


def take_request(
    application: FiCaSchedulerApp, kind: NodeType, node: SchedulerNode, key: SchedulerKey
) -> tuple[RequestTerms, ...]:
    """Subtract a container placed on the node; returns the terms to request it again if it is lost."""
    terms, changes = application.requests.allocate(kind, node.name, node.rack, key)
    _apply(application, changes)
    return terms


def move_requests(application: FiCaSchedulerApp, source: LeafQueue, target: LeafQueue) -> None:
    """Move what is pending to another leaf, and make the user active there instead (AppSchedulingInfo.move)."""
    for partition, amount in application.requests.booked_pending():
        source.change_pending(partition, -amount)
        target.change_pending(partition, amount)
    application_id = application.attempt_id.application_id
    source.users.deactivate_application(application.user, application_id)
    if application.requests.keys:
        target.users.activate_application(application.user, application_id)


def end_requests(application: FiCaSchedulerApp) -> None:
    """Subtract all that an ended attempt had pending. This does not deactivate the user."""
    application.is_stopped = True
    for partition, amount in application.requests.stop():
        application.leaf.change_pending(partition, -amount)


def _apply(application: FiCaSchedulerApp, changes: Iterable[Change]) -> None:
    leaf, application_id = LeafQueue.of(application), application.attempt_id.application_id
    for change in changes:
        if isinstance(change, PendingChanged):
            leaf.change_pending(change.partition, change.amount)
            leaf.active.listener.requests_changed(application_id)
        elif change is DemandChange.STARTED:
            leaf.users.activate_application(application.user, application_id)
        elif change is DemandChange.ENDED:
            leaf.users.deactivate_application(application.user, application_id)
        else:
            leaf.context.pending_miscounted = True
