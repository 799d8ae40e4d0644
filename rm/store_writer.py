"""Takes what the core wants stored to the state store's file, and what waits for it back: answers and events.

While one transaction is on its way to the disk, what comes next gathers for the following one (group commit), so that
the disk's slowness costs each call one or two waits, whatever their number. The loop waits for none of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from rm.effects import Refuse, RemoveApplication, Reply, SaveApplication, StoreEffect
from rm.events import ApplicationSaved, AttemptSaved
from rm.sqlite_store import Keys, SQLiteStateStore
from yarn.errors import YarnException

_logger = logging.getLogger(__name__)

Saved = ApplicationSaved | AttemptSaved


@dataclass(slots=True)
class _Batch:
    effects: list[StoreEffect] = field(default_factory=list)
    answers: list[Reply | Refuse] = field(default_factory=list)


class StoreWriter:
    """One file's writer. `report` takes the events, `answer` the answers that waited, both once all is durable.

    `fail` is called when the file does not take a write: then nothing is told any more, as nothing is kept.
    """

    def __init__(
        self,
        store: SQLiteStateStore,
        *,
        report: Callable[[Saved], None],
        answer: Callable[[Reply | Refuse], None],
        fail: Callable[[], None],
    ) -> None:
        self._store = store
        self._report = report
        self._answer = answer
        self._fail = fail
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="state-store")
        self._next = _Batch()
        self._writing: asyncio.Task[None] | None = None
        self._has_failed = False

    def put(self, effects: list[StoreEffect], answers: list[Reply | Refuse]) -> None:
        """Write `effects`, then give `answers`; both after what was put before."""
        self._next.effects += effects
        self._next.answers += answers
        if self._writing is None and not self._has_failed:
            self._writing = asyncio.get_running_loop().create_task(self._write(), name="state-store")

    async def write_keys(self, kind: str, keys: Keys) -> None:
        """Returns once they are durable. Raises YarnException if they cannot be written."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._store.write_keys, kind, keys)

    async def close(self) -> None:
        """Write what was put, and let the file go."""
        while self._writing is not None:
            await asyncio.wait([self._writing])
        self._thread.shutdown()
        self._store.close()

    async def _write(self) -> None:
        try:
            while self._next.effects and not self._has_failed:
                batch, self._next = self._next, _Batch()
                await asyncio.get_running_loop().run_in_executor(self._thread, self._store.write, batch.effects)
                self._tell(batch)
        except Exception as error:
            self._has_failed = True
            bug = None if isinstance(error, YarnException) else error
            _logger.critical("the state store cannot be written: %s", error, exc_info=bug)
            self._fail()
        finally:
            self._writing = None

    def _tell(self, batch: _Batch) -> None:
        """Machines go on first: who is answered finds them where its call has led."""
        for effect in batch.effects:
            if isinstance(effect, RemoveApplication):
                continue
            if isinstance(effect, SaveApplication):
                self._report(ApplicationSaved(effect.application.application_id, effect.saving))
            else:
                self._report(AttemptSaved(effect.attempt.attempt_id, effect.saving))
        for answer in batch.answers:
            self._answer(answer)
