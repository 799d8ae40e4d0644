"""The queues in an answer to GET /ws/v1/cluster/scheduler, as far as they say how queues are configured.

Each field of Hadoop 3.4.1's CapacitySchedulerInfo, CapacitySchedulerQueueInfo and CapacitySchedulerLeafQueueInfo is
read here, or is listed in NOT_CONFIGURED.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from rm.scheduler.config.queue_configuration import (
    FAIR,
    FIFO,
    FIFO_FOR_PENDING,
    FIFO_WITH_PARTITIONS,
    PRIORITY_UTILIZATION,
    UTILIZATION,
)
from yarnling.workload.documents import LenientSection
from yarnling.workload.limits import Name, Text
from yarnling.workload.rest_cluster import ReportedAmount, ReportedTypes, one_or_list

UNLIMITED = 2**31 - 1
SIZE_BASED = "FairOrderingPolicy with sizeBasedWeight"
LEAF_POLICIES = {
    **{name: name for name in (FIFO, FAIR, FIFO_FOR_PENDING, FIFO_WITH_PARTITIONS)},
    "FifoOrderingPolicy": FIFO,
    "FairOrderingPolicy": FAIR,
    SIZE_BASED: FAIR,
    "FifoOrderingPolicyForPendingApps": FIFO_FOR_PENDING,
    "FifoOrderingPolicyWithExclusivePartitions": FIFO_WITH_PARTITIONS,
}
"""{what an answer has: the value of ordering-policy}. Older versions of Hadoop report OrderingPolicy.getInfo()."""
PARENT_POLICIES = {name: name for name in (UTILIZATION, PRIORITY_UTILIZATION)}
NOT_CONFIGURED = {
    **dict.fromkeys(("type", "schedulerName", "queuePath", "queueType", "creationMethod"), "names and kinds"),
    **dict.fromkeys(
        ("isAutoCreatedLeafQueue", "hideReservationQueues", "leafQueueTemplate"), "see LACKS and _left_out"
    ),
    **dict.fromkeys(("usedCapacity", "absoluteUsedCapacity", "resourcesUsed", "resources", "users"), "use"),
    **dict.fromkeys(("numApplications", "numActiveApplications", "numPendingApplications", "numContainers"), "use"),
    **dict.fromkeys(("allocatedContainers", "reservedContainers", "pendingContainers", "usedAMResource"), "use"),
    **dict.fromkeys(("absoluteMaxCapacity", "normalizedWeight", "minEffectiveCapacity"), "computed"),
    **dict.fromkeys(("maxEffectiveCapacity", "maxApplicationsPerUser", "AMResourceLimit"), "computed"),
    **dict.fromkeys(("userAMResourceLimit", "orderingPolicyDisplayName"), "computed"),
    "health": "what the scheduler did last",
}
"""{field of a queue in an answer: what it says instead of the configuration}."""
NOT_CONFIGURED_OF_PARTITIONS = {
    **dict.fromkeys(("usedCapacity", "absoluteUsedCapacity"), "use"),
    **dict.fromkeys(("absoluteCapacity", "absoluteMaxCapacity", "normalizedWeight"), "computed"),
    **dict.fromkeys(("effectiveMinResource", "effectiveMaxResource"), "computed"),
    "queueCapacityVectorInfo": "the same as capacity, or see the queue's",
}
"""NOT_CONFIGURED for a partition of a queue."""

_Percent = Annotated[float, Field(ge=-1, le=1e9, allow_inf_nan=False)]


class ReportedAmounts(LenientSection):
    memory: ReportedAmount = 0
    vcores: Annotated[ReportedAmount, Field(alias="vCores")] = 0
    informations: Annotated[ReportedTypes, Field(alias="resourceInformations")] = ReportedTypes()

    def __str__(self) -> str:
        extra = "".join(f",{name}={value}" for name, value in self.informations.extra().items())
        return f"[memory={self.memory},vcores={self.vcores}{extra}]"


class _Property(LenientSection):
    name: Name
    value: Text = ""


class _Template(LenientSection):
    """Settings of queues that are created on demand."""

    properties: Annotated[tuple[_Property, ...], Field(alias="property", max_length=1000)] = ()

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, entry: Any) -> Any:
        return {"property": one_or_list(entry.get("property"))} if isinstance(entry, dict) else {}


class _Acl(LenientSection):
    kind: Annotated[Text, Field(alias="accessType")]
    members: Annotated[Text, Field(alias="accessControlList")] = ""


class _Acls(LenientSection):
    acls: Annotated[tuple[_Acl, ...], Field(alias="queueAcl", max_length=100)] = ()

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, entry: Any) -> Any:
        return {"queueAcl": one_or_list(entry.get("queueAcl"))} if isinstance(entry, dict) else {}


class _Vector(LenientSection):
    text: Annotated[Text, Field(alias="configuredCapacityVector")] = ""


class ReportedPartition(LenientSection):
    name: Annotated[Text, Field(alias="partitionName")] = ""
    capacity: _Percent = 0.0
    most: Annotated[_Percent, Field(alias="maxCapacity")] = 100.0
    weight: _Percent = -1.0
    am_percent: Annotated[_Percent | None, Field(alias="maxAMLimitPercentage")] = None
    configured_least: Annotated[ReportedAmounts, Field(alias="configuredMinResource")] = ReportedAmounts()
    configured_most: Annotated[ReportedAmounts, Field(alias="configuredMaxResource")] = ReportedAmounts()


class _Partitions(LenientSection):
    partitions: Annotated[
        tuple[ReportedPartition, ...], Field(alias="queueCapacitiesByPartition", max_length=1000)
    ] = ()


class _Below(LenientSection):
    """The queues below a queue. Jersey writes {"queue": [...]}, or {"queue": {...}} if there is one."""

    queue: tuple[ReportedQueue, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, entry: Any) -> Any:
        return {"queue": one_or_list(entry.get("queue"))} if isinstance(entry, dict) else {}


class ReportedQueue(LenientSection):
    name: Annotated[Name, Field(alias="queueName")]
    capacity: _Percent = 100.0
    most: Annotated[_Percent, Field(alias="maxCapacity")] = 100.0
    weight: _Percent = -1.0
    mode: Text = ""
    is_absolute: Annotated[bool, Field(alias="isAbsoluteResource")] = False
    state: Text = "RUNNING"
    below: Annotated[_Below | None, Field(alias="queues")] = None
    labels: Annotated[tuple[Name, ...], Field(alias="nodeLabels", max_length=1000)] = ()
    capacities: _Partitions = _Partitions()
    parallel: Annotated[int, Field(alias="maxParallelApps")] = UNLIMITED
    priority: Annotated[int, Field(alias="queuePriority")] = 0
    policy: Annotated[Text, Field(alias="orderingPolicyInfo")] = ""
    absolute: Annotated[_Percent, Field(alias="absoluteCapacity")] = 100.0
    applications: Annotated[int | None, Field(alias="maxApplications")] = None
    user_limit: Annotated[_Percent | None, Field(alias="userLimit")] = None
    user_limit_factor: Annotated[_Percent | None, Field(alias="userLimitFactor")] = None
    am_limit: Annotated[_Percent | None, Field(alias="configuredMaxAMResourceLimit")] = None
    preemption_disabled: Annotated[bool | None, Field(alias="preemptionDisabled")] = None
    default_label: Annotated[Text | None, Field(alias="defaultNodeLabelExpression")] = None
    default_priority: Annotated[int, Field(alias="defaultPriority")] = 0
    intra_queue_disabled: Annotated[bool | None, Field(alias="intraQueuePreemptionDisabled")] = None
    largest: Annotated[ReportedAmounts | None, Field(alias="maximumAllocation")] = None
    access: Annotated[_Acls, Field(alias="queueAcls")] = _Acls()
    creation: Annotated[Text, Field(alias="autoCreationEligibility")] = "off"
    creates_managed: Annotated[bool, Field(alias="autoCreateChildQueueEnabled")] = False
    template: Annotated[_Template, Field(alias="autoQueueTemplateProperties")] = _Template()
    parent_template: Annotated[_Template, Field(alias="autoQueueParentTemplateProperties")] = _Template()
    leaf_template: Annotated[_Template, Field(alias="autoQueueLeafTemplateProperties")] = _Template()
    vector: Annotated[_Vector, Field(alias="queueCapacityVectorInfo")] = _Vector()
    lifetime_s: Annotated[int, Field(alias="maxApplicationLifetime")] = -1
    default_lifetime_s: Annotated[int, Field(alias="defaultApplicationLifetime")] = -1

    @property
    def queues(self) -> tuple[ReportedQueue, ...]:
        """The queue's children."""
        return self.below.queue if self.below else ()

    @property
    def default_partition(self) -> ReportedPartition:
        """The queue's share of the nodes without a label."""
        return next((each for each in self.capacities.partitions if not each.name), ReportedPartition())

    @property
    def am_fraction(self) -> float | None:
        """The share of AMs, 0..1. Older versions of Hadoop report it for the partitions only; a parent has none."""
        if self.am_limit is not None or self.queues or self.default_partition.am_percent is None:
            return self.am_limit
        return self.default_partition.am_percent / 100

    @property
    def ordering_policy(self) -> str | None:
        """The value of ordering-policy; None if that is not one of Hadoop's. A parent without queues becomes a leaf."""
        if self.queues:
            return PARENT_POLICIES.get(self.policy or UTILIZATION)
        return FIFO if self.policy in ("", *PARENT_POLICIES) else LEAF_POLICIES.get(self.policy)


class _Info(LenientSection):
    info: Annotated[ReportedQueue, Field(alias="schedulerInfo")]


class QueuesAnswer(LenientSection):
    scheduler: _Info


def fields_of_queues() -> frozenset[str]:
    """The names of all known fields of a queue: those that are read, and those of NOT_CONFIGURED."""
    return frozenset((*(field.alias or name for name, field in ReportedQueue.model_fields.items()), *NOT_CONFIGURED))
