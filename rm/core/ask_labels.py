"""What the ResourceManager makes of the labels of asks before the scheduler sees them.

An ask for anywhere that names no label gets its application's. And some partitions can be kept for applications that
were submitted with their label: such an application asks for nothing else, and nobody else asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rm.scheduler.request_checks import with_trimmed_label
from yarn.asks import ANY, ResourceRequest

if TYPE_CHECKING:
    from rm.core.context import RMContext


def with_application_label(
    asks: Iterable[ResourceRequest], label: str | None, exclusive: frozenset[str]
) -> tuple[ResourceRequest, ...]:
    """A master's asks, in an application submitted with `label` (DefaultAMSProcessor.allocate)."""
    return tuple(
        enforce_exclusivity(replace(ask, label=label) if ask.label is None else ask, label, exclusive)
        if ask.resource_name == ANY
        else ask
        for ask in asks
    )


def enforce_exclusivity(ask: ResourceRequest, label: str | None, exclusive: frozenset[str]) -> ResourceRequest:
    """The application's label instead of the ask's if either is `exclusive` (enforcePartitionExclusivity)."""
    ask = with_trimmed_label(ask)
    if ask.label != label and (label in exclusive or ask.label in exclusive):
        return replace(ask, label=label)
    return ask


def with_default_label(
    asks: tuple[ResourceRequest, ...], context: RMContext, queue: str
) -> tuple[ResourceRequest, ...]:
    """Asks for a master whose queue came into being after its submission was checked (ScheduleTransition)."""
    if all(ask.label is not None or ask.resource_name != ANY for ask in asks):
        return asks
    default = context.scheduler.default_label(queue)
    return tuple(replace(ask, label=default) if ask.label is None and ask.resource_name == ANY else ask for ask in asks)
