"""The ResourceManager's state store in a simulation: a disk that outlives the process, and its writer.

The writer follows rm.shell.store_writer: while one transaction is written, further effects are collected for the next
one. A transaction is on the disk whole or not at all. If the process is killed while one is written, chance decides.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import assert_never

from rm.core.durability import Outcome, WaitingStep
from rm.core.effects import RemoveApplication, SaveApplication, SaveAttempt, SaveNodeLabels, StoreEffect
from rm.core.stored_state import (
    ApplicationAttemptStateData,
    ApplicationStateData,
    NodeLabelState,
    RMState,
    StoredApplication,
)
from rm.shell.store_writer import RETRY_S
from wire.files.store_file import StoreUnavailable
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.machine import Refuse, Reply
from yarn.protocols.tracker import MasterKey
from yarnling.simulation.engine import Rank
from yarnling.simulation.process import Process

WRITE_MS = (1, 5)
"""The time a transaction takes: from, to."""


class SimulatedStore:
    """The durable records. While it `is_full` nothing can be written; a write takes `delay_ms` longer.

    `at_write` is called before each write. It returns None, or has killed the process and returns whether that write is
    on the disk.
    """

    def __init__(self) -> None:
        self.is_full = False
        self.delay_ms = 0
        self.at_write: Callable[[], bool | None] | None = None
        self.keys: dict[str, tuple[MasterKey, ...]] = {}
        self._epoch = 0
        self._applications: dict[ApplicationId, ApplicationStateData] = {}
        self._attempts: dict[ApplicationAttemptId, ApplicationAttemptStateData] = {}
        self._node_labels = NodeLabelState()

    def load(self) -> RMState:
        """All that is stored, for the next ResourceManager; the one after it gets a higher epoch."""
        epoch, self._epoch = self._epoch, self._epoch + 1
        attempts: dict[ApplicationId, list[ApplicationAttemptStateData]] = {}
        for attempt_id in sorted(self._attempts):
            attempts.setdefault(attempt_id.application_id, []).append(self._attempts[attempt_id])
        applications = tuple(
            StoredApplication(self._applications[known], tuple(attempts.get(known, ())))
            for known in sorted(self._applications)
        )
        return RMState(epoch, applications, self._node_labels)

    def write(self, effects: list[StoreEffect]) -> None:
        """Apply the effects of a transaction to the records."""
        for effect in effects:
            match effect:
                case SaveApplication(application, _):
                    self._applications[application.application_id] = application
                case SaveAttempt(attempt, _):
                    self._attempts[attempt.attempt_id] = attempt
                case RemoveApplication(application_id):
                    self._applications.pop(application_id, None)
                    for attempt_id in [known for known in self._attempts if known.application_id == application_id]:
                        del self._attempts[attempt_id]
                case SaveNodeLabels(node_labels):
                    self._node_labels = node_labels
                case _:
                    assert_never(effect)


class SimulatedStoreWriter:
    """Writes for one start of the ResourceManager. Durable effects lead to `report`, then their answers to `answer`."""

    def __init__(
        self,
        store: SimulatedStore,
        process: Process,
        draw: Random,
        *,
        report: Callable[[Outcome], None],
        answer: Callable[[Reply | Refuse], None],
    ) -> None:
        self._store = store
        self._process = process
        self._draw = draw
        self._report = report
        self._answer = answer
        self._next: list[WaitingStep] = []
        self._writing: list[WaitingStep] = []
        self.problem: StoreUnavailable | None = None
        """Why nothing can be written, None while it can."""
        process.on_exit(self._killed)

    @property
    def is_busy(self) -> bool:
        """True while some effects are not durable yet."""
        return bool(self._writing)

    def put(self, effects: list[StoreEffect], answers: list[Reply | Refuse]) -> None:
        """Write `effects`, then release `answers`, both after those of earlier calls."""
        self._next.append(WaitingStep(effects, answers))
        if not self._writing:
            self._write()

    def _write(self) -> None:
        self._writing, self._next = self._next, []
        self._process.after(self._draw.randint(*WRITE_MS) + self._store.delay_ms, Rank.DISK, self._written)

    def _written(self) -> None:
        """Finish the transaction. On a full disk, try it again without new applications, which are refused."""
        if self._is_killed_at_write():
            return
        if self._store.is_full and self._effects():
            self.problem = StoreUnavailable("the state store cannot be written: No space left on device")
            self._writing = [
                step.without_new_application(self.problem, self._report, self._answer) for step in self._writing
            ]
            if self._effects():
                self._process.after(round(RETRY_S * 1000), Rank.DISK, self._try_again)
                return
        else:
            self._store.write(self._effects())
        # If all of it was refused, nothing was written: the next write shows whether there is room.
        self.problem = None
        for step in self._writing:
            step.release(self._report, self._answer)
        self._writing = []
        if self._next:
            self._write()

    def _effects(self) -> list[StoreEffect]:
        """The effects of the transaction that is written."""
        return [effect for step in self._writing for effect in step.effects]

    def _is_killed_at_write(self) -> bool:
        effects = self._effects()
        if self._store.at_write is None or not effects:
            return False
        writing, self._writing = self._writing, []
        is_on_disk = self._store.at_write()
        if is_on_disk is None:
            self._writing = writing
        elif is_on_disk and not self._store.is_full:
            self._store.write(effects)
        return is_on_disk is not None

    def _try_again(self) -> None:
        self._writing, self._next = [*self._writing, *self._next], []
        self._written()

    def _killed(self) -> None:
        if self._writing and not self._store.is_full and self._draw.random() < 0.5:
            self._store.write(self._effects())
