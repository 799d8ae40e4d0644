"""Reads yarn-site.xml and capacity-scheduler.xml into one typed record, completely checked.

`CapacitySchedulerConfiguration.read` raises ConfigurationException with every fault, in Hadoop's words, with the value,
the bound and the remedy. Features that Hadoop supports and this scheduler does not are warnings that say what this
means, or refused by name if the configuration is strict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from rm.scheduler.config.checks import CapacityComparator, check_tree
from rm.scheduler.config.mistakes import Mistake, ReadQueues, mistakes_of
from rm.scheduler.config.monitors import (
    IDLE_QUEUE_POLICY,
    QUEUE_MANAGEMENT_POLICY,
    PreemptionSettings,
    read_preemption,
    runs,
)
from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.config.queue_reader import QueueReader
from rm.scheduler.config.queue_templates import QueueTemplate, configuration_of_leaf
from rm.scheduler.config.reader import Reader
from rm.scheduler.config.resource_types import extra_types, maximum_allocation, minimum_allocation
from rm.scheduler.config.template_mistakes import TemplateMistakes
from rm.scheduler.config.unsupported import check_unsupported
from yarn.configuration import Configuration
from yarn.faults import Fault, refuse_if_faulty
from yarn.resource import INT32_MAX, MEMORY_MB, VCORES, Resource, ResourceTypes
from yarn.resource_calculator import (
    DefaultResourceCalculator,
    DominantResourceCalculator,
    ResourceCalculator,
)
from yarn.settings import resourcemanager, scheduler
from yarn.settings.release import HadoopRelease
from yarn.settings.scheduler import PREFIX, ROOT, queue_key

QUEUE_DEPTH_MAX = 64
"""The largest number of levels of queues, far more than any real tree has. It ends the reading of an endless tree."""

DEFAULT_CALCULATOR = "DefaultResourceCalculator"
DOMINANT_CALCULATOR = "DominantResourceCalculator"

_USER = PREFIX + "user."
_MAX_PARALLEL = ".max-parallel-apps"


class AsynchronousSettings(Struct, frozen=True):
    """Settings of asynchronous scheduling: containers are placed by walks over all nodes, not by heartbeats.

    `threads`: the walks of one interval. Nodes that were silent for longer than `skip_after_ms` are skipped.
    """

    enabled: bool
    interval_ms: int
    threads: int
    skip_after_ms: int


class CapacitySchedulerConfiguration(Struct, frozen=True):
    """All settings of the scheduler.

    `queues` {path: queue}: parents before their children, children in the order of the file, queues created on demand
    last. The scheduler adds and removes queues on demand while it runs. `source`: the configuration that was read.
    `maximum_container_assignments`: per heartbeat; -1: unlimited. `rack_locality_additional_delay`: -1: not used.
    `global_queue_max_application`: <= 0: not set. `settle_ms`: for this time after the start the configured maximum
    allocation applies; afterwards the size of the largest node, if it is smaller.
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
    asynchronous: AsynchronousSettings
    release: HadoopRelease
    corrects_requests: bool
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
        """The maximum number of applications of the user that may run at the same time, in all queues together."""
        return self.users_max_parallel_apps.get(user, self.default_user_max_parallel_apps)

    @staticmethod
    def read(
        configuration: Configuration,
        comparator: CapacityComparator | None = None,
        dynamic_queues: Mapping[str, QueueConfiguration] | None = None,
    ) -> CapacitySchedulerConfiguration:
        """The settings; raises ConfigurationException with all faults. For the arguments see `read_with_faults`."""
        settings, faults = CapacitySchedulerConfiguration.read_with_faults(configuration, comparator, dynamic_queues)
        refuse_if_faulty(faults)
        return settings

    @staticmethod
    def read_with_faults(
        configuration: Configuration,
        comparator: CapacityComparator | None = None,
        dynamic_queues: Mapping[str, QueueConfiguration] | None = None,
    ) -> tuple[CapacitySchedulerConfiguration, list[Fault]]:
        """The settings, and all faults and warnings; a value with a fault is replaced by a valid one.

        `comparator`: that of the running cluster; None at start. `dynamic_queues` {path: queue}, parents first: the
        existing queues that were created on demand. They stay unless their parent is removed, or they are configured
        now.
        """
        reader = Reader(configuration)
        release = reader.release
        types = ResourceTypes(extra_types(reader))
        minimum, maximum = minimum_allocation(reader, types), maximum_allocation(reader, types)
        _check_allocations(reader, minimum, maximum)
        dynamic_queues = dynamic_queues or {}
        parents = frozenset(path for path, queue in dynamic_queues.items() if not queue.is_leaf)
        queues: dict[str, QueueConfiguration] = {}
        _QueuesReader(reader, QueueReader(reader, types, maximum), parents, queues).read(ROOT, None)
        _read_dynamic_queues(reader, dynamic_queues, types, maximum, queues)
        calculator = _calculator(reader, types)
        check_tree(reader, queues, comparator or _before_the_first_node(calculator, types))
        read = ReadQueues(reader, queues, minimum, calculator != DOMINANT_CALCULATOR)
        _warn_of_mistakes(reader, (*mistakes_of(read), *TemplateMistakes(read, types, maximum).found()))
        check_unsupported(reader)
        settings = CapacitySchedulerConfiguration(
            calculator=calculator,
            resource_types=types,
            minimum_allocation=minimum,
            maximum_allocation=maximum,
            maximum_applications=reader.value(scheduler.MAXIMUM_APPLICATIONS),
            global_queue_max_application=reader.value(scheduler.GLOBAL_QUEUE_MAX_APPLICATION),
            node_locality_delay=reader.value(scheduler.NODE_LOCALITY_DELAY),
            rack_locality_additional_delay=reader.value(scheduler.RACK_LOCALITY_ADDITIONAL_DELAY),
            rack_locality_full_reset=reader.value(scheduler.RACK_LOCALITY_FULL_RESET),
            multiple_assignments_enabled=reader.value(scheduler.MULTIPLE_ASSIGNMENTS_ENABLED),
            maximum_container_assignments=reader.value(scheduler.MAXIMUM_CONTAINER_ASSIGNMENTS),
            maximum_offswitch_assignments=max(1, reader.value(scheduler.MAXIMUM_OFFSWITCH_ASSIGNMENTS)),
            reservations_continue_looking=reader.value(scheduler.RESERVATIONS_CONTINUE_LOOKING),
            node_labels_enabled=reader.value(scheduler.NODE_LABELS_ENABLED),
            am_allow_non_exclusive=reader.value(scheduler.AM_ON_NON_EXCLUSIVE_LABELS),
            include_port_in_node_name=reader.value(scheduler.INCLUDE_PORT_IN_NODE_NAME),
            opportunistic_containers=reader.value(scheduler.OPPORTUNISTIC_CONTAINERS),
            auto_update_containers=reader.value(scheduler.AUTO_UPDATE_CONTAINERS),
            asynchronous=_asynchronous(reader),
            release=release,
            corrects_requests=reader.value(scheduler.AUTOCORRECT_CONTAINER_ALLOCATION) and release.corrects_requests,
            settle_ms=reader.value(scheduler.SCHEDULING_WAIT),
            default_user_max_parallel_apps=reader.value(scheduler.USER_MAX_PARALLEL_APPS),
            preemption=read_preemption(reader),
            users_max_parallel_apps=_users_max_parallel_apps(reader),
            legacy_queue_mode=reader.value(scheduler.LEGACY_QUEUE_MODE),
            removes_idle_queues=runs(reader, IDLE_QUEUE_POLICY),
            idle_queue_expiry_s=reader.value(scheduler.IDLE_QUEUE_EXPIRY),
            manages_queues=runs(reader, QUEUE_MANAGEMENT_POLICY),
            queue_management_interval_ms=reader.value(scheduler.QUEUE_MANAGEMENT_INTERVAL),
            queues=queues,
            source=configuration,
            warnings=tuple(reader.faults),
        )
        return settings, reader.faults

    @property
    def is_whole(self) -> bool:
        """False if queues are listed that could not be read."""
        return all(f"{queue.path}.{name}" in self.queues for queue in self.queues.values() for name in queue.children)


def _warn_of_mistakes(reader: Reader, mistakes: Iterable[Mistake]) -> None:
    """Add a warning for each mistake, none for a key that has a fault already."""
    faulty = {fault.key for fault in reader.faults}
    for mistake in dict.fromkeys(mistakes):
        if mistake.key not in faulty:
            reader.warn(mistake.key, mistake.problem, mistake.remedy)


def _calculator(reader: Reader, types: ResourceTypes) -> str:
    key = scheduler.RESOURCE_CALCULATOR.key
    name = reader.value(scheduler.RESOURCE_CALCULATOR).rsplit(".", 1)[-1]
    if name not in (DEFAULT_CALCULATOR, DOMINANT_CALCULATOR):
        reader.fault(
            key,
            "not a known resource calculator",
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
    """The calculator with that name; the name is known to be valid."""
    return DominantResourceCalculator(none) if name == DOMINANT_CALCULATOR else DefaultResourceCalculator(none)


def _before_the_first_node(calculator: str, types: ResourceTypes) -> CapacityComparator:
    return CapacityComparator(make_calculator(calculator, types.none), types.none, {})


def _check_allocations(reader: Reader, minimum: Resource, maximum: Resource) -> None:
    """Add faults of the minimum and maximum allocation (validateMemoryAllocation, validateVCores)."""
    for kind, low_key, high_key, low, high in (
        (
            "memory",
            scheduler.MINIMUM_ALLOCATION_MB.key,
            scheduler.MAXIMUM_ALLOCATION_MB.key,
            minimum.memory_mb,
            maximum.memory_mb,
        ),
        (
            "vcores",
            scheduler.MINIMUM_ALLOCATION_VCORES.key,
            scheduler.MAXIMUM_ALLOCATION_VCORES.key,
            minimum.vcores,
            maximum.vcores,
        ),
    ):
        if low <= 0 or low > high:
            reader.fault(
                low_key,
                f"Invalid resource scheduler {kind} allocation configuration, {low_key}={low}, {high_key}={high}, "
                "min and max should be greater than 0, max should be no smaller than min.",
                f"set {low_key} from 1 to {high}",
                value=str(low),
            )
    if maximum.vcores > INT32_MAX:
        reader.fault(scheduler.MAXIMUM_ALLOCATION_VCORES.key, f"above the maximum, {INT32_MAX}", "lower it")


def _asynchronous(reader: Reader) -> AsynchronousSettings:
    """The settings of asynchronous scheduling. An interval of 0 becomes 1 ms, no thread becomes one."""
    heartbeat_ms = reader.value(resourcemanager.NM_HEARTBEAT_INTERVAL)
    return AsynchronousSettings(
        enabled=reader.value(scheduler.SCHEDULE_ASYNCHRONOUSLY),
        interval_ms=max(1, reader.value(scheduler.ASYNCHRONOUS_INTERVAL)),
        threads=max(1, reader.value(scheduler.ASYNCHRONOUS_THREADS)),
        skip_after_ms=reader.value(scheduler.SKIP_NODE_MULTIPLIER) * heartbeat_ms,
    )


def _users_max_parallel_apps(reader: Reader) -> dict[str, int]:
    """{user: limit} from yarn.scheduler.capacity.user.<user>.max-parallel-apps."""
    of_all = scheduler.USER_MAX_PARALLEL_APPS.key
    keys = [key for key in reader.configuration.keys(_USER) if key.endswith(_MAX_PARALLEL) and key != of_all]
    return {key[len(_USER) : -len(_MAX_PARALLEL)]: reader.untrimmed_integer(key, INT32_MAX) for key in keys}


class _QueuesReader(Struct):
    """Reads the configured queues into `queues`. `parents`: paths of queues that were created as parents on demand."""

    reader: Reader
    queue_reader: QueueReader
    parents: frozenset[str]
    queues: dict[str, QueueConfiguration]

    def read(self, path: str, parent: QueueConfiguration | None) -> None:
        """Read the queue at `path` and all below it."""
        queue = self.queue_reader.read(path, parent, keeps_parent=path in self.parents)
        self.queues[path] = queue
        key = queue_key(path, "queues")
        if path.count(".") >= QUEUE_DEPTH_MAX:
            self.reader.fault(key, f"more than {QUEUE_DEPTH_MAX} levels of queues", "flatten the tree")
            return
        for name in queue.children:
            if not name:
                self.reader.fault(key, "a blank is not a valid queue name", "name the queue, or remove it")
            elif f"{path}.{name}" in self.queues:
                self.reader.fault(key, f"queue {path}.{name} is listed twice", "list it once")
            else:
                self.read(f"{path}.{name}", queue)


def _read_dynamic_queues(
    reader: Reader,
    dynamic_queues: Mapping[str, QueueConfiguration],
    types: ResourceTypes,
    maximum: Resource,
    queues: dict[str, QueueConfiguration],
) -> None:
    """Add the dynamic queues that stay to `queues`, read with the present templates."""
    for path, queue in dynamic_queues.items():
        parent = queues.get(path.rpartition(".")[0])
        if path in queues or parent is None:
            continue
        if queue.is_auto_created and parent.managed is not None:
            own = Reader(configuration_of_leaf(reader.configuration, path))
            queues[path] = QueueReader(own, types, maximum).read_auto_created(path, parent)
            reader.faults.extend(own.faults)
        elif queue.is_dynamic and not parent.is_leaf:
            template = QueueTemplate(reader.configuration, parent.path)
            own = Reader(template.configuration_of(path, is_leaf=queue.is_leaf))
            queue_reader, labels = QueueReader(own, types, maximum), template.labels_of(path)
            queues[path] = queue_reader.read_dynamic(path, parent, labels=labels, is_leaf=queue.is_leaf)
            reader.faults.extend(own.faults)
