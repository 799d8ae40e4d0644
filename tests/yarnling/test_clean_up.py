"""Orphans and files of a dead cluster are removed; other processes that use its directory are not."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.processes import running
from yarnling.cluster.processes import ProcessIdentity
from yarnling.cluster.state import ClusterState, NodeEntry, clean_up, state_path

Start = Callable[..., subprocess.Popen[bytes]]
GONE = ProcessIdentity(os.getpid(), 1.0)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def start() -> Iterator[Start]:
    with contextlib.ExitStack() as started:

        def popen(*command: str, **variables: str) -> subprocess.Popen[bytes]:
            environment = {"PATH": os.environ["PATH"], **variables}
            return started.enter_context(running(*command, env=environment, start_new_session=True))

        yield popen


def state(directory: Path, *nodes: NodeEntry, temporary: bool = False) -> ClusterState:
    return ClusterState("mine", GONE, GONE, str(directory), temporary, str(directory / "conf"), {}, nodes, 1.0)


def test_containers_are_killed_and_other_processes_in_the_directory_are_not(tmp_path: Path, start: Start) -> None:
    directory, elsewhere = tmp_path / "cluster", tmp_path / "disk"
    by_work = start("sleep", "600", LOCAL_DIRS=f"/other,{directory}/nm-1/local/usercache")
    by_logs = start("sleep", "600", LOG_DIRS=f"{elsewhere}/nm-1/application_1_0001")
    shell = start("sleep", "600", PWD=f"{directory}/logs", HADOOP_CONF_DIR=f"{directory}/conf")
    reader = start("tail", "-f", "/dev/null", f"{directory}/logs/rm.log")
    namesake = start("sleep", "600", LOCAL_DIRS=f"{directory}-2/nm-1")
    node = NodeEntry(1, "nm-1", "127.0.0.2:1", GONE, (f"{elsewhere}/nm-1",))
    mine = state(directory, node)
    mine.write()
    assert clean_up(mine) == 2
    assert (by_work.wait(), by_logs.wait()) == (-9, -9)
    assert [process.poll() for process in (shell, reader, namesake)] == [None, None, None]
    assert not state_path("mine").exists()


def test_daemons_are_ended(tmp_path: Path, start: Start) -> None:
    wait = "import time; time.sleep(600)"
    by_word = start(sys.executable, "-c", wait, "-m", "yarnling.cluster.fork_server", "8", str(tmp_path))
    known = start("sleep", "600")
    node = NodeEntry(1, "nm-1", "127.0.0.2:1", ProcessIdentity.of(known.pid), ())
    assert clean_up(state(tmp_path, node)) == 2
    assert (by_word.wait(), known.wait()) == (-9, -9)


@pytest.mark.parametrize("temporary", [True, False])
def test_a_temporary_directory_is_deleted_and_a_named_one_is_kept(tmp_path: Path, temporary: bool) -> None:
    (tmp_path / "cluster" / "logs").mkdir(parents=True)
    assert clean_up(state(tmp_path / "cluster", temporary=temporary)) == 0
    assert (tmp_path / "cluster").exists() is not temporary
