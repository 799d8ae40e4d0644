"""Invariants of preemption, checked for each request and kill as it happens.

I-53: a queue loses containers to others only while it holds more than its guarantee. I-54: the victims of one round
add up to no more than the configured share of the cluster. I-55: a container is killed no sooner after its AM was
asked to release it than the configured wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.notices import PreemptionDecided
from rm.scheduler.model.resource_calculator import multiplied
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.preemption.preemption_round import PreemptionReason
from yarn.ids import ContainerId

REMEMBERED_MAX = 10_000
"""Requested containers that are remembered. The oldest is dropped first; its wait is then not checked."""

_FOR_ANOTHER_QUEUE = frozenset({PreemptionReason.GUARANTEE.name, PreemptionReason.BALANCE.name})
"""Queues of higher priority and reservations are served by other rules, which may go below the guarantee."""


class OrderWatch:
    """Checks the preemptions of one scheduler; exists only where invariants are checked."""

    def __init__(self, context: SchedulerContext, applications: ApplicationTable) -> None:
        self._context = context
        self._applications = applications
        self._requested_ms: dict[ContainerId, int] = {}
        self._round_ms = 0
        self._in_round = context.none

    def end_step(self) -> None:
        """Start a new sum: a step has at most one round."""
        self._in_round = self._context.none

    def faults_of(self, order: PreemptionDecided) -> Iterator[str]:
        """Violations of the invariants. Call it before the container is killed."""
        container = self._applications.container(order.container_id)
        if container is None:
            return
        if order.reason in _FOR_ANOTHER_QUEUE:
            yield from self._below_guarantee(container)
        if order.reason != PreemptionReason.QUEUE_PRIORITY.name:
            yield from self._too_much(container, order.clock_ms)
        if order.step == "requested":
            self._note_request(order)
        else:
            yield from self._too_soon(order)

    def _below_guarantee(self, container: RMContainer) -> Iterator[str]:
        context = self._context
        leaf = self._applications.by_id[container.id.application_id].leaf
        partition = context.nodes[container.node_id].partition
        used, guarantee = leaf.usage.used(partition), leaf.effective_minimum(partition)
        if context.calculator.less_or_equal(context.cluster_resource, used, guarantee):
            yield f"I-53: {container.id} is preempted, but {leaf.path} uses only {used} of its guarantee of {guarantee}"

    def _too_much(self, container: RMContainer, clock_ms: int) -> Iterator[str]:
        context = self._context
        if clock_ms != self._round_ms:
            self._round_ms, self._in_round = clock_ms, context.none
        self._in_round = self._in_round + container.resource
        most = multiplied(context.cluster_resource, context.settings.preemption.total_per_round)
        if not context.calculator.fits_in(self._in_round, most):
            yield f"I-54: {container.id}: the round preempts {self._in_round}, more than the allowed {most}"

    def _too_soon(self, order: PreemptionDecided) -> Iterator[str]:
        settings, requested_ms = self._context.settings.preemption, self._requested_ms.pop(order.container_id, None)
        is_balance = order.reason == PreemptionReason.BALANCE.name and settings.balance_wait_ms > 0
        wait_ms = settings.balance_wait_ms if is_balance else settings.wait_before_kill_ms
        passed_ms = order.clock_ms - requested_ms if requested_ms is not None else wait_ms
        if passed_ms < wait_ms:
            yield f"I-55: {order.container_id} is killed {passed_ms} ms after its AM was asked, before {wait_ms} ms"

    def _note_request(self, order: PreemptionDecided) -> None:
        self._requested_ms[order.container_id] = order.clock_ms
        if len(self._requested_ms) > REMEMBERED_MAX:
            del self._requested_ms[next(iter(self._requested_ms))]
