"""Between the core and the store's file: who waits for the disk, who does not, and what a full disk ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rm.effects import Effect, Reply, SaveApplication, SaveAttempt, StoreEffect
from rm.events import ApplicationSaved, AttemptSaved, Event, GetNewApplication, MasterLaunched
from rm.shell import ResourceManagerShell
from rm.sqlite_store import SQLiteStateStore
from rm.store_writer import StoreWriter
from rm.stored_state import Saving
from tests.rm.served_cluster import until
from tests.rm.test_shell import Clock, ScriptedCore
from tests.rm.test_sqlite_store import APP, ATTEMPT, application, attempt
from yarn.errors import YarnException
from yarn.protocols.tracker import MasterKey

NEW = SaveApplication(application(), Saving.NEW)
AGAIN = SaveAttempt(attempt(), Saving.FINAL)


class Disk:
    """A store whose writes wait until `ready` is set; each is noted. While `is_full` it refuses."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.writes: list[list[StoreEffect]] = []
        self.is_full = False

    def write(self, effects: Iterable[StoreEffect]) -> None:
        assert self.ready.wait(5)
        if self.is_full:
            raise YarnException("no room")
        self.writes.append(list(effects))

    def close(self) -> None:
        self.writes.append([])


class Wired:
    """A shell around a scripted core, with a writer; `failed` counts what the writer gave up for."""

    def __init__(self, *script: list[Effect]) -> None:
        self.disk = Disk()
        self.core = ScriptedCore(*script)
        self.failed = 0
        self.shell = ResourceManagerShell(self.core, Clock())
        writer: Any = StoreWriter(
            self.disk,  # type: ignore[arg-type]
            report=self.shell.send,
            answer=self.shell.carry_out,
            fail=self.fail,
        )
        self.writer: StoreWriter = writer
        self.shell.store = writer.put

    def fail(self) -> None:
        self.failed += 1

    def events(self) -> list[Event]:
        return [event for event, _ in self.core.events]


async def test_an_answer_waits_for_what_its_step_stores_and_machines_go_on_first() -> None:
    wired = Wired([Reply(1, "one"), NEW], [Reply(2, "two")])
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(wired.shell.ask(GetNewApplication))
        await until(lambda: len(wired.core.events) == 1)
        assert await wired.shell.ask(GetNewApplication) == "two"
        assert not first.done()
        wired.disk.ready.set()
    assert first.result() == "one"
    assert wired.events()[2:] == [ApplicationSaved(APP, Saving.NEW)]
    await wired.writer.close()


async def test_what_comes_while_the_disk_writes_is_written_together() -> None:
    wired = Wired([NEW], [AGAIN], [NEW], [AGAIN])
    for _ in range(4):
        wired.shell.handle(MasterLaunched(ATTEMPT))
        await asyncio.sleep(0)
    wired.disk.ready.set()
    await wired.writer.close()
    assert wired.disk.writes == [[NEW], [AGAIN, NEW, AGAIN], []]
    saved = [event for event in wired.events() if isinstance(event, ApplicationSaved | AttemptSaved)]
    assert [type(event) for event in saved] == [ApplicationSaved, AttemptSaved, ApplicationSaved, AttemptSaved]


async def test_what_a_saved_event_leads_to_is_written_next() -> None:
    wired = Wired([NEW], [AGAIN])
    wired.disk.ready.set()
    wired.shell.handle(MasterLaunched(ATTEMPT))
    await wired.writer.close()
    assert wired.disk.writes == [[NEW], [AGAIN], []]


async def test_a_disk_that_takes_no_more_ends_it_and_nobody_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    wired = Wired([Reply(1, "one"), NEW], [NEW])
    wired.disk.is_full = True
    wired.disk.ready.set()
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(wired.shell.ask(GetNewApplication))
        await until(lambda: wired.failed == 1)
        wired.shell.handle(MasterLaunched(ATTEMPT))
        await wired.writer.close()
        assert not first.done()
        first.cancel()
    assert wired.disk.writes == [[]]
    assert wired.failed == 1
    assert "the state store cannot be written: no room" in caplog.text


async def test_keys_are_written_in_their_turn(tmp_path: Path) -> None:
    store = SQLiteStateStore.open(tmp_path / "state", "KEY")
    writer = StoreWriter(store, report=lambda event: None, answer=lambda answer: None, fail=lambda: None)
    await writer.write_keys("a", (MasterKey(1, b"one"),))
    assert store.keys("a") == (MasterKey(1, b"one"),)
    await writer.close()
