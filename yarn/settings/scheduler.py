"""The settings of the CapacityScheduler: of the whole, and the keys that a queue may have.

Defaults and names are those of CapacitySchedulerConfiguration and YarnConfiguration, Hadoop 3.4.1. What the
values of queues mean together (sums, bounds between parent and child) is checked by rm.scheduler.config.configuration.
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

PREFIX: Final = "yarn.scheduler.capacity."
ROOT: Final = "root"

_RESOURCE_PACKAGE = "org.apache.hadoop.yarn.util.resource"

SCHEDULER_CLASS = ChoiceSetting(
    "yarn.resourcemanager.scheduler.class",
    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
    "the scheduler; yarnling has one",
    choices=("org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",),
)
MINIMUM_ALLOCATION_MB = IntSetting(
    "yarn.scheduler.minimum-allocation-mb", "1024", "asks are rounded up to multiples of it", unit="MB", minimum=1
)
MAXIMUM_ALLOCATION_MB = IntSetting(
    "yarn.scheduler.maximum-allocation-mb", "8192", "a larger ask is refused", unit="MB", minimum=1
)
MINIMUM_ALLOCATION_VCORES = IntSetting(
    "yarn.scheduler.minimum-allocation-vcores", "1", "asks are rounded up to multiples of it", minimum=1
)
MAXIMUM_ALLOCATION_VCORES = IntSetting(
    "yarn.scheduler.maximum-allocation-vcores", "4", "a larger ask is refused", minimum=1
)
MAX_APPLICATION_PRIORITY = IntSetting(
    "yarn.cluster.max-application-priority", "0", "the highest priority an application may have", minimum=0
)
RESOURCE_TYPES = ListSetting("yarn.resource-types", None, "names of resource types besides memory and vcores")
TYPE_MINIMUM_ALLOCATION = IntSetting(
    "yarn.resource-types.<type>.minimum-allocation",
    None,
    "least of a resource type in an ask; -1: as without it",
    long=True,
)
TYPE_MAXIMUM_ALLOCATION = IntSetting(
    "yarn.resource-types.<type>.maximum-allocation",
    None,
    "most of a resource type in an ask; -1: as without it",
    long=True,
)
SCHEDULING_WAIT = TimeSetting(
    "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms",
    "10000",
    "how long after its start the RM takes asks up to the configured maximum, whatever its nodes have",
    minimum=0,
)
OPPORTUNISTIC_CONTAINERS = BoolSetting(
    "yarn.resourcemanager.opportunistic-container-allocation.enabled",
    "false",
    "whether AMs may demote containers and promote them; asks for opportunistic ones are refused",
)
AUTO_UPDATE_CONTAINERS = BoolSetting(
    "yarn.resourcemanager.auto-update.containers",
    "false",
    "whether the RM tells an NM of containers that grow; else their AMs have to",
)
AM_ON_NON_EXCLUSIVE_LABELS = BoolSetting(
    "yarn.resourcemanager.node-labels.am.allow-non-exclusive-allocation",
    "false",
    "whether AMs may run on nodes lent by a label",
)
NODE_LABELS_ENABLED = BoolSetting("yarn.node-labels.enabled", "false", "whether nodes can be given labels")
NODE_LABELS_CONFIGURATION_TYPE = ChoiceSetting(
    "yarn.node-labels.configuration-type", "centralized", "who gives nodes their labels", choices=("centralized",)
)
MONITOR_ENABLE = BoolSetting(
    "yarn.resourcemanager.scheduler.monitor.enable", "false", "whether the scheduler's policies run"
)
MONITOR_POLICIES = ListSetting(
    "yarn.resourcemanager.scheduler.monitor.policies",
    None,
    "classes of the policies that run, preemption if none is named",
)
ACL_ENABLE = BoolSetting(
    "yarn.acl.enable", "false", "whether access lists are looked at, those of queues and those of applications"
)
QUEUE_PLACEMENT_RULES = TextSetting(
    "yarn.scheduler.queue-placement-rules", "user-group", "what chooses queues: user-group and app-name, the mappings"
)
APPLICATION_MAPPINGS = TextSetting(
    "yarn.scheduler.queue-placement-rules.app-name", None, "application:queue, after the queue mappings"
)
QUEUE_MAPPINGS = TextSetting(f"{PREFIX}queue-mappings", None, "u:user:queue and g:group:queue, the first that fits")
QUEUE_MAPPINGS_OVERRIDE = BoolSetting(
    f"{PREFIX}queue-mappings-override.enable", "false", "whether mappings win over the queue that a submission names"
)
MAPPING_RULE_FORMAT = ChoiceSetting(
    f"{PREFIX}mapping-rule-format", "legacy", "which of the two ways of writing rules holds", choices=("legacy", "json")
)
MAPPING_RULE_JSON = TextSetting(f"{PREFIX}mapping-rule-json", None, "mapping rules in Hadoop's JSON")
MAPPING_RULE_JSON_FILE = TextSetting(
    f"{PREFIX}mapping-rule-json-file", None, "a file with the mapping rules, if mapping-rule-json has none"
)
INCLUDE_PORT_IN_NODE_NAME = BoolSetting(
    "yarn.scheduler.include-port-in-node-name", "false", "whether asks name nodes as host:port"
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
MAXIMUM_APPLICATIONS = IntSetting(
    f"{PREFIX}maximum-applications", "10000", "applications that may wait or run", minimum=1, lenient=True
)
GLOBAL_QUEUE_MAX_APPLICATION = IntSetting(
    f"{PREFIX}global-queue-max-application",
    "-1",
    "the same for each queue without its own; -1: by its capacity",
    minimum=1,
    special=(-1,),
    lenient=True,
)
MAXIMUM_AM_RESOURCE_PERCENT = FloatSetting(
    f"{PREFIX}maximum-am-resource-percent",
    "0.1",
    "share of a queue that AMs may have, 0..1",
    minimum=0.0,
    maximum=1.0,
    lenient=True,
)
MINIMUM_USER_LIMIT_PERCENT = FloatSetting(
    f"{PREFIX}minimum-user-limit-percent", "100", "for queues without their own", unit="%", maximum=100.0, lenient=True
)
USER_LIMIT_FACTOR = FloatSetting(f"{PREFIX}user-limit-factor", "1.0", "for queues without their own")
NODE_LOCALITY_DELAY = IntSetting(
    f"{PREFIX}node-locality-delay",
    "40",
    "chances an ask lets pass before it leaves its node for the rack; -1: does not wait",
    minimum=0,
    special=(-1,),
    lenient=True,
)
RACK_LOCALITY_ADDITIONAL_DELAY = IntSetting(
    f"{PREFIX}rack-locality-additional-delay",
    "-1",
    "further chances before it leaves the rack; -1: by the size of the ask and the cluster",
    minimum=0,
    special=(-1,),
    lenient=True,
)
RACK_LOCALITY_FULL_RESET = BoolSetting(
    f"{PREFIX}rack-locality-full-reset", "true", "whether a rack-local container starts the count anew"
)
MULTIPLE_ASSIGNMENTS_ENABLED = BoolSetting(
    f"{PREFIX}per-node-heartbeat.multiple-assignments-enabled", "true", "whether a heartbeat may place several"
)
MAXIMUM_CONTAINER_ASSIGNMENTS = IntSetting(
    f"{PREFIX}per-node-heartbeat.maximum-container-assignments",
    "100",
    "containers that one heartbeat may place; -1: any number",
)
MAXIMUM_OFFSWITCH_ASSIGNMENTS = IntSetting(
    f"{PREFIX}per-node-heartbeat.maximum-offswitch-assignments",
    "1",
    "of these, those far from their data",
    minimum=1,
    lenient=True,
)
RESERVATIONS_CONTINUE_LOOKING = BoolSetting(
    f"{PREFIX}reservations-continue-look-all-nodes", "true", "whether a reservation elsewhere is given up for room here"
)
LEGACY_QUEUE_MODE = BoolSetting(
    f"{PREFIX}legacy-queue-mode.enabled",
    "true",
    "siblings write capacities in one notation; false: each resource type may have its own unit",
)
MAX_PARALLEL_APPS = IntSetting(
    f"{PREFIX}max-parallel-apps", "2147483647", "applications at once, for queues without their own"
)
USER_MAX_PARALLEL_APPS = IntSetting(
    f"{PREFIX}user.max-parallel-apps", "2147483647", "applications of one user at once, in all queues together"
)
ONE_USERS_MAX_PARALLEL_APPS = IntSetting(f"{PREFIX}user.<user>.max-parallel-apps", None, "the same for one user")
QUEUE_DEPTH_MAX = IntSetting(
    f"{PREFIX}auto-queue-creation-v2.maximum-queue-depth",
    "2",
    "levels of queues created on demand, for parents without their own",
)
IDLE_QUEUE_EXPIRY = IntSetting(
    f"{PREFIX}auto-queue-creation-v2.queue-expiration-time",
    "300",
    "how long an idle queue that was created on demand stays; also the time between rounds",
    unit="s",
    long=True,
    minimum=1,
)
QUEUE_MANAGEMENT_INTERVAL = IntSetting(
    "yarn.resourcemanager.monitor.capacity.queue-management.monitoring-interval",
    "1500",
    "time between rounds that give guarantees to leaves of managed parents",
    unit="ms",
    long=True,
    minimum=1,
)

_QUEUE_PATH = r"(?P<queue>[^.]+(?:\.[^.]+)*?)"


def queue_key(path: str, name: str) -> str:
    """The key of a queue's property: ("root.a", "capacity") -> yarn.scheduler.capacity.root.a.capacity."""
    return f"{PREFIX}{path}.{name}"


# What a queue may say. The keys hold no path: they are what follows it.
QUEUE_SETTINGS: tuple[Setting[Any], ...] = (
    ListSetting("queues", None, "names of the queues below this one"),
    TextSetting("accessible-node-labels.<label>.capacity", "0", "guaranteed share of the label's nodes, as capacity"),
    TextSetting("accessible-node-labels.<label>.maximum-capacity", "100", "most of them that the queue may take"),
    FloatSetting(
        "accessible-node-labels.<label>.maximum-am-resource-percent",
        None,
        "share of the queue's part of them that AMs may have",
        minimum=0.0,
        maximum=1.0,
        lenient=True,
    ),
    ListSetting("accessible-node-labels", None, "labels that the queue's asks may name, * for all; else as above"),
    TextSetting("default-node-label-expression", None, "the label of asks that name none"),
    TextSetting(
        "capacity", "0", "guaranteed share of the parent: percent, a weight (3w), or amounts ([memory=MB,vcores=N])"
    ),
    TextSetting("maximum-capacity", "100", "most of the parent that the queue may take: percent, or amounts"),
    ChoiceSetting("state", "RUNNING", "whether it takes applications", choices=("RUNNING", "STOPPED")),
    FloatSetting(
        "minimum-user-limit-percent",
        None,
        "share of the queue that a user is sure of",
        unit="%",
        maximum=100.0,
        lenient=True,
    ),
    FloatSetting("user-limit-factor", None, "what one user may take, in multiples of the queue's capacity"),
    IntSetting(
        "maximum-applications", None, "applications that may wait or run", minimum=0, special=(-1,), lenient=True
    ),
    IntSetting("max-parallel-apps", None, "applications at once, in it and below"),
    FloatSetting(
        "maximum-am-resource-percent",
        None,
        "share of the queue that AMs may have",
        minimum=0.0,
        maximum=1.0,
        lenient=True,
    ),
    TextSetting("ordering-policy", None, "of a leaf's applications (fifo, fair) or a parent's queues (utilization)"),
    ListSetting(
        "ordering-policy.exclusive-enforced-partitions",
        None,
        "labels that have lists of their own in fifo-with-partitions",
    ),
    BoolSetting(
        "ordering-policy.fair.enable-size-based-weight", "false", "whether large applications may hold more than small"
    ),
    IntSetting(
        "maximum-application-lifetime",
        "-1",
        "the longest an application may live; -1: as in the queue above, 0: no end",
        unit="s",
        long=True,
    ),
    IntSetting(
        "default-application-lifetime",
        "-1",
        "how long one lives that asks for nothing; -1: as above",
        unit="s",
        long=True,
    ),
    TextSetting("acl_submit_applications", None, "who may submit: users, a blank, groups; those above may too"),
    TextSetting("acl_administer_queue", None, "who may administer, and so submit too"),
    TextSetting("acl_application_max_priority", None, "who may have which priorities: [user=u max_priority=7] ..."),
    IntSetting("default-application-priority", "0", "priority of an application that has none"),
    TextSetting("maximum-allocation", None, "the largest container, as memory-mb=8192,vcores=4"),
    IntSetting("maximum-allocation-mb", None, "a larger ask is refused", unit="MB", minimum=1),
    IntSetting("maximum-allocation-vcores", None, "a larger ask is refused", minimum=1),
    IntSetting("priority", "0", "of the queue among its siblings, if the parent's policy is priority-utilization"),
    BoolSetting(
        "reservable", "false", "whether it has one leaf below it, as for reservations, which are not made here"
    ),
    BoolSetting("allow-zero-capacity-sum", "false", "whether the capacities below it may all be 0"),
    BoolSetting(
        "auto-create-child-queue.enabled",
        "false",
        "whether it makes leaves for users in the older way, from leaf-queue-template.* (a managed parent)",
    ),
    IntSetting("auto-create-child-queue.max-queues", "1000", "leaves below it; at so many no more are made"),
    BoolSetting(
        "auto-create-child-queue.fail-on-exceeding-parent-capacity",
        "false",
        "whether it makes only leaves that it has a guarantee left for, which they keep",
    ),
    TextSetting(
        "auto-create-child-queue.management-policy", None, "the class that gives its leaves guarantees; there is one"
    ),
    BoolSetting(
        "auto-queue-creation-v2.enabled", "false", "whether it creates queues that are named and are not there"
    ),
    IntSetting("auto-queue-creation-v2.max-queues", "1000", "queues below it; at so many no more are created"),
    IntSetting("auto-queue-creation-v2.maximum-queue-depth", None, "levels of queues created below it"),
    BoolSetting(
        "auto-queue-creation-v2.queue-auto-removal.enable",
        "true",
        "whether it goes when it is idle, if it was created on demand",
    ),
    FloatSetting("user-settings.<user>.weight", "1.0", "weight of a user's limit"),
    *preemption.QUEUE_SETTINGS,
)

_QUEUE_KEYS = tuple(
    (re.compile(rf"{re.escape(PREFIX)}{_QUEUE_PATH}\.{key_pattern(setting.key)}"), setting)
    for setting in QUEUE_SETTINGS
)


def queue_setting(key: str) -> Setting[Any] | None:
    """The setting that a full key sets for some queue; None if it is not a queue's."""
    for pattern, setting in _QUEUE_KEYS:
        match = pattern.fullmatch(key)
        if match is not None and is_queue_path(match["queue"]):
            return setting
    return None


def is_queue_path(text: str) -> bool:
    """True for root and what is below it."""
    return text == ROOT or text.startswith(ROOT + ".")
