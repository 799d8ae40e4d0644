"""Turns the answer to GET /ws/v1/cluster/scheduler into a capacity-scheduler.xml: the queues as they are configured.

The answer has the queues with their capacities, limits and policies, and not what decides who gets into them: mappings,
placement rules and weights of users. What it lacks is listed in the file.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from rm.scheduler.config.queue_configuration import FIFO, UTILIZATION
from yarnling.workload.documents import Faults, json_documents
from yarnling.workload.reported_queues import (
    LEAF_POLICIES,
    PARENT_POLICIES,
    SIZE_BASED,
    UNLIMITED,
    QueuesAnswer,
    ReportedAmounts,
    ReportedPartition,
    ReportedQueue,
    fields_of_queues,
)
from yarnling.workload.rest_answers import refuse_other_answers, with_quoted_constants
from yarnling.workload.rest_cluster import label_of, one_or_list

PREFIX = "yarn.scheduler.capacity."
SYSTEM_APPLICATIONS = 10_000
"""The default of maximum-applications, of which a queue has the share of its absolute capacity."""
MAX_PRIORITY = "APPLICATION_MAX_PRIORITY"
ACLS = {
    "SUBMIT_APP": "acl_submit_applications",
    "ADMINISTER_QUEUE": "acl_administer_queue",
    MAX_PRIORITY: "acl_application_max_priority",
}
"""{AccessType: key of a queue}."""
DISABLE_INTRA_QUEUE = ".intra-queue-preemption.disable_preemption"
DISABLE_PREEMPTION = ".disable_preemption"
LACKS = (
    "The answer has no queue mappings and placement rules, no weights of users, and no settings of the scheduler as a "
    "whole (the resource calculator, locality delay, preemption), nor whether a fair queue weighs by size: add those "
    "that the cluster has.",
    "Queues that were created automatically are listed as if they were configured.",
)
"""The parts that every configuration from an answer lacks."""


class QueueSettings(Struct, frozen=True):
    """The configuration of queues that an answer describes.

    `properties`: {key: value} of a capacity-scheduler.xml. `lacks`: what it lacks, one sentence each.
    """

    properties: dict[str, str]
    lacks: tuple[str, ...] = LACKS


def read_queues(text: str, source: str) -> QueueSettings:
    """The capacity-scheduler.xml that an answer describes. Raises ConfigurationException."""
    faults = Faults(source, first=0)
    refuse_other_answers(text, source)
    line, document = next(json_documents(with_quoted_constants(text), source))
    answer = faults.checked(QueuesAnswer, document, "", line)
    faults.refuse()
    assert answer is not None, "without faults there is an answer"
    root = answer.scheduler.info
    found = dict(_properties(root, "root"))
    if all(queue.preemption_disabled for queue in _leaves(root)):
        # Without preemption in the cluster every queue is reported so.
        found = {key: value for key, value in found.items() if not key.endswith(DISABLE_PREEMPTION)}
    if all(queue.intra_queue_disabled for queue in _leaves(root)):
        found = {key: value for key, value in found.items() if not key.endswith(DISABLE_INTRA_QUEUE)}
    return QueueSettings(
        found, (*LACKS, *_unknown_policies(root, "root"), *_left_out(root, "root"), *_unknown_fields(document))
    )


def _left_out(queue: ReportedQueue, path: str) -> Iterator[str]:
    """The settings of a queue that are not written, one sentence each."""
    if queue.creates_managed:
        yield (
            f"{path} creates its queues automatically (autoCreateChildQueueEnabled): those that it has are written as "
            "configured ones, so that and its leafQueueTemplate are left out."
        )
    if queue.mode == "mixed":
        yield (
            f"{path} has the capacities {queue.vector.text} (queueCapacityVectorInfo): they are left out, because only "
            "one unit for all resource types can be written; correct its capacity."
        )
    for below in queue.queues:
        yield from _left_out(below, f"{path}.{below.name}")


def _unknown_fields(document: object) -> Iterator[str]:
    """Fields that are neither carried over nor known to say nothing about the configuration."""
    known, found = fields_of_queues(), dict[str, None]()
    below: list[Any] = [document["scheduler"]["schedulerInfo"]]  # type: ignore[index]
    while below:
        queue = below.pop()
        found |= dict.fromkeys(key for key in queue if key not in known)
        below += one_or_list((queue.get("queues") or {}).get("queue"))
    if found:
        yield f"The answer has fields that are not known, and left out: {', '.join(sorted(found))}."


def as_xml(queues: QueueSettings) -> str:
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


def _unknown_policies(queue: ReportedQueue, path: str) -> Iterator[str]:
    if queue.ordering_policy is None:
        known = ", ".join(PARENT_POLICIES if queue.queues else dict.fromkeys(LEAF_POLICIES.values()))
        yield (
            f"{path} has the ordering policy {queue.policy!r}, which is not one of {known}: it is left out, so the "
            "queue has the default."
        )
    for below in queue.queues:
        yield from _unknown_policies(below, f"{path}.{below.name}")


def _properties(queue: ReportedQueue, path: str, largest: ReportedAmounts | None = None) -> Iterator[tuple[str, str]]:
    """`largest`: the maximum allocation of the queue above."""
    prefix = f"{PREFIX}{path}."
    if queue.queues:
        yield f"{prefix}queues", ",".join(below.name for below in queue.queues)
    if path != "root":
        default = queue.default_partition
        yield f"{prefix}capacity", _capacity(queue, default, queue.capacity, queue.weight)
        yield f"{prefix}maximum-capacity", _maximum(queue, default, queue.most)
    yield from _labels(queue, prefix)
    yield from _access(queue, prefix)
    yield from _created(queue, prefix)
    if path != "root" and queue.largest not in (None, largest):
        assert queue.largest is not None
        yield f"{prefix}maximum-allocation-mb", str(queue.largest.memory)
        yield f"{prefix}maximum-allocation-vcores", str(queue.largest.vcores)
    for name, value in _limits(queue).items():
        yield f"{prefix}{name}", value
    for below in queue.queues:
        yield from _properties(below, f"{path}.{below.name}", queue.largest)


def _leaves(queue: ReportedQueue) -> Iterator[ReportedQueue]:
    if not queue.queues:
        yield queue
    for below in queue.queues:
        yield from _leaves(below)


def _capacity(queue: ReportedQueue, partition: ReportedPartition, capacity: float, weight: float) -> str:
    if queue.is_absolute or queue.mode == "absolute":
        return str(partition.configured_least)
    return f"{weight:.6g}w" if queue.mode == "weight" or weight > 0 else f"{capacity:.6g}"


def _maximum(queue: ReportedQueue, partition: ReportedPartition, percent: float) -> str:
    return str(partition.configured_most) if queue.is_absolute else f"{percent:.6g}"


def _access(queue: ReportedQueue, prefix: str) -> Iterator[tuple[str, str]]:
    """The access lists that differ from the default: everybody for root and for priorities, nobody elsewhere."""
    for each in queue.access.acls:
        is_open = prefix == f"{PREFIX}root." or each.kind == MAX_PRIORITY
        if each.kind in ACLS and each.members.strip() != ("*" if is_open else ""):
            yield f"{prefix}{ACLS[each.kind]}", each.members


def _created(queue: ReportedQueue, prefix: str) -> Iterator[tuple[str, str]]:
    """The settings by which a queue creates others on demand."""
    creation = f"{prefix}auto-queue-creation-v2."
    if queue.creation == "flexible":
        yield f"{creation}enabled", "true"
    templates = {
        "template": queue.template,
        "parent-template": queue.parent_template,
        "leaf-template": queue.leaf_template,
    }
    for name, template in templates.items():
        for each in template.properties:
            yield f"{creation}{name}.{each.name}", each.value


def _labels(queue: ReportedQueue, prefix: str) -> Iterator[tuple[str, str]]:
    if queue.labels:
        yield f"{prefix}accessible-node-labels", ",".join(queue.labels)
    for each in queue.capacities.partitions:
        if each.name and (each.capacity > 0 or each.weight > 0):
            key = f"{prefix}accessible-node-labels.{each.name}"
            yield f"{key}.capacity", _capacity(queue, each, each.capacity, each.weight)
            yield f"{key}.maximum-capacity", _maximum(queue, each, each.most)
            if not queue.queues and each.am_percent is not None:
                yield f"{key}.maximum-am-resource-percent", f"{each.am_percent / 100:.6g}"


def _limits(queue: ReportedQueue) -> dict[str, str]:
    """The settings that differ from what a queue has without them."""
    found = {
        "state": queue.state if queue.state != "RUNNING" else "",
        "ordering-policy": policy if (policy := queue.ordering_policy) not in (None, FIFO, UTILIZATION) else "",
        "ordering-policy.fair.enable-size-based-weight": "true" if queue.policy == SIZE_BASED else "",
        "default-node-label-expression": label_of(queue.default_label),
        "default-application-priority": str(queue.default_priority) if queue.default_priority else "",
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
    if queue.intra_queue_disabled is not None:
        found["intra-queue-preemption.disable_preemption"] = str(queue.intra_queue_disabled).lower()
    return {name: value for name, value in found.items() if value}
