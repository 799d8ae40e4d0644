"""What an ask must be before anything of its call is applied (SchedulerUtils.normalizeAndValidateRequest)."""

from __future__ import annotations

from msgspec.structs import replace

from rm.scheduler.model.node_labels import NodeLabels
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.usage import NO_LABEL
from yarn.asks import ANY, ResourceRequest
from yarn.errors import (
    InvalidLabelResourceRequestException,
    InvalidResourceRequestException,
    YARNFeatureNotEnabledException,
)
from yarn.java.hash_order import hash_order, string_hash
from yarn.java.values import trim
from yarn.resource import Resource
from yarn.states import ExecutionType


def check_capability(capability: Resource, allowed: Resource, configured: Resource) -> None:
    """Raises InvalidResourceRequestException if some type is below 0 or above what the queue allows.

    Every type is checked, also those that the calculator does not look at.
    """
    allowed_amounts = allowed.amounts()
    for name, amount in capability.amounts().items():
        if amount < 0:
            raise InvalidResourceRequestException(
                "Invalid resource request! Cannot allocate containers as requested resource is less than 0! "
                f"Requested resource type=[{name}], Requested resource={capability}"
            )
        if amount > allowed_amounts[name]:
            raise InvalidResourceRequestException(
                "Invalid resource request! Cannot allocate containers as requested resource is greater than maximum "
                f"allowed allocation. Requested resource type=[{name}], Requested resource={capability}, maximum "
                f"allowed allocation={allowed}, please note that maximum allowed allocation is calculated by scheduler "
                f"based on maximum resource of registered NodeManagers, which might be less than configured maximum "
                f"allocation={configured}"
            )


def with_trimmed_label(ask: ResourceRequest) -> ResourceRequest:
    """The ask with the blanks around its label removed (ResourceRequestPBImpl.getNodeLabelExpression)."""
    if ask.label is None:
        return ask
    label = trim(ask.label)
    return ask if label == ask.label else replace(ask, label=label)


def with_queue_label(ask: ResourceRequest, queue: CSQueue | None) -> ResourceRequest:
    """The ask with the queue's default label if it is for anywhere and names none, else with none for good.

    Nothing is done in a queue that does not exist: it may come into being with the application.
    """
    if ask.label is not None or queue is None:
        return ask
    default = queue.configuration.default_label if ask.resource_name == ANY else None
    return replace(ask, label=NO_LABEL if default is None else default)


def check_labels_enabled(ask: ResourceRequest, labels: NodeLabels) -> None:
    """Raises InvalidLabelResourceRequestException for a label where there are none."""
    if ask.label and not labels.enabled:
        raise InvalidLabelResourceRequestException(
            f"Invalid resource request, node label not enabled but request contains label expression {ask.label!r} "
            "(ask without a label)"
        )


def check_label(ask: ResourceRequest, queue: CSQueue | None, labels: NodeLabels) -> None:
    """Raises InvalidLabelResourceRequestException for more than one label, or one that the queue may not use."""
    label = ask.label or NO_LABEL
    if not label:
        return
    name = queue.name if queue is not None else ""
    if ask.resource_name != ANY:
        raise InvalidLabelResourceRequestException(
            f"Invalid resource request, queue={name} specified node label expression in a resource request has "
            f"resource name = {ask.resource_name}"
        )
    if "&&" in label:
        raise InvalidLabelResourceRequestException(
            f"Invalid resource request, queue={name} specified more than one node label in a node label expression, "
            f"node label expression = {ask.label}"
        )
    if queue is not None and not queue.configuration.may_use(label):
        accessible = ",".join(hash_order(queue.configuration.accessible_labels, string_hash))
        raise InvalidLabelResourceRequestException(
            f"Invalid resource request, queue={name} doesn't have permission to access all labels in resource request. "
            f"labelExpression of resource request={ask.label}. Queue labels={accessible}"
        )
    if queue is not None and not labels.has(label):
        raise InvalidLabelResourceRequestException(
            f"Invalid label resource request, cluster do not contain , label= {ask.label}"
        )


def check_execution_type(ask: ResourceRequest, *, opportunistic: bool) -> None:
    """Raises YARNFeatureNotEnabledException for an ask for opportunistic containers where there are such.

    Where there are none it is served as any other, as in Hadoop.
    """
    if opportunistic and ask.execution_type is ExecutionType.OPPORTUNISTIC:
        raise YARNFeatureNotEnabledException(
            f"ask {ask.resource_name} of priority {ask.priority} is for OPPORTUNISTIC containers: these are only "
            "made of guaranteed ones that run (ask for GUARANTEED and demote them)"
        )
