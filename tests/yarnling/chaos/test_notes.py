"""What containers note of themselves, by the script that they run, and how it is read."""

from __future__ import annotations

import os
from asyncio.subprocess import DEVNULL, Process
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tests.processes import running_in_loop
from tests.rm.served_cluster import until
from yarnling.chaos.history import Role
from yarnling.chaos.notes import Notes, now_s

CONTAINER = "container_1_0001_01_000002"


def container(command: str, **variables: str) -> AbstractAsyncContextManager[Process]:
    environment = {**os.environ, "CONTAINER_ID": CONTAINER, "NM_HOST": "127.0.0.4", **variables}
    return running_in_loop("/bin/sh", "-c", command, env=environment, stdin=DEVNULL, start_new_session=True)


async def test_a_container_notes_its_life(tmp_path: Path) -> None:
    notes, before_s = Notes(tmp_path), now_s()
    async with container(notes.command(Role.CONTAINER, 0.3)) as process:
        assert await process.wait() == 0
    (life,) = notes.read()
    assert (str(life.container_id), life.role, life.node, life.status) == (CONTAINER, Role.CONTAINER, 3, 0)
    assert life.attempt == 1
    assert before_s - 0.02 <= life.start_s <= life.last_s - 0.29
    assert life.last_s <= now_s() + 0.02


async def test_one_that_is_killed_has_no_end_but_a_last_sign(tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    async with container(notes.command(Role.CONTAINER, None)):
        await until(lambda: bool(notes.alive(Role.CONTAINER)))
        assert notes.alive(Role.MASTER) == []
    (life,) = notes.read()
    assert life.status is None
    await until(lambda: not notes.alive(Role.CONTAINER))


async def test_tasks_of_one_worker_are_told_apart(tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    for task in ("1", "2"):
        async with container(notes.command(Role.TASK, 0), ELASTIC_TASK=task) as process:
            await process.wait()
    assert sorted(life.task for life in notes.read()) == [1, 2]


async def test_a_master_is_noted_with_its_own_exit_status(tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    async with container(f"{notes._script()} master sh -c 'sleep 0.2; exit 3'") as process:
        assert await process.wait() == 3
    (life,) = notes.read()
    assert (life.role, life.status) == (Role.MASTER, 3)
    assert life.last_s - life.start_s >= 0.19


def test_a_note_that_is_not_whole_says_nothing(tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    (tmp_path / f"{CONTAINER}.1").write_text("container 0 127.0.0.2 1")
    (tmp_path / f"{CONTAINER}.2").write_text("container 0 127.0.0.2 100\n150\nend 0")
    (tmp_path / "something.else").write_text("else\n")
    (life,) = notes.read()
    assert (life.pid, life.start_s, life.last_s, life.status) == (2, 1.0, 1.5, None)
