"""The settings of preemption: those of the policy, and those of a queue.

Keys and defaults are those of CapacitySchedulerConfiguration and YarnConfiguration, Hadoop 3.4.1.
"""

from __future__ import annotations

from typing import Any, Final

from yarn.settings.kinds import (
    BoolSetting,
    ChoiceSetting,
    DoubleSetting,
    FloatSetting,
    Setting,
    TimeSetting,
)

PREFIX: Final = "yarn.resourcemanager.monitor.capacity.preemption."
INTRA: Final = PREFIX + "intra-queue-preemption."
BALANCE: Final = PREFIX + "preemption-to-balance-queue-after-satisfied."
UNDERUTILIZED: Final = "yarn.scheduler.capacity.ordering-policy.priority-utilization.underutilized-preemption."

MONITORING_INTERVAL = TimeSetting(f"{PREFIX}monitoring_interval", "3000", "time between two rounds", minimum=1)
MAX_WAIT_BEFORE_KILL = TimeSetting(
    f"{PREFIX}max_wait_before_kill",
    "15000",
    "time from requesting a container from its AM to killing it",
    minimum=0,
    lenient=True,
)
TOTAL_PER_ROUND = FloatSetting(
    f"{PREFIX}total_preemption_per_round",
    "0.1",
    "fraction of the cluster that a round may preempt",
    minimum=0.0,
    lenient=True,
)
MAX_IGNORED_OVER_CAPACITY = DoubleSetting(
    f"{PREFIX}max_ignored_over_capacity",
    "0.1",
    "a queue that exceeds its guarantee by less than this fraction of it loses nothing",
    minimum=0.0,
    lenient=True,
)
NATURAL_TERMINATION_FACTOR = DoubleSetting(
    f"{PREFIX}natural_termination_factor",
    "0.2",
    "fraction of the needed amount that a round preempts; other containers complete by themselves",
    minimum=0.0,
    maximum=1.0,
    lenient=True,
)
OBSERVE_ONLY = BoolSetting(f"{PREFIX}observe_only", "false", "whether rounds only compute and change nothing")
CONSERVATIVE = BoolSetting(
    f"{PREFIX}conservative-drf",
    "false",
    "whether a queue loses nothing more once it has lost enough of one resource type",
)
SELECT_BASED_ON_RESERVED = BoolSetting(
    f"{PREFIX}select_based_on_reserved_containers", "false", "whether victims are selected per node with a reservation"
)
ADDITIONAL_BASED_ON_RESERVED = BoolSetting(
    f"{PREFIX}additional_res_balance_based_on_reserved_containers",
    "false",
    "whether reserved resources count as demand",
)
BALANCE_ENABLED = BoolSetting(f"{BALANCE}enabled", "false", "whether queues above their guarantees are balanced too")
BALANCE_WAIT = TimeSetting(
    f"{BALANCE}max-wait-before-kill",
    "300000",
    "time before a container is killed for balancing",
    minimum=0,
    lenient=True,
)
INTRA_ENABLED = BoolSetting(f"{INTRA}enabled", "false", "whether applications of one queue preempt each other")
INTRA_MINIMUM_THRESHOLD = FloatSetting(
    f"{INTRA}minimum-threshold",
    "0.5",
    "a queue that uses less than this fraction of its guarantee has no intra-queue preemption",
    minimum=0.0,
    lenient=True,
)
INTRA_MAX_ALLOWABLE_LIMIT = FloatSetting(
    f"{INTRA}max-allowable-limit",
    "0.2",
    "fraction of its guarantee that a queue may lose in a round of intra-queue preemption",
    minimum=0.0,
    lenient=True,
)
INTRA_ORDER_POLICY = ChoiceSetting(
    f"{INTRA}preemption-order-policy",
    "userlimit_first",
    "what has precedence in intra-queue preemption: the limits of users, or priorities",
    choices=("userlimit_first", "priority_first"),
)
INTRA_CONSERVATIVE = BoolSetting(
    f"{INTRA}conservative-drf",
    "true",
    "whether an application loses nothing more once it has lost enough of one resource type",
)
LAZY = BoolSetting(
    "yarn.scheduler.capacity.lazy-preemption-enabled",
    "false",
    "whether containers are killed only when their resources are needed",
)
UNDERUTILIZED_ENABLED = BoolSetting(
    f"{UNDERUTILIZED}enabled", "false", "whether reservations of queues of higher priority preempt lower ones"
)
UNDERUTILIZED_DELAY = TimeSetting(
    f"{UNDERUTILIZED}reserved-container-delay-ms",
    "60000",
    "minimum age of a reservation that preempts queues of lower priority",
    minimum=0,
)
UNDERUTILIZED_MOVE = BoolSetting(
    f"{UNDERUTILIZED}allow-move-reservation",
    "false",
    "whether a reservation of a queue of higher priority may move to a node where enough can be preempted",
)

# Keys of a queue. The longer key comes first, because it ends like the other one.
QUEUE_SETTINGS: tuple[Setting[Any], ...] = (
    BoolSetting(
        "intra-queue-preemption.disable_preemption",
        None,
        "whether its applications do not preempt each other; inherited if not set",
    ),
    BoolSetting("disable_preemption", None, "whether nothing is preempted from it; inherited if not set"),
)
