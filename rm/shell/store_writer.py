"""Writes the core's store effects to the state store's file, then releases the answers and events that wait for them.

While one transaction is being written, further effects are collected for the next one (group commit), so a call waits
for at most two transactions, however many calls there are. The event loop never blocks.

While the file cannot be written (a full disk), the write is repeated. New applications are refused meanwhile, with the
reason. Running applications continue, and their changes wait here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from rm.core.durability import Outcome, WaitingStep
from rm.core.effects import SaveApplication, StoreEffect
from rm.core.stored_state import Saving
from rm.shell.row_state_store import Keys
from rm.shell.state_store_engine import StateStoreEngine
from wire.files.store_file import StoreUnavailable
from yarn.errors import YarnException
from yarn.machine import Refuse, Reply

_logger = logging.getLogger(f"yarnling.{__name__}")

RETRY_S = 1.0
"""Time between two attempts to write while the file cannot be written."""


class StoreWriter:
    """Writes to one file. Once effects are durable it passes events to `report` and answers to `answer`.

    `fail` is called when the file can never be written again; after that no event or answer is released.
    """

    def __init__(
        self,
        store: StateStoreEngine,
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
        self._next: list[WaitingStep] = []
        self._writing: asyncio.Task[None] | None = None
        self._has_failed = False
        self._closing = asyncio.Event()
        self.problem: StoreUnavailable | None = None
        """Why the file cannot be written, None while it can."""

    @property
    def is_busy(self) -> bool:
        """True while some effects are not durable yet."""
        return self._writing is not None

    def put(self, effects: list[StoreEffect], answers: list[Reply | Refuse]) -> None:
        """Write `effects`, then release `answers`, both after those of earlier calls."""
        self._next.append(WaitingStep(effects, answers))
        if self._writing is None and not self._has_failed:
            self._writing = asyncio.get_running_loop().create_task(self._write(), name="state-store")

    async def write_keys(self, kind: str, keys: Keys) -> None:
        """Store the keys; returns once they are durable. Raises YarnException if they cannot be written."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._store.write_keys, kind, keys)

    async def close(self) -> None:
        """Write the remaining effects, and close the file."""
        self._closing.set()
        while self._writing is not None:
            await asyncio.wait([self._writing])
        self._thread.shutdown()
        self._store.close()

    async def _write(self) -> None:
        try:
            while self._next and not self._has_failed:
                steps, self._next = self._next, []
                await self._write_steps([self._without_refused(step) for step in steps])
        except Exception as error:
            self._has_failed = True
            bug = None if isinstance(error, YarnException) else error
            _logger.critical("the state store cannot be written: %s", error, exc_info=bug)
            self._fail()
        finally:
            self._writing = None

    async def _write_steps(self, steps: list[WaitingStep]) -> None:
        """Write steps; returns once they are durable. Raises YarnException if the file cannot be written or closed."""
        while effects := [effect for step in steps for effect in step.effects]:
            try:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._store.write, effects)
            except StoreUnavailable as problem:
                if self._closing.is_set():
                    raise
                self._note(problem)
                steps = [step.without_new_application(problem, self._report, self._answer) for step in steps]
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._retry_s):
                        await self._closing.wait()
                steps, self._next = [*steps, *self._next], []
            else:
                self._note(None)
                break
        # If every application was refused, nothing was written: the next write shows whether the file can be written.
        self.problem = None
        for step in steps:
            step.release(self._report, self._answer)

    def _without_refused(self, step: WaitingStep) -> WaitingStep:
        """The step without a new application that the store can never take, whose submission is refused."""
        for effect in step.effects:
            if isinstance(effect, SaveApplication) and effect.saving is Saving.NEW:
                problem = self._store.refusal(effect)
                if problem is not None:
                    return step.without_new_application(problem, self._report, self._answer)
        return step

    def _note(self, problem: StoreUnavailable | None) -> None:
        before, self.problem = self.problem, problem
        if problem is not None and before is None:
            _logger.error("new applications are refused, the state store cannot be written: %s", problem.message)
        elif problem is None and before is not None:
            _logger.info("the state store can be written again")
