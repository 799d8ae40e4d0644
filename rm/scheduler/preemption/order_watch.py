"""What must hold of the orders that rounds of preemption give, looked at as each order is given.

I-53: a queue gives up containers for others only while it holds more than its guarantee. I-54: the victims of one
round come to no more than the configured share of the cluster. I-55: a container ends no sooner after its master was
told than the wait allows.
"""

from __future__ import annotations

from collections.abc import Iterator

from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.notices import VictimOrdered
from rm.scheduler.model.resource_calculator import multiplied
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.preemption.victims import PreemptionReason
from yarn.ids import ContainerId

REMEMBERED_MAX = 10_000
"""Containers whose masters were told; the oldest is forgotten first, and its wait is not checked then."""

_FOR_ANOTHER_QUEUE = frozenset({PreemptionReason.GUARANTEE.name, PreemptionReason.BALANCE.name})
"""A queue of higher priority and a reservation are served by rules of their own, which may go below the guarantee."""


class OrderWatch:
    """Watches the orders of one scheduler. It is there where invariants are checked."""

    def __init__(self, context: SchedulerContext, applications: ApplicationTable) -> None:
        self._context = context
        self._applications = applications
        self._told_ms: dict[ContainerId, int] = {}
        self._round_ms = 0
        self._in_round = context.none

    def end_step(self) -> None:
        """A step has at most one round, and so has a time of the policy's clock that moves."""
        self._in_round = self._context.none

    def faults_of(self, order: VictimOrdered) -> Iterator[str]:
        """What is wrong with the order; call it before the container is ended."""
        container = self._applications.container(order.container_id)
        if container is None:
            return
        if order.reason in _FOR_ANOTHER_QUEUE:
            yield from self._below_guarantee(container)
        if order.reason != PreemptionReason.QUEUE_PRIORITY.name:
            yield from self._too_much(container, order.clock_ms)
        if order.step == "told":
            self._note_told(order)
        else:
            yield from self._too_soon(order)

    def _below_guarantee(self, container: RMContainer) -> Iterator[str]:
        context = self._context
        leaf = self._applications.by_id[container.id.application_id].leaf
        partition = context.nodes[container.node_id].partition
        used, guarantee = leaf.usage.used(partition), leaf.effective_minimum(partition)
        if context.calculator.less_or_equal(context.cluster_resource, used, guarantee):
            yield f"I-53: {container.id} is taken from {leaf.path}, which holds {used} of its guarantee of {guarantee}"

    def _too_much(self, container: RMContainer, clock_ms: int) -> Iterator[str]:
        context = self._context
        if clock_ms != self._round_ms:
            self._round_ms, self._in_round = clock_ms, context.none
        self._in_round = self._in_round + container.resource
        most = multiplied(context.cluster_resource, context.settings.preemption.total_per_round)
        if not context.calculator.fits_in(self._in_round, most):
            yield f"I-54: {container.id}: the round takes {self._in_round}, and may take {most}"

    def _too_soon(self, order: VictimOrdered) -> Iterator[str]:
        settings, told_ms = self._context.settings.preemption, self._told_ms.pop(order.container_id, None)
        is_balance = order.reason == PreemptionReason.BALANCE.name and settings.balance_wait_ms > 0
        wait_ms = settings.balance_wait_ms if is_balance else settings.wait_before_kill_ms
        passed_ms = order.clock_ms - told_ms if told_ms is not None else wait_ms
        if passed_ms < wait_ms:
            yield f"I-55: {order.container_id} ends {passed_ms} ms after its master was told, it has {wait_ms} ms"

    def _note_told(self, order: VictimOrdered) -> None:
        self._told_ms[order.container_id] = order.clock_ms
        if len(self._told_ms) > REMEMBERED_MAX:
            del self._told_ms[next(iter(self._told_ms))]
