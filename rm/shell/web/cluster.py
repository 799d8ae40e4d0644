"""Answers about the cluster as a whole: info, metrics, the scheduler's overview (ClusterInfo, ClusterMetricsInfo).

Functions of the core's context that change nothing.
"""

from __future__ import annotations

from rm.core.context import RMContext
from rm.core.node_reports import cluster_metrics
from rm.core.reports.queues import queue_statistics
from rm.shell.web.counters import AppCounts
from rm.shell.web.queues import root_queue
from wire.web.document import Document, Element, Style
from wire.web.records import resource_element, versions
from yarn.java.binary32 import f32, truncated
from yarn.java.versions import HADOOP_VERSION
from yarn.nodes import ClusterMetrics
from yarn.queues import QueueStatistics
from yarn.states import HAServiceState

NO_ELECTOR = "Could not find leader elector. Verify both HA and automatic failover are enabled."
_STORES = "org.apache.hadoop.yarn.server.resourcemanager.recovery."


def cluster_info(context: RMContext, store_class: str, elector: str = NO_ELECTOR) -> Document:
    """The answer to /ws/v1/cluster/info. `store_class`: the configured one; `elector`: the connection to other RMs."""
    started_ms = context.cluster_timestamp
    return Document(
        "clusterInfo",
        Element(
            {
                "id": started_ms,
                "startedOn": started_ms,
                "state": "STARTED",
                "haState": "ACTIVE",
                "rmStateStoreName": store_class if context.settings.recovery_enabled else f"{_STORES}NullRMStateStore",
                **versions("resourceManager", context.settings.release.version),
                "haZooKeeperConnectionState": elector,
            }
        ),
    )


def standby_info(state: HAServiceState, elector: str) -> Document:
    """The answer of a ResourceManager that is not active. `elector`: its connection to the others."""
    return Document(
        "clusterInfo",
        Element(
            {
                "state": "STARTED",
                "haState": state.name,
                **versions("resourceManager", HADOOP_VERSION),
                "haZooKeeperConnectionState": elector,
            }
        ),
    )


def user_info(login_user: str, user: str) -> Document:
    """The answer to /ws/v1/cluster/userinfo."""
    return Document("userInfo", Element({"rmLoginUser": login_user, "requestedUser": user}), Style.UNWRAPPED)


def metrics(context: RMContext, counts: AppCounts) -> Document:
    """The answer to /ws/v1/cluster/metrics, about the partition without label unless a field's name says otherwise.

    `counts`: applications since the start.
    """
    scheduler = context.scheduler
    root, nodes = root_queue(context), cluster_metrics(context)
    queue = queue_statistics(context, root)
    used, reserved = scheduler.context.none, scheduler.context.none
    for partition in root.usage.partitions():
        used, reserved = used + root.usage.used(partition), reserved + root.usage.reserved(partition)
    total_mb = queue.available_memory_mb + queue.allocated_memory_mb + queue.reserved_memory_mb
    total_vcores = queue.available_vcores + queue.allocated_vcores + queue.reserved_vcores
    utilized_mb, utilized_vcores = utilization(context)
    return Document(
        "clusterMetrics",
        Element(
            {
                **_applications_and_amounts(queue, counts),
                "totalMB": total_mb,
                "utilizedMB": 0,  # ClusterMetricsInfo never sets it
                "totalVirtualCores": total_vcores,
                "utilizedVirtualCores": utilized_vcores,
                "utilizedMBPercent": _percent(utilized_mb, total_mb),
                "utilizedVirtualCoresPercent": _percent(utilized_vcores, total_vcores),
                "rmSchedulerBusyPercent": -1,
                **_node_counts(nodes),
                "containerAssignedPerSecond": 0,
                "totalUsedResourcesAcrossPartition": resource_element(used),
                "totalClusterResourcesAcrossPartition": resource_element(scheduler.cluster_resource),
                "totalReservedResourcesAcrossPartition": resource_element(reserved),
                "totalAllocatedContainersAcrossPartition": root.container_count,
                "crossPartitionMetricsAvailable": True,
                "rmEventQueueSize": 0,
                "schedulerEventQueueSize": 0,
            }
        ),
    )


def scheduler_overview(context: RMContext) -> Document:
    """The answer to /ws/v1/cluster/scheduler-overview."""
    scheduler = context.scheduler
    types = ["memory-mb (unit=Mi)", "vcores", *scheduler.resource_types.extra_names]
    return Document(
        "scheduler",
        Element(
            {
                "schedulerType": "Capacity Scheduler",
                "schedulingResourceType": ",".join(types),
                "minimumAllocation": resource_element(scheduler.minimum_allocation),
                "maximumAllocation": resource_element(scheduler.maximum_allocation(scheduler.context.now_ms)),
                "applicationPriority": context.settings.application_priority_max,
                "schedulerBusy": -1,
                "rmDispatcherEventQueueSize": 0,
                "schedulerDispatcherEventQueueSize": 0,
            }
        ),
        Style.MAPPED,
    )


def _applications_and_amounts(queue: QueueStatistics, counts: AppCounts) -> dict[str, int]:
    return {
        "appsSubmitted": counts.submitted,
        "appsCompleted": counts.completed,
        "appsPending": queue.apps_pending,
        "appsRunning": queue.apps_running,
        "appsFailed": counts.failed,
        "appsKilled": counts.killed,
        "reservedMB": queue.reserved_memory_mb,
        "availableMB": queue.available_memory_mb,
        "allocatedMB": queue.allocated_memory_mb,
        "pendingMB": queue.pending_memory_mb,
        "reservedVirtualCores": queue.reserved_vcores,
        "availableVirtualCores": queue.available_vcores,
        "allocatedVirtualCores": queue.allocated_vcores,
        "pendingVirtualCores": queue.pending_vcores,
        "containersAllocated": queue.allocated_containers,
        "containersReserved": queue.reserved_containers,
        "containersPending": queue.pending_containers,
    }


def _node_counts(nodes: ClusterMetrics) -> dict[str, int]:
    counts = {
        "lostNodes": nodes.lost,
        "unhealthyNodes": nodes.unhealthy,
        "decommissioningNodes": nodes.decommissioning,
        "decommissionedNodes": nodes.decommissioned,
        "rebootedNodes": nodes.rebooted,
        "activeNodes": nodes.active,
        "shutdownNodes": nodes.shutdown,
    }
    return {"totalNodes": sum(counts.values()), **counts}


def utilization(context: RMContext) -> tuple[int, int]:
    """(MB, vcores) in use on all nodes, as last reported, scaled to what each node offers (RMNodeImpl)."""
    memory_mb = vcores = 0
    for node in context.nodes.values():
        used, physical = node.node_utilization, node.physical or node.capability
        if used is not None:
            share = f32(f32(used.physical_memory_mb) / max(1.0, physical.memory_mb))
            memory_mb += truncated(f32(share * node.capability.memory_mb))
            vcores += truncated(f32(f32(f32(used.cpu) / max(1.0, physical.vcores)) * node.capability.vcores))
    return memory_mb, vcores


def _percent(part: int, whole: int) -> int:
    return part * 100 // whole if whole > 0 else 0
