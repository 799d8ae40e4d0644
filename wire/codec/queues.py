"""The codecs of queues as clients see them."""

from __future__ import annotations

from wire.codec.applications import read_application_report, write_application_report
from wire.codec.basic import read_resource, write_sum
from wire.codec.fields import int64, member, members, number, text, texts
from wire.generated import yarn_protos_pb2 as pb
from yarn.queues import QueueInfo, QueuePartition, QueueStatistics
from yarn.states import QueueState

DEFAULT_PARTITION = ""
_STATES = members(QueueState)

_STATISTICS = {
    "numAppsSubmitted": "apps_submitted",
    "numAppsRunning": "apps_running",
    "numAppsPending": "apps_pending",
    "numAppsCompleted": "apps_completed",
    "numAppsKilled": "apps_killed",
    "numAppsFailed": "apps_failed",
    "numActiveUsers": "active_users",
    "availableMemoryMB": "available_memory_mb",
    "allocatedMemoryMB": "allocated_memory_mb",
    "pendingMemoryMB": "pending_memory_mb",
    "reservedMemoryMB": "reserved_memory_mb",
    "availableVCores": "available_vcores",
    "allocatedVCores": "allocated_vcores",
    "pendingVCores": "pending_vcores",
    "reservedVCores": "reserved_vcores",
    "allocatedContainers": "allocated_containers",
    "pendingContainers": "pending_containers",
    "reservedContainers": "reserved_containers",
}
"""{field of QueueStatisticsProto: field of QueueStatistics}."""


def write_queue_info(queue: QueueInfo, out: pb.QueueInfoProto) -> None:
    """Write a queue. QueueInfoProto has no field for `absolute_used_capacity`; see read_queue_info."""
    out.queueName = queue.name
    out.queuePath = queue.path
    out.state = number(queue.state)
    out.capacity = queue.capacity
    out.maximumCapacity = queue.maximum_capacity
    out.currentCapacity = queue.current_capacity
    _write_absolute(queue, out.queueConfigurationsMap.add(partitionName=DEFAULT_PARTITION).queueConfigurations)
    for partition in queue.partitions:
        _write_partition(partition, out.queueConfigurationsMap.add(partitionName=partition.label).queueConfigurations)
    for theirs, ours in _STATISTICS.items():
        setattr(out.queueStatistics, theirs, int64(getattr(queue.statistics, ours)))
    for child in queue.children:
        write_queue_info(child, out.childQueues.add())
    for report in queue.applications:
        write_application_report(report, out.applications.add())
    out.accessibleNodeLabels.extend(sorted(queue.accessible_labels))
    if queue.default_label_expression:
        out.defaultNodeLabelExpression = queue.default_label_expression
    out.preemptionDisabled = queue.preemption_disabled
    out.intraQueuePreemptionDisabled = queue.intra_queue_preemption_disabled
    out.weight = queue.weight
    out.maxParallelApps = queue.max_parallel_apps
    out.schedulerType = queue.scheduler


def _write_absolute(queue: QueueInfo, out: pb.QueueConfigurationsProto) -> None:
    out.capacity = queue.capacity
    out.maxCapacity = queue.maximum_capacity
    out.absoluteCapacity = queue.absolute_capacity
    out.absoluteMaxCapacity = queue.absolute_maximum_capacity
    _write_amounts(queue, out)


def _write_partition(partition: QueuePartition, out: pb.QueueConfigurationsProto) -> None:
    out.capacity = partition.capacity
    out.maxCapacity = partition.maximum_capacity
    out.absoluteCapacity = partition.absolute_capacity
    out.absoluteMaxCapacity = partition.absolute_maximum_capacity
    _write_amounts(partition, out)


def _write_amounts(of: QueueInfo | QueuePartition, out: pb.QueueConfigurationsProto) -> None:
    out.maxAMPercentage = of.maximum_am_percent
    write_sum(of.configured_minimum, out.configuredMinCapacity)
    write_sum(of.configured_maximum, out.configuredMaxCapacity)
    write_sum(of.effective_minimum, out.effectiveMinCapacity)
    write_sum(of.effective_maximum, out.effectiveMaxCapacity)


def _read_partition(label: str, proto: pb.QueueConfigurationsProto) -> QueuePartition:
    return QueuePartition(
        label,
        proto.capacity,
        proto.maxCapacity,
        proto.absoluteCapacity,
        proto.absoluteMaxCapacity,
        read_resource(proto.effectiveMinCapacity),
        read_resource(proto.effectiveMaxCapacity),
        proto.maxAMPercentage,
        read_resource(proto.configuredMinCapacity),
        read_resource(proto.configuredMaxCapacity),
    )


def read_queue_info(proto: pb.QueueInfoProto) -> QueueInfo:
    """Read a queue. `absolute_used_capacity` is computed: used / guaranteed times guaranteed / cluster."""
    partitions = {text(entry, "partitionName"): entry.queueConfigurations for entry in proto.queueConfigurationsMap}
    absolute = partitions.get(DEFAULT_PARTITION, pb.QueueConfigurationsProto())
    numbers = {ours: getattr(proto.queueStatistics, theirs) for theirs, ours in _STATISTICS.items()}
    return QueueInfo(
        text(proto, "queueName"),
        text(proto, "queuePath"),
        member(_STATES, proto, "state"),
        capacity=proto.capacity,
        maximum_capacity=proto.maximumCapacity,
        current_capacity=proto.currentCapacity,
        absolute_capacity=absolute.absoluteCapacity,
        absolute_maximum_capacity=absolute.absoluteMaxCapacity,
        absolute_used_capacity=proto.currentCapacity * absolute.absoluteCapacity,
        statistics=QueueStatistics(**numbers),
        children=tuple(read_queue_info(child) for child in proto.childQueues),
        applications=tuple(read_application_report(report) for report in proto.applications),
        accessible_labels=frozenset(texts(proto, "accessibleNodeLabels")),
        default_label_expression=text(proto, "defaultNodeLabelExpression"),
        preemption_disabled=proto.preemptionDisabled,
        intra_queue_preemption_disabled=proto.intraQueuePreemptionDisabled,
        weight=proto.weight,
        max_parallel_apps=proto.maxParallelApps,
        scheduler=text(proto, "schedulerType"),
        maximum_am_percent=absolute.maxAMPercentage,
        configured_minimum=read_resource(absolute.configuredMinCapacity),
        configured_maximum=read_resource(absolute.configuredMaxCapacity),
        effective_minimum=read_resource(absolute.effectiveMinCapacity),
        effective_maximum=read_resource(absolute.effectiveMaxCapacity),
        partitions=tuple(_read_partition(label, entry) for label, entry in partitions.items() if label),
    )
