"""The settings of the CapacityScheduler: those of the whole scheduler, and those of a queue.

Defaults and names are those of CapacitySchedulerConfiguration and YarnConfiguration, Hadoop 3.4.1. Rules between
queues (sums, bounds between parent and child) are checked by rm.scheduler.config.checks.
"""

from __future__ import annotations

import re
from typing import Any, Final

from yarn.settings import preemption
from yarn.settings.kinds import (
    BoolSetting,
    ChoiceSetting,
    FloatSetting,
    IntSetting,
    ListSetting,
    Setting,
    TextSetting,
    TimeSetting,
    key_pattern,
)
from yarn.settings.release import ReleasedBoolSetting

PREFIX: Final = "yarn.scheduler.capacity."
ROOT: Final = "root"

_RESOURCE_PACKAGE = "org.apache.hadoop.yarn.util.resource"

SCHEDULER_CLASS = ChoiceSetting(
    "yarn.resourcemanager.scheduler.class",
    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
    "the scheduler; only this one is supported",
    choices=("org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",),
)
MINIMUM_ALLOCATION_MB = IntSetting(
    "yarn.scheduler.minimum-allocation-mb",
    "1024",
    "resource requests are rounded up to multiples of it",
    unit="MB",
    minimum=1,
)
MAXIMUM_ALLOCATION_MB = IntSetting(
    "yarn.scheduler.maximum-allocation-mb", "8192", "a larger resource request is refused", unit="MB", minimum=1
)
MINIMUM_ALLOCATION_VCORES = IntSetting(
    "yarn.scheduler.minimum-allocation-vcores", "1", "resource requests are rounded up to multiples of it", minimum=1
)
MAXIMUM_ALLOCATION_VCORES = IntSetting(
    "yarn.scheduler.maximum-allocation-vcores", "4", "a larger resource request is refused", minimum=1
)
MAX_APPLICATION_PRIORITY = IntSetting(
    "yarn.cluster.max-application-priority", "0", "the highest priority an application may have", minimum=0
)
RESOURCE_TYPES = ListSetting("yarn.resource-types", None, "names of resource types besides memory and vcores")
TYPE_MINIMUM_ALLOCATION = IntSetting(
    "yarn.resource-types.<type>.minimum-allocation",
    None,
    "minimum of a resource type in a request; -1: not set, for memory and vcores",
    long=True,
)
TYPE_MAXIMUM_ALLOCATION = IntSetting(
    "yarn.resource-types.<type>.maximum-allocation",
    None,
    "maximum of a resource type in a request; -1: not set, for memory and vcores",
    long=True,
)
TYPE_UNITS = TextSetting("yarn.resource-types.<type>.units", None, "unit of a resource type; amounts are not converted")
TYPE_KIND = TextSetting("yarn.resource-types.<type>.type", None, "kind of a resource type; COUNTABLE is the only one")
TYPE_TAGS = ListSetting("yarn.resource-types.<type>.tags", None, "tags of a resource type, which are not used")
SCHEDULING_WAIT = TimeSetting(
    "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms",
    "10000",
    "how long after its start the RM accepts requests larger than any node",
    minimum=0,
)
OPPORTUNISTIC_CONTAINERS = BoolSetting(
    "yarn.resourcemanager.opportunistic-container-allocation.enabled",
    "false",
    "whether AMs may demote and promote containers; requests for opportunistic ones are refused",
)
AUTO_UPDATE_CONTAINERS = BoolSetting(
    "yarn.resourcemanager.auto-update.containers",
    "false",
    "whether the RM informs NMs of increased containers; else their AMs have to",
)
AM_ON_NON_EXCLUSIVE_LABELS = BoolSetting(
    "yarn.resourcemanager.node-labels.am.allow-non-exclusive-allocation",
    "false",
    "whether AMs may run on idle nodes of a non-exclusive label",
)
NODE_LABELS_ENABLED = BoolSetting("yarn.node-labels.enabled", "false", "whether nodes can be given labels")
NODE_LABELS_CONFIGURATION_TYPE = ChoiceSetting(
    "yarn.node-labels.configuration-type",
    "centralized",
    "who assigns labels to nodes",
    choices=("centralized", "delegated-centralized", "distributed"),
)
MONITOR_ENABLE = BoolSetting(
    "yarn.resourcemanager.scheduler.monitor.enable", "false", "whether scheduling monitors, such as preemption, run"
)
MONITOR_POLICIES = ListSetting(
    "yarn.resourcemanager.scheduler.monitor.policies",
    None,
    "classes of the scheduling monitors that run; preemption if empty",
)
ACL_ENABLE = BoolSetting("yarn.acl.enable", "false", "whether access lists of queues and applications are enforced")
QUEUE_PLACEMENT_RULES = TextSetting(
    "yarn.scheduler.queue-placement-rules",
    "user-group",
    "which rules choose queues: user-group and app-name, the queue mappings",
)
APPLICATION_MAPPINGS = TextSetting(
    "yarn.scheduler.queue-placement-rules.app-name", None, "application:queue, tried after the queue mappings"
)
QUEUE_MAPPINGS = TextSetting(f"{PREFIX}queue-mappings", None, "u:user:queue and g:group:queue; the first match decides")
QUEUE_MAPPINGS_OVERRIDE = BoolSetting(
    f"{PREFIX}queue-mappings-override.enable", "false", "whether mappings override the queue of a submission"
)
MAPPING_RULE_FORMAT = ChoiceSetting(
    f"{PREFIX}mapping-rule-format", "legacy", "the format of the mapping rules", choices=("legacy", "json")
)
MAPPING_RULE_JSON = TextSetting(f"{PREFIX}mapping-rule-json", None, "mapping rules in Hadoop's JSON")
MAPPING_RULE_JSON_FILE = TextSetting(
    f"{PREFIX}mapping-rule-json-file", None, "file with the mapping rules, if mapping-rule-json is empty"
)
INCLUDE_PORT_IN_NODE_NAME = BoolSetting(
    "yarn.scheduler.include-port-in-node-name", "false", "whether resource requests name nodes as host:port"
)
RESOURCE_CALCULATOR = ChoiceSetting(
    f"{PREFIX}resource-calculator",
    f"{_RESOURCE_PACKAGE}.DefaultResourceCalculator",
    "how resources are compared: by memory alone, or by the dominant share",
    choices=(
        f"{_RESOURCE_PACKAGE}.DefaultResourceCalculator",
        f"{_RESOURCE_PACKAGE}.DominantResourceCalculator",
    ),
)
MAXIMUM_APPLICATIONS = IntSetting(f"{PREFIX}maximum-applications", "10000", "most applications, pending and running")
GLOBAL_QUEUE_MAX_APPLICATION = IntSetting(
    f"{PREFIX}global-queue-max-application",
    "-1",
    "maximum applications of a queue that sets none; -1: by its capacity",
    minimum=1,
    special=(-1,),
    lenient=True,
)
MAXIMUM_AM_RESOURCE_PERCENT = FloatSetting(
    f"{PREFIX}maximum-am-resource-percent",
    "0.1",
    "fraction of a queue that AMs may use, 0..1",
)
MINIMUM_USER_LIMIT_PERCENT = FloatSetting(
    f"{PREFIX}minimum-user-limit-percent", "100", "for queues that set none", unit="%", maximum=100.0, lenient=True
)
USER_LIMIT_FACTOR = FloatSetting(f"{PREFIX}user-limit-factor", "1.0", "for queues that set none")
NODE_LOCALITY_DELAY = IntSetting(
    f"{PREFIX}node-locality-delay",
    "40",
    "missed opportunities before a request for a node may be served on its rack; -1: none",
    minimum=0,
    special=(-1,),
    lenient=True,
)
RACK_LOCALITY_ADDITIONAL_DELAY = IntSetting(
    f"{PREFIX}rack-locality-additional-delay",
    "-1",
    "further missed opportunities before any rack is used; -1: by request and cluster size",
    minimum=0,
    special=(-1,),
    lenient=True,
)
RACK_LOCALITY_FULL_RESET = BoolSetting(
    f"{PREFIX}rack-locality-full-reset",
    "true",
    "whether a rack-local container resets the count of missed opportunities",
)
MULTIPLE_ASSIGNMENTS_ENABLED = BoolSetting(
    f"{PREFIX}per-node-heartbeat.multiple-assignments-enabled",
    "true",
    "whether a heartbeat may allocate several containers",
)
MAXIMUM_CONTAINER_ASSIGNMENTS = IntSetting(
    f"{PREFIX}per-node-heartbeat.maximum-container-assignments",
    "100",
    "containers that a heartbeat may allocate; -1: any number",
)
MAXIMUM_OFFSWITCH_ASSIGNMENTS = IntSetting(
    f"{PREFIX}per-node-heartbeat.maximum-offswitch-assignments",
    "1",
    "off-switch containers that a heartbeat may allocate",
    minimum=1,
    lenient=True,
)
SCHEDULE_ASYNCHRONOUSLY = ReleasedBoolSetting(
    f"{PREFIX}schedule-asynchronously.enable",
    "false",
    "whether containers are placed by walks over all nodes instead of by node heartbeats",
    switch="schedules_asynchronously",
)
ASYNCHRONOUS_INTERVAL = IntSetting(
    f"{PREFIX}schedule-asynchronously.scheduling-interval-ms",
    "5",
    "time between two walks over all nodes",
    unit="ms",
    minimum=1,
    long=True,
    lenient=True,
)
ASYNCHRONOUS_THREADS = IntSetting(
    f"{PREFIX}schedule-asynchronously.maximum-threads",
    "1",
    "walks over all nodes per interval",
    minimum=1,
    lenient=True,
)
AUTOCORRECT_CONTAINER_ALLOCATION = BoolSetting(
    "yarn.resourcemanager.scheduler.autocorrect.container.allocation",
    "false",
    "whether requests are reduced by containers that the AM has not fetched yet (release 3.5.0)",
)
SKIP_NODE_MULTIPLIER = IntSetting(
    "yarn.scheduler.skip.node.multiplier",
    "2",
    "heartbeat intervals of silence after which a walk skips a node",
)
RESERVATIONS_CONTINUE_LOOKING = BoolSetting(
    f"{PREFIX}reservations-continue-look-all-nodes",
    "true",
    "whether a reservation is given up if another node has free resources",
)
LEGACY_QUEUE_MODE = BoolSetting(
    f"{PREFIX}legacy-queue-mode.enabled",
    "true",
    "siblings use one notation for capacities; false: each resource type may have its own unit",
)
MAX_PARALLEL_APPS = IntSetting(
    f"{PREFIX}max-parallel-apps",
    "2147483647",
    "maximum applications running at the same time, for queues that set none",
)
USER_MAX_PARALLEL_APPS = IntSetting(
    f"{PREFIX}user.max-parallel-apps",
    "2147483647",
    "maximum applications of a user running at the same time, in all queues",
)
ONE_USERS_MAX_PARALLEL_APPS = IntSetting(
    f"{PREFIX}user.<user>.max-parallel-apps",
    None,
    "maximum applications of this user running at the same time, in all queues",
)
QUEUE_DEPTH_MAX = IntSetting(
    f"{PREFIX}auto-queue-creation-v2.maximum-queue-depth",
    "2",
    "maximum levels of queues created on demand, for parents that set none",
)
IDLE_QUEUE_EXPIRY = IntSetting(
    f"{PREFIX}auto-queue-creation-v2.queue-expiration-time",
    "300",
    "how long an idle queue created on demand is kept; also the time between checks",
    unit="s",
    long=True,
    minimum=1,
)
QUEUE_MANAGEMENT_INTERVAL = IntSetting(
    "yarn.resourcemanager.monitor.capacity.queue-management.monitoring-interval",
    "1500",
    "time between rounds that assign guarantees to leaves of managed parents",
    unit="ms",
    long=True,
    minimum=1,
)

_QUEUE_PATH = r"(?P<queue>[^.]+(?:\.[^.]+)*?)"


def queue_key(path: str, name: str) -> str:
    """The key of a queue's property: ("root.a", "capacity") -> yarn.scheduler.capacity.root.a.capacity."""
    return f"{PREFIX}{path}.{name}"


# Keys of a queue: what follows its path.
QUEUE_SETTINGS: tuple[Setting[Any], ...] = (
    ListSetting("queues", None, "names of the queues below this one"),
    TextSetting(
        "accessible-node-labels.<label>.capacity",
        "0",
        "guaranteed share of the nodes with the label, written like capacity",
    ),
    TextSetting("accessible-node-labels.<label>.maximum-capacity", "100", "maximum share of the nodes with the label"),
    FloatSetting(
        "accessible-node-labels.<label>.maximum-am-resource-percent",
        None,
        "fraction of the queue's share of the nodes with the label that AMs may use",
        minimum=0.0,
        maximum=1.0,
        lenient=True,
    ),
    ListSetting("accessible-node-labels", None, "labels that the queue may use, * for all; inherited if not set"),
    TextSetting("default-node-label-expression", None, "label of resource requests that name none"),
    TextSetting(
        "capacity", "0", "guaranteed share of the parent: percent, a weight (3w), or amounts ([memory=MB,vcores=N])"
    ),
    TextSetting("maximum-capacity", "100", "maximum share of the parent: percent, or amounts"),
    ChoiceSetting("state", "RUNNING", "whether it accepts applications", choices=("RUNNING", "STOPPED")),
    FloatSetting(
        "minimum-user-limit-percent",
        None,
        "percentage of the queue that a user is guaranteed",
        unit="%",
        maximum=100.0,
        lenient=True,
    ),
    FloatSetting("user-limit-factor", None, "maximum that a user may use, in multiples of the queue's capacity"),
    IntSetting(
        "maximum-applications", None, "most applications, pending and running", minimum=0, special=(-1,), lenient=True
    ),
    IntSetting("max-parallel-apps", None, "maximum applications running at the same time, in the queue and below"),
    FloatSetting(
        "maximum-am-resource-percent",
        None,
        "fraction of the queue that AMs may use",
        minimum=0.0,
        maximum=1.0,
        lenient=True,
    ),
    TextSetting(
        "ordering-policy", None, "order of a leaf's applications (fifo, fair) or a parent's queues (utilization)"
    ),
    ListSetting(
        "ordering-policy.exclusive-enforced-partitions",
        None,
        "labels with application lists of their own in fifo-with-partitions",
    ),
    BoolSetting(
        "ordering-policy.fair.enable-size-based-weight",
        "false",
        "whether applications with larger requests may use more",
    ),
    IntSetting(
        "maximum-application-lifetime",
        "-1",
        "longest lifetime of an application; -1: inherited, 0: unlimited",
        unit="s",
        long=True,
    ),
    IntSetting(
        "default-application-lifetime",
        "-1",
        "lifetime of an application that sets none; -1: inherited",
        unit="s",
        long=True,
    ),
    TextSetting("acl_submit_applications", None, "who may submit: users, a blank, groups; lists of parents apply too"),
    TextSetting("acl_administer_queue", None, "who may administer, which includes submitting"),
    TextSetting("acl_application_max_priority", None, "priorities that users may set: [user=u max_priority=7] ..."),
    IntSetting("default-application-priority", "0", "priority of an application that sets none"),
    TextSetting("maximum-allocation", None, "the largest container, as memory-mb=8192,vcores=4"),
    IntSetting("maximum-allocation-mb", None, "a larger resource request is refused", unit="MB", minimum=1),
    IntSetting("maximum-allocation-vcores", None, "a larger resource request is refused", minimum=1),
    IntSetting(
        "priority", "0", "priority of the queue among its siblings, with the parent's policy priority-utilization"
    ),
    BoolSetting(
        "reservable", "false", "whether reservations can be made in it, which is not supported: it has one leaf"
    ),
    BoolSetting("allow-zero-capacity-sum", "false", "whether the capacities below it may all be 0"),
    BoolSetting(
        "auto-create-child-queue.enabled",
        "false",
        "whether it is a managed parent, which creates leaves from leaf-queue-template.*",
    ),
    IntSetting("auto-create-child-queue.max-queues", "1000", "maximum number of leaves of a managed parent"),
    BoolSetting(
        "auto-create-child-queue.fail-on-exceeding-parent-capacity",
        "false",
        "whether it creates only leaves for which it has a guarantee left",
    ),
    TextSetting(
        "auto-create-child-queue.management-policy",
        None,
        "class that assigns guarantees to its leaves; one is supported",
    ),
    BoolSetting(
        "auto-queue-creation-v2.enabled",
        "false",
        "whether it creates missing queues when applications are submitted to them",
    ),
    IntSetting("auto-queue-creation-v2.max-queues", "1000", "most queues below it"),
    IntSetting("auto-queue-creation-v2.maximum-queue-depth", None, "maximum levels of queues created below it"),
    BoolSetting(
        "auto-queue-creation-v2.queue-auto-removal.enable",
        "true",
        "whether it is removed when idle, if it was created on demand",
    ),
    FloatSetting("user-settings.<user>.weight", "1.0", "weight of a user in user limits"),
    *preemption.QUEUE_SETTINGS,
)

_QUEUE_KEYS = tuple(
    (re.compile(rf"{re.escape(PREFIX)}{_QUEUE_PATH}\.{key_pattern(setting.key)}"), setting)
    for setting in QUEUE_SETTINGS
)
_NAMES = {setting.key: setting for setting in QUEUE_SETTINGS if "<" not in setting.key}
_NAME_PATTERNS = tuple(
    (re.compile(key_pattern(setting.key)), setting) for setting in QUEUE_SETTINGS if "<" in setting.key
)
_OF_SCHEDULER = frozenset(value.key for value in list(globals().values()) if isinstance(value, Setting))


def queue_setting(key: str) -> Setting[Any] | None:
    """The setting of a full key of some queue; None if it is not a queue's."""
    found = _queue_and_setting(key)
    return found[1] if found is not None and is_queue_path(found[0]) else None


def queue_of(key: str, *, any_path: bool = False) -> str | None:
    """The path of the queue whose key it is: the shortest possible one; None if it is not a queue's.

    `any_path`: also a path that does not start with root, which no queue has.
    """
    found = _queue_and_setting(key)
    return found[0] if found is not None and (any_path or is_queue_path(found[0])) else None


def setting_of_queue(name: str) -> Setting[Any] | None:
    """The setting with what follows the path of a queue in a key, for example `capacity`."""
    exact = _NAMES.get(name)
    return exact or next((setting for pattern, setting in _NAME_PATTERNS if pattern.fullmatch(name)), None)


def is_of_scheduler(key: str) -> bool:
    """True for a key of the whole scheduler or of a user, which no queue has."""
    return key in _OF_SCHEDULER or key.startswith(f"{PREFIX}user.")


def _queue_and_setting(key: str) -> tuple[str, Setting[Any]] | None:
    for pattern, setting in _QUEUE_KEYS:
        match = pattern.fullmatch(key)
        if match is not None:
            return match["queue"], setting
    return None


def is_queue_path(text: str) -> bool:
    """True for root and paths below it."""
    return text == ROOT or text.startswith(ROOT + ".")
