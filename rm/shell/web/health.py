"""The part `health` of the scheduler's answer (CapacitySchedulerHealthInfo): the last operations of each kind."""

from __future__ import annotations

from rm.core.context import RMContext
from wire.web.document import Element, many
from wire.web.records import resource_element

_OPERATIONS = ("last-allocation", "last-release", "last-preemption", "last-reservation")
_DETAILS = ("releases", "allocations", "reservations")


def health_element(context: RMContext) -> Element:
    """The last operations and the amounts of the last run."""
    nothing = resource_element(context.scheduler.context.none)
    return Element(
        {
            "lastrun": context.now_ms,
            "operationsInfo": many(
                Element({"operation": name, "nodeId": "N/A", "containerId": "N/A", "queue": "N/A"})
                for name in _OPERATIONS
            ),
            "lastRunDetails": many(Element({"operation": name, "count": 0, "resources": nothing}) for name in _DETAILS),
        }
    )
