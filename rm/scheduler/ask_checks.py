"""What an ask must be before anything of its call is applied (SchedulerUtils.validateResourceRequest)."""

from __future__ import annotations

from yarn.asks import ANY, ResourceRequest
from yarn.errors import InvalidLabelResourceRequestException, InvalidResourceRequestException
from yarn.resource import Resource


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


def check_label(ask: ResourceRequest, queue: str) -> None:
    """Raises InvalidLabelResourceRequestException for a label: node labels are not switched on."""
    label = (ask.label or "").strip()
    if not label:
        return
    if ask.resource_name != ANY:
        raise InvalidLabelResourceRequestException(
            f"Invalid resource request, queue={queue} specified node label expression in a resource request has "
            f"resource name = {ask.resource_name}"
        )
    raise InvalidLabelResourceRequestException(
        f"Invalid resource request, node label not enabled but request contains label expression {label!r} "
        "(ask without a label)"
    )
