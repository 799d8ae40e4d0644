"""Writes a node's store effects before the other effects of their step are carried out.

While the file cannot be written (a full disk), the effects wait and are written again a little later. The answers of
their steps wait with them: an AM never hears of a container that a NodeManager killed now would forget. New
containers are refused meanwhile, with the reason; running ones go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from nm.core.stored_state import StoreEffect
from nm.shell.recovery_store import RecoveryStore
from wire.files.store_file import StoreUnavailable
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.machine import Refuse, Reply
from yarn.protocols.tracker import MasterKey

_logger = logging.getLogger(f"yarnling.{__name__}")

RETRY_S = 1.0
"""Time between two attempts to write while the file cannot be written."""


class RecoveryWriter:
    """Writes to one store. It passes answers that had to wait to `answer`, and to `fail` why it can never write again.

    `problem`: why the file cannot be written now, None while it can.
    """

    def __init__(
        self,
        store: RecoveryStore,
        *,
        answer: Callable[[Reply | Refuse], None],
        fail: Callable[[str], None],
        retry_s: float = RETRY_S,
    ) -> None:
        self.problem: StoreUnavailable | None = None
        self._store = store
        self._answer = answer
        self._fail = fail
        self._retry_s = retry_s
        self._effects: list[StoreEffect] = []
        self._answers: list[Reply | Refuse] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_behind(self) -> bool:
        """True while some effects are not written."""
        return bool(self._effects)

    def write(self, effects: list[StoreEffect]) -> None:
        """Write the effects of a step; if that fails, `problem` is set and they are written later."""
        if effects:
            self._effects += effects
            if self.problem is None:
                self._write()

    def hold(self, answer: Reply | Refuse) -> None:
        """Give an answer once everything before it is written."""
        self._answers.append(answer)

    def write_attempt_key(self, attempt_id: ApplicationAttemptId, key: MasterKey) -> None:
        self._try(lambda: self._store.write_attempt_key(attempt_id, key))

    def remove_attempt_keys(self, application_id: ApplicationId) -> None:
        self._try(lambda: self._store.remove_attempt_keys(application_id))

    def write_keys(self, kind: str, current: MasterKey | None, previous: MasterKey | None) -> None:
        self._try(lambda: self._store.write_keys(kind, current, previous))

    def erase(self) -> None:
        """Delete the store: the node is out of use. Nothing is written any more."""
        self.close()
        try:
            self._store.erase()
        except OSError as error:
            _logger.warning("cannot delete the recovery store: %s", error)

    def close(self) -> None:
        """Write no more. What waits is lost, and was not acknowledged."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _write(self) -> None:
        self._timer = None
        try:
            self._store.write(self._effects)
        except StoreUnavailable as problem:
            if self.problem is None:
                _logger.error("new containers are refused, the recovery store cannot be written: %s", problem.message)
            self.problem = problem
            self._timer = asyncio.get_running_loop().call_later(self._retry_s, self._write)
        except YarnException as error:
            self._fail(f"the recovery store cannot be written: {error.message}")
        else:
            if self.problem is not None:
                _logger.info("the recovery store can be written again")
            self.problem = None
            self._effects = []
            answers, self._answers = self._answers, []
            for answer in answers:
                self._answer(answer)

    def _try(self, write: Callable[[], None]) -> None:
        """Write keys. A key that cannot be written is logged, as in Hadoop: the RM sends it again."""
        try:
            write()
        except YarnException as error:
            _logger.error("cannot store a key of tokens: %s", error.message)
