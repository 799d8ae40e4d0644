"""The reason why an attempt waits, in Hadoop's words (updateAMContainerDiagnostics).

Hadoop composes the sentence whenever its scheduler considers the attempt, stores it, and shows the last one. Here it is
composed for each report, from data that the scheduler has anyway, so the numbers are current.
"""

from __future__ import annotations

from datetime import UTC, datetime

from rm.core.applications import RMAppAttempt
from rm.core.service_context import RMServiceContext
from rm.core.states import RMAppAttemptState
from rm.scheduler.capacity.activation import user_am_limit
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.refusals import Reason, Refusal
from yarn.ids import NodeId
from yarn.java.binary32 import f32, shortest

UNMANAGED = "User launched the Application Master, since it's unmanaged. "
INACTIVATED = "Application is added to the scheduler and is not yet activated. "
ACTIVATED = "Application is Activated, waiting for resources to be assigned for AM. "
ASSIGNED = "Scheduler has assigned a container for AM, waiting for AM container to be launched"
DEFAULT_PARTITION = "<DEFAULT_PARTITION>"

_SKIPS = {
    Reason.NODE_BLACKLISTED: "Skipped scheduling for this Node as its black listed. ",
    Reason.NODE_LOCALITY: "Skipping assigning to Node as request locality is not matching. ",
    Reason.NODE_STRICT_LOCALITY: "Skipping assigning to Node as request locality is not matching. ",
}
_USER_AT_LIMIT = "User capacity has reached its maximum limit"
_WAITS_FOR_LAUNCH = (RMAppAttemptState.ALLOCATED_SAVING, RMAppAttemptState.ALLOCATED)


def launch_diagnostics(context: RMServiceContext, attempt: RMAppAttempt) -> str:
    """Why the AM has not registered yet; empty once it has, or once the attempt is over."""
    if attempt.launch_diagnostics is not None:
        return attempt.launch_diagnostics
    application = context.scheduler.applications.get(attempt.attempt_id.application_id)
    scheduled = None if application is None else application.current_attempt
    if scheduled is None or scheduled.attempt_id != attempt.attempt_id:
        return ""
    if attempt.state in _WAITS_FOR_LAUNCH:
        return _stamped(context.now_ms, ASSIGNED)
    if attempt.state is RMAppAttemptState.LAUNCHED_UNMANAGED_SAVING:
        return _stamped(context.now_ms, UNMANAGED)
    if attempt.state is not RMAppAttemptState.SCHEDULED:
        return ""
    if not scheduled.is_runnable:
        return ""
    if scheduled in LeafQueue.of(scheduled).pending:
        return _not_activated(scheduled)
    return _activated(context, scheduled)


def _not_activated(scheduled: FiCaSchedulerApp) -> str:
    """The diagnostics of an AM that waits for activation: the AM limit that prevents it, with the amounts."""
    leaf, partition = LeafQueue.of(scheduled), scheduled.am_partition
    refusal = leaf.am_refusal(scheduled)
    reason = Reason.AM_NO_CLUSTER if refusal is None else refusal.reason
    user = leaf.users.users.get(scheduled.user)
    weight = 1.0 if user is None else user.weight
    details = (
        f"AM Partition = {partition or DEFAULT_PARTITION}; AM Resource Request = {scheduled.am_resource}; "
        f"Queue Resource Limit for AM = {leaf.am_limit(partition)}; "
        f"User AM Resource Limit of the queue = {user_am_limit(leaf, partition, weight)}; "
        f"Queue AM Resource Usage = {leaf.usage.am_used(partition)}; "
    )
    at_ms = scheduled.started_ms if refusal is None else refusal.at_ms
    return _stamped(at_ms, f"{INACTIVATED}{reason.value}  Details : {details}")


def _activated(context: RMServiceContext, scheduled: FiCaSchedulerApp) -> str:
    """The diagnostics of an activated AM: why the last considered node was skipped, and how full the queue is."""
    leaf, partition = LeafQueue.of(scheduled), scheduled.am_partition
    capacities = leaf.capacities.at(partition)
    refusals = list(leaf.last_refusals(scheduled).items())
    at_ms, last = scheduled.started_ms, ""
    if refusals:
        node_id, refusal = refusals[-1]
        at_ms, last = refusal.at_ms, _last_look(context, node_id, refusal, scheduled.user)
    details = (
        f"AM Partition = {partition or DEFAULT_PARTITION} ; "
        f"Partition Resource = {context.scheduler.context.partition_resource(partition)} ; "
        f"Queue's Absolute capacity = {_percent(capacities.absolute_capacity)} % ; "
        f"Queue's Absolute used capacity = {_percent(capacities.absolute_used_capacity)} % ; "
        f"Queue's Absolute max capacity = {_percent(capacities.absolute_maximum_capacity)} % ; "
        f"Queue's capacity (absolute resource) = {leaf.effective_minimum(partition)} ; "
        f"Queue's used capacity (absolute resource) = {leaf.usage.used(partition)} ; "
        f"Queue's max capacity (absolute resource) = {leaf.effective_maximum(partition)} ; "
    )
    return _stamped(at_ms, f"{ACTIVATED}{last} Details : {details}")


def _last_look(context: RMServiceContext, node_id: NodeId, refusal: Refusal, user: str) -> str:
    if refusal.reason is Reason.USER_LIMIT:
        return _user_at_limit(context, refusal, user)
    node = context.scheduler.nodes.get(node_id)
    if node is None:
        return ""
    return (
        f"{_SKIPS.get(refusal.reason, '')} Last Node which was processed for the application : {node_id} "
        f"( Partition : [{node.partition}], Total resource : {node.total}, Available resource : {node.unallocated} )."
    )


def _user_at_limit(context: RMServiceContext, refusal: Refusal, user: str) -> str:
    if not context.settings.release.tells_user_limit:
        return f"{_USER_AT_LIMIT}."
    used = "null" if refusal.asked is None else refusal.asked
    return f"{_USER_AT_LIMIT}, user limit is {refusal.bound}, resource used by {user} is {used}."


def _percent(share: float) -> str:
    return shortest(f32(share * 100))


def _stamped(at_ms: int, text: str) -> str:
    """The text with a time in UTC as Hadoop writes it: `[Sat Nov 21 00:57:34 +0000 2026] ...`."""
    at = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"[{at:%a %b %d %H:%M:%S %z %Y}] {text}"
