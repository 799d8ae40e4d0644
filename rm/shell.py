"""The ResourceManager's effects: answers, starts and ends of masters, the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import assert_never

from rm.effects import (
    CleanUpMaster,
    Effect,
    InvariantsBroken,
    LaunchMaster,
    Preempted,
    Refuse,
    RemoveApplication,
    Reply,
    SaveApplication,
    SaveAttempt,
    StateChanged,
    StoreEffect,
    Warn,
)
from rm.events import Event, Tick
from wire.core_shell import Core, CoreShell

_logger = logging.getLogger(__name__)

SETTLED = frozenset({"FINISHED", "FAILED", "KILLED"})
"""Final states of an attempt, by name."""


Store = Callable[[list[StoreEffect], list[Reply | Refuse]], None]
"""Writes what is to be stored, and then gives the answers that wait for it."""


class ResourceManagerShell(CoreShell[Event, Effect]):
    """Feeds one core. Set `launch`, `clean_up`, `attempt_ended`, `give_up` and `store` before the first event."""

    def __init__(self, core: Core[Event, Effect], clock: Callable[[], int]) -> None:
        super().__init__(core, clock, tick=Tick())
        self.launch: Callable[[LaunchMaster], None] = _nobody
        self.clean_up: Callable[[CleanUpMaster], None] = _nobody
        self.attempt_ended: Callable[[str], None] = _nobody
        self.give_up: Callable[[], None] = _no_way_out
        self.store: Store = _no_store

    def carry_out_step(self, effects: list[Effect]) -> None:
        """What is to be stored goes to the store together, and the step's answers wait there until it is durable."""
        to_store = [effect for effect in effects if isinstance(effect, StoreEffect)]
        if not to_store:
            super().carry_out_step(effects)
            return
        answers = [effect for effect in effects if isinstance(effect, Reply | Refuse)]
        super().carry_out_step([effect for effect in effects if not isinstance(effect, Reply | Refuse | StoreEffect)])
        self.store(to_store, answers)

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case Reply(call, value):
                self.answer(call, value)
            case Refuse(call, error):
                self.refuse(call, error)
            case SaveApplication() | SaveAttempt() | RemoveApplication():
                self.store([effect], [])
            case StateChanged():
                self._note_change(effect)
            case LaunchMaster():
                self.launch(effect)
            case CleanUpMaster():
                self.clean_up(effect)
            case Warn(text):
                _logger.warning("%s", text)
            case InvariantsBroken(violations):
                for violation in violations:
                    _logger.critical("invariant broken: %s", violation)
                self.give_up()
            case Preempted(container_id, step, reason, serves):
                _logger.info("preempted=%s step=%s reason=%s serves=%s", container_id, step, reason, serves or "-")
            case _:
                assert_never(effect)

    def _note_change(self, change: StateChanged) -> None:
        _logger.info(
            "%s=%s event=%s from=%s to=%s%s",
            change.kind,
            change.subject,
            change.event,
            change.source,
            change.target,
            f" detail={change.detail!r}" if change.detail else "",
        )
        if change.kind == "RMAppAttempt" and change.target in SETTLED:
            self.attempt_ended(change.subject)


def _no_store(effects: list[StoreEffect], answers: list[Reply | Refuse]) -> None:
    raise AssertionError(f"nobody stores {effects}")


def _no_way_out() -> None:
    raise AssertionError("nobody ends the process")


def _nobody(effect: object) -> None:
    raise AssertionError(f"nobody carries out {effect}")
