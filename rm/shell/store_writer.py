"""Takes what the core wants stored to the state store's file, and what waits for it back: answers and events.

While one transaction is on its way to the disk, what comes next gathers for the following one (group commit), so that
the disk's slowness costs each call one or two waits, whatever their number. The loop waits for none of them.

A file that takes nothing, as its disk is full, is tried again until it does. New applications are turned away
meanwhile, with the reason; those that run go on, and what they come to waits here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from msgspec import Struct

from rm.core.effects import RemoveApplication, SaveApplication, SaveAttempt, SaveNodeLabels, StoreEffect
from rm.core.events import ApplicationSaved, ApplicationSaveFailed, AttemptSaved
from rm.core.stored_state import Saving
from rm.shell.sqlite_store import Keys, SQLiteStateStore
from rm.shell.store_file import StoreUnavailable
from yarn.errors import YarnException
from yarn.machine import Refuse, Reply

_logger = logging.getLogger(__name__)

RETRY_S = 1.0
"""Between two tries of a file that takes nothing."""

Outcome = ApplicationSaved | AttemptSaved | ApplicationSaveFailed


class _Step(Struct, frozen=True):
    """What one step of the core wants stored, and the answers that wait for it."""

    effects: list[StoreEffect]
    answers: list[Reply | Refuse]


class StoreWriter:
    """One file's writer. `report` takes the events, `answer` the answers that waited, both once all is durable.

    `fail` is called when the file will never take a write: then nothing is told any more, as nothing is kept.
    """

    def __init__(
        self,
        store: SQLiteStateStore,
        *,
        report: Callable[[Outcome], None],
        answer: Callable[[Reply | Refuse], None],
        fail: Callable[[], None],
        retry_s: float = RETRY_S,
    ) -> None:
        self._store = store
        self._report = report
        self._answer = answer
        self._fail = fail
        self._retry_s = retry_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="state-store")
        self._next: list[_Step] = []
        self._writing: asyncio.Task[None] | None = None
        self._has_failed = False
        self._closing = asyncio.Event()
        self.problem: StoreUnavailable | None = None
        """Why the file takes nothing, while that is so."""

    @property
    def is_busy(self) -> bool:
        """True while something that was put is not durable."""
        return self._writing is not None

    def put(self, effects: list[StoreEffect], answers: list[Reply | Refuse]) -> None:
        """Write `effects`, then give `answers`; both after what was put before."""
        self._next.append(_Step(effects, answers))
        if self._writing is None and not self._has_failed:
            self._writing = asyncio.get_running_loop().create_task(self._write(), name="state-store")

    async def write_keys(self, kind: str, keys: Keys) -> None:
        """Returns once they are durable. Raises YarnException if they cannot be written."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._store.write_keys, kind, keys)

    async def close(self) -> None:
        """Write what was put, and let the file go."""
        self._closing.set()
        while self._writing is not None:
            await asyncio.wait([self._writing])
        self._thread.shutdown()
        self._store.close()

    async def _write(self) -> None:
        try:
            while self._next and not self._has_failed:
                steps, self._next = self._next, []
                await self._write_steps(steps)
        except Exception as error:
            self._has_failed = True
            bug = None if isinstance(error, YarnException) else error
            _logger.critical("the state store cannot be written: %s", error, exc_info=bug)
            self._fail()
        finally:
            self._writing = None

    async def _write_steps(self, steps: list[_Step]) -> None:
        """Returns once they are durable. Raises YarnException if that cannot be, or they are given up at the end."""
        while effects := [effect for step in steps for effect in step.effects]:
            try:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._store.write, effects)
            except StoreUnavailable as problem:
                if self._closing.is_set():
                    raise
                self._note(problem)
                steps = [self._turned_away(step, problem) for step in steps]
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._retry_s):
                        await self._closing.wait()
                steps, self._next = [*steps, *self._next], []
            else:
                self._note(None)
                break
        # Nothing is left to write if all was turned away: the next one finds out.
        self.problem = None
        for step in steps:
            self._tell(step)

    def _note(self, problem: StoreUnavailable | None) -> None:
        before, self.problem = self.problem, problem
        if problem is not None and before is None:
            _logger.error("applications are turned away: %s", problem.message)
        elif problem is None and before is not None:
            _logger.info("the state store takes writes again")

    def _turned_away(self, step: _Step, problem: StoreUnavailable) -> _Step:
        """Without the new application that it has, if any: its submission is refused."""
        new = [effect for effect in step.effects if isinstance(effect, SaveApplication) and effect.saving is Saving.NEW]
        if not new:
            return step
        for effect in new:
            self._report(ApplicationSaveFailed(effect.application.application_id, problem.message))
        for answer in step.answers:
            self._answer(Refuse(answer.call, problem) if isinstance(answer, Reply) else answer)
        return _Step([effect for effect in step.effects if effect not in new], [])

    def _tell(self, step: _Step) -> None:
        """Machines go on first: who is answered finds them where its call has led."""
        for effect in step.effects:
            if isinstance(effect, SaveApplication):
                self._report(ApplicationSaved(effect.application.application_id, effect.saving))
            elif isinstance(effect, SaveAttempt):
                self._report(AttemptSaved(effect.attempt.attempt_id, effect.saving))
            else:
                assert isinstance(effect, RemoveApplication | SaveNodeLabels)
        for answer in step.answers:
            self._answer(answer)
