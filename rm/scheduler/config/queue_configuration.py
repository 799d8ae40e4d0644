"""The configuration of one queue, including what it inherits. `queue_reader` reads it."""

from __future__ import annotations

from msgspec import Struct

from rm.scheduler.config.acls import PriorityAcl
from rm.scheduler.config.configured_capacity import ConfiguredCapacity
from rm.scheduler.config.reader import Reader
from yarn.containers import ANY
from yarn.resource import Resource
from yarn.states import QueueState


class ApplicationLifetime(Struct, frozen=True):
    """The lifetime of applications of a queue (QueueAppLifetimeAndLimitSettings), in seconds; 0 or less: no limit.

    A negative configured maximum means the parent's. A negative configured default means the parent's, at most the
    queue's own maximum, but only if some queue above configures a default; otherwise the default is the maximum.
    `is_default_specified`: this queue or one above it configures a default.
    """

    maximum_s: int
    default_s: int
    is_default_specified: bool

    def of(self, requested_s: int) -> int:
        """The lifetime in seconds of an application that requests `requested_s`. 0 or less means that it requests none.

        A result of 0 or less means that there is no limit.
        """
        if requested_s <= 0:
            return self.default_s
        return requested_s if self.maximum_s <= 0 else min(requested_s, self.maximum_s)


def read_lifetime(reader: Reader, prefix: str, above: ApplicationLifetime | None) -> ApplicationLifetime:
    """The lifetimes of the queue whose keys begin with `prefix`; `above`: those of its parent, None for root."""
    maximum_s = reader.long(prefix + "maximum-application-lifetime", -1)
    default_s = reader.long(prefix + "default-application-lifetime", -1)
    if above is None:
        return ApplicationLifetime(maximum_s, default_s, default_s >= 0)
    specified = default_s >= 0 or above.is_default_specified
    if maximum_s < 0:
        maximum_s = above.maximum_s
    if default_s < 0:
        default_s = min(above.default_s, maximum_s) if specified else maximum_s
    if 0 < maximum_s < default_s:
        reader.fault(
            prefix + "default-application-lifetime",
            f"Default lifetime {default_s} can't exceed maximum lifetime {maximum_s}",
            "lower the default lifetime, or raise the maximum",
            value=str(default_s),
        )
    return ApplicationLifetime(maximum_s, default_s if default_s > 0 else maximum_s, specified)


FIFO = "fifo"
FAIR = "fair"
FIFO_FOR_PENDING = "fifo-for-pending-apps"
FIFO_WITH_PARTITIONS = "fifo-with-partitions"
UTILIZATION = "utilization"
PRIORITY_UTILIZATION = "priority-utilization"

PLAN_DEFAULT = "-default"
"""Suffix of the leaf below a reservable queue (ReservationConstants.DEFAULT_QUEUE_SUFFIX)."""


class QueueCreation(Struct, frozen=True):
    """Automatic creation of queues below a parent, in the current way (`auto-queue-creation-v2`).

    `queues_max`: the maximum number of children, configured ones included. `depth_max`: the number of levels that may
    be created below the nearest configured parent. `removes_idle`: this queue itself, if it was created on demand, may
    be removed when idle.
    """

    enabled: bool
    queues_max: int
    depth_max: int
    removes_idle: bool


class ManagedCreation(Struct, frozen=True):
    """Automatic creation of leaves below a managed parent, in the older way (`auto-create-child-queue`).

    `fails_when_full`: create no leaf for which the parent has no guarantee left. `capacity`: the capacity in the leaf
    template, as a share of the parent.
    """

    queues_max: int
    fails_when_full: bool
    capacity: ConfiguredCapacity


class QueueConfiguration(Struct, frozen=True):
    """The configuration of one queue. Fractions are 32-bit floats in 0..1; `user_limit` is a percentage, as in Hadoop.

    `children`: the names of the configured ones. `capacities` {partition: capacity}. `maximum_applications`: -1 =
    derived from the capacity. `user_limit_factor`: -1 = no limit for a single user. `user_weights` {user: weight},
    inherited ones included. `state`: None = not configured; a new queue then has `initial_state`.
    `preemption_disabled`: other queues may not preempt containers of this one, because of its own key, the key of a
    queue above, or because preemption is off. `intra_queue_preemption_off`: applications of this queue may not preempt
    one another, because of its own key or that of a queue above.

    `is_dynamic`: a parent whose `creation` is enabled created the queue on demand. `is_auto_created`: a parent whose
    `managed` is not None did. `is_plan`: the queue is reservable (PlanQueue). `accessible_labels`: `("*",)` = all.
    `default_label`: the label of resource requests without one; None = not configured. `exclusive_partitions`: with the
    ordering policy fifo-with-partitions, applications submitted with the label of such a partition are offered only its
    nodes, and its nodes are offered only to them.
    """

    path: str
    name: str
    children: tuple[str, ...]
    is_leaf: bool
    is_dynamic: bool
    is_plan: bool
    creation: QueueCreation
    capacities: dict[str, ConfiguredCapacity]
    accessible_labels: tuple[str, ...]
    default_label: str | None
    user_limit: float
    user_limit_factor: float
    user_weights: dict[str, float]
    maximum_applications: int
    max_parallel_apps: int
    maximum_allocation: Resource
    ordering_policy: str
    fair_by_size: bool
    exclusive_partitions: tuple[str, ...]
    priority: int
    default_application_priority: int
    priority_acls: tuple[PriorityAcl, ...]
    lifetime: ApplicationLifetime
    state: QueueState | None
    initial_state: QueueState
    allow_zero_capacity_sum: bool
    preemption_disabled: bool
    intra_queue_preemption_off: bool
    managed: ManagedCreation | None = None
    is_auto_created: bool = False

    @property
    def parent_path(self) -> str:
        """The parent's path, "" for root. Names of queues may contain dots, so the path alone is not enough."""
        return self.path[: -len(self.name) - 1]

    @property
    def is_on_demand(self) -> bool:
        """True if the queue was created on demand, in either way."""
        return self.is_dynamic or self.is_auto_created

    @property
    def intra_queue_preemption_disabled(self) -> bool:
        """True if applications of the queue do not lose containers to one another."""
        return self.intra_queue_preemption_off or self.preemption_disabled

    def may_use(self, label: str) -> bool:
        """True if resource requests in the queue may name the label. Every queue may use the default partition."""
        return label in self.accessible_labels or ANY in self.accessible_labels
