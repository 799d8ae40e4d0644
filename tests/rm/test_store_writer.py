"""The state store's writer: which replies wait for the disk, and the effect of a full disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Any

import pytest

from rm.core.effects import Effect, SaveApplication, SaveAttempt, StoreEffect
from rm.core.events import (
    AMLaunched,
    ApplicationSaved,
    ApplicationSaveFailed,
    AttemptSaved,
    Event,
    GetNewApplication,
    SubmitApplication,
)
from rm.core.stored_state import Saving
from rm.shell.effects import ResourceManagerShell
from rm.shell.sqlite_store import SQLiteStateStore
from rm.shell.store_rows import RecordTooLarge
from rm.shell.store_writer import StoreWriter
from tests.rm.served_cluster import until
from tests.rm.test_shell import Clock, ScriptedCore
from tests.rm.test_sqlite_store import APP, ATTEMPT, application, attempt
from wire.files.store_file import StoreUnavailable
from yarn.errors import YarnException
from yarn.ids import ApplicationId
from yarn.machine import Reply
from yarn.protocols.tracker import MasterKey

NEW = SaveApplication(application(), Saving.NEW)
AGAIN = SaveAttempt(attempt(), Saving.FINAL)
CHANGE = SaveApplication(application(), Saving.CHANGE)
FULL = StoreUnavailable("no room")


def submission(call: int) -> SubmitApplication:
    return SubmitApplication(call, "ann", application().submission)


async def refused(call: Awaitable[object]) -> YarnException:
    with pytest.raises(YarnException) as error:
        await call
    return error.value


class Disk:
    """A store whose writes wait until `ready` is set; each is noted. It raises `problem` while there is one."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.writes: list[list[StoreEffect]] = []
        self.problem: YarnException | None = None
        self.too_large: set[ApplicationId] = set()

    def refusal(self, effect: SaveApplication) -> RecordTooLarge | None:
        is_large = effect.application.application_id in self.too_large
        return RecordTooLarge("too large") if is_large else None

    def write(self, effects: Iterable[StoreEffect]) -> None:
        assert self.ready.wait(60)
        if self.problem is not None:
            raise self.problem
        self.writes.append(list(effects))

    def close(self) -> None:
        self.writes.append([])


class Wired:
    """A shell around a scripted core, with a writer; `failed` counts the errors that the writer reported."""

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
            retry_s=0.001,
        )
        self.writer: StoreWriter = writer
        self.shell.store_writer = writer

    def fail(self) -> None:
        self.failed += 1

    def events(self) -> list[Event]:
        return [event for event, _ in self.core.events]


async def test_a_reply_waits_for_the_records_of_its_step_and_for_their_saved_events() -> None:
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


async def test_records_that_arrive_during_a_write_are_written_together() -> None:
    wired = Wired([NEW], [AGAIN], [NEW], [AGAIN])
    for _ in range(4):
        wired.shell.handle(AMLaunched(ATTEMPT))
        await asyncio.sleep(0)
    wired.disk.ready.set()
    await wired.writer.close()
    assert wired.disk.writes == [[NEW], [AGAIN, NEW, AGAIN], []]
    saved = [event for event in wired.events() if isinstance(event, ApplicationSaved | AttemptSaved)]
    assert [type(event) for event in saved] == [ApplicationSaved, AttemptSaved, ApplicationSaved, AttemptSaved]


async def test_records_of_a_saved_event_are_written_next() -> None:
    wired = Wired([NEW], [AGAIN])
    wired.disk.ready.set()
    wired.shell.handle(AMLaunched(ATTEMPT))
    await wired.writer.close()
    assert wired.disk.writes == [[NEW], [AGAIN], []]


async def test_a_repeated_submission_is_acknowledged_once_the_first_one_is_durable() -> None:
    """The second call writes no record, as the application is known; but that of the first is not on disk yet."""
    wired = Wired([Reply(1, "one"), NEW], [Reply(2, "again")])
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(wired.shell.ask(submission))
        await until(lambda: len(wired.core.events) == 1)
        again = tasks.create_task(wired.shell.ask(submission))
        await until(lambda: len(wired.core.events) == 2)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not again.done()
        wired.disk.ready.set()
    assert (first.result(), again.result()) == ("one", "again")
    await wired.writer.close()
    assert wired.disk.writes == [[NEW], []]


async def test_an_application_that_the_store_never_takes_is_refused_alone() -> None:
    other = SaveApplication(application(2), Saving.NEW)
    wired = Wired([Reply(1, "one"), NEW], [Reply(2, "two"), other], [], [])
    wired.disk.too_large.add(APP)
    wired.disk.ready.set()
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(refused(wired.shell.ask(submission)))
        second = tasks.create_task(wired.shell.ask(submission))
    assert (first.result().message, second.result()) == ("too large", "two")
    assert ApplicationSaveFailed(APP, "too large") in wired.events()
    await wired.writer.close()
    assert wired.disk.writes == [[other], []]
    assert wired.failed == 0


# A full disk or a damaged file


async def test_a_full_disk_refuses_new_applications_and_holds_other_records_until_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "yarnling.rm.shell.store_writer")
    wired = Wired([Reply(1, "one"), NEW], [AGAIN], [], [], [Reply(3, "three"), NEW])
    wired.disk.problem = FULL
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(refused(wired.shell.ask(submission)))
        await until(lambda: len(wired.core.events) == 1)
        wired.shell.handle(AMLaunched(ATTEMPT))
        wired.disk.ready.set()
    assert first.result() is FULL
    assert wired.events()[2:] == [ApplicationSaveFailed(APP, "no room")]
    assert await refused(wired.shell.ask(submission)) is FULL
    assert len(wired.core.events) == 3
    assert wired.disk.writes == []
    wired.disk.problem = None
    await until(lambda: wired.writer.problem is None)
    assert wired.disk.writes == [[AGAIN]]
    assert wired.events()[3:] == [AttemptSaved(ATTEMPT, Saving.FINAL)]
    assert await wired.shell.ask(submission) == "three"
    await wired.writer.close()
    assert wired.failed == 0
    said = [record.message for record in caplog.records if record.name == "yarnling.rm.shell.store_writer"]
    assert said == [
        "new applications are refused, the state store cannot be written: no room",
        "the state store can be written again",
    ]


async def test_records_put_while_a_write_fails_are_written_after_those_of_the_failed_write() -> None:
    """Each record replaces the one before it: out of order, the older one would remain."""
    changes = [SaveApplication(application(launch_ms=ms), Saving.CHANGE) for ms in (1, 2, 3)]
    wired = Wired(*([Reply(call, f"answer {call}"), change] for call, change in enumerate(changes, 1)))
    wired.disk.problem = FULL
    async with asyncio.TaskGroup() as tasks:
        calls = []
        for number in range(1, 4):
            calls.append(tasks.create_task(wired.shell.ask(submission)))
            await until(lambda number=number: len(wired.core.events) == number)  # type: ignore[misc]
        wired.disk.ready.set()
        await until(lambda: wired.writer.problem is not None)
        wired.disk.problem = None
    assert wired.disk.writes == [changes]
    assert [call.result() for call in calls] == ["answer 1", "answer 2", "answer 3"]
    await wired.writer.close()


async def test_a_change_requested_before_the_disk_was_full_is_acknowledged_once_stored() -> None:
    wired = Wired([Reply(1, "one"), CHANGE])
    wired.disk.problem = FULL
    wired.disk.ready.set()
    async with asyncio.TaskGroup() as tasks:
        change = tasks.create_task(wired.shell.ask(submission))
        await until(lambda: wired.writer.problem is not None)
        assert not change.done()
        wired.disk.problem = None
    assert change.result() == "one"
    await wired.writer.close()


async def test_if_only_new_applications_waited_the_next_one_tries_to_write_again() -> None:
    wired = Wired([Reply(1, "one"), NEW], [], [Reply(2, "two"), NEW])
    wired.disk.problem = FULL
    wired.disk.ready.set()
    assert await refused(wired.shell.ask(submission)) is FULL
    await until(lambda: not wired.writer.is_busy)
    wired.disk.problem = None
    assert await wired.shell.ask(submission) == "two"
    await wired.writer.close()


async def test_closing_a_writer_while_the_disk_is_full_logs_the_problem(caplog: pytest.LogCaptureFixture) -> None:
    wired = Wired([AGAIN])
    wired.disk.problem = FULL
    wired.disk.ready.set()
    wired.shell.handle(AMLaunched(ATTEMPT))
    await until(lambda: wired.writer.problem is not None)
    await wired.writer.close()
    assert (wired.failed, wired.disk.writes) == (1, [[]])
    assert "the state store cannot be written: no room" in caplog.text


async def test_a_damaged_file_stops_the_writer_and_no_call_is_acknowledged(caplog: pytest.LogCaptureFixture) -> None:
    wired = Wired([Reply(1, "one"), NEW], [NEW])
    wired.disk.problem = YarnException("is damaged")
    wired.disk.ready.set()
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(wired.shell.ask(submission))
        await until(lambda: wired.failed == 1)
        wired.shell.handle(AMLaunched(ATTEMPT))
        await wired.writer.close()
        assert not first.done()
        first.cancel()
    assert wired.disk.writes == [[]]
    assert wired.failed == 1
    assert "the state store cannot be written: is damaged" in caplog.text


async def test_keys_are_written_in_order(tmp_path: Path) -> None:
    store = SQLiteStateStore.open(tmp_path / "state", "KEY")
    writer = StoreWriter(store, report=lambda event: None, answer=lambda answer: None, fail=lambda: None)
    await writer.write_keys("a", (MasterKey(1, b"one"),))
    assert store.keys("a") == (MasterKey(1, b"one"),)
    await writer.close()
