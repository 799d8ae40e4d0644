"""Decides when victims are requested from their AM, and when they are killed: ProportionalCapacityPreemptionPolicy.

Each round chooses victims independently. A container that is chosen for the first time is requested from its AM; one
that is chosen again after the wait is killed. One that is not chosen again is forgotten after twice the wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct

from rm.scheduler.config.monitors import PreemptionSettings
from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.preemption.fifo_candidates_selector import select_fifo
from rm.scheduler.preemption.intra_queue_candidates_selector import select_in_queues
from rm.scheduler.preemption.preemption_round import PreemptionRound, PreemptionRoundFailed, Victim, Victims
from rm.scheduler.preemption.queue_priority_container_candidate_selector import select_by_queue_priority
from rm.scheduler.preemption.reserved_container_candidates_selector import select_for_reservations
from yarn.ids import ContainerId
from yarn.protocols.inspection import QueueInRound
from yarn.resource import Resource

Figures: TypeAlias = tuple[QueueInRound, QueueInRound | None]
"""The victim's queue, and the queue that is to get the resources if it is another one, as the round saw them."""


class MarkForPreemption(Struct, frozen=True):
    """Ask the AM to release the container."""

    victim: Victim
    figures: Figures | None = None


class MarkForKillable(Struct, frozen=True):
    """Kill the container; with lazy preemption as soon as its resources are needed."""

    victim: Victim
    figures: Figures | None = None


Order: TypeAlias = MarkForPreemption | MarkForKillable

DropReservation = Callable[[RMContainer], None]
"""Called to drop a reservation of an application from which containers are preempted."""


class ProportionalCapacityPreemptionPolicy:
    """The policy's state, kept from round to round. Times are ms of a clock of its own that only rounds advance.

    `has_chosen`: the last round has chosen victims, of which it may have ordered none.
    """

    __slots__ = ("_applications", "_context", "_killable", "_killable_ids", "_marked", "has_chosen", "last_failure")

    def __init__(self, context: SchedulerContext, applications: ApplicationTable) -> None:
        self._context = context
        self._applications = applications
        self._marked: dict[ContainerId, int] = {}
        self._killable: dict[str, dict[str, Resource]] = {}
        self._killable_ids: frozenset[ContainerId] = frozenset()
        self.has_chosen = False
        self.last_failure: PreemptionRoundFailed | None = None

    def edit_schedule(self, root: CSQueue, now_ms: int, drop: DropReservation) -> list[Order]:
        """Run one round; returns what is to be done, in order. Sets `last_failure` if the round failed.

        Reservations are dropped during the round, before the next selector runs: Hadoop sends an event to the
        scheduler's thread, which is nearly always faster than the selectors.
        """
        context, settings = self._context, self._context.settings.preemption

        # 1. Copy the queues, and the applications of each leaf, for each partition. With lazy preemption also keep
        #    which containers other queues may kill already.
        if settings.lazy:
            self._killable, self._killable_ids = context.killables.by_queue(), context.killables.ids()
        the_round = PreemptionRound(
            context, root, self._applications, killable=self._killable, killable_ids=self._killable_ids
        )

        # 2. Let the selectors choose victims: for queues of higher priority and for large reservations, then in queues
        #    above their ideal shares, then within queues. A later selector takes into account what earlier ones chose.
        self.last_failure = None
        chosen: list[tuple[Victims, int]] = []
        try:
            for victims, wait_ms in _select(the_round, settings, drop):
                chosen.append((victims, wait_ms))
        except PreemptionRoundFailed as failure:
            self.last_failure = failure
        self.has_chosen = not the_round.victims.is_empty
        if settings.observe_only or self.last_failure is not None:
            return []

        # 3. Request a victim from its AM when it is chosen first; kill it if it is still chosen after the wait.
        orders: list[Order] = []
        for victims, wait_ms in chosen:
            orders += self._requests_and_kills(victims, the_round.figures, wait_ms, now_ms)

        # 4. Forget victims that rounds have not chosen again for twice the wait.
        self._forget_stale(settings, now_ms)
        return orders

    def heeds_time(self) -> bool:
        """True if the next round may order something although nothing has changed, or has a failure to report.

        A victim of the last round may be killed then; or it may have been forgotten, and its AM is asked again.
        """
        settings, nodes = self._context.settings.preemption, self._context.nodes.values()
        return (
            self.has_chosen
            or bool(self._marked)
            or self.last_failure is not None
            or (settings.queue_priority and any(node.reserved_container is not None for node in nodes))
        )

    def _requests_and_kills(
        self, victims: Victims, figures: dict[ContainerId, Figures], wait_ms: int, now_ms: int
    ) -> list[Order]:
        orders: list[Order] = []
        for victim in victims:
            container_id = victim.container.id
            marked_ms = self._marked.get(container_id)
            if marked_ms is None:
                self._marked[container_id] = now_ms
                orders.append(MarkForPreemption(victim, figures.get(container_id)))
            elif marked_ms + wait_ms <= now_ms:
                del self._marked[container_id]
                orders.append(MarkForKillable(victim, figures.get(container_id)))
        return orders

    def _forget_stale(self, settings: PreemptionSettings, now_ms: int) -> None:
        oldest_ms = now_ms - 2 * settings.wait_before_kill_ms
        self._marked = {key: marked_ms for key, marked_ms in self._marked.items() if marked_ms >= oldest_ms}


def _select(
    the_round: PreemptionRound, settings: PreemptionSettings, drop: DropReservation
) -> Iterator[tuple[Victims, int]]:
    """Run the selectors in order; yield the victims of each, and how long they wait in ms."""
    wait_ms = settings.wait_before_kill_ms
    if settings.queue_priority:
        yield select_by_queue_priority(the_round), wait_ms
    if settings.surgical:
        yield select_for_reservations(the_round), wait_ms
    yield _select_fifo(the_round, drop, balances=False), wait_ms
    if settings.balances:
        own_wait_ms = settings.balance_wait_ms if settings.balance_wait_ms > 0 else wait_ms
        yield _select_fifo(the_round, drop, balances=True), own_wait_ms
    if settings.intra_queue.enabled:
        yield select_in_queues(the_round), wait_ms


def _select_fifo(the_round: PreemptionRound, drop: DropReservation, *, balances: bool) -> Victims:
    """Choose victims by FifoCandidatesSelector. Reservations are dropped even if the selector fails."""
    try:
        return select_fifo(the_round, balances=balances)
    finally:
        if not the_round.settings.observe_only:
            for reserved in the_round.reserved_to_kill:
                drop(reserved)
        the_round.reserved_to_kill.clear()
