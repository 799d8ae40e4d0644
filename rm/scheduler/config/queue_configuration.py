"""What capacity-scheduler.xml says of one queue, with what it inherits, and the checks of one queue's values."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from rm.scheduler.config.application_lifetime import ApplicationLifetime, read_lifetime
from rm.scheduler.config.configured_capacity import (
    DYNAMIC_WEIGHT,
    WEIGHT_NOT_SET,
    CapacityReader,
    CapacityUnit,
    ConfiguredCapacity,
    uniform,
)
from rm.scheduler.config.managed_configuration import ManagedCreation, is_managed, read_managed
from rm.scheduler.config.priority_acls import PRIORITY_ACL, PriorityAcl, read_priority_acls
from rm.scheduler.config.queue_keys import PREFIX, ROOT, queue_key
from rm.scheduler.config.queue_labels import configured_labels, read_accessible_labels, read_default_label
from rm.scheduler.config.queue_values import (
    read_initial_state,
    read_intra_queue_preemption_off,
    read_maximum_allocation,
    read_ordering_policy,
    read_preemption_disabled,
    read_state,
    read_user_weights,
    warn_of_user_limit,
)
from rm.scheduler.config.reading import Reader
from rm.scheduler.model.usage import NO_LABEL
from yarn.asks import ANY
from yarn.java.binary32 import f32
from yarn.resource import INT32_MAX, Resource, ResourceTypes
from yarn.states import QueueState

LEGACY_QUEUE_MODE = PREFIX + "legacy-queue-mode.enabled"

QUEUE_CREATION = "auto-queue-creation-v2."
PLAN_DEFAULT = "-default"
"""What the name of the leaf below a reservable queue ends with (ReservationConstants.DEFAULT_QUEUE_SUFFIX)."""


class QueueCreation(Struct, frozen=True):
    """What a parent does when queues below it are named that there are not.

    `queues_max`: children, configured ones too; `depth_max`: levels below the first configured parent;
    `removes_idle`: the queue itself may be removed when it is idle, if it was created on demand.
    """

    enabled: bool
    queues_max: int
    depth_max: int
    removes_idle: bool


class QueueConfiguration(Struct, frozen=True):
    """One queue. Fractions are 32-bit floats of 1; percentages where Hadoop keeps percentages (`user_limit`).

    `capacities` {partition: what the queue is given of it}; `maximum_applications` -1 = derived from the capacity;
    `user_limit_factor` -1 = no limit for one user; `state` None = not configured, a new queue has `initial_state`;
    `user_weights` {user: weight}, inherited ones included. `preemption_disabled`: nothing may be taken from the queue
    for others, here or because of a queue above; so with preemption off. `intra_queue_preemption_off`: the same of its
    own key alone. `is_dynamic`: created on demand, not configured; such a queue has no `children` here.
    `managed`: how it makes leaves in the older way, if it does; `is_auto_created`: it was made so.
    `is_plan`: reservations can be made in it (PlanQueue). `accessible_labels`: `*` alone for all; `default_label`: of
    asks that name none, None = not configured; `exclusive_partitions`: with lists of their own in the ordering policy
    fifo-with-partitions.
    """

    path: str
    name: str
    children: tuple[str, ...]
    is_leaf: bool
    is_dynamic: bool
    is_plan: bool
    creation: QueueCreation
    capacities: dict[str, ConfiguredCapacity]
    accessible_labels: tuple[str, ...]
    default_label: str | None
    user_limit: float
    user_limit_factor: float
    user_weights: dict[str, float]
    maximum_applications: int
    max_parallel_apps: int
    maximum_allocation: Resource
    ordering_policy: str
    fair_by_size: bool
    exclusive_partitions: tuple[str, ...]
    priority: int
    default_application_priority: int
    priority_acls: tuple[PriorityAcl, ...]
    lifetime: ApplicationLifetime
    state: QueueState | None
    initial_state: QueueState
    allow_zero_capacity_sum: bool
    preemption_disabled: bool
    intra_queue_preemption_off: bool
    managed: ManagedCreation | None = None
    is_auto_created: bool = False

    @property
    def parent_path(self) -> str:
        """The parent's path, "" for root. Names of queues may have dots, so the path alone does not say."""
        return self.path[: -len(self.name) - 1]

    @property
    def is_on_demand(self) -> bool:
        """True if nobody configured it, in whichever way it was made."""
        return self.is_dynamic or self.is_auto_created

    @property
    def intra_queue_preemption_disabled(self) -> bool:
        """True if nothing is taken from one application of the queue for another one of it."""
        return self.intra_queue_preemption_off or self.preemption_disabled

    def may_use(self, label: str) -> bool:
        """True if its asks may name the label; not so for no label, which everybody may name."""
        return label in self.accessible_labels or ANY in self.accessible_labels


def queue_depth_max(reader: Reader, path: str) -> int:
    """How many levels of queues may be created below the configured parent at `path`."""
    name = QUEUE_CREATION + "maximum-queue-depth"
    return reader.integer(queue_key(path, name), reader.integer(PREFIX + name, 2))


def read_queue(
    reader: Reader,
    path: str,
    parent: QueueConfiguration | None,
    types: ResourceTypes,
    scheduler_maximum: Resource,
    *,
    keeps_parent: bool = False,
) -> QueueConfiguration:
    """The queue at `path`; faults go to the reader, and what is faulty is replaced by a harmless value.

    `keeps_parent`: it is a parent even without children, since it was created as one.
    """
    children = reader.names(queue_key(path, "queues"))
    creation = _creation(reader, path)
    if parent is not None and parent.is_plan:
        own = _read(reader, path, parent, types, scheduler_maximum, (), (), is_leaf=True, creation=creation)
        return _default_of_plan(own, parent, types)
    makes_leaves = is_managed(reader, path)
    is_leaf = not (children or creation.enabled or keeps_parent or makes_leaves)
    is_plan = is_leaf and reader.flag(queue_key(path, "reservable"), False)
    if is_plan:
        name = path if parent is None else path[len(parent.path) + 1 :]
        children, is_leaf = (name + PLAN_DEFAULT,), False
    queue = _read(
        reader,
        path,
        parent,
        types,
        scheduler_maximum,
        children,
        configured_labels(reader, path),
        is_leaf=is_leaf,
        creation=creation,
    )
    if makes_leaves:
        capacity, legacy = queue.capacities[NO_LABEL], reader.flag(LEGACY_QUEUE_MODE, True)
        managed = read_managed(reader, path, types, capacity, legacy=legacy, is_flexible=creation.enabled)
        queue = replace(queue, managed=managed)
    return replace(queue, is_plan=is_plan)


def read_auto_created_queue(
    reader: Reader, path: str, parent: QueueConfiguration, types: ResourceTypes, scheduler_maximum: Resource
) -> QueueConfiguration:
    """A leaf that a managed parent made; the reader's configuration has the template laid over it."""
    creation = replace(_creation(reader, path), enabled=False)
    queue = _read(reader, path, parent, types, scheduler_maximum, (), (), is_leaf=True, creation=creation)
    return replace(queue, is_auto_created=True)


def _default_of_plan(own: QueueConfiguration, plan: QueueConfiguration, types: ResourceTypes) -> QueueConfiguration:
    """What is not reserved of a plan: all of it, since no reservations are made here (ReservationQueue).

    Its users have the plan's limits. It has no share for masters of its own: only one that is let in alone may run.
    """
    everything = uniform(100.0, CapacityUnit.PERCENTAGE, types)
    capacity = ConfiguredCapacity(
        capacity=1.0,
        maximum_capacity=1.0,
        weight=WEIGHT_NOT_SET,
        minimum=types.none,
        maximum=types.none,
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


def read_dynamic_queue(
    reader: Reader,
    path: str,
    parent: QueueConfiguration,
    types: ResourceTypes,
    scheduler_maximum: Resource,
    *,
    labels: tuple[str, ...],
    is_leaf: bool,
) -> QueueConfiguration:
    """A queue that was created on demand; the reader's configuration has the templates laid over it.

    `labels`: those that it has capacities of.
    """
    creation = replace(_creation(reader, path), enabled=not is_leaf)
    queue = _read(reader, path, parent, types, scheduler_maximum, (), labels, is_leaf=is_leaf, creation=creation)
    capacities = {partition: _dynamic_capacity(reader, path, own, types) for partition, own in queue.capacities.items()}
    return replace(queue, is_dynamic=True, capacities=capacities)


def _dynamic_capacity(reader: Reader, path: str, own: ConfiguredCapacity, types: ResourceTypes) -> ConfiguredCapacity:
    """A weight of 1 where nothing is said (AbstractCSQueue.overrideCapacityVectorsForSpecialQueues).

    In legacy queue mode a fault if it is given anything but a weight: its siblings all have weights, and Hadoop's
    ResourceManager does not survive the mix (AbstractParentQueue.updateClusterResourceLegacyMode).
    """
    legacy = reader.flag(LEGACY_QUEUE_MODE, True)
    if legacy and (own.capacity > 0 or not own.minimum.is_none()):
        problem = f"{path} is created on demand, and has a weight as its siblings have"
        reader.fault(queue_key(path, "capacity"), problem, "write a weight, such as 1w, into the template")
    if not own.vector.entries:
        one = uniform(DYNAMIC_WEIGHT, CapacityUnit.WEIGHT, types)
        everything = uniform(100.0, CapacityUnit.PERCENTAGE, types)
        return replace(own, weight=DYNAMIC_WEIGHT, vector=one, maximum_vector=everything)
    if legacy and own.weight == WEIGHT_NOT_SET:
        return replace(own, weight=DYNAMIC_WEIGHT)
    return own


def _creation(reader: Reader, path: str) -> QueueCreation:
    prefix = queue_key(path, QUEUE_CREATION)
    return QueueCreation(
        enabled=reader.flag(prefix + "enabled", False),
        queues_max=reader.integer(prefix + "max-queues", 1000),
        depth_max=queue_depth_max(reader, path),
        removes_idle=reader.flag(prefix + "queue-auto-removal.enable", True),
    )


def _read(
    reader: Reader,
    path: str,
    parent: QueueConfiguration | None,
    types: ResourceTypes,
    scheduler_maximum: Resource,
    children: tuple[str, ...],
    labels: tuple[str, ...],
    *,
    is_leaf: bool,
    creation: QueueCreation,
) -> QueueConfiguration:
    state = read_state(reader, path)
    default_limit = reader.number(PREFIX + "minimum-user-limit-percent", 100.0)
    default_factor = reader.number(PREFIX + "user-limit-factor", 1.0)
    user_limit = reader.number(queue_key(path, "minimum-user-limit-percent"), default_limit)
    for prefix in ("", path + ".") if path == ROOT else (path + ".",):
        warn_of_user_limit(reader, f"{PREFIX}{prefix}minimum-user-limit-percent")
    accessible_labels = read_accessible_labels(reader, path, parent.accessible_labels if parent is not None else None)
    return QueueConfiguration(
        path=path,
        name=path if parent is None else path[len(parent.path) + 1 :],
        children=children,
        is_leaf=is_leaf,
        is_dynamic=False,
        is_plan=False,
        creation=creation,
        capacities=_capacities(reader, path, parent, types, labels),
        accessible_labels=accessible_labels,
        default_label=read_default_label(reader, path, parent, accessible_labels, is_leaf=is_leaf),
        user_limit=user_limit,
        user_limit_factor=reader.number(queue_key(path, "user-limit-factor"), default_factor),
        user_weights=read_user_weights(reader, path, parent, user_limit if is_leaf else None),
        maximum_applications=reader.integer(queue_key(path, "maximum-applications"), -1),
        max_parallel_apps=reader.integer(
            queue_key(path, "max-parallel-apps"), reader.integer(PREFIX + "max-parallel-apps", INT32_MAX)
        ),
        maximum_allocation=read_maximum_allocation(reader, path, parent, scheduler_maximum),
        ordering_policy=read_ordering_policy(reader, path, parent, is_leaf=is_leaf),
        fair_by_size=reader.flag(queue_key(path, "ordering-policy.fair.enable-size-based-weight"), False),
        exclusive_partitions=reader.words(queue_key(path, "ordering-policy.exclusive-enforced-partitions")),
        priority=reader.integer(queue_key(path, "priority"), 0),
        default_application_priority=reader.integer(queue_key(path, "default-application-priority"), 0),
        priority_acls=read_priority_acls(reader, queue_key(path, PRIORITY_ACL)) if is_leaf else (),
        lifetime=read_lifetime(reader, queue_key(path, ""), parent.lifetime if parent is not None else None),
        state=state,
        preemption_disabled=read_preemption_disabled(reader, path, parent),
        intra_queue_preemption_off=read_intra_queue_preemption_off(reader, path, parent),
        initial_state=read_initial_state(state, parent),
        allow_zero_capacity_sum=reader.flag(queue_key(path, "allow-zero-capacity-sum"), False),
    )


def _capacities(
    reader: Reader, path: str, parent: QueueConfiguration | None, types: ResourceTypes, labels: tuple[str, ...]
) -> dict[str, ConfiguredCapacity]:
    default_am = reader.number(PREFIX + "maximum-am-resource-percent", f32(0.1))
    own_am = reader.number(queue_key(path, "maximum-am-resource-percent"), default_am)
    legacy = reader.flag(LEGACY_QUEUE_MODE, True)
    capacities: dict[str, ConfiguredCapacity] = {}
    for label in (NO_LABEL, *labels):
        prefix = queue_key(path, f"accessible-node-labels.{label}." if label else "")
        capacities[label] = CapacityReader(reader, path, prefix, types, label=label, legacy=legacy).read(
            is_root=path == ROOT,
            above=parent.capacities.get(label) if parent is not None else None,
            maximum_am_percent=reader.number(prefix + "maximum-am-resource-percent", own_am) if label else own_am,
        )
    return capacities
