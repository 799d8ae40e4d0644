"""The shell around the ResourceManager's core: carries out its effects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, assert_never

from rm.core.durability import DurableRequest, divided
from rm.core.effects import (
    CleanUpAM,
    Effect,
    LaunchAM,
    Preempted,
    RemoveApplication,
    SaveApplication,
    SaveAttempt,
    SaveNodeLabels,
    StoreEffect,
)
from rm.core.events import Event, NodeHeartbeat, ProcessStalled
from wire.core_shell import Core, CoreShell
from yarn.errors import YarnException
from yarn.machine import InvariantsBroken, Refuse, Reply, StateChanged, Tick, Warn

_logger = logging.getLogger(f"yarnling.{__name__}")

SETTLED = frozenset({"FINISHED", "FAILED", "KILLED"})
"""The names of the final states of an attempt."""

STALL_CHECKS_PER_THRESHOLD = 3
"""The number of times per stall threshold that the process checks whether it was stalled."""


class StateStoreWriter(Protocol):
    """Writes store effects to the state store (StoreWriter)."""

    @property
    def problem(self) -> YarnException | None: ...
    @property
    def is_busy(self) -> bool: ...
    def put(self, effects: list[StoreEffect], answers: list[Reply | Refuse]) -> None: ...


class ResourceManagerShell(CoreShell[Event, Effect]):
    """Runs one core and carries out its effects.

    Set `launch`, `clean_up`, `attempt_ended` and `give_up` before the first event, and `store_writer` if there is a
    state store.
    """

    def __init__(self, core: Core[Event, Effect], clock: Callable[[], int]) -> None:
        super().__init__(core, clock, tick=Tick())
        self.launch: Callable[[LaunchAM], None] = _not_set
        self.clean_up: Callable[[CleanUpAM], None] = _not_set
        self.attempt_ended: Callable[[str], None] = _not_set
        self.give_up: Callable[[], None] = _cannot_exit
        self.state_changed: Callable[[StateChanged], None] = _ignore
        self.store_writer: StateStoreWriter | None = None
        self._stall_threshold_ms: int | None = None
        self._last_run_ms = 0
        self._stall_timer: asyncio.TimerHandle | None = None

    def detect_stalls(self, threshold_ms: int) -> None:
        """Start to detect stalls of this process that last longer than `threshold_ms`, and report each to the
        core before any other event.
        """
        self._stall_threshold_ms, self._last_run_ms = threshold_ms, self._clock()
        self._check_for_stall_again()

    def close(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
        super().close()

    def handle(self, event: Event) -> None:
        """Process one event. While the state store cannot be written, requests that must be stored are refused."""
        self._check_for_stall()
        problem = None if self.store_writer is None else self.store_writer.problem
        if problem is not None and isinstance(event, DurableRequest):
            self.refuse(event.call, problem)
            return
        super().handle(event)

    def _check_for_stall_again(self) -> None:
        assert self._stall_threshold_ms is not None
        self._check_for_stall()
        interval_s = self._stall_threshold_ms / STALL_CHECKS_PER_THRESHOLD / 1000
        self._stall_timer = asyncio.get_running_loop().call_later(interval_s, self._check_for_stall_again)

    def _check_for_stall(self) -> None:
        if self._stall_threshold_ms is None:
            return
        stalled_ms, self._last_run_ms = self._clock() - self._last_run_ms, self._clock()
        if stalled_ms > self._stall_threshold_ms:
            self.send(ProcessStalled(stalled_ms))

    def carry_out_step(self, event: Event, effects: list[Effect]) -> None:
        """Pass the step's store effects to the writer together; the step's answers wait there until the effects are
        durable.
        """
        if len(effects) == 1 and type(event) is NodeHeartbeat and type(effects[0]) is Reply:
            # Nearly every step is a heartbeat without news, with only a reply: this does the same as below, faster.
            self.answer(effects[0].call, effects[0].value)
            return
        step = divided(event, effects, store_is_busy=self.store_writer is not None and self.store_writer.is_busy)
        super().carry_out_step(event, step.now)
        if self.store_writer is None:
            assert not step.to_store, f"there is no state store for {step.to_store}"
        elif step.to_store or step.answers:
            self.store_writer.put(step.to_store, step.answers)

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case Reply(call, value):
                self.answer(call, value)
            case Refuse(call, error):
                self.refuse(call, error)
            case SaveApplication() | SaveAttempt() | RemoveApplication() | SaveNodeLabels():
                raise AssertionError(f"{effect} must be carried out with its whole step")
            case StateChanged():
                self._note_change(effect)
            case LaunchAM():
                self.launch(effect)
            case CleanUpAM():
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


def _ignore(change: StateChanged) -> None:
    """Ignore the end of an attempt: by default state changes are only logged."""


def _cannot_exit() -> None:
    raise AssertionError("give_up is not set")


def _not_set(effect: object) -> None:
    raise AssertionError(f"no handler is set for {effect}")
