"""What the configuration says of preemption: the policy's keys, and what a queue lets be taken from it.

All of it is read anew at a refresh, as Hadoop's policy does when the scheduler's configuration is another object.
"""

from __future__ import annotations

from msgspec import Struct

from rm.scheduler.config.reading import Reader
from rm.scheduler.preemption.monitors import PREEMPTION_POLICY, runs
from yarn.java.binary32 import f32

PREFIX = "yarn.resourcemanager.monitor.capacity.preemption."
USERLIMIT_FIRST = "userlimit_first"
PRIORITY_FIRST = "priority_first"

_INTRA = PREFIX + "intra-queue-preemption."
INTRA_QUEUE_ENABLED = _INTRA + "enabled"
_BALANCE = PREFIX + "preemption-to-balance-queue-after-satisfied."
_SCHEDULER = "yarn.scheduler.capacity."
_UNDERUTILIZED = _SCHEDULER + "ordering-policy.priority-utilization.underutilized-preemption."


class IntraQueueSettings(Struct, frozen=True):
    """Preemption inside a leaf. `minimum_threshold`: of its guarantee a leaf has to use before anything is done;
    `max_allowable_limit`: of its guarantee that one round may take."""

    enabled: bool
    minimum_threshold: float
    max_allowable_limit: float
    users_first: bool
    conservative: bool


class PreemptionSettings(Struct, frozen=True):
    """Times in ms. `enabled`: rounds run; `queue_priority`: reservations of queues of a higher priority are served by
    the containers of lower ones; `surgical`: nodes with a reservation are looked at one by one; `counts_reserved`:
    what is reserved counts as wanted; `balances`: queues above their guarantees are evened out too, their victims
    waiting for `balance_wait_ms`."""

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


def read_preemption(reader: Reader) -> PreemptionSettings:
    """The policy's settings; faults go to the reader."""
    return PreemptionSettings(
        enabled=runs(reader, PREEMPTION_POLICY),
        interval_ms=_positive_ms(reader, PREFIX + "monitoring_interval", 3000),
        wait_before_kill_ms=reader.duration_ms(PREFIX + "max_wait_before_kill", 15_000),
        total_per_round=reader.number(PREFIX + "total_preemption_per_round", f32(0.1)),
        max_ignored_over_capacity=reader.double(PREFIX + "max_ignored_over_capacity", 0.1),
        natural_termination_factor=reader.double(PREFIX + "natural_termination_factor", 0.2),
        observe_only=reader.flag(PREFIX + "observe_only", False),
        lazy=reader.flag(_SCHEDULER + "lazy-preemption-enabled", False),
        conservative=reader.flag(PREFIX + "conservative-drf", False),
        queue_priority=reader.flag(_UNDERUTILIZED + "enabled", False),
        queue_priority_delay_ms=reader.duration_ms(_UNDERUTILIZED + "reserved-container-delay-ms", 60_000),
        moves_reservations=reader.flag(_UNDERUTILIZED + "allow-move-reservation", False),
        surgical=reader.flag(PREFIX + "select_based_on_reserved_containers", False),
        counts_reserved=reader.flag(PREFIX + "additional_res_balance_based_on_reserved_containers", False),
        balances=reader.flag(_BALANCE + "enabled", False),
        balance_wait_ms=reader.duration_ms(_BALANCE + "max-wait-before-kill", 300_000),
        intra_queue=_intra_queue(reader),
    )


def _intra_queue(reader: Reader) -> IntraQueueSettings:
    order_key = _INTRA + "preemption-order-policy"
    order = reader.text(order_key, USERLIMIT_FIRST).lower()
    if order not in (USERLIMIT_FIRST, PRIORITY_FIRST):
        reader.fault(order_key, "no such order", f"write {USERLIMIT_FIRST} or {PRIORITY_FIRST}")
    return IntraQueueSettings(
        enabled=reader.flag(INTRA_QUEUE_ENABLED, False),
        minimum_threshold=reader.number(_INTRA + "minimum-threshold", 0.5),
        max_allowable_limit=reader.number(_INTRA + "max-allowable-limit", f32(0.2)),
        users_first=order == USERLIMIT_FIRST,
        conservative=reader.flag(_INTRA + "conservative-drf", True),
    )


def _positive_ms(reader: Reader, key: str, default_ms: int) -> int:
    value = reader.duration_ms(key, default_ms)
    if value <= 0:
        reader.fault(key, "no interval", "write a number of ms above 0")
        return default_ms
    return value
