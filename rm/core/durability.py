"""Which effects of a step wait until the state store has written it, and what follows once it has.

A request that changes stored state is answered once the change is durable: an acknowledged application is never lost. A
heartbeat is answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from rm.core.effects import Effect, SaveApplication, SaveAttempt, StoreEffect
from rm.core.events import (
    AddClusterNodeLabels,
    Allocate,
    ApplicationSaved,
    ApplicationSaveFailed,
    AttemptSaved,
    Event,
    MoveApplication,
    NodeHeartbeat,
    RegisterNode,
    RemoveClusterNodeLabels,
    ReplaceLabelsOnNodes,
    SubmitApplication,
    UpdateApplicationPriority,
    UpdateApplicationTimeouts,
)
from rm.core.stored_state import Saving
from yarn.errors import YarnException
from yarn.machine import Refuse, Reply

DurableRequest = (
    SubmitApplication
    | MoveApplication
    | UpdateApplicationPriority
    | UpdateApplicationTimeouts
    | AddClusterNodeLabels
    | RemoveClusterNodeLabels
    | ReplaceLabelsOnNodes
)
"""Requests that are answered once everything before them is stored, even if they change nothing: an earlier, equal
request may not be stored yet.
"""

Outcome = ApplicationSaved | AttemptSaved | ApplicationSaveFailed
"""The events that follow store effects."""

Heartbeat = RegisterNode | NodeHeartbeat | Allocate
"""Answered at once, since a late answer would let the caller expire. The answer contains nothing that its own step
stores: what a heartbeat leads to is part of a later answer."""


class DividedStep(Struct, frozen=True):
    """The effects of one step: those of `now`, those of the store, and the answers that wait for these."""

    now: list[Effect]
    to_store: list[StoreEffect]
    answers: list[Reply | Refuse]


class WaitingStep(Struct, frozen=True):
    """The store effects of one step, and the answers that wait until they are durable."""

    effects: list[StoreEffect]
    answers: list[Reply | Refuse]

    def release(self, report: Callable[[Outcome], None], answer: Callable[[Reply | Refuse], None]) -> None:
        """Report effects as durable before the answers are sent, so that clients then see the state they led to."""
        for event in saved_events(self.effects):
            report(event)
        for waiting in self.answers:
            answer(waiting)

    def without_new_application(
        self, problem: YarnException, report: Callable[[Outcome], None], answer: Callable[[Reply | Refuse], None]
    ) -> WaitingStep:
        """The step without its new application, if it has one, whose submission is refused with `problem`."""
        new = [effect for effect in self.effects if isinstance(effect, SaveApplication) and effect.saving is Saving.NEW]
        if not new:
            return self
        for effect in new:
            report(ApplicationSaveFailed(effect.application.application_id, problem.message))
        for waiting in self.answers:
            answer(Refuse(waiting.call, problem) if isinstance(waiting, Reply) else waiting)
        return WaitingStep([effect for effect in self.effects if effect not in new], [])


def divided(event: Event, effects: list[Effect], *, store_is_busy: bool) -> DividedStep:
    """The step of `event`. `store_is_busy`: earlier steps are not durable yet."""
    to_store = [effect for effect in effects if isinstance(effect, StoreEffect)]
    if not to_store and not (store_is_busy and isinstance(event, DurableRequest)):
        return DividedStep(effects, [], [])
    is_heartbeat = isinstance(event, Heartbeat)
    waiting = StoreEffect if is_heartbeat else StoreEffect | Reply | Refuse
    now = [effect for effect in effects if not isinstance(effect, waiting)]
    return DividedStep(
        now, to_store, [] if is_heartbeat else [effect for effect in effects if isinstance(effect, Reply | Refuse)]
    )


def saved_events(effects: Iterable[StoreEffect]) -> list[ApplicationSaved | AttemptSaved]:
    """The events to give to the core once `effects` are durable, before the answers that wait for them."""
    events: list[ApplicationSaved | AttemptSaved] = []
    for effect in effects:
        if isinstance(effect, SaveApplication):
            events.append(ApplicationSaved(effect.application.application_id, effect.saving))
        elif isinstance(effect, SaveAttempt):
            events.append(AttemptSaved(effect.attempt.attempt_id, effect.saving))
    return events
