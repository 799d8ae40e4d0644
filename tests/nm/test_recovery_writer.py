"""Answers wait while the recovery store cannot be written, and the node ends if it never can be again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from nm.core.stored_state import RemoveUsedToken, StoreEffect
from nm.shell.recovery_store import RecoveryStore
from nm.shell.recovery_writer import RecoveryWriter
from tests.nm.nodes import container_id
from tests.nm.waiting import until
from wire.files.store_file import StoreDamaged, StoreUnavailable
from yarn.errors import YarnException
from yarn.machine import Refuse, Reply

FIRST, SECOND = RemoveUsedToken(container_id(1)), RemoveUsedToken(container_id(2))
FULL = StoreUnavailable("the disk is full")


class FailingStore:
    """A store whose next writes raise these errors."""

    def __init__(self, *errors: YarnException) -> None:
        self.errors = list(errors)
        self.written: list[StoreEffect] = []

    def write(self, effects: Iterable[StoreEffect]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.written += effects


class Written:
    """A writer to such a store, and what it has passed on."""

    def __init__(self, *errors: YarnException) -> None:
        self.store = FailingStore(*errors)
        self.answers: list[Reply | Refuse] = []
        self.failures: list[str] = []
        store: RecoveryStore = self.store  # type: ignore[assignment]
        self.writer = RecoveryWriter(store, answer=self.answers.append, fail=self.failures.append, retry_s=0.01)


async def test_an_answer_waits_until_everything_before_it_is_stored() -> None:
    it = Written(FULL, FULL)
    it.writer.write([FIRST])
    assert it.writer.problem is FULL
    it.writer.hold(Reply(1, None))
    it.writer.write([SECOND])
    assert (it.store.written, it.answers) == ([], [])
    async with asyncio.timeout(60):
        await until(lambda: it.answers == [Reply(1, None)], "the answer")
    assert it.store.written == [FIRST, SECOND]
    assert it.writer.problem is None
    it.writer.close()


async def test_a_store_that_can_never_be_written_ends_the_node() -> None:
    it = Written(StoreDamaged("the file is damaged"))
    it.writer.write([FIRST])
    assert it.failures == ["the recovery store cannot be written: the file is damaged"]
    assert it.writer.is_behind
    it.writer.close()


@pytest.mark.parametrize("effects", [[], [FIRST]])
async def test_nothing_waits_while_the_store_can_be_written(effects: list[StoreEffect]) -> None:
    it = Written()
    it.writer.write(effects)
    assert (it.writer.problem, it.writer.is_behind, it.store.written) == (None, False, effects)
    it.writer.close()
