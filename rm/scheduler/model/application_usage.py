"""What an attempt holds and asks for, as its report shows it (ApplicationResourceUsageReport)."""

from __future__ import annotations

import math

from rm.scheduler.context import SchedulerContext
from rm.scheduler.model.application import FiCaSchedulerApp
from yarn.applications import ApplicationResourceUsage
from yarn.java.binary32 import f32
from yarn.resource import Resource


def usage_of(attempt: FiCaSchedulerApp, context: SchedulerContext) -> ApplicationResourceUsage:
    """Amounts over all partitions; percentages of the queue's guarantee and of the cluster. Without seconds."""
    used = reserved = context.none
    for partition in attempt.usage.partitions():
        used = used + attempt.usage.used(partition)
        reserved = reserved + attempt.usage.reserved(partition)
    return ApplicationResourceUsage(
        used_containers=len(attempt.live_containers),
        reserved_containers=len(attempt.reserved),
        used=used,
        reserved=reserved,
        needed=used + reserved,
        queue_usage_percentage=_percentage(context, used, attempt.leaf.effective_minimum(attempt.am_partition)),
        cluster_usage_percentage=_percentage(context, used, context.cluster_resource),
    )


def _percentage(context: SchedulerContext, used: Resource, whole: Resource) -> float:
    """A 32-bit float; 0 of nothing."""
    if whole.is_none() or context.cluster_resource.is_none():
        return 0.0
    share = f32(context.calculator.divide(context.cluster_resource, used, whole) * 100)
    return share if math.isfinite(share) else 0.0
