"""Records of queues as clients see them: capacities, counts, and partitions."""

from __future__ import annotations

from msgspec import Struct

from yarn.applications import ApplicationReport
from yarn.resource import NONE, Resource
from yarn.states import QueueState


class QueueStatistics(Struct, frozen=True):
    """Counts and amounts of one queue and all queues below it."""

    apps_submitted: int = 0
    apps_running: int = 0
    apps_pending: int = 0
    apps_completed: int = 0
    apps_killed: int = 0
    apps_failed: int = 0
    active_users: int = 0
    available_memory_mb: int = 0
    allocated_memory_mb: int = 0
    pending_memory_mb: int = 0
    reserved_memory_mb: int = 0
    available_vcores: int = 0
    allocated_vcores: int = 0
    pending_vcores: int = 0
    reserved_vcores: int = 0
    allocated_containers: int = 0
    pending_containers: int = 0
    reserved_containers: int = 0


class QueuePartition(Struct, frozen=True):
    """A queue's capacities on the nodes with a label; fractions (0..1) as in QueueInfo."""

    label: str
    capacity: float
    maximum_capacity: float
    absolute_capacity: float
    absolute_maximum_capacity: float
    effective_minimum: Resource
    effective_maximum: Resource
    maximum_am_percent: float = 0.0
    configured_minimum: Resource = NONE
    configured_maximum: Resource = NONE


class QueueInfo(Struct, frozen=True):
    """A queue. Capacities are fractions (0..1) of the parent's; `current_capacity` is used / guaranteed.

    They are for nodes without a label. `partitions` has the capacities for the labels that the queue may use.
    """

    name: str
    path: str
    state: QueueState
    capacity: float
    maximum_capacity: float
    current_capacity: float
    absolute_capacity: float
    absolute_maximum_capacity: float
    absolute_used_capacity: float
    statistics: QueueStatistics
    children: tuple[QueueInfo, ...] = ()
    applications: tuple[ApplicationReport, ...] = ()
    accessible_labels: frozenset[str] = frozenset()
    default_label_expression: str = ""
    preemption_disabled: bool = True
    intra_queue_preemption_disabled: bool = True
    weight: float = -1.0
    max_parallel_apps: int = 2147483647
    maximum_am_percent: float = 0.0
    configured_minimum: Resource = NONE
    configured_maximum: Resource = NONE
    effective_minimum: Resource = NONE
    effective_maximum: Resource = NONE
    scheduler: str = "CapacityScheduler"
    partitions: tuple[QueuePartition, ...] = ()
