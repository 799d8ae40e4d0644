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
    Reply,
    StateChanged,
    Warn,
)
from rm.events import Event, Tick
from wire.core_shell import Core, CoreShell

_logger = logging.getLogger(__name__)

SETTLED = frozenset({"FINISHED", "FAILED", "KILLED"})
"""Final states of an attempt, by name."""


class ResourceManagerShell(CoreShell[Event, Effect]):
    """Feeds one core. Set `launch`, `clean_up`, `attempt_ended` and `give_up` before the first event."""

    def __init__(self, core: Core[Event, Effect], clock: Callable[[], int]) -> None:
        super().__init__(core, clock, tick=Tick())
        self.launch: Callable[[LaunchMaster], None] = _nobody
        self.clean_up: Callable[[CleanUpMaster], None] = _nobody
        self.attempt_ended: Callable[[str], None] = _nobody
        self.give_up: Callable[[], None] = _no_way_out

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case Reply(call, value):
                self.answer(call, value)
            case Refuse(call, error):
                self.refuse(call, error)
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


def _no_way_out() -> None:
    raise AssertionError("nobody ends the process")


def _nobody(effect: object) -> None:
    raise AssertionError(f"nobody carries out {effect}")
