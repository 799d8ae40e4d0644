"""The part `health` of the scheduler's answer (CapacitySchedulerHealthInfo): the last operations of each kind."""

from __future__ import annotations

from rm.core.context import RMContext
from rm.scheduler.model.health import LastOperation, SchedulerHealth
from wire.web.document import Element, many
from wire.web.records import resource_element
from yarn.resource import Resource

UNAVAILABLE = "N/A"


def health_element(context: RMContext) -> Element:
    """The last operations, and what the last visit of a node placed; empty if health is not recorded."""
    none = context.scheduler.context.none
    health = context.scheduler.context.health or SchedulerHealth(none)
    is_last = health.run_ms == context.now_ms
    return Element(
        {
            "lastrun": context.now_ms,
            "operationsInfo": many(
                [
                    _operation("last-allocation", health.allocation),
                    _operation("last-release", health.release),
                    _operation("last-preemption", health.preemption),
                    _operation("last-reservation", health.reservation),
                ]
            ),
            "lastRunDetails": many(
                [
                    _detail("releases", 0, none),
                    _detail("allocations", *(health.run_allocated if is_last else (0, none))),
                    _detail("reservations", *(health.run_reserved if is_last else (0, none))),
                ]
            ),
        }
    )


def _operation(name: str, last: LastOperation) -> Element:
    places = {"nodeId": last.node_id, "containerId": last.container_id, "queue": last.queue}
    known = {field: UNAVAILABLE if value is None else str(value) for field, value in places.items()}
    return Element({"operation": name, **known})


def _detail(name: str, count: int, amount: Resource) -> Element:
    return Element({"operation": name, "count": count, "resources": resource_element(amount)})
