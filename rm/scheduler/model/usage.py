"""The usage of a queue, of a user in a queue, or of an attempt, by partition; and a queue's shares by partition.

A partition is the name of a node label, "" for nodes without one. A partition without bookings reads as all zero. In
queues and users `used` includes reservations; in an attempt it does not (Hadoop's ResourceUsage).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rm.scheduler.config.configured_capacity import WEIGHT_NOT_SET, ConfiguredCapacity
from yarn.nodes import NO_LABEL
from yarn.resource import INT32_MAX, INT32_MIN, NONE, Resource


class PartitionUsage:
    """The amounts on one partition.

    `am_limit` is the limit as last computed. `pending` is what is requested and not placed. `user_am_limit` is, in a
    leaf, the limit of one user as last computed, before the user's weight; reports show it.
    """

    __slots__ = ("am_limit", "am_used", "pending", "reserved", "used", "user_am_limit")

    def __init__(self, none: Resource) -> None:
        self.used = none
        self.pending = none
        self.reserved = none
        self.am_used = none
        self.am_limit = none
        self.user_am_limit = none

    def change_pending(self, amount: Resource) -> bool:
        """Add `amount` to `pending`. Returns True if vcores did not fit in 32 bits and the sum is wrong, as in Hadoop.

        Resources.add clones its first operand, and a clone keeps vcores in 32 bits (Resource.castToIntSafely).
        """
        pending = self.pending
        kept = pending if INT32_MIN <= pending.vcores <= INT32_MAX else _cloned(pending)
        self.pending = kept + amount
        return kept is not pending


def _cloned(resource: Resource) -> Resource:
    """Limit vcores to the largest 32-bit integer; below the smallest one keep only the lower 32 bits."""
    vcores = INT32_MAX if resource.vcores > INT32_MAX else (resource.vcores - INT32_MIN) % 2**32 + INT32_MIN
    return Resource(resource.memory_mb, vcores, resource.extra)


class ResourceUsage:
    """Usage by partition. `default` is the usage on NO_LABEL, by far the most frequent one."""

    __slots__ = ("_none", "_parts", "default")

    def __init__(self, none: Resource) -> None:
        self._none = none
        self.default = PartitionUsage(none)
        self._parts: dict[str, PartitionUsage] = {NO_LABEL: self.default}

    def partitions(self) -> Iterator[str]:
        """The partitions that ever had bookings, NO_LABEL first."""
        return iter(self._parts)

    def booked(self, partition: str) -> PartitionUsage:
        """The partition's amounts, for the caller to change; created if absent."""
        if not partition:
            return self.default
        part = self._parts.get(partition)
        if part is None:
            part = self._parts[partition] = PartitionUsage(self._none)
        return part

    def used(self, partition: str) -> Resource:
        if not partition:
            return self.default.used
        part = self._parts.get(partition)
        return part.used if part is not None else self._none

    def pending(self, partition: str) -> Resource:
        if not partition:
            return self.default.pending
        part = self._parts.get(partition)
        return part.pending if part is not None else self._none

    def is_pending(self) -> bool:
        """True if anything is requested, on any partition."""
        # This is called in nearly every node heartbeat, and `any` would take three times as long.
        for part in self._parts.values():  # noqa: SIM110
            if not part.pending.is_none():
                return True
        return False

    def reserved(self, partition: str) -> Resource:
        if not partition:
            return self.default.reserved
        part = self._parts.get(partition)
        return part.reserved if part is not None else self._none

    def am_used(self, partition: str) -> Resource:
        if not partition:
            return self.default.am_used
        part = self._parts.get(partition)
        return part.am_used if part is not None else self._none

    def am_limit(self, partition: str) -> Resource:
        if not partition:
            return self.default.am_limit
        part = self._parts.get(partition)
        return part.am_limit if part is not None else self._none

    def user_am_limit(self, partition: str) -> Resource:
        part = self._parts.get(partition)
        return part.user_am_limit if part is not None else self._none

    def copy_used(self, other: ResourceUsage) -> None:
        """Copy what `other` uses, on every partition (copyAllUsed)."""
        for partition, part in other._parts.items():
            self.booked(partition).used = part.used


class PartitionCapacities:
    """A queue's shares of one partition (32-bit floats, fractions of 1) and the resulting amounts.

    `capacity` and `maximum_capacity` are fractions of the parent's, the absolute ones of the whole partition.
    `used_capacity` is used / guaranteed and may be above 1; both used capacities are as of the last booking or change
    of the cluster. `effective_minimum` is guaranteed, `effective_maximum` is the upper bound, `effective_maximum_down`
    the upper bound rounded down to whole containers. Usage is divided by `guarantee_floor`: the guarantee, but at least
    one container.
    """

    __slots__ = (
        "absolute_capacity",
        "absolute_maximum_capacity",
        "absolute_used_capacity",
        "capacity",
        "effective_maximum",
        "effective_maximum_down",
        "effective_minimum",
        "guarantee_floor",
        "maximum_am_percent",
        "maximum_capacity",
        "normalized_weight",
        "used_capacity",
        "weight",
    )

    def __init__(self, none: Resource) -> None:
        self.capacity = 0.0
        self.maximum_capacity = 0.0
        self.absolute_capacity = 0.0
        self.absolute_maximum_capacity = 0.0
        self.used_capacity = 0.0
        self.absolute_used_capacity = 0.0
        self.maximum_am_percent = 0.0
        self.weight = WEIGHT_NOT_SET
        self.normalized_weight = 0.0
        self.effective_minimum = none
        self.effective_maximum = none
        self.effective_maximum_down = none
        self.guarantee_floor = none

    def configure(self, configured: ConfiguredCapacity) -> None:
        """Apply the configured capacity."""
        self.capacity = configured.capacity
        self.maximum_capacity = configured.maximum_capacity
        self.maximum_am_percent = configured.maximum_am_percent
        self.weight = configured.weight

    def clear(self) -> None:
        """Reset what was configured; the normalised weight and the AM percentage stay, as in Hadoop."""
        self.capacity = self.maximum_capacity = 0.0
        self.absolute_capacity = self.absolute_maximum_capacity = 0.0
        self.weight = WEIGHT_NOT_SET


class QueueCapacities:
    """Shares by partition. A partition that was never configured or used reads as all zero."""

    __slots__ = ("_none", "_nothing", "_parts", "default")

    def __init__(self, none: Resource) -> None:
        self._none = none
        self.default = PartitionCapacities(none)
        self._nothing = PartitionCapacities(none)
        self._parts: dict[str, PartitionCapacities] = {NO_LABEL: self.default}

    def configure(self, configured: Mapping[str, ConfiguredCapacity]) -> None:
        """Apply {partition: configured capacity}; a partition no longer configured is reset but stays listed."""
        for part in self._parts.values():
            part.clear()
        for partition, capacity in configured.items():
            self.booked(partition).configure(capacity)

    def partitions(self) -> Iterator[str]:
        """The partitions that were ever configured or used (getExistingNodeLabels)."""
        return iter(self._parts)

    def booked(self, partition: str) -> PartitionCapacities:
        """The partition's shares, for the caller to change; created if absent."""
        if not partition:
            return self.default
        part = self._parts.get(partition)
        if part is None:
            part = self._parts[partition] = PartitionCapacities(self._none)
        return part

    def has(self, partition: str) -> bool:
        """True if the queue has shares of the partition."""
        return partition in self._parts

    def at(self, partition: str) -> PartitionCapacities:
        """The partition's shares."""
        return self._parts.get(partition, self._nothing) if partition else self.default


class ResourceLimits:
    """The limits of a queue in one visit (Hadoop's ResourceLimits).

    `limit`: the most that the queue may use. `headroom` is set by the queue's own check (limit - used).
    `blocked_headroom` is set by a parent, which offers a node to its children in turn. It is the headroom of
    children that failed on their own limits; the children that follow may not use it. `amount_needed_unreserve` is
    set by the user check: how much must be unreserved elsewhere to stay within the user's limit.
    """

    __slots__ = ("amount_needed_unreserve", "blocked_headroom", "headroom", "limit")

    def __init__(self, limit: Resource, none: Resource) -> None:
        self.limit = limit
        self.headroom = limit
        self.amount_needed_unreserve = none
        self.blocked_headroom: Resource | None = None

    def net_limit(self) -> Resource:
        """The limit minus `blocked_headroom`."""
        return self.limit if self.blocked_headroom is None else self.limit - self.blocked_headroom

    def add_blocked_headroom(self, amount: Resource) -> None:
        """Withhold `amount` from later children, for a child that was offered the node and failed on its own limit."""
        self.blocked_headroom = amount if self.blocked_headroom is None else self.blocked_headroom + amount


class Losses:
    """Lost containers: their number, sizes, and resource-seconds (QueueMetrics, RMAppAttemptMetrics).

    The runtime of each container is cut to whole seconds before it is added.
    """

    __slots__ = ("containers", "memory_mb_seconds", "resource", "vcore_seconds")

    def __init__(self, none: Resource = NONE) -> None:
        self.containers = 0
        self.resource = none
        self.memory_mb_seconds = 0
        self.vcore_seconds = 0

    def add(self, size: Resource, lifetime_ms: int) -> None:
        """Count a lost container."""
        self.containers += 1
        self.resource = self.resource + size
        self.memory_mb_seconds += size.memory_mb * lifetime_ms // 1000
        self.vcore_seconds += size.vcores * lifetime_ms // 1000
