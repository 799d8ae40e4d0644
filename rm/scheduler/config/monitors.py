"""Reads which periodic policies run (Hadoop's SchedulingMonitorManager), and the settings of preemption.

They are read again at a refresh, as Hadoop's policies do when the scheduler's configuration changes.
"""

from __future__ import annotations

from msgspec import Struct

from rm.scheduler.config.reader import Reader
from yarn.settings import preemption as keys
from yarn.settings import scheduler

IDLE_QUEUE_POLICY = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AutoCreatedQueueDeletionPolicy"
QUEUE_MANAGEMENT_POLICY = (
    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.QueueManagementDynamicEditPolicy"
)
PREEMPTION_POLICY = (
    "org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy"
)
"""The policy that runs unless the configuration lists others (yarn-default.xml)."""

USERLIMIT_FIRST = "userlimit_first"
PRIORITY_FIRST = "priority_first"


class IntraQueueSettings(Struct, frozen=True):
    """Settings of preemption among the applications of one leaf.

    `minimum_threshold`: a leaf that uses less is skipped; `max_allowable_limit`: the most that one round may preempt.
    Both are fractions of the leaf's guarantee. `users_first`: a user within the user limit loses nothing to other
    users, regardless of priorities.
    """

    enabled: bool
    minimum_threshold: float
    max_allowable_limit: float
    users_first: bool
    conservative: bool


class PreemptionSettings(Struct, frozen=True):
    """Settings of the ProportionalCapacityPreemptionPolicy. Times in ms.

    `enabled`: the policy runs. `total_per_round`: the fraction of the cluster that one round may preempt.
    `queue_priority`: containers of queues with lower priority are preempted for reservations of queues with higher
    priority. `surgical`: nodes with a reservation are examined one by one. `counts_reserved`: reserved resources count
    as demand. `balances`: queues above their guarantees are balanced, too. A container that is preempted for this is
    killed after `balance_wait_ms`, or after `wait_before_kill_ms` if `balance_wait_ms` is 0.
    """

    enabled: bool
    interval_ms: int
    wait_before_kill_ms: int
    total_per_round: float
    max_ignored_over_capacity: float
    natural_termination_factor: float
    observe_only: bool
    lazy: bool
    conservative: bool
    queue_priority: bool
    queue_priority_delay_ms: int
    moves_reservations: bool
    surgical: bool
    counts_reserved: bool
    balances: bool
    balance_wait_ms: int
    intra_queue: IntraQueueSettings


def runs(reader: Reader, policy: str) -> bool:
    """True if the configuration enables monitors and lists the policy."""
    return policy in _named(reader) and reader.value(scheduler.MONITOR_ENABLE)


def unsupported_policies(reader: Reader) -> list[str]:
    """The policies that would run in Hadoop and that do not exist here."""
    supported = (IDLE_QUEUE_POLICY, QUEUE_MANAGEMENT_POLICY, PREEMPTION_POLICY)
    return [policy for policy in _named(reader) if policy not in supported and reader.value(scheduler.MONITOR_ENABLE)]


def read_preemption(reader: Reader) -> PreemptionSettings:
    """The settings of preemption."""
    return PreemptionSettings(
        enabled=runs(reader, PREEMPTION_POLICY),
        interval_ms=_interval_ms(reader),
        wait_before_kill_ms=reader.value(keys.MAX_WAIT_BEFORE_KILL),
        total_per_round=reader.value(keys.TOTAL_PER_ROUND),
        max_ignored_over_capacity=reader.value(keys.MAX_IGNORED_OVER_CAPACITY),
        natural_termination_factor=reader.value(keys.NATURAL_TERMINATION_FACTOR),
        observe_only=reader.value(keys.OBSERVE_ONLY),
        lazy=reader.value(keys.LAZY),
        conservative=reader.value(keys.CONSERVATIVE),
        queue_priority=reader.value(keys.UNDERUTILIZED_ENABLED),
        queue_priority_delay_ms=reader.value(keys.UNDERUTILIZED_DELAY),
        moves_reservations=reader.value(keys.UNDERUTILIZED_MOVE),
        surgical=reader.value(keys.SELECT_BASED_ON_RESERVED),
        counts_reserved=reader.value(keys.ADDITIONAL_BASED_ON_RESERVED),
        balances=reader.value(keys.BALANCE_ENABLED),
        balance_wait_ms=reader.value(keys.BALANCE_WAIT),
        intra_queue=_intra_queue(reader),
    )


def _intra_queue(reader: Reader) -> IntraQueueSettings:
    order = reader.value(keys.INTRA_ORDER_POLICY).lower()
    if order not in (USERLIMIT_FIRST, PRIORITY_FIRST):
        reader.fault(keys.INTRA_ORDER_POLICY.key, "not a valid order", f"write {USERLIMIT_FIRST} or {PRIORITY_FIRST}")
    return IntraQueueSettings(
        enabled=reader.value(keys.INTRA_ENABLED),
        minimum_threshold=reader.value(keys.INTRA_MINIMUM_THRESHOLD),
        max_allowable_limit=reader.value(keys.INTRA_MAX_ALLOWABLE_LIMIT),
        users_first=order == USERLIMIT_FIRST,
        conservative=reader.value(keys.INTRA_CONSERVATIVE),
    )


def _interval_ms(reader: Reader) -> int:
    value_ms = reader.value(keys.MONITORING_INTERVAL)
    if value_ms > 0:
        return value_ms
    reader.fault(keys.MONITORING_INTERVAL.key, "not above 0", "write a number of ms above 0")
    return 1


def _named(reader: Reader) -> tuple[str, ...]:
    key = scheduler.MONITOR_POLICIES.key
    return reader.words(key) if reader.text(key) else (PREEMPTION_POLICY,)
