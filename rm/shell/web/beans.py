"""The ResourceManager's beans for /jmx and /metrics: what Prometheus exporters for Hadoop read."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Callable, Iterator

from rm.core.context import RMContext
from rm.core.node_reports import cluster_metrics
from rm.core.reports.queues import leaves_of, requested_containers
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.requests import NodeType
from rm.shell.web.cluster import utilization
from rm.shell.web.counters import AppCounters
from rm.shell.web.queues import all_queues, root_queue
from wire.web.jmx import Attribute, Bean
from wire.web.process_beans import process_beans
from yarn.ids import NodeId
from yarn.nodes import NO_LABEL
from yarn.resource import Resource

ROLE = "ResourceManager"
_MINUTES = (0, 60, 300, 1440)
"""Running applications are counted by how long they have run: from each of these on, up to the next."""
_MINUTE_MS = 60_000
_LOCALITIES = {NodeType.NODE_LOCAL: "NodeLocal", NodeType.RACK_LOCAL: "RackLocal", NodeType.OFF_SWITCH: "OffSwitch"}
_SUMMED = (
    *(f"running_{minutes}" for minutes in _MINUTES),
    "AllocatedContainers",
    "ReservedContainers",
    "PendingContainers",
    "AppsRunning",
    "AppsPending",
    "UnmanagedAppsRunning",
    "UnmanagedAppsPending",
    "ActiveUsers",
    "ActiveApplications",
    "AggregateContainersAllocated",
    "AggregateContainersReleased",
    *(f"Aggregate{name}ContainersAllocated" for name in _LOCALITIES.values()),
)
"""Figures of leaves that are added up for the queues above."""


class ResourceManagerBeans:
    """The JMX beans of the RM, read from the core on request. `clock`: the core's; `address`: of the web services."""

    def __init__(self, context: RMContext, counters: AppCounters, clock: Callable[[], int], address: str) -> None:
        self._context = context
        self._counters = counters
        self._clock = clock
        self._address = address

    def __call__(self) -> Iterator[Bean]:
        """All beans."""
        yield self._cluster()
        figures = self._figures()
        for queue in all_queues(root_queue(self._context)):
            yield self._queue(queue, figures.get(queue.path, Counter()))
        yield Bean(_name("RMNMInfo"), "org.apache.hadoop.yarn.server.resourcemanager.RMNMInfo", self._nodes())
        yield Bean(_name("RMInfo"), "RMInfo", {"State": "active", "HostAndPort": self._address, "SecurityEnabled": 0})
        yield from process_beans(ROLE)

    def _cluster(self) -> Bean:
        nodes, total = cluster_metrics(self._context), self._context.scheduler.cluster_resource
        utilized_mb, utilized_vcores = utilization(self._context)
        return Bean(
            _name("ClusterMetrics"),
            "ClusterMetrics",
            {
                "tag.ClusterMetrics": ROLE,
                "tag.Context": "yarn",
                "tag.Hostname": platform.node(),
                "CapabilityMB": total.memory_mb,
                "CapabilityVirtualCores": total.vcores,
                "NumActiveNMs": nodes.active,
                "NumDecommissionedNMs": nodes.decommissioned,
                "NumDecommissioningNMs": nodes.decommissioning,
                "NumLostNMs": nodes.lost,
                "NumRebootedNMs": nodes.rebooted,
                "NumShutdownNMs": nodes.shutdown,
                "NumUnhealthyNMs": nodes.unhealthy,
                "UtilizedMB": utilized_mb,
                "UtilizedVirtualCores": utilized_vcores,
            },
        )

    def _queue(self, queue: CSQueue, figures: Counter[str]) -> Bean:
        keys = ",".join(f"q{level}={name}" for level, name in enumerate(_names(queue)))
        counts, unmanaged = self._counters.below(queue.path), self._counters.below(queue.path, unmanaged=True)
        attributes: dict[str, Attribute] = {
            "tag.Queue": queue.path,
            "tag.Context": "yarn",
            "tag.Hostname": platform.node(),
            **_capacities(queue),
            **_amounts(queue),
            **{name: figures[name] for name in _SUMMED},
            "AppsSubmitted": counts.submitted,
            "AppsCompleted": counts.completed,
            "AppsKilled": counts.killed,
            "AppsFailed": counts.failed,
            "UnmanagedAppsSubmitted": unmanaged.submitted,
            "UnmanagedAppsCompleted": unmanaged.completed,
            "UnmanagedAppsKilled": unmanaged.killed,
            "UnmanagedAppsFailed": unmanaged.failed,
            **_losses(queue),
        }
        return Bean(f"{_name('QueueMetrics')},{keys}", "QueueMetrics", attributes)

    def _figures(self) -> dict[str, Counter[str]]:
        """{path: the sum over the leaves below}."""
        found: dict[str, Counter[str]] = {}
        for leaf in leaves_of(root_queue(self._context)):
            own = self._of_leaf(leaf)
            for queue in leaf.and_above():
                found.setdefault(queue.path, Counter()).update(own)
        return found

    def _of_leaf(self, leaf: LeafQueue) -> Counter[str]:
        attempts, active = leaf.attempts.values(), list(leaf.active)
        unmanaged = sum(attempt.unmanaged for attempt in active)
        found: Counter[str] = Counter(
            AllocatedContainers=sum(len(attempt.live_containers) for attempt in attempts),
            ReservedContainers=sum(len(attempt.reserved_containers) for attempt in attempts),
            PendingContainers=sum(requested_containers(attempt) for attempt in attempts),
            AppsRunning=len(active),
            AppsPending=leaf.pending_count + len(leaf.held_back),
            UnmanagedAppsRunning=unmanaged,
            UnmanagedAppsPending=sum(attempt.unmanaged for attempt in attempts) - unmanaged,
            ActiveUsers=leaf.users.active_count,
            ActiveApplications=sum(attempt.usage.is_pending() for attempt in active),
        )
        for attempt in active:
            age = (self._clock() - attempt.started_ms) // _MINUTE_MS
            found[f"running_{max(least for least in _MINUTES if least <= max(age, 0))}"] += 1
        health = self._context.scheduler.context.health
        if health is not None:
            totals = health.totals_of(leaf.path)
            found["AggregateContainersAllocated"] = totals.allocated
            found["AggregateContainersReleased"] = totals.released
            for kind, name in _LOCALITIES.items():
                found[f"Aggregate{name}ContainersAllocated"] = totals.by_locality[kind]
        return found

    def _nodes(self) -> dict[str, Attribute]:
        """The text of a JSON list, as Hadoop's bean has it."""
        nodes = [
            {
                "HostName": node.node_id.host,
                "Rack": node.rack,
                "State": node.state.name,
                "NodeId": str(node.node_id),
                "NodeHTTPAddress": node.http_address,
                "LastHealthUpdate": node.health.reported_ms,
                "HealthReport": node.health.report,
                "NodeManagerVersion": node.nm_version,
                **self._use_of(node.node_id),
            }
            for node in self._context.nodes.values()
        ]
        return {"LiveNodeManagers": json.dumps(nodes, separators=(",", ":"))}

    def _use_of(self, node_id: NodeId) -> dict[str, int]:
        node = self._context.scheduler.nodes.get(node_id)
        if node is None:
            return {}
        return {
            "NumContainers": len(node.containers),
            "UsedMemoryMB": node.allocated.memory_mb,
            "AvailableMemoryMB": node.unallocated.memory_mb,
        }


def _name(name: str) -> str:
    return f"Hadoop:service={ROLE},name={name}"


def _names(queue: CSQueue) -> list[str]:
    return [one.name for one in queue.and_above()][::-1]


def _capacities(queue: CSQueue) -> dict[str, Attribute]:
    """CSQueueMetrics; only leaves have limits for AMs."""
    shares = queue.capacities.at(NO_LABEL)
    least, most = queue.effective_minimum(NO_LABEL), queue.effective_maximum(NO_LABEL)
    is_leaf = isinstance(queue, LeafQueue)
    limit = queue.usage.am_limit(NO_LABEL) if is_leaf else Resource(0, 0)
    used = queue.usage.am_used(NO_LABEL) if is_leaf else Resource(0, 0)
    return {
        "AMResourceLimitMB": limit.memory_mb,
        "AMResourceLimitVCores": limit.vcores,
        "UsedAMResourceMB": used.memory_mb,
        "UsedAMResourceVCores": used.vcores,
        "UsedCapacity": shares.used_capacity,
        "AbsoluteUsedCapacity": shares.absolute_used_capacity,
        "GuaranteedMB": least.memory_mb,
        "GuaranteedVCores": least.vcores,
        "MaxCapacityMB": most.memory_mb,
        "MaxCapacityVCores": most.vcores,
        "GuaranteedCapacity": shares.capacity,
        "GuaranteedAbsoluteCapacity": shares.absolute_capacity,
        "MaxCapacity": shares.maximum_capacity,
        "MaxAbsoluteCapacity": shares.absolute_maximum_capacity,
    }


def _amounts(queue: CSQueue) -> dict[str, Attribute]:
    """Amounts of the partition without label; a reservation is not allocated."""
    used, reserved, pending = queue.usage.used(NO_LABEL), queue.reserved_metric, queue.usage.pending(NO_LABEL)
    available = queue.effective_minimum(NO_LABEL) - used
    return {
        "AllocatedMB": used.memory_mb - reserved.memory_mb,
        "AllocatedVCores": used.vcores - reserved.vcores,
        "AvailableMB": max(0, available.memory_mb),
        "AvailableVCores": max(0, available.vcores),
        "PendingMB": pending.memory_mb,
        "PendingVCores": pending.vcores,
        "ReservedMB": reserved.memory_mb,
        "ReservedVCores": reserved.vcores,
    }


def _losses(queue: CSQueue) -> dict[str, Attribute]:
    """The amounts preempted since the start."""
    lost = queue.losses
    return {
        "AggregateContainersPreempted": lost.containers,
        "AggregateMemoryMBPreempted": lost.resource.memory_mb,
        "AggregateVcoresPreempted": lost.resource.vcores,
        "AggregateMemoryMBSecondsPreempted": lost.memory_mb_seconds,
        "AggregateVcoreSecondsPreempted": lost.vcore_seconds,
    }
