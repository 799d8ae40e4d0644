"""Turns the answer to GET /ws/v1/cluster/scheduler into a capacity-scheduler.xml: the queues as they are configured.

The answer has the queues with their capacities, limits and policies, and not what decides who gets into them: mappings,
placement rules and weights of users. What it lacks is listed in the file.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Struct
from pydantic import Field, model_validator

from rm.scheduler.config.queue_configuration import (
    FAIR,
    FIFO,
    FIFO_FOR_PENDING,
    FIFO_WITH_PARTITIONS,
    PRIORITY_UTILIZATION,
    UTILIZATION,
)
from yarnling.workload.documents import Entry, Faults, json_documents
from yarnling.workload.limits import Name, Text
from yarnling.workload.rest_cluster import ReportedAmount, one_or_list

PREFIX = "yarn.scheduler.capacity."
UNLIMITED = 2**31 - 1
SYSTEM_APPLICATIONS = 10_000
"""The default of maximum-applications, of which a queue has the share of its absolute capacity."""
LACKS = (
    "The answer has no queue mappings and placement rules, no weights of users, and no settings of the scheduler as a "
    "whole (the resource calculator, locality delay, preemption): add those that the cluster has.",
    "Queues that were created automatically are listed as if they were configured.",
)
"""What every configuration from an answer lacks."""
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

_Percent = Annotated[float, Field(ge=-1, le=1e9, allow_inf_nan=False)]


class _Amounts(Entry):
    memory: ReportedAmount = 0
    vcores: Annotated[ReportedAmount, Field(alias="vCores")] = 0

    def __str__(self) -> str:
        return f"[memory={self.memory},vcores={self.vcores}]"


class _Partition(Entry):
    name: Annotated[Text, Field(alias="partitionName")] = ""
    capacity: _Percent = 0.0
    most: Annotated[_Percent, Field(alias="maxCapacity")] = 100.0
    weight: _Percent = -1.0
    am_percent: Annotated[_Percent | None, Field(alias="maxAMLimitPercentage")] = None
    configured_least: Annotated[_Amounts, Field(alias="configuredMinResource")] = _Amounts()
    configured_most: Annotated[_Amounts, Field(alias="configuredMaxResource")] = _Amounts()


class _Partitions(Entry):
    partitions: Annotated[tuple[_Partition, ...], Field(alias="queueCapacitiesByPartition", max_length=1000)] = ()


class _Below(Entry):
    """The queues below a queue. Jersey writes {"queue": [...]}, or {"queue": {...}} if there is one."""

    queue: tuple[_Queue, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, entry: Any) -> Any:
        return {"queue": one_or_list(entry.get("queue"))} if isinstance(entry, dict) else {}


class _Queue(Entry):
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
    lifetime_s: Annotated[int, Field(alias="maxApplicationLifetime")] = -1
    default_lifetime_s: Annotated[int, Field(alias="defaultApplicationLifetime")] = -1

    @property
    def queues(self) -> tuple[_Queue, ...]:
        """Its children."""
        return self.below.queue if self.below else ()

    @property
    def default_partition(self) -> _Partition:
        """What it has of the nodes without a label."""
        return next((each for each in self.capacities.partitions if not each.name), _Partition())

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


class _Info(Entry):
    info: Annotated[_Queue, Field(alias="schedulerInfo")]


class _Answer(Entry):
    scheduler: _Info


class Queues(Struct, frozen=True):
    """`properties`: {key: value} of a capacity-scheduler.xml. `lacks`: what it lacks, one sentence each."""

    properties: dict[str, str]
    lacks: tuple[str, ...] = LACKS


def read_queues(text: str, source: str) -> Queues:
    """The capacity-scheduler.xml that an answer describes. Raises ConfigurationException."""
    faults = Faults(source, first=0)
    line, document = next(json_documents(text, source))
    answer = faults.checked(_Answer, document, "", line)
    faults.refuse()
    assert answer is not None, "without faults there is an answer"
    root = answer.scheduler.info
    found = dict(_properties(root, "root"))
    if all(queue.preemption_disabled for queue in _leaves(root)):
        # Without preemption in the cluster every queue is reported so.
        found = {key: value for key, value in found.items() if not key.endswith(".disable_preemption")}
    return Queues(found, (*LACKS, *_unknown_policies(root, "root")))


def as_xml(queues: Queues) -> str:
    """A configuration file of Hadoop's."""
    rows = (
        f"  <property><name>{html.escape(key)}</name><value>{html.escape(value)}</value></property>\n"
        for key, value in queues.properties.items()
    )
    lacks = "".join(f"<!-- {_comment(sentence)} -->\n" for sentence in queues.lacks)
    return f'<?xml version="1.0"?>\n{lacks}<configuration>\n{"".join(rows)}</configuration>\n'


def _comment(text: str) -> str:
    """The text as it may stand in a comment of XML, which must not contain two hyphens."""
    return html.escape(re.sub("-(?=-)", "- ", text), quote=False)


def _unknown_policies(queue: _Queue, path: str) -> Iterator[str]:
    if queue.ordering_policy is None:
        known = ", ".join(PARENT_POLICIES if queue.queues else dict.fromkeys(LEAF_POLICIES.values()))
        yield (
            f"{path} has the ordering policy {queue.policy!r}, which is not one of {known}: it is left out, so the "
            "queue has the default."
        )
    for below in queue.queues:
        yield from _unknown_policies(below, f"{path}.{below.name}")


def _properties(queue: _Queue, path: str) -> Iterator[tuple[str, str]]:
    prefix = f"{PREFIX}{path}."
    if queue.queues:
        yield f"{prefix}queues", ",".join(below.name for below in queue.queues)
    if path != "root":
        default = queue.default_partition
        yield f"{prefix}capacity", _capacity(queue, default, queue.capacity, queue.weight)
        most = str(default.configured_most) if queue.is_absolute else f"{queue.most:.6g}"
        yield f"{prefix}maximum-capacity", most
    yield from _labels(queue, prefix)
    for name, value in _limits(queue).items():
        yield f"{prefix}{name}", value
    for below in queue.queues:
        yield from _properties(below, f"{path}.{below.name}")


def _leaves(queue: _Queue) -> Iterator[_Queue]:
    if not queue.queues:
        yield queue
    for below in queue.queues:
        yield from _leaves(below)


def _capacity(queue: _Queue, partition: _Partition, capacity: float, weight: float) -> str:
    if queue.is_absolute or queue.mode == "absolute":
        return str(partition.configured_least)
    return f"{weight:.6g}w" if queue.mode == "weight" or weight > 0 else f"{capacity:.6g}"


def _labels(queue: _Queue, prefix: str) -> Iterator[tuple[str, str]]:
    if queue.labels:
        yield f"{prefix}accessible-node-labels", ",".join(queue.labels)
    for each in queue.capacities.partitions:
        if each.name and (each.capacity > 0 or each.weight > 0):
            key = f"{prefix}accessible-node-labels.{each.name}"
            yield f"{key}.capacity", _capacity(queue, each, each.capacity, each.weight)
            yield f"{key}.maximum-capacity", f"{each.most:.6g}"
            if not queue.queues and each.am_percent is not None:
                yield f"{key}.maximum-am-resource-percent", f"{each.am_percent / 100:.6g}"


def _limits(queue: _Queue) -> dict[str, str]:
    """The settings that differ from what a queue has without them."""
    found = {
        "state": queue.state if queue.state != "RUNNING" else "",
        "ordering-policy": policy if (policy := queue.ordering_policy) not in (None, FIFO, UTILIZATION) else "",
        "ordering-policy.fair.enable-size-based-weight": "true" if queue.policy == SIZE_BASED else "",
        "priority": str(queue.priority) if queue.priority else "",
        "max-parallel-apps": str(queue.parallel) if queue.parallel != UNLIMITED else "",
        "maximum-application-lifetime": str(queue.lifetime_s) if queue.lifetime_s > 0 else "",
        "default-application-lifetime": str(queue.default_lifetime_s) if queue.default_lifetime_s > 0 else "",
    }
    usual = SYSTEM_APPLICATIONS * queue.absolute / 100
    if queue.applications is not None and abs(queue.applications - usual) > 1:
        found["maximum-applications"] = str(queue.applications)
    if queue.user_limit is not None:
        found["minimum-user-limit-percent"] = f"{queue.user_limit:.6g}"
    if queue.user_limit_factor is not None:
        found["user-limit-factor"] = f"{queue.user_limit_factor:.6g}"
    if (am_fraction := queue.am_fraction) is not None:
        found["maximum-am-resource-percent"] = f"{am_fraction:.6g}"
    if queue.preemption_disabled is not None:
        found["disable_preemption"] = str(queue.preemption_disabled).lower()
    return {name: value for name, value in found.items() if value}
