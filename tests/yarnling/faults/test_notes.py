"""The notes that note.sh writes for a container, and how they are read."""

from __future__ import annotations

import os
import signal
from asyncio.subprocess import DEVNULL, Process
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from am.programs.gang.application_master import member_variables
from am.programs.gang.core import Member
from tests.processes import running_in_loop
from tests.rm.served_cluster import until
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext
from yarn.ids import ApplicationId
from yarn.resource import Resource
from yarnling.faults.history import ProcessRole
from yarnling.faults.notes import ProcessNotes, now_s

CONTAINER = "container_1_0001_01_000002"


def container(command: str, **variables: str) -> AbstractAsyncContextManager[Process]:
    environment = {**os.environ, "CONTAINER_ID": CONTAINER, "NM_HOST": "127.0.0.4", **variables}
    return running_in_loop("/bin/sh", "-c", command, env=environment, stdin=DEVNULL, start_new_session=True)


async def test_a_container_records_its_start_and_exit(tmp_path: Path) -> None:
    notes, before_s = ProcessNotes(tmp_path), now_s()
    async with container(notes.command(ProcessRole.CONTAINER, 0.3)) as process:
        assert await process.wait() == 0
    (span,) = notes.read()
    assert (str(span.container_id), span.role, span.node, span.status) == (CONTAINER, ProcessRole.CONTAINER, 3, 0)
    assert span.attempt == 1
    assert before_s - 0.02 <= span.start_s <= span.last_s - 0.29
    assert span.last_s <= now_s() + 0.02


async def test_a_killed_container_has_no_exit_status(tmp_path: Path) -> None:
    notes = ProcessNotes(tmp_path)
    async with container(notes.command(ProcessRole.CONTAINER, None)):
        await until(lambda: bool(notes.alive(ProcessRole.CONTAINER)))
        assert notes.alive(ProcessRole.MASTER) == []
    (span,) = notes.read()
    assert span.status is None
    await until(lambda: not notes.alive(ProcessRole.CONTAINER))


async def test_sigterm_ends_a_container_unless_it_ignores_it(tmp_path: Path) -> None:
    notes = ProcessNotes(tmp_path)
    async with container(notes.command(ProcessRole.CONTAINER, None)) as process:
        await until(lambda: bool(notes.alive(ProcessRole.CONTAINER)))
        os.killpg(process.pid, signal.SIGTERM)
        assert await process.wait() == -signal.SIGTERM


async def test_a_container_that_ignores_sigterm_is_ended_by_sigkill(tmp_path: Path) -> None:
    notes = ProcessNotes(tmp_path)
    async with container(notes.command(ProcessRole.CONTAINER, None, ignores_term=True)) as process:
        await until(lambda: bool(notes.alive(ProcessRole.CONTAINER)))
        os.killpg(process.pid, signal.SIGTERM)
        (span,) = notes.read()
        await until(lambda: notes.read()[0].last_s > span.last_s + 0.2)
        os.killpg(process.pid, signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL


def test_an_am_may_ignore_sigterm(tmp_path: Path) -> None:
    context = ApplicationSubmissionContext(
        ApplicationId(1, 1), ContainerLaunchContext(("exec python am.py",)), Resource(1, 1)
    )
    notes = ProcessNotes(tmp_path)
    ((plain,), (ignoring,)) = (
        notes.with_master(context, ignores_term=ignores).am_container.commands for ignores in (False, True)
    )
    assert plain == f"exec {notes._script()} master python am.py"
    assert ignoring == f"trap '' TERM; {plain}"


async def test_tasks_of_one_worker_are_distinguished(tmp_path: Path) -> None:
    notes = ProcessNotes(tmp_path)
    for task in ("1", "2"):
        async with container(notes.command(ProcessRole.TASK, 0), ELASTIC_TASK=task) as process:
            await process.wait()
    assert sorted(span.task for span in notes.read()) == [1, 2]


async def test_a_member_of_a_gang_records_what_it_was_given(tmp_path: Path) -> None:
    notes, member = ProcessNotes(tmp_path), Member(1, ("127.0.0.2", "127.0.0.4"), 3)
    async with container(notes.command(ProcessRole.CONTAINER, 0), **member_variables(member)) as process:
        assert await process.wait() == 0
    (span,) = notes.read()
    assert (span.member, span.status) == (member, 0)


async def test_an_am_is_recorded_with_its_exit_status(tmp_path: Path) -> None:
    notes = ProcessNotes(tmp_path)
    async with container(f"{notes._script()} master sh -c 'sleep 0.2; exit 3'") as process:
        assert await process.wait() == 3
    (span,) = notes.read()
    assert (span.role, span.status) == (ProcessRole.MASTER, 3)
    assert span.last_s - span.start_s >= 0.19


def test_incomplete_lines_are_ignored(tmp_path: Path) -> None:
    notes = ProcessNotes(tmp_path)
    (tmp_path / f"{CONTAINER}.1").write_text("container 0 127.0.0.2 1")
    (tmp_path / f"{CONTAINER}.2").write_text("container 0 127.0.0.2 100\n150\nend 0")
    (tmp_path / "something.else").write_text("else\n")
    (span,) = notes.read()
    assert (span.pid, span.start_s, span.last_s, span.status) == (2, 1.0, 1.5, None)
