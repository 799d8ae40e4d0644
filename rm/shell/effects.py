"""The ResourceManager's effects: answers, starts and ends of masters, the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, assert_never

from rm.core.effects import (
    CleanUpMaster,
    Effect,
    LaunchMaster,
    Preempted,
    RemoveApplication,
    SaveApplication,
    SaveAttempt,
    SaveNodeLabels,
    StoreEffect,
)
from rm.core.events import (
    AddClusterNodeLabels,
    Allocate,
    Event,
    MoveApplication,
    NodeHeartbeat,
    RegisterNode,
    RemoveClusterNodeLabels,
    ReplaceLabelsOnNodes,
    Stood,
    SubmitApplication,
    Tick,
    UpdateApplicationPriority,
    UpdateApplicationTimeouts,
)
from wire.core_shell import Core, CoreShell
from yarn.errors import YarnException
from yarn.machine import InvariantsBroken, Refuse, Reply, StateChanged, Warn

_logger = logging.getLogger(__name__)

SETTLED = frozenset({"FINISHED", "FAILED", "KILLED"})
"""Final states of an attempt, by name."""


PULSES_A_STAND = 3
"""A process that runs does something at least so often in the time after which it counts as having stood."""


class StateKeeper(Protocol):
    """What keeps what is to be stored (StoreWriter)."""

    @property
    def problem(self) -> YarnException | None: ...
    @property
    def is_busy(self) -> bool: ...
    def put(self, effects: list[StoreEffect], answers: list[Reply | Refuse]) -> None: ...


Order = (
    SubmitApplication
    | MoveApplication
    | UpdateApplicationPriority
    | UpdateApplicationTimeouts
    | AddClusterNodeLabels
    | RemoveClusterNodeLabels
    | ReplaceLabelsOnNodes
)
"""What is answered once it is stored, also where it asks for what is there already: that may not be stored yet."""

SignOfLife = RegisterNode | NodeHeartbeat | Allocate
"""Answered at once: who waits for it too long is taken for dead, and it says nothing that its own step stores. What a
heartbeat leads to is told by a later one."""


class ResourceManagerShell(CoreShell[Event, Effect]):
    """Feeds one core. Set `launch`, `clean_up`, `attempt_ended` and `give_up` before the first event, and `keeper` if
    anything is stored."""

    def __init__(self, core: Core[Event, Effect], clock: Callable[[], int]) -> None:
        super().__init__(core, clock, tick=Tick())
        self.launch: Callable[[LaunchMaster], None] = _nobody
        self.clean_up: Callable[[CleanUpMaster], None] = _nobody
        self.attempt_ended: Callable[[str], None] = _nobody
        self.give_up: Callable[[], None] = _no_way_out
        self.state_changed: Callable[[StateChanged], None] = _unwatched
        self.keeper: StateKeeper | None = None
        self._stands_ms: int | None = None
        self._alive_ms = 0
        self._pulse_timer: asyncio.TimerHandle | None = None

    def watch_itself(self, stands_ms: int) -> None:
        """From now on tell the core when this process has not run for longer than `stands_ms`, before anything else."""
        self._stands_ms, self._alive_ms = stands_ms, self._clock()
        self._pulse()

    def close(self) -> None:
        if self._pulse_timer is not None:
            self._pulse_timer.cancel()
        super().close()

    def handle(self, event: Event) -> None:
        """One step. While nothing can be stored, what is to be stored is refused at the door."""
        self._note_that_it_runs()
        problem = None if self.keeper is None else self.keeper.problem
        if problem is not None and isinstance(event, Order):
            self.refuse(event.call, problem)
            return
        super().handle(event)

    def _pulse(self) -> None:
        assert self._stands_ms is not None
        self._note_that_it_runs()
        self._pulse_timer = asyncio.get_running_loop().call_later(self._stands_ms / PULSES_A_STAND / 1000, self._pulse)

    def _note_that_it_runs(self) -> None:
        if self._stands_ms is None:
            return
        stood_ms, self._alive_ms = self._clock() - self._alive_ms, self._clock()
        if stood_ms > self._stands_ms:
            self.send(Stood(stood_ms))

    def carry_out_step(self, event: Event, effects: list[Effect]) -> None:
        """What is to be stored goes to the keeper together, and the step's answers wait there until it is durable."""
        if len(effects) == 1 and type(event) is NodeHeartbeat and type(effects[0]) is Reply:
            # A quiet heartbeat, as nearly every step is: answered as below, sooner.
            self.answer(effects[0].call, effects[0].value)
            return
        lives = isinstance(event, SignOfLife)
        to_store = [effect for effect in effects if isinstance(effect, StoreEffect)]
        if self.keeper is None or not (to_store or (isinstance(event, Order) and self.keeper.is_busy)):
            assert not to_store, f"nobody stores {to_store}"
            super().carry_out_step(event, effects)
            return
        waiting = StoreEffect if lives else StoreEffect | Reply | Refuse
        super().carry_out_step(event, [effect for effect in effects if not isinstance(effect, waiting)])
        answers = [] if lives else [effect for effect in effects if isinstance(effect, Reply | Refuse)]
        self.keeper.put(to_store, answers)

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case Reply(call, value):
                self.answer(call, value)
            case Refuse(call, error):
                self.refuse(call, error)
            case SaveApplication() | SaveAttempt() | RemoveApplication() | SaveNodeLabels():
                raise AssertionError(f"{effect} is carried out with its step")
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
        self.state_changed(change)
        if change.kind == "RMAppAttempt" and change.target in SETTLED:
            self.attempt_ended(change.subject)


def _unwatched(change: StateChanged) -> None:
    """Nobody but the log is interested."""


def _no_way_out() -> None:
    raise AssertionError("nobody ends the process")


def _nobody(effect: object) -> None:
    raise AssertionError(f"nobody carries out {effect}")
