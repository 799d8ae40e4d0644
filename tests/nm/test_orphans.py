"""Orphans of a killed NM are killed, parents before their children, so that no parent reports a killed child."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from nm.launcher import processes
from nm.launcher.processes import ProcessStat, kill_process, stat_of
from tests.nm.waiting import until
from tests.processes import running

TOKENS = "/local/nmPrivate/application_1_0001/container_1_0001_01_000002/container_tokens"


async def test_a_process_whose_parent_exited_is_the_same_process() -> None:
    with running("/bin/sh", "-c", "sleep 60 & echo $!; wait", stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        child = stat_of(int(parent.stdout.readline()))
        assert child is not None
        parent.kill()
        parent.wait()
        await until(lambda: (now := stat_of(child.pid)) is not None and now.parent != child.parent, "an orphan")
        assert kill_process(child)
        await until(lambda: (now := stat_of(child.pid)) is None or now.started_ticks != child.started_ticks, "its end")


async def test_another_process_with_the_same_id_is_not_killed() -> None:
    with running("sleep", "60") as process:
        found = stat_of(process.pid)
        assert found is not None
        assert not kill_process(found._replace(started_ticks=found.started_ticks - 1))
        assert process.poll() is None
        assert kill_process(found)
        assert process.wait() == -signal.SIGKILL


def test_parents_are_killed_before_their_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Process ids wrap around, so a child's id may be lower than its parent's."""
    worker, task = ProcessStat(900, 1, 900, 900, 100), ProcessStat(300, 900, 900, 900, 200)
    alive = {task.pid: task, worker.pid: worker}
    ended: list[ProcessStat] = []

    def kill(process: ProcessStat) -> bool:
        ended.append(alive.pop(process.pid))
        return True

    tags = {"CONTAINER_ID": "container_1_0001_01_000002", "HADOOP_TOKEN_FILE_LOCATION": f"{tmp_path}{TOKENS}"}
    monkeypatch.setattr(processes, "all_processes", lambda: iter(list(alive.values())))
    monkeypatch.setattr(processes, "environment_of", lambda pid: tags)
    monkeypatch.setattr(processes, "kill_process", kill)
    assert processes.kill_orphans([f"{tmp_path}/local"]) == [worker, task]
    assert ended == [worker, task]
