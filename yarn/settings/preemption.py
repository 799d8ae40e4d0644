"""The settings of preemption: of the policy, and the keys that a queue may have.

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

MONITORING_INTERVAL = TimeSetting(f"{PREFIX}monitoring_interval", "3000", "from one round to the next", minimum=1)
MAX_WAIT_BEFORE_KILL = TimeSetting(
    f"{PREFIX}max_wait_before_kill", "15000", "from telling a master to ending its container", minimum=0, lenient=True
)
TOTAL_PER_ROUND = FloatSetting(
    f"{PREFIX}total_preemption_per_round",
    "0.1",
    "share of the cluster that one round may take",
    minimum=0.0,
    lenient=True,
)
MAX_IGNORED_OVER_CAPACITY = DoubleSetting(
    f"{PREFIX}max_ignored_over_capacity",
    "0.1",
    "share of its guarantee that a queue may be above it and lose nothing",
    minimum=0.0,
    lenient=True,
)
NATURAL_TERMINATION_FACTOR = DoubleSetting(
    f"{PREFIX}natural_termination_factor",
    "0.2",
    "share of what is missing that one round goes for, since containers end by themselves",
    minimum=0.0,
    maximum=1.0,
    lenient=True,
)
OBSERVE_ONLY = BoolSetting(f"{PREFIX}observe_only", "false", "whether rounds only reckon")
CONSERVATIVE = BoolSetting(
    f"{PREFIX}conservative-drf", "false", "whether a queue loses no more as soon as it has lost enough of one type"
)
SELECT_BASED_ON_RESERVED = BoolSetting(
    f"{PREFIX}select_based_on_reserved_containers", "false", "whether nodes with a reservation are looked at one by one"
)
ADDITIONAL_BASED_ON_RESERVED = BoolSetting(
    f"{PREFIX}additional_res_balance_based_on_reserved_containers", "false", "whether what is reserved counts as wanted"
)
BALANCE_ENABLED = BoolSetting(f"{BALANCE}enabled", "false", "whether queues above their guarantees are evened out too")
BALANCE_WAIT = TimeSetting(
    f"{BALANCE}max-wait-before-kill", "300000", "how long containers taken for that wait", minimum=0, lenient=True
)
INTRA_ENABLED = BoolSetting(f"{INTRA}enabled", "false", "whether applications of one queue take of one another")
INTRA_MINIMUM_THRESHOLD = FloatSetting(
    f"{INTRA}minimum-threshold",
    "0.5",
    "share of its guarantee that a queue has to use before",
    minimum=0.0,
    lenient=True,
)
INTRA_MAX_ALLOWABLE_LIMIT = FloatSetting(
    f"{INTRA}max-allowable-limit", "0.2", "share of its guarantee that a queue may lose so", minimum=0.0, lenient=True
)
INTRA_ORDER_POLICY = ChoiceSetting(
    f"{INTRA}preemption-order-policy",
    "userlimit_first",
    "what counts more: that users are within their limits, or priorities",
    choices=("userlimit_first", "priority_first"),
)
INTRA_CONSERVATIVE = BoolSetting(
    f"{INTRA}conservative-drf", "true", "whether an application loses no more as soon as it has lost enough of one type"
)
LAZY = BoolSetting(
    "yarn.scheduler.capacity.lazy-preemption-enabled", "false", "whether containers end only when their room is needed"
)
UNDERUTILIZED_ENABLED = BoolSetting(
    f"{UNDERUTILIZED}enabled", "false", "whether queues of higher priority take of lower ones for their reservations"
)
UNDERUTILIZED_DELAY = TimeSetting(
    f"{UNDERUTILIZED}reserved-container-delay-ms", "60000", "how long the reservation waits before", minimum=0
)
UNDERUTILIZED_MOVE = BoolSetting(
    f"{UNDERUTILIZED}allow-move-reservation", "false", "whether it may go to another node where there is more to take"
)

# What a queue may say; the longer key first, for it ends like the other.
QUEUE_SETTINGS: tuple[Setting[Any], ...] = (
    BoolSetting(
        "intra-queue-preemption.disable_preemption",
        None,
        "whether its applications take nothing of one another; as the queue above if not set",
    ),
    BoolSetting("disable_preemption", None, "whether nothing is taken of it; as the queue above if not set"),
)
