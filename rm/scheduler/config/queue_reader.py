"""Reads the configuration of one queue, including what it inherits, and checks the values of that queue.

A value with a fault is added to the reader's faults and replaced by a valid one, so that reading continues.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from rm.scheduler.config.acls import PRIORITY_ACL, read_priority_acls
from rm.scheduler.config.configured_capacity import (
    DYNAMIC_WEIGHT,
    WEIGHT_NOT_SET,
    CapacityReader,
    CapacityUnit,
    ConfiguredCapacity,
    to_mib,
    uniform,
)
from rm.scheduler.config.queue_configuration import (
    FAIR,
    FIFO,
    FIFO_FOR_PENDING,
    FIFO_WITH_PARTITIONS,
    PLAN_DEFAULT,
    PRIORITY_UTILIZATION,
    UTILIZATION,
    ManagedCreation,
    QueueConfiguration,
    QueueCreation,
    read_lifetime,
)
from rm.scheduler.config.queue_templates import (
    LEAF_TEMPLATE,
    MANAGED_CREATION,
    QUEUE_CREATION,
    configured_labels,
    is_managed,
    queue_depth_max,
)
from rm.scheduler.config.reader import Reader
from yarn.containers import ANY
from yarn.faults import untrimmed
from yarn.java.binary32 import f32, shortest
from yarn.java.values import trim
from yarn.nodes import NO_LABEL
from yarn.resource import MEMORY_MB, Resource, ResourceTypes
from yarn.settings import preemption, scheduler
from yarn.settings.scheduler import PREFIX, ROOT, queue_key
from yarn.states import QueueState

DEFAULT_MANAGEMENT_POLICY = (
    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.queuemanagement."
    "GuaranteedOrZeroCapacityOverTimePolicy"
)


_AMOUNT = re.compile(r"([^=]+)=(\d+)\s?([MmGg]?)", re.ASCII)
_TYPES_BY_NAME = {"memory": MEMORY_MB, "gpu": "yarn.io/gpu", "fpga": "yarn.io/fpga"}
"""{short name of a resource type in amounts: its name}."""


class QueueReader:
    """Reads queues, parents before their children. `scheduler_maximum`: the largest container of any queue."""

    __slots__ = ("_legacy", "_reader", "_scheduler_maximum", "_types")

    def __init__(self, reader: Reader, types: ResourceTypes, scheduler_maximum: Resource) -> None:
        self._reader = reader
        self._types = types
        self._scheduler_maximum = scheduler_maximum
        self._legacy = reader.value(scheduler.LEGACY_QUEUE_MODE)

    def read(self, path: str, parent: QueueConfiguration | None, *, keeps_parent: bool = False) -> QueueConfiguration:
        """A configured queue. `keeps_parent`: it stays a parent without children, because it was created as one."""
        children = self._reader.names(queue_key(path, "queues"))
        creation = self._creation(path)
        if parent is not None and parent.is_plan:
            return self._default_of_plan(self._read(path, parent, creation, is_leaf=True), parent)
        makes_leaves = is_managed(self._reader, path)
        is_leaf = not (children or creation.enabled or keeps_parent or makes_leaves)
        is_plan = is_leaf and self._reader.flag(queue_key(path, "reservable"), False)
        labels = configured_labels(self._reader, path)
        queue = self._read(path, parent, creation, labels, is_leaf=is_leaf and not is_plan)
        if is_plan:
            children = (queue.name + PLAN_DEFAULT,)
        if not makes_leaves:
            return replace(queue, children=children, is_plan=is_plan)
        creation = replace(creation, enabled=False)
        return replace(queue, children=children, is_plan=is_plan, managed=self._managed(queue), creation=creation)

    def read_auto_created(self, path: str, parent: QueueConfiguration) -> QueueConfiguration:
        """A leaf created by a managed parent. The reader's configuration includes the parent's template."""
        creation = replace(self._creation(path), enabled=False)
        return replace(self._read(path, parent, creation, is_leaf=True), is_auto_created=True)

    def read_dynamic(
        self, path: str, parent: QueueConfiguration, *, labels: tuple[str, ...], is_leaf: bool
    ) -> QueueConfiguration:
        """A queue created on demand.

        The reader's configuration includes the templates. `labels`: those on which the queue has a capacity.
        """
        creation = replace(self._creation(path), enabled=not is_leaf)
        queue = self._read(path, parent, creation, labels, is_leaf=is_leaf)
        capacities = {partition: self._dynamic_capacity(path, own) for partition, own in queue.capacities.items()}
        return replace(queue, is_dynamic=True, capacities=capacities)

    def _read(
        self,
        path: str,
        parent: QueueConfiguration | None,
        creation: QueueCreation,
        labels: tuple[str, ...] = (),
        *,
        is_leaf: bool,
    ) -> QueueConfiguration:
        """Read the values that every kind of queue has."""
        reader = self._reader
        state = _state(reader, path)
        user_limit = reader.number(
            queue_key(path, "minimum-user-limit-percent"), reader.value(scheduler.MINIMUM_USER_LIMIT_PERCENT)
        )
        for prefix in ("", path + ".") if path == ROOT else (path + ".",):
            _warn_of_user_limit(reader, f"{PREFIX}{prefix}minimum-user-limit-percent")
        accessible_labels = _accessible_labels(reader, path, parent)
        return QueueConfiguration(
            path=path,
            name=path if parent is None else path[len(parent.path) + 1 :],
            children=(),
            is_leaf=is_leaf,
            is_dynamic=False,
            is_plan=False,
            creation=creation,
            capacities=self._capacities(path, parent, labels),
            accessible_labels=accessible_labels,
            default_label=_default_label(reader, path, parent, accessible_labels, is_leaf=is_leaf),
            user_limit=user_limit,
            user_limit_factor=reader.number(
                queue_key(path, "user-limit-factor"), reader.value(scheduler.USER_LIMIT_FACTOR)
            ),
            user_weights=_user_weights(reader, path, parent, user_limit if is_leaf else None),
            maximum_applications=reader.integer(queue_key(path, "maximum-applications"), -1),
            max_parallel_apps=reader.untrimmed_integer(
                queue_key(path, "max-parallel-apps"), reader.value(scheduler.MAX_PARALLEL_APPS)
            ),
            maximum_allocation=self._maximum_allocation(path, parent),
            ordering_policy=_ordering_policy(reader, path, parent, is_leaf=is_leaf),
            fair_by_size=reader.flag(queue_key(path, "ordering-policy.fair.enable-size-based-weight"), False),
            exclusive_partitions=reader.listed(queue_key(path, "ordering-policy.exclusive-enforced-partitions")),
            priority=reader.integer(queue_key(path, "priority"), 0),
            default_application_priority=reader.integer(queue_key(path, "default-application-priority"), 0),
            priority_acls=read_priority_acls(reader, queue_key(path, PRIORITY_ACL)) if is_leaf else (),
            lifetime=read_lifetime(reader, queue_key(path, ""), parent.lifetime if parent is not None else None),
            state=state,
            preemption_disabled=_preemption_disabled(reader, path, parent),
            intra_queue_preemption_off=_intra_queue_preemption_off(reader, path, parent),
            initial_state=_initial_state(state, parent),
            allow_zero_capacity_sum=reader.flag(queue_key(path, "allow-zero-capacity-sum"), False),
        )

    def _creation(self, path: str) -> QueueCreation:
        prefix = queue_key(path, QUEUE_CREATION)
        return QueueCreation(
            enabled=self._reader.flag(prefix + "enabled", False),
            queues_max=self._reader.integer(prefix + "max-queues", 1000),
            depth_max=queue_depth_max(self._reader, path),
            removes_idle=self._reader.flag(prefix + "queue-auto-removal.enable", True),
        )

    def _capacities(
        self, path: str, parent: QueueConfiguration | None, labels: tuple[str, ...]
    ) -> dict[str, ConfiguredCapacity]:
        reader = self._reader
        default_am = reader.value(scheduler.MAXIMUM_AM_RESOURCE_PERCENT)
        own_am = reader.number(queue_key(path, "maximum-am-resource-percent"), default_am)
        capacities: dict[str, ConfiguredCapacity] = {}
        for label in (NO_LABEL, *labels):
            prefix = queue_key(path, f"accessible-node-labels.{label}." if label else "")
            capacities[label] = CapacityReader(
                reader, path, prefix, self._types, label=label, legacy=self._legacy
            ).read(
                is_root=path == ROOT,
                above=parent.capacities.get(label) if parent is not None else None,
                maximum_am_percent=reader.number(prefix + "maximum-am-resource-percent", own_am) if label else own_am,
            )
        return capacities

    def _dynamic_capacity(self, path: str, own: ConfiguredCapacity) -> ConfiguredCapacity:
        """The capacity of a queue created on demand: a weight of 1 unless the template sets one.

        In legacy queue mode anything but a weight is a fault: its siblings have weights, and Hadoop's ResourceManager
        exits if the two are mixed (AbstractParentQueue.updateClusterResourceLegacyMode). Source:
        AbstractCSQueue.overrideCapacityVectorsForSpecialQueues.
        """
        if self._legacy and (own.capacity > 0 or not own.minimum.is_none()):
            problem = f"{path} is created on demand and must have a weight, as its siblings have"
            self._reader.fault(queue_key(path, "capacity"), problem, "write a weight into the template, e.g. 1w")
        if not own.vector.entries:
            one = uniform(DYNAMIC_WEIGHT, CapacityUnit.WEIGHT, self._types)
            everything = uniform(100.0, CapacityUnit.PERCENTAGE, self._types)
            return replace(own, weight=DYNAMIC_WEIGHT, vector=one, maximum_vector=everything)
        if self._legacy and own.weight == WEIGHT_NOT_SET:
            return replace(own, weight=DYNAMIC_WEIGHT)
        return own

    def _default_of_plan(self, own: QueueConfiguration, plan: QueueConfiguration) -> QueueConfiguration:
        """The default leaf of a reservable queue: it has everything, because no reservations are made
        (ReservationQueue).

        It has the plan's user limits, and a maximum AM share of 0, so that only one application at a time is activated.
        """
        everything = uniform(100.0, CapacityUnit.PERCENTAGE, self._types)
        capacity = ConfiguredCapacity(
            capacity=1.0,
            maximum_capacity=1.0,
            weight=WEIGHT_NOT_SET,
            minimum=self._types.none,
            maximum=self._types.none,
            is_absolute=False,
            maximum_am_percent=0.0,
            vector=everything,
            maximum_vector=everything,
        )
        return replace(
            own,
            capacities={NO_LABEL: capacity},
            user_limit=plan.user_limit,
            user_limit_factor=plan.user_limit_factor,
        )

    def _managed(self, queue: QueueConfiguration) -> ManagedCreation:
        """The settings with which a managed parent creates its leaves."""
        reader, path = self._reader, queue.path
        prefix = queue_key(path, LEAF_TEMPLATE)
        template = path + "." + LEAF_TEMPLATE[:-1]
        capacity = CapacityReader(reader, template, prefix, self._types, label=NO_LABEL, legacy=self._legacy).read(
            is_root=False, above=None, maximum_am_percent=0.0
        )
        self._check_managed(queue)
        if not queue.capacities[NO_LABEL].is_absolute and not capacity.minimum.is_none():
            reader.fault(
                prefix + "capacity",
                f"Managed Parent Queue {path} config type is different from leaf queue template config type",
                "write a percentage, or configure the parent in amounts, too",
            )
        return ManagedCreation(
            queues_max=reader.integer(queue_key(path, MANAGED_CREATION + "max-queues"), 1000),
            fails_when_full=reader.flag(queue_key(path, MANAGED_CREATION + "fail-on-exceeding-parent-capacity"), False),
            capacity=capacity,
        )

    def _check_managed(self, queue: QueueConfiguration) -> None:
        """Add a fault for each feature of a managed parent that is requested but not supported."""
        reader, path = self._reader, queue.path
        key = queue_key(path, MANAGED_CREATION + "enabled")
        if not self._legacy:
            problem = "managed parents are not supported without legacy queue mode"
            effect = "its leaves get their shares by the rules of legacy queue mode"
            reader.unsupported(key, problem, effect, "use auto-queue-creation-v2.enabled instead")
        if queue.creation.enabled:
            problem = "a parent creates queues in one way only"
            effect = "it creates leaves as a managed parent, and no further levels (Hadoop's ResourceManager exits)"
            reader.unsupported(key, problem, effect, "set this key or auto-queue-creation-v2.enabled to false")
        for name in (path, path + "." + LEAF_TEMPLATE[:-1]):
            for label in configured_labels(reader, name):
                labelled = queue_key(name, f"accessible-node-labels.{label}.capacity")
                problem = "capacities on node labels are not supported for managed parents"
                effect = "created leaves have no guarantee on the label and do not get its nodes"
                reader.unsupported(labelled, problem, effect, "remove it")
        policy = queue_key(path, MANAGED_CREATION + "management-policy")
        name = reader.raw(policy, DEFAULT_MANAGEMENT_POLICY)
        if name.strip() == DEFAULT_MANAGEMENT_POLICY != name:
            reader.fault(policy, untrimmed(name, "no such class"), f"write {DEFAULT_MANAGEMENT_POLICY}, or remove it")
        elif name != DEFAULT_MANAGEMENT_POLICY:
            problem = "not a supported policy for managed parents"
            effect = "its leaves get guarantees by Hadoop's own policy"
            reader.unsupported(policy, problem, effect, f"write {DEFAULT_MANAGEMENT_POLICY}, or remove it")

    def _maximum_allocation(self, path: str, parent: QueueConfiguration | None) -> Resource:
        """The largest container of the queue: the parent's value unless set, at most the scheduler's."""
        reader, ceiling = self._reader, self._scheduler_maximum
        inherited = parent.maximum_allocation if parent is not None else ceiling
        key = queue_key(path, "maximum-allocation")
        if reader.raw(key):
            own = self._resource(key)
        else:
            memory_mb = reader.long(key + "-mb", inherited.memory_mb)
            vcores = reader.integer(key + "-vcores", inherited.vcores)
            if memory_mb == inherited.memory_mb and vcores == inherited.vcores:
                return inherited
            own = Resource(memory_mb, vcores, inherited.extra)
        if not own.fits_in(ceiling):
            reader.fault(
                key if reader.raw(key) else key + "-mb",
                f"Queue maximum allocation cannot be larger than the cluster setting for queue {path} "
                f"max allocation per queue: {own} cluster setting: {ceiling}",
                "lower the value, or raise yarn.scheduler.maximum-allocation-mb and -vcores",
                value=str(own),
            )
            return inherited
        return own

    def _resource(self, key: str) -> Resource:
        """Parse `memory-mb=8192,vcores=4`, also `memory=8G` (ResourceUtils.parseResourcesString).

        As in Hadoop a type that is not named is 0, `memory` without a unit is in bytes, and units of other types than
        memory are ignored.
        """
        amounts = dict.fromkeys(self._scheduler_maximum.amounts(), 0)
        for word in _split(trim(self._reader.raw(key))):
            found = _AMOUNT.fullmatch(word)
            written, number, unit = found.groups() if found is not None else ("", "0", "")
            name = _TYPES_BY_NAME.get(written, written)
            if name not in amounts:
                problem = f"{word!r} is not one of {', '.join(amounts)} = number, or a number with the unit M or G"
                self._reader.fault(key, problem, "write memory-mb=MB,vcores=N, without blanks around =")
                continue
            amounts[name] = int(number)
            if name == MEMORY_MB and (unit or written == "memory"):
                amounts[name] = to_mib(int(number), f"{unit.upper()}i" if unit else "")
        return Resource.of(amounts)


def _split(text: str) -> list[str]:
    """The parts between commas, trimmed, without empty ones at the end (Java's String.split)."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [trim(part) for part in parts]


def _accessible_labels(reader: Reader, path: str, parent: QueueConfiguration | None) -> tuple[str, ...]:
    """The labels that the queue may use, `("*",)` for all: its parent's unless set, and never others."""
    key = queue_key(path, "accessible-node-labels")
    if parent is None:
        return (ANY,)
    inherited = parent.accessible_labels
    if reader.configuration.get(key) is None:
        return inherited
    labels = tuple(dict.fromkeys(reader.listed(key)))
    if ANY in labels:
        labels = (ANY,)
    if ANY not in inherited:
        more = [label for label in labels if label not in inherited]
        if ANY in labels:
            problem = f"Parent's accessible queue is not ANY(*), but child's accessible queue is {ANY}"
            reader.fault(key, problem, "name the labels, or allow the parent all labels")
        elif more:
            problem = f"Some labels of child queue is not a subset of parent queue, these labels=[{','.join(more)}]"
            reader.fault(key, problem, "remove these labels, or add them to the parent's")
    return labels


def _default_label(
    reader: Reader, path: str, parent: QueueConfiguration | None, accessible: tuple[str, ...], *, is_leaf: bool
) -> str | None:
    """The label of resource requests without one.

    If it is not set, the parent's applies, provided that the queue may use all labels of its parent.
    """
    key = queue_key(path, "default-node-label-expression")
    label = reader.configuration.get(key)
    if label is not None:
        label = label.strip()
    elif parent is not None and set(accessible) >= set(parent.accessible_labels):
        label = parent.default_label
    if is_leaf and label and label not in accessible and ANY not in accessible:
        problem = (
            f"Invalid default label expression of  queue={path} doesn't have permission to access all labels in "
            f"default label expression. labelExpression of resource request={label}. Queue labels="
            f"{','.join(accessible)}"
        )
        reader.fault(key, problem, "name a label that the queue may use")
    return label


def _user_weights(
    reader: Reader, path: str, parent: QueueConfiguration | None, leaf_user_limit: float | None
) -> dict[str, float]:
    """{user: weight}; the parent's unless set. Weights are checked in leaves, where they are used."""
    weights = dict(parent.user_weights) if parent is not None else {}
    prefix = queue_key(path, "user-settings.")
    for key in reader.configuration.keys(prefix):
        if key.endswith(".weight"):
            weights[key[len(prefix) : -len(".weight")].strip()] = reader.number(key, 1.0)
    if leaf_user_limit is not None:
        bound = f32(100.0 / min(100.0, leaf_user_limit)) if leaf_user_limit > 0 else float("inf")
        for user, weight in weights.items():
            if weight < 0 or weight > bound:
                reader.fault(
                    prefix + user + ".weight",
                    f'Weight ({shortest(weight)}) for user "{user}" must be between 0 and 100 / '
                    f"{shortest(min(100.0, leaf_user_limit))} (= {shortest(bound)}), the number of concurrent active "
                    f"users in {path}",
                    "lower the weight, or the queue's minimum-user-limit-percent",
                )
    return weights


def _warn_of_user_limit(reader: Reader, key: str) -> None:
    """Warn of a minimum-user-limit-percent that is not a percentage. Hadoop accepts it."""
    limit = reader.configuration.get_trimmed(key)
    percent = reader.number(key, 100.0) if limit else 100.0
    if not 0 <= percent <= 100 and not reader.has_fault(key):
        reader.warn(key, f"{limit} is not a percentage of the queue", "write 0 to 100")


def _preemption_disabled(reader: Reader, path: str, parent: QueueConfiguration | None) -> bool:
    """True without scheduling monitors; else the queue's own value or its parent's (CSQueuePreemptionSettings)."""
    inherited = parent.preemption_disabled if parent is not None else False
    own = reader.flag(queue_key(path, "disable_preemption"), inherited)
    return own or not reader.value(scheduler.MONITOR_ENABLE)


def _intra_queue_preemption_off(reader: Reader, path: str, parent: QueueConfiguration | None) -> bool:
    """True if the policy has no intra-queue preemption; else the queue's own value or its parent's."""
    inherited = parent.intra_queue_preemption_off if parent is not None else False
    own = reader.flag(queue_key(path, "intra-queue-preemption.disable_preemption"), inherited)
    return own or not reader.value(preemption.INTRA_ENABLED)


def _ordering_policy(reader: Reader, path: str, parent: QueueConfiguration | None, *, is_leaf: bool) -> str:
    """The ordering policy: of applications in a leaf, of children in a parent. A parent inherits its parent's."""
    key = queue_key(path, "ordering-policy")
    inherited = parent.ordering_policy if parent is not None else UTILIZATION
    default, known = (
        (FIFO, (FIFO, FAIR, FIFO_FOR_PENDING, FIFO_WITH_PARTITIONS))
        if is_leaf
        else (inherited, (UTILIZATION, PRIORITY_UTILIZATION))
    )
    name = reader.text(key, default)
    if name in known:
        return name
    kind = "leaf" if is_leaf else "parent"
    remedy = f"{path} is a {kind} queue: write one of {', '.join(known)}"
    reader.fault(key, f"Unable to construct ordering policy for: {name}", remedy)
    return default


def _state(reader: Reader, path: str) -> QueueState | None:
    """The configured state; None if not configured."""
    key = queue_key(path, "state")
    name = reader.raw(key).upper()
    if not name:
        return None
    if name not in ("RUNNING", "STOPPED"):
        problem = "Invalid queue state configuration. We can only use RUNNING or STOPPED."
        reader.fault(key, untrimmed(name, problem), "write RUNNING or STOPPED")
        return None
    return QueueState[name]


def _initial_state(configured: QueueState | None, parent: QueueConfiguration | None) -> QueueState:
    """The configured state, else that of the parent in the same file, regardless of the running parent's state."""
    if configured is not None:
        return configured
    return parent.initial_state if parent is not None else QueueState.RUNNING
