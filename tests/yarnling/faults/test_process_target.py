"""The target cluster: signals, restarts and unexpected exits of daemons."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from yarn.errors import CallOutcomeUnknown
from yarn.states import DecommissionType
from yarnling.cluster.launcher import Daemon, DaemonFailed
from yarnling.faults.notes import ProcessNotes
from yarnling.faults.process_target import ProcessTarget


@dataclass
class FakeCluster:
    """A cluster with a ResourceManager that `restart_rm` replaces by the next of `starts`."""

    rm: Daemon
    starts: list[Daemon] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    client: Any = None

    async def restart_rm(self) -> None:
        self.rm = self.starts.pop(0)
        if self.rm.exit_status is not None:
            raise DaemonFailed("rm did not start")


def daemon(pid: int, exit_status: int | None = None) -> Daemon:
    made = Daemon("rm", Path("rm.log"), pid=pid, exit_status=exit_status)
    if pid:
        made.spawned.set()
    return made


def target_of(cluster: FakeCluster, directory: Path) -> ProcessTarget:
    return ProcessTarget(cluster, ProcessNotes(directory), directory / "excluded")  # type: ignore[arg-type]


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(process id, signal) of every signal that was sent."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    return sent


async def test_a_daemon_without_a_process_gets_no_signal(tmp_path: Path, signals: list[tuple[int, int]]) -> None:
    """Process id 0 would mean this process's own group."""
    target = target_of(FakeCluster(daemon(0)), tmp_path)
    assert not target.is_up(0)
    target.pause(0)
    target.resume(0)
    assert signals == []


async def test_a_daemon_paused_twice_resumes_after_the_second_resume(
    tmp_path: Path, signals: list[tuple[int, int]]
) -> None:
    target = target_of(FakeCluster(daemon(7)), tmp_path)
    target.pause(0)
    target.pause(0)
    target.resume(0)
    assert signals == [(7, signal.SIGSTOP)] * 2
    target.resume(0)
    assert signals[2:] == [(7, signal.SIGCONT)]


async def test_an_unexpected_exit_is_recorded_once(tmp_path: Path) -> None:
    cluster = FakeCluster(daemon(7), [daemon(8), daemon(9)])
    target = target_of(cluster, tmp_path)
    target._expect_exits([0])
    cluster.rm.exit_status = -9
    await target.restart(0)
    cluster.rm.exit_status = 70
    await target.restart(0)
    target.record_exits()
    assert target.crashed == ["rm (process 8) exited unexpectedly, status 70"]


async def test_a_daemon_killed_while_it_restarts_is_left_to_the_fault_that_killed_it(tmp_path: Path) -> None:
    cluster = FakeCluster(daemon(7, -9), [daemon(8, -9), daemon(9, 1)])
    target = target_of(cluster, tmp_path)
    target._expected_exits = {7, 8}
    await target.restart(0)
    with pytest.raises(DaemonFailed):
        await target.restart(0)


class FailingOnce:
    """A client whose ResourceManager is killed during the first call."""

    def __init__(self) -> None:
        self.calls: list[tuple[DecommissionType, int | None]] = []

    async def refresh_nodes(self, kind: DecommissionType, timeout_s: int | None) -> None:
        self.calls.append((kind, timeout_s))
        if len(self.calls) == 1:
            raise CallOutcomeUnknown("the connection was lost")


async def test_the_list_of_leaving_nodes_is_sent_again_if_the_first_call_is_lost(tmp_path: Path) -> None:
    cluster = FakeCluster(daemon(7))
    cluster.client = client = FailingOnce()
    await target_of(cluster, tmp_path).refresh_leaving(5)
    assert client.calls == [(DecommissionType.GRACEFUL, 5)] * 2
