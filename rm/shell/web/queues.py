"""The answer to /ws/v1/cluster/scheduler: the whole tree of queues (CapacitySchedulerInfo and its parts).

Functions of the core's context that change nothing. Shares are percentages here, fractions in RPCs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeAlias

from msgspec import Struct

from rm.core.context import RMContext
from rm.core.reports.queues import ROOT, requested_containers
from rm.scheduler.config.acls import PRIORITY_ACL
from rm.scheduler.config.configured_capacity import NO_VECTOR, CapacityUnit, CapacityVector
from rm.scheduler.config.queue_templates import LEAF_TEMPLATE, QueueTemplate
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.usage import ResourceUsage
from rm.scheduler.model.users import User
from rm.shell.web.health import health_element
from wire.web.document import Document, Element, Many, Value, many
from wire.web.records import resource_element
from yarn.configuration import Configuration, Entry
from yarn.java.binary32 import f32
from yarn.java.hash_order import hash_order, string_hash
from yarn.nodes import NO_LABEL
from yarn.settings.scheduler import PREFIX, queue_key
from yarn.states import QueueACL

_EPSILON = 1e-8
_ACCESS_TYPES = {"ADMINISTER_QUEUE": QueueACL.ADMINISTER_QUEUE, "SUBMIT_APP": QueueACL.SUBMIT_APPLICATIONS}
_MODES = {CapacityUnit.PERCENTAGE: "percentage", CapacityUnit.ABSOLUTE: "absolute", CapacityUnit.WEIGHT: "weight"}


class ContainerCounts(Struct, frozen=True):
    """Containers of a queue and of those below it."""

    allocated: int = 0
    reserved: int = 0
    pending: int = 0

    def __add__(self, other: ContainerCounts) -> ContainerCounts:
        return ContainerCounts(
            self.allocated + other.allocated, self.reserved + other.reserved, self.pending + other.pending
        )


def root_queue(context: RMContext) -> ParentQueue:
    """The root of the tree."""
    root = context.scheduler.queue(ROOT)
    assert isinstance(root, ParentQueue)
    return root


def scheduler_document(context: RMContext) -> Generator[None, None, Document]:
    """The scheduler with all its queues, one at each step; queues may change between two of them."""
    root = root_queue(context)
    children, _ = yield from _children(context, root, leaf_templates(_source(context)))
    shares = root.capacities.at(NO_LABEL)
    info = Element(
        {
            "capacity": _percent(shares.capacity),
            "usedCapacity": _percent(shares.used_capacity),
            "maxCapacity": _maximum(shares.maximum_capacity),
            "weight": shares.weight,
            "normalizedWeight": shares.normalized_weight,
            "queueCapacityVectorInfo": _vector(root, NO_LABEL),
            "queueName": root.name,
            "queuePath": root.path,
            "maxParallelApps": root.configuration.max_parallel_apps,
            "isAbsoluteResource": root.is_absolute,
            "queues": Element({"queue": children}),
            "capacities": _capacities(root),
            "health": health_element(context),
            "maximumAllocation": resource_element(root.configuration.maximum_allocation),
            "queueAcls": _acls(context, root),
            "queuePriority": root.configuration.priority,
            "orderingPolicyInfo": root.configuration.ordering_policy,
            **_kind(context, root),
        },
        type="capacityScheduler",
    )
    return Document("scheduler", Element({"schedulerInfo": info}))


def usage_by_partition(usage: ResourceUsage, *, with_am: bool) -> Element:
    """Amounts by partition (ResourcesInfo)."""
    return Element(
        {
            "resourceUsagesByPartition": many(
                Element(
                    {
                        "partitionName": partition,
                        "used": resource_element(usage.used(partition)),
                        "reserved": resource_element(usage.reserved(partition)),
                        "pending": resource_element(usage.pending(partition)),
                        "amUsed": resource_element(usage.am_used(partition)) if with_am else None,
                        "amLimit": resource_element(usage.am_limit(partition)) if with_am else None,
                        "userAmLimit": resource_element(usage.user_am_limit(partition)) if with_am else None,
                    }
                )
                for partition in hash_order(usage.partitions(), string_hash)
            )
        }
    )


Found: TypeAlias = "tuple[Element, ContainerCounts]"
Templates: TypeAlias = dict[str, dict[str, Entry]]
"""{path of a managed parent: {key below its leaf template: entry}}."""


def _children(
    context: RMContext, parent: ParentQueue, templates: Templates
) -> Generator[None, None, tuple[Many, ContainerCounts]]:
    """The children, leaves first as Hadoop writes them, and the container counts of all."""
    found: list[Found] = []
    for child in sorted(parent.children, key=lambda child: not isinstance(child, LeafQueue)):
        found.append((yield from _queue(context, child, templates)))
    return many(element for element, _ in found), sum((counts for _, counts in found), ContainerCounts())


def _queue(context: RMContext, queue: CSQueue, templates: Templates) -> Generator[None, None, Found]:
    template = _properties(templates.get(queue.path, {}))
    if isinstance(queue, LeafQueue):
        counts = _containers_of(queue)
        fields = {**_common(context, queue, counts, template, None), **_leaf(queue)}
        yield
        return Element(fields, type="capacitySchedulerLeafQueueInfo"), counts
    assert isinstance(queue, ParentQueue)
    children, counts = yield from _children(context, queue, templates)
    return Element(_common(context, queue, counts, template, Element({"queue": children}))), counts


def _common(
    context: RMContext, queue: CSQueue, counts: ContainerCounts, template: Element, children: Element | None
) -> dict[str, Value]:
    shares, configured = queue.capacities.at(NO_LABEL), queue.configuration
    return {
        "queuePath": queue.path,
        "capacity": _percent(shares.capacity),
        "usedCapacity": _percent(shares.used_capacity),
        "maxCapacity": _maximum(shares.maximum_capacity),
        "absoluteCapacity": _capped(shares.absolute_capacity),
        "absoluteMaxCapacity": _capped(shares.absolute_maximum_capacity),
        "absoluteUsedCapacity": _capped(shares.absolute_used_capacity),
        "weight": shares.weight,
        "normalizedWeight": shares.normalized_weight,
        "numApplications": queue.application_total(),
        "maxParallelApps": configured.max_parallel_apps,
        "queueName": queue.name,
        "isAbsoluteResource": queue.is_absolute,
        "state": queue.state.name,
        "queues": children,
        "resourcesUsed": resource_element(queue.usage.used(NO_LABEL)),
        "hideReservationQueues": configured.is_plan,
        "nodeLabels": many(sorted(configured.accessible_labels)),
        "allocatedContainers": counts.allocated,
        "reservedContainers": counts.reserved,
        "pendingContainers": counts.pending,
        "capacities": _capacities(queue),
        "resources": usage_by_partition(queue.usage, with_am=isinstance(queue, LeafQueue)),
        "minEffectiveCapacity": resource_element(queue.effective_minimum(NO_LABEL)),
        "maxEffectiveCapacity": resource_element(queue.effective_maximum(NO_LABEL)),
        "maximumAllocation": resource_element(configured.maximum_allocation),
        "queueAcls": _acls(context, queue),
        "queuePriority": configured.priority,
        "orderingPolicyInfo": configured.ordering_policy,
        "autoCreateChildQueueEnabled": configured.managed is not None,
        "leafQueueTemplate": template,
        **_kind(context, queue),
    }


def _leaf(leaf: LeafQueue) -> dict[str, Value]:
    configured, names = leaf.configuration, leaf.users.in_hash_order()
    users = [leaf.users.users[name] for name in names]
    user_am_limit = (users[0].usage if users else leaf.usage).am_limit(NO_LABEL)
    return {
        "numActiveApplications": leaf.active_count,
        "numPendingApplications": leaf.pending_count + len(leaf.held_back),
        "numContainers": leaf.container_count,
        "maxApplications": leaf.maximum_applications,
        "maxApplicationsPerUser": leaf.maximum_applications_per_user,
        "userLimit": leaf.shape.user_limit,
        "users": Element({"user": many(_user(leaf, user) for user in users)}),
        "userLimitFactor": leaf.shape.user_limit_factor,
        "configuredMaxAMResourceLimit": leaf.capacities.at(NO_LABEL).maximum_am_percent,
        "AMResourceLimit": resource_element(leaf.am_limit(NO_LABEL)),
        "usedAMResource": resource_element(leaf.usage.am_used(NO_LABEL)),
        "userAMResourceLimit": resource_element(user_am_limit),
        "preemptionDisabled": configured.preemption_disabled,
        "intraQueuePreemptionDisabled": configured.intra_queue_preemption_disabled,
        "defaultPriority": configured.default_application_priority,
        "isAutoCreatedLeafQueue": configured.is_auto_created,
        "maxApplicationLifetime": configured.lifetime.maximum_s,
        "defaultApplicationLifetime": configured.lifetime.default_s,
    }


def _user(leaf: LeafQueue, user: User) -> Element:
    used = leaf.context.none
    for partition in user.usage.partitions():
        used = used + user.usage.used(partition)
    return Element(
        {
            "username": user.name,
            "resourcesUsed": resource_element(used),
            "numPendingApplications": user.pending_applications,
            "numActiveApplications": user.active_applications,
            "AMResourceUsed": resource_element(user.usage.am_used(NO_LABEL)),
            "userResourceLimit": resource_element(user.limit),
            "resources": usage_by_partition(user.usage, with_am=True),
            "userWeight": user.weight,
            "isActive": leaf.users.is_active(user.name),
        }
    )


def _containers_of(leaf: LeafQueue) -> ContainerCounts:
    attempts = leaf.attempts.values()
    return ContainerCounts(
        sum(len(attempt.live_containers) for attempt in attempts),
        sum(len(attempt.reserved_containers) for attempt in attempts),
        sum(requested_containers(attempt) for attempt in attempts),
    )


def _capacities(queue: CSQueue) -> Element:
    partitions = hash_order(queue.capacities.partitions(), string_hash)
    return Element({"queueCapacitiesByPartition": many(_partition(queue, partition) for partition in partitions)})


def _partition(queue: CSQueue, partition: str) -> Element:
    shares, settings = queue.capacities.at(partition), queue.context.settings
    bounds = settings.minimum_allocation, settings.maximum_allocation
    return Element(
        {
            "partitionName": partition,
            "queueCapacityVectorInfo": _vector(queue, partition),
            "capacity": _percent(shares.capacity),
            "usedCapacity": _percent(shares.used_capacity),
            "maxCapacity": _maximum(shares.maximum_capacity),
            "absoluteCapacity": _capped(shares.absolute_capacity),
            "absoluteUsedCapacity": _capped(shares.absolute_used_capacity),
            "absoluteMaxCapacity": _capped(shares.absolute_maximum_capacity),
            "maxAMLimitPercentage": _percent(shares.maximum_am_percent) if isinstance(queue, LeafQueue) else 0.0,
            "weight": shares.weight,
            "normalizedWeight": shares.normalized_weight,
            "configuredMinResource": resource_element(queue.configured_minimum(partition), bounds),
            "configuredMaxResource": resource_element(queue.configured_maximum(partition), bounds),
            "effectiveMinResource": resource_element(queue.effective_minimum(partition)),
            "effectiveMaxResource": resource_element(queue.effective_maximum(partition)),
        }
    )


def _vector_of(queue: CSQueue, partition: str) -> CapacityVector:
    configured = queue.configuration.capacities.get(partition)
    return NO_VECTOR if configured is None else configured.vector


def _vector(queue: CSQueue, partition: str) -> Element:
    vector = _vector_of(queue, partition)
    return Element(
        {
            "configuredCapacityVector": str(vector),
            "capacityVectorEntries": many(
                Element(
                    {
                        "resourceName": name,
                        "resourceValue": f"{vector.entries[name].amount}{vector.entries[name].unit.value}",
                    }
                )
                for name in hash_order(vector.entries, string_hash)
            ),
        }
    )


def _acls(context: RMContext, queue: CSQueue) -> Element:
    lists = {name: str(context.queue_acls.list_of(queue.path, acl)) for name, acl in _ACCESS_TYPES.items()}
    priority = _source(context).get(queue_key(queue.path, PRIORITY_ACL), "*") or ""
    lists["APPLICATION_MAX_PRIORITY"] = priority
    return Element(
        {"queueAcl": many(Element({"accessType": name, "accessControlList": lists[name]}) for name in sorted(lists))}
    )


def _kind(context: RMContext, queue: CSQueue) -> dict[str, Value]:
    """The configuration and the origin of the queue (CapacitySchedulerInfoHelper)."""
    configured, is_leaf = queue.configuration, isinstance(queue, LeafQueue)
    creation = "dynamicLegacy" if configured.is_auto_created else "dynamicFlexible" if queue.is_dynamic else "static"
    eligibility = "off"
    if configured.managed is not None:
        eligibility = "legacy"
    elif not is_leaf and (queue.is_dynamic or configured.creation.enabled):
        eligibility = "flexible"
    return {
        "mode": _mode(context, queue),
        "queueType": "leaf" if is_leaf else "parent",
        "creationMethod": creation,
        "autoCreationEligibility": eligibility,
        "defaultNodeLabelExpression": configured.default_label,
        **_templates(_source(context), queue),
    }


def _mode(context: RMContext, queue: CSQueue) -> str:
    if context.scheduler.context.settings.legacy_queue_mode:
        if queue.is_absolute:
            return "absolute"
        return "percentage" if queue.capacities.at(NO_LABEL).weight == -1 else "weight"
    units = _vector_of(queue, NO_LABEL).units
    if len(units) > 1:
        return "mixed"
    return _MODES[next(iter(units))] if units else "unknown"


def _templates(configuration: Configuration, queue: CSQueue) -> dict[str, Value]:
    """The templates of a parent with auto-queue-creation-v2."""
    names = ("autoQueueTemplateProperties", "autoQueueParentTemplateProperties", "autoQueueLeafTemplateProperties")
    if isinstance(queue, LeafQueue) or not queue.configuration.creation.enabled:
        return dict.fromkeys(names, Element({}))
    parts = QueueTemplate(configuration, queue.path).parts
    return {name: _properties(part) for name, part in zip(names, parts, strict=True)}


def leaf_templates(configuration: Configuration) -> Templates:
    """The older kind of templates, whose keys have the prefix `leaf-queue-template.`; all in one pass over the keys."""
    found: Templates = {}
    for key in configuration.keys(PREFIX):
        path, dot, _ = key[len(PREFIX) :].partition(f".{LEAF_TEMPLATE}")
        entry = configuration.entry(key) if dot else None
        if entry is not None:
            found.setdefault(path, {})[key[len(PREFIX) + len(path) + 1 :]] = entry
    return found


def _properties(entries: dict[str, Entry]) -> Element:
    return Element({"property": many(Element({"name": name, "value": entry.value}) for name, entry in entries.items())})


def _source(context: RMContext) -> Configuration:
    return context.scheduler.context.settings.source


def _percent(fraction: float) -> float:
    return f32(fraction * 100)


def _maximum(fraction: float) -> float:
    return 100.0 if fraction < _EPSILON or fraction > 1 else f32(fraction * 100)


def _capped(fraction: float) -> float:
    return f32(min(max(fraction, 0.0), 1.0) * 100)


def all_queues(queue: CSQueue) -> Iterator[CSQueue]:
    """The queue and all below it, parents first."""
    yield queue
    if isinstance(queue, ParentQueue):
        for child in queue.children:
            yield from all_queues(child)
