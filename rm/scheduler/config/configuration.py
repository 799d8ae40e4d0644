"""yarn-site.xml and capacity-scheduler.xml as the scheduler understands them: one typed value, checked whole.

`CapacitySchedulerConfiguration.read` raises ConfigurationException with every fault there is, in Hadoop's words with
the value, the bound and the remedy. What Hadoop knows and this scheduler does not yet is refused by name, never
passed over in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from rm.scheduler.config.capacity_checks import Yardstick, check_children, check_queue, warn_of_maximums
from rm.scheduler.config.managed_configuration import configuration_of_leaf
from rm.scheduler.config.queue_configuration import (
    LEGACY_QUEUE_MODE,
    QUEUE_CREATION,
    QueueConfiguration,
    read_auto_created_queue,
    read_dynamic_queue,
    read_queue,
)
from rm.scheduler.config.queue_keys import PREFIX, ROOT, queue_key
from rm.scheduler.config.queue_template import QueueTemplate
from rm.scheduler.config.reading import Reader
from rm.scheduler.config.unsupported import note_unsupported
from rm.scheduler.model.resource_calculator import (
    DefaultResourceCalculator,
    DominantResourceCalculator,
    ResourceCalculator,
)
from rm.scheduler.preemption.configuration import PreemptionSettings, read_preemption
from rm.scheduler.preemption.monitors import IDLE_QUEUE_POLICY, QUEUE_MANAGEMENT_POLICY, runs
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException, Fault, refuse_if_faulty
from yarn.java.hash_order import hash_order, string_hash
from yarn.resource import INT32_MAX, INT64_MAX, MEMORY_MB, VCORES, Resource, ResourceTypes
from yarn.settings.scheduler import is_queue_path
from yarn.states import QueueState

QUEUE_DEPTH_MAX = 64
"""Levels of the queue tree; far above any real one, and it ends a tree that would never end."""

DEFAULT_CALCULATOR = "DefaultResourceCalculator"
DOMINANT_CALCULATOR = "DominantResourceCalculator"

_MINIMUM = "yarn.scheduler.minimum-allocation-"
_MAXIMUM = "yarn.scheduler.maximum-allocation-"
_USER = PREFIX + "user."
QUEUE_MANAGEMENT_INTERVAL = "yarn.resourcemanager.monitor.capacity.queue-management.monitoring-interval"
_MAX_PARALLEL = "max-parallel-apps"
_TYPES = "yarn.resource-types"
_LABELS_OR_TEMPLATE = re.compile(r"\.(accessible-node-labels|leaf-queue-template|auto-queue-creation-v2)(\.|$)")
"""In a key, what is below these words belongs to the queue before them."""


class CapacitySchedulerConfiguration(Struct, frozen=True):
    """All settings. `queues` {path: queue}, parents before their children, children in the order of the file.

    Queues that were created on demand come last in `queues`; more are put there, and idle ones taken away, as time
    goes on. `source` is what all was read from.

    `maximum_container_assignments` -1 = any number a heartbeat; `rack_locality_additional_delay` -1 = not used;
    `global_queue_max_application` <= 0 = not set; `settle_ms`: how long the configured maximum allocation holds
    after the start, before the largest node caps it.
    """

    calculator: str
    resource_types: ResourceTypes
    minimum_allocation: Resource
    maximum_allocation: Resource
    maximum_applications: int
    global_queue_max_application: int
    node_locality_delay: int
    rack_locality_additional_delay: int
    rack_locality_full_reset: bool
    multiple_assignments_enabled: bool
    maximum_container_assignments: int
    maximum_offswitch_assignments: int
    reservations_continue_looking: bool
    node_labels_enabled: bool
    am_allow_non_exclusive: bool
    include_port_in_node_name: bool
    auto_update_containers: bool
    opportunistic_containers: bool
    settle_ms: int
    default_user_max_parallel_apps: int
    users_max_parallel_apps: dict[str, int]
    legacy_queue_mode: bool
    removes_idle_queues: bool
    idle_queue_expiry_s: int
    manages_queues: bool
    queue_management_interval_ms: int
    preemption: PreemptionSettings
    queues: dict[str, QueueConfiguration]
    source: Configuration
    warnings: tuple[Fault, ...]

    def user_max_parallel_apps(self, user: str) -> int:
        """How many of the user's applications may run at once, in all queues together."""
        return self.users_max_parallel_apps.get(user, self.default_user_max_parallel_apps)

    @staticmethod
    def read(
        configuration: Configuration,
        yardstick: Yardstick | None = None,
        dynamic_queues: Mapping[str, QueueConfiguration] | None = None,
    ) -> CapacitySchedulerConfiguration:
        """The settings; raises ConfigurationException with all faults. For the arguments see `read_with_faults`."""
        settings, faults = CapacitySchedulerConfiguration.read_with_faults(configuration, yardstick, dynamic_queues)
        refuse_if_faulty(faults)
        return settings

    @staticmethod
    def read_with_faults(
        configuration: Configuration,
        yardstick: Yardstick | None = None,
        dynamic_queues: Mapping[str, QueueConfiguration] | None = None,
    ) -> tuple[CapacitySchedulerConfiguration, list[Fault]]:
        """The settings and all that is wrong or odd in them; a value that is refused is replaced by a harmless one.

        `yardstick`: the running cluster's; None at the start. `dynamic_queues`: those that there are, parents first.
        They stay, unless their parent does not, and those that are configured now are no longer dynamic.
        """
        reader = Reader(configuration)
        types = ResourceTypes(_extra_types(reader))
        minimum, maximum = _minimum_allocation(reader, types), _maximum_allocation(reader, types)
        _check_allocations(reader, minimum, maximum)
        queues: dict[str, QueueConfiguration] = {}
        dynamic_queues = dynamic_queues or {}
        parents = frozenset(path for path, queue in dynamic_queues.items() if not queue.is_leaf)
        _read_tree(reader, ROOT, None, types, maximum, queues, parents)
        _read_dynamic_queues(reader, dynamic_queues, types, maximum, queues)
        calculator = _calculator(reader, types)
        _check_tree(reader, queues, yardstick or _before_the_first_node(calculator, types))
        note_unsupported(reader)
        settings = CapacitySchedulerConfiguration(
            calculator=calculator,
            resource_types=types,
            minimum_allocation=minimum,
            maximum_allocation=maximum,
            maximum_applications=reader.integer(PREFIX + "maximum-applications", 10000),
            global_queue_max_application=reader.integer(PREFIX + "global-queue-max-application", -1),
            node_locality_delay=reader.integer(PREFIX + "node-locality-delay", 40),
            rack_locality_additional_delay=reader.integer(PREFIX + "rack-locality-additional-delay", -1),
            rack_locality_full_reset=reader.flag(PREFIX + "rack-locality-full-reset", True),
            multiple_assignments_enabled=reader.flag(_heartbeat("multiple-assignments-enabled"), True),
            maximum_container_assignments=reader.integer(_heartbeat("maximum-container-assignments"), 100),
            maximum_offswitch_assignments=max(1, reader.integer(_heartbeat("maximum-offswitch-assignments"), 1)),
            reservations_continue_looking=reader.flag(PREFIX + "reservations-continue-look-all-nodes", True),
            node_labels_enabled=reader.flag("yarn.node-labels.enabled", False),
            am_allow_non_exclusive=reader.flag(
                "yarn.resourcemanager.node-labels.am.allow-non-exclusive-allocation", False
            ),
            include_port_in_node_name=reader.flag("yarn.scheduler.include-port-in-node-name", False),
            opportunistic_containers=reader.flag(
                "yarn.resourcemanager.opportunistic-container-allocation.enabled", False
            ),
            auto_update_containers=reader.flag("yarn.resourcemanager.auto-update.containers", False),
            settle_ms=reader.duration_ms("yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms", 10_000),
            default_user_max_parallel_apps=reader.integer(_USER + _MAX_PARALLEL, INT32_MAX),
            preemption=read_preemption(reader),
            users_max_parallel_apps=_users_max_parallel_apps(reader),
            legacy_queue_mode=reader.flag(LEGACY_QUEUE_MODE, True),
            removes_idle_queues=runs(reader, IDLE_QUEUE_POLICY),
            idle_queue_expiry_s=reader.long(PREFIX + QUEUE_CREATION + "queue-expiration-time", 300),
            manages_queues=runs(reader, QUEUE_MANAGEMENT_POLICY),
            queue_management_interval_ms=reader.long(QUEUE_MANAGEMENT_INTERVAL, 1500),
            queues=queues,
            source=configuration,
            warnings=tuple(reader.faults),
        )
        return settings, reader.faults

    @property
    def is_whole(self) -> bool:
        """False if queues are listed that could not be read."""
        return all(f"{queue.path}.{name}" in self.queues for queue in self.queues.values() for name in queue.children)


def _users_max_parallel_apps(reader: Reader) -> dict[str, int]:
    """{user: limit} of yarn.scheduler.capacity.user.<user>.max-parallel-apps."""
    suffix = "." + _MAX_PARALLEL
    keys = [key for key in reader.configuration.keys(_USER) if key.endswith(suffix)]
    return {key[len(_USER) : -len(suffix)]: reader.integer(key, INT32_MAX) for key in keys}


def _heartbeat(name: str) -> str:
    return f"{PREFIX}per-node-heartbeat.{name}"


def check_scheduler(configuration: Configuration) -> list[Fault]:
    """Everything the scheduler would refuse in the configuration, or else what it takes with a warning."""
    try:
        return list(CapacitySchedulerConfiguration.read(configuration).warnings)
    except ConfigurationException as refusal:
        return list(refusal.faults)


def _calculator(reader: Reader, types: ResourceTypes) -> str:
    key = PREFIX + "resource-calculator"
    name = reader.text(key, DEFAULT_CALCULATOR).rsplit(".", 1)[-1]
    if name not in (DEFAULT_CALCULATOR, DOMINANT_CALCULATOR):
        reader.fault(
            key,
            "no such resource calculator",
            f"write org.apache.hadoop.yarn.util.resource.{DEFAULT_CALCULATOR} or ...{DOMINANT_CALCULATOR}",
        )
    if name == DEFAULT_CALCULATOR and types.extra_names:
        reader.fault(
            key,
            f"RM uses DefaultResourceCalculator which used only memory as resource-type but invalid resource-types "
            f"specified {', '.join((MEMORY_MB, VCORES, *types.extra_names))}",
            f"use {DOMINANT_CALCULATOR}",
        )
    return name


def make_calculator(name: str, none: Resource) -> ResourceCalculator:
    """The calculator of a name that was checked."""
    return DominantResourceCalculator(none) if name == DOMINANT_CALCULATOR else DefaultResourceCalculator(none)


def _before_the_first_node(calculator: str, types: ResourceTypes) -> Yardstick:
    return Yardstick(make_calculator(calculator, types.none), types.none, {})


def _extra_types(reader: Reader) -> tuple[str, ...]:
    """The types besides memory and vcores, in the order of Hadoop's map (ResourceUtils.updateKnownResources)."""
    listed = reader.words(_TYPES)
    for number, name in enumerate(listed):
        if not name:
            reader.fault(_TYPES, f"Incomplete configuration for resource type {name!r}", "name it, or remove its comma")
        elif name in listed[:number]:
            reader.fault(_TYPES, f"Error in config, key {name!r} specified twice", "list it once")
    names = dict.fromkeys((*filter(None, listed), MEMORY_MB, VCORES))
    return tuple(name for name in hash_order(names, string_hash) if name not in (MEMORY_MB, VCORES))


def _minimum_allocation(reader: Reader, types: ResourceTypes) -> Resource:
    memory_mb = _own_or(reader, MEMORY_MB, "minimum", reader.integer(_MINIMUM + "mb", 1024))
    vcores = _own_or(reader, VCORES, "minimum", reader.integer(_MINIMUM + "vcores", 1))
    extra = tuple((name, _own_or(reader, name, "minimum", 0)) for name in types.extra_names)
    return Resource(memory_mb, vcores, extra)


def _maximum_allocation(reader: Reader, types: ResourceTypes) -> Resource:
    memory_mb = _own_or(reader, MEMORY_MB, "maximum", reader.integer(_MAXIMUM + "mb", 8192))
    vcores = _own_or(reader, VCORES, "maximum", reader.integer(_MAXIMUM + "vcores", 4))
    extra = tuple((name, _own_or(reader, name, "maximum", INT64_MAX)) for name in types.extra_names)
    return Resource(memory_mb, vcores, extra)


def _own_or(reader: Reader, name: str, end: str, default: int) -> int:
    """A resource type's own key, which wins over the scheduler's unless it is -1."""
    value = reader.long(f"{_TYPES}.{name}.{end}-allocation", -1)
    return default if value == -1 else value


def _check_allocations(reader: Reader, minimum: Resource, maximum: Resource) -> None:
    """CapacitySchedulerConfigValidator.validateMemoryAllocation and validateVCores."""
    for kind, unit, low, high in (
        ("memory", "mb", minimum.memory_mb, maximum.memory_mb),
        ("vcores", "vcores", minimum.vcores, maximum.vcores),
    ):
        if low <= 0 or low > high:
            reader.fault(
                _MINIMUM + unit,
                f"Invalid resource scheduler {kind} allocation configuration, {_MINIMUM}{unit}={low}, "
                f"{_MAXIMUM}{unit}={high}, min and max should be greater than 0, max should be no smaller than min.",
                f"set {_MINIMUM}{unit} from 1 to {high}",
                value=str(low),
            )
    if maximum.vcores > INT32_MAX:
        reader.fault(_MAXIMUM + "vcores", f"above {INT32_MAX}", "lower it")


def _read_tree(
    reader: Reader,
    path: str,
    parent: QueueConfiguration | None,
    types: ResourceTypes,
    maximum: Resource,
    queues: dict[str, QueueConfiguration],
    dynamic_parents: frozenset[str],
) -> None:
    queue = read_queue(reader, path, parent, types, maximum, keeps_parent=path in dynamic_parents)
    queues[path] = queue
    if path.count(".") >= QUEUE_DEPTH_MAX:
        reader.fault(queue_key(path, "queues"), f"more than {QUEUE_DEPTH_MAX} levels of queues", "flatten the tree")
        return
    for name in queue.children:
        if not name:
            reader.fault(queue_key(path, "queues"), "a blank is not a valid queue name", "name the queue, or remove it")
        elif f"{path}.{name}" in queues:
            reader.fault(queue_key(path, "queues"), f"queue {path}.{name} is listed twice", "list it once")
        else:
            _read_tree(reader, f"{path}.{name}", queue, types, maximum, queues, dynamic_parents)


def _read_dynamic_queues(
    reader: Reader,
    dynamic_queues: Mapping[str, QueueConfiguration],
    types: ResourceTypes,
    maximum: Resource,
    queues: dict[str, QueueConfiguration],
) -> None:
    """Those that stay, by the templates as they are now."""
    for path, queue in dynamic_queues.items():
        parent = queues.get(path.rpartition(".")[0])
        if path in queues or parent is None:
            continue
        if queue.is_auto_created and parent.managed is not None:
            own = Reader(configuration_of_leaf(reader.configuration, path))
            queues[path] = read_auto_created_queue(own, path, parent, types, maximum)
            reader.faults.extend(own.faults)
        elif queue.is_dynamic and not parent.is_leaf:
            template = QueueTemplate(reader.configuration, parent.path)
            own = Reader(template.configuration_of(path, is_leaf=queue.is_leaf))
            labels = template.labels_of(path)
            queues[path] = read_dynamic_queue(own, path, parent, types, maximum, labels=labels, is_leaf=queue.is_leaf)
            reader.faults.extend(own.faults)


def _check_state(reader: Reader, queue: QueueConfiguration, parent: QueueConfiguration | None) -> None:
    """QueueStateHelper.initializeState: nothing runs below what is stopped in the same file."""
    running, stopped = QueueState.RUNNING, QueueState.STOPPED
    if parent is not None and queue.state is running and parent.initial_state is stopped:
        reader.fault(
            queue_key(queue.path, "state"),
            f"The parent queue:{parent.path} cannot be STOPPED as the child queue:{queue.path} is in RUNNING state.",
            f"set {parent.path} to RUNNING as well",
        )


def _check_plan(reader: Reader, queue: QueueConfiguration) -> None:
    key = queue_key(queue.path, "reservable")
    if not (queue.is_leaf or queue.is_plan) and reader.flag(key, False):
        reader.fault(key, f"Only Leaf Queues can be reservable for {queue.path}", "set it to false")


def _check_tree(reader: Reader, queues: dict[str, QueueConfiguration], yardstick: Yardstick) -> None:
    """What queues may be given, and that there are queues at all."""
    legacy = reader.flag(LEGACY_QUEUE_MODE, True)
    for path, queue in queues.items():
        parent = queues.get(queue.parent_path)
        check_queue(reader, queue, parent, yardstick, legacy=legacy)
        if not queue.is_on_demand:
            _check_state(reader, queue, parent)
        children = [queues[f"{path}.{name}"] for name in queue.children if f"{path}.{name}" in queues]
        _check_plan(reader, queue)
        if children and legacy and not queue.is_plan:
            allow_zero = queue.allow_zero_capacity_sum
            check_children(reader, queue, children, yardstick, allow_zero_capacity_sum=allow_zero)
    warn_of_maximums(reader, queues, legacy=legacy)
    _warn_of_orphans(reader, queues)
    if queues[ROOT].is_leaf:
        key = queue_key(ROOT, "queues")
        reader.fault(
            key, "Queue configuration missing child queue names for root", f"name the queues below root in {key}"
        )


def _warn_of_orphans(reader: Reader, queues: dict[str, QueueConfiguration]) -> None:
    """Queues with a capacity or children that no parent lists: Hadoop does not look at their keys.

    One below a parent that creates queues may come into being. Of an orphan's children nothing is said.
    """
    orphans: set[str] = set()
    for key in reader.configuration.keys(PREFIX):
        head, _, name = key.removeprefix(PREFIX).rpartition(".")
        if name in ("capacity", "queues") and is_queue_path(head) and not _LABELS_OR_TEMPLATE.search(head):
            orphans.add(head)
    for path in sorted(orphans - queues.keys()):
        above = path.rpartition(".")[0]
        while above not in queues and above not in orphans:
            above = above.rpartition(".")[0]
        parent = queues.get(above)
        if parent is None or parent.creation.enabled or parent.managed is not None or parent.is_plan:
            continue
        listed = path[len(above) + 1 :]
        key = queue_key(path, "capacity" if queue_key(path, "capacity") in reader.configuration else "queues")
        problem = f"there is no queue {path}: {queue_key(above, 'queues')} does not list it"
        reader.warn(key, problem, f"add {listed} to that list, or remove the keys of the queue")
