"""The containers that preemption will give a waiting request, and when; or why it will give none.

Rounds are run ahead of time on a copy of the scheduler. If they do not get the request a container, the settings that
hold preemption back are relaxed one at a time, each on a copy of its own: the first one that lets the rounds succeed is
the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from rm.core.explain.changes import NO_ROOM, Budget, DownNode
from rm.core.explain.trial import Trial
from rm.core.explain.verdict import Verdict
from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.config.monitors import PreemptionSettings
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.placement.allocator import is_under_guarantee
from yarn.configuration import OVERRIDE, Entry
from yarn.ids import ContainerId, NodeId
from yarn.settings import preemption as keys
from yarn.settings import scheduler as scheduler_keys

ROUNDS_MAX = 30
"""The number of rounds that are run ahead. With Hadoop's defaults eight cover the wait before a container is killed; if
the rounds follow one another faster, some are skipped."""


class Brake(Struct, frozen=True):
    """A setting that holds preemption back. `relax` returns the settings without it."""

    key: str
    words: str
    relax: Callable[[PreemptionSettings], PreemptionSettings]


_BALANCE_WORDS = "queues at or above their guarantees get nothing of what others have above theirs"
_INTRA_WORDS = "the applications of one queue do not preempt each other"

BRAKES = (
    Brake(keys.OBSERVE_ONLY.key, "rounds only observe", lambda own: replace(own, observe_only=False)),
    Brake(
        keys.MAX_IGNORED_OVER_CAPACITY.key,
        "the other queues are in the dead zone: above their guarantees by less than this fraction",
        lambda own: replace(own, max_ignored_over_capacity=0.0),
    ),
    Brake(
        keys.TOTAL_PER_ROUND.key,
        "one round may not preempt as much as a container",
        lambda own: replace(own, total_per_round=1.0),
    ),
    Brake(
        keys.NATURAL_TERMINATION_FACTOR.key,
        "a round leaves most of the amount to containers that end by themselves",
        lambda own: replace(own, natural_termination_factor=1.0),
    ),
    Brake(
        keys.UNDERUTILIZED_DELAY.key,
        "the reservation is too new",
        lambda own: replace(own, queue_priority_delay_ms=0),
    ),
    Brake(
        keys.BALANCE_WAIT.key,
        "a container that is requested for balance is forgotten after twice max_wait_before_kill, before it is killed",
        lambda own: replace(own, balance_wait_ms=0) if own.balances else own,
    ),
    Brake(
        keys.BALANCE_ENABLED.key,
        _BALANCE_WORDS,
        lambda own: own if own.balances else replace(own, balances=True, balance_wait_ms=0),
    ),
    Brake(
        keys.INTRA_ENABLED.key,
        _INTRA_WORDS,
        lambda own: replace(own, intra_queue=replace(own.intra_queue, enabled=True)),
    ),
)
"""In the order in which they are relaxed."""


class Outlook(Struct, frozen=True):
    """Either `victims` are preempted in `wait_ms`, and the request is served; or `note` says why not."""

    wait_ms: int = 0
    victims: tuple[ContainerId, ...] = ()
    note: str = ""


def outlook_of(
    scheduler: CapacityScheduler,
    attempt: FiCaSchedulerApp,
    verdict: Verdict,
    down: Mapping[NodeId, DownNode],
    budget: Budget,
) -> Outlook | None:
    """The effect of preemption for the request; None if it is not about free capacity, or trials are used up."""
    settings = scheduler.context.settings.preemption
    if verdict.cause not in NO_ROOM:
        return None
    if not settings.enabled:
        return Outlook(note=f"preemption is off ({scheduler_keys.MONITOR_ENABLE.key} is false)")
    if not budget.take():
        return None
    served = _run_ahead(scheduler, attempt, verdict, down, settings)
    if served is not None:
        return served
    for brake in BRAKES:
        relaxed = brake.relax(settings)
        if relaxed == settings:
            continue
        if not budget.take():
            return None
        if _run_ahead(scheduler, attempt, verdict, down, relaxed) is not None:
            value = scheduler.context.settings.source.get_trimmed(brake.key, "default")
            return Outlook(note=f"preemption gives nothing: {brake.words} ({brake.key} {value})")
    return Outlook(note=f"preemption gives nothing: {_why_not(scheduler, attempt, verdict)}")


def _run_ahead(
    scheduler: CapacityScheduler,
    attempt: FiCaSchedulerApp,
    verdict: Verdict,
    down: Mapping[NodeId, DownNode],
    settings: PreemptionSettings,
) -> Outlook | None:
    """Run rounds until the request is served; None if it is not."""
    trial = Trial(scheduler, down)
    own = trial.scheduler.context
    if settings.intra_queue.enabled and not own.settings.preemption.intra_queue.enabled:
        # Each queue keeps whether it has intra-queue preemption, so the queues read their configuration again.
        on = {keys.INTRA_ENABLED.key: Entry("true", OVERRIDE)}
        trial.scheduler.reinitialize(own.settings.source.with_entries(on), trial.now_ms)
    own.settings = replace(own.settings, preemption=settings)
    own.note_change()  # Else rounds that had nothing to do under the old settings would be left out.
    trial.now_ms = max(trial.now_ms, scheduler.monitor.due_ms)
    wait_ms = _longest_wait_ms(settings)
    step_ms = max(settings.interval_ms, ceil(wait_ms / (ROUNDS_MAX - 3)))
    for _ in range(ceil(wait_ms / step_ms) + 3):
        own.now_ms = trial.now_ms
        trial.scheduler.monitor.run_due()
        application_id = attempt.attempt_id.application_id
        if trial.gets_container(application_id, verdict.key) is not None:
            others = tuple(victim for victim in trial.preempted if victim.application_id != application_id)
            return Outlook(trial.now_ms - scheduler.context.now_ms, others) if others else None
        trial.now_ms += step_ms
    return None


def _longest_wait_ms(settings: PreemptionSettings) -> int:
    """The longest time from requesting a container to killing it; a request is forgotten after two waits."""
    wait_ms = settings.wait_before_kill_ms
    return max(wait_ms, min(settings.balance_wait_ms, 2 * wait_ms)) if settings.balances else wait_ms


def _why_not(scheduler: CapacityScheduler, attempt: FiCaSchedulerApp, verdict: Verdict) -> str:
    """The reason why preemption does not help, if it is not a setting of the policy."""
    leaf, partition = LeafQueue.of(attempt), verdict.partition
    if not is_under_guarantee(leaf, partition) and not scheduler.context.settings.preemption.intra_queue.enabled:
        return f"queue {leaf.path} is not below its guarantee, and only queues that are get resources back"
    calculator, cluster = scheduler.context.calculator, scheduler.context.cluster_resource
    above = [
        queue
        for queue in scheduler.queues.values()
        if isinstance(queue, LeafQueue)
        and queue is not leaf
        and calculator.greater(cluster, queue.usage.used(partition), queue.effective_minimum(partition))
    ]
    protected = [queue.path for queue in above if queue.configuration.preemption_disabled]
    if protected:
        return f"it is disabled for queue {protected[0]} (disable_preemption)"
    if not above:
        return "no other queue is above its guarantee"
    return f"no containers of queue {above[0].path} may be taken"
