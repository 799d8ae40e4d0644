"""What is done to daemons, and to nobody else."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from yarn.errors import CallOutcomeUnknown
from yarn.states import DecommissionType
from yarnling.chaos.notes import Notes
from yarnling.chaos.site import Site
from yarnling.cluster.launcher import Daemon, DaemonFailed


@dataclass
class PlayedCluster:
    """A cluster of a ResourceManager that each `restart_rm` replaces by the next of `starts`."""

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


def site_of(cluster: PlayedCluster, directory: Path) -> Site:
    return Site(cluster, Notes(directory), directory / "excluded")  # type: ignore[arg-type]


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What was sent to whom."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    return sent


async def test_a_daemon_without_a_process_gets_no_signal(tmp_path: Path, signals: list[tuple[int, int]]) -> None:
    """Process 0 is this one and its group."""
    site = site_of(PlayedCluster(daemon(0)), tmp_path)
    assert not site.is_up(0)
    site.pause(0)
    site.resume(0)
    assert signals == []


async def test_who_is_paused_twice_goes_on_after_the_second(tmp_path: Path, signals: list[tuple[int, int]]) -> None:
    site = site_of(PlayedCluster(daemon(7)), tmp_path)
    site.pause(0)
    site.pause(0)
    site.resume(0)
    assert signals == [(7, signal.SIGSTOP)] * 2
    site.resume(0)
    assert signals[2:] == [(7, signal.SIGCONT)]


async def test_who_ends_by_itself_is_remembered_once(tmp_path: Path) -> None:
    cluster = PlayedCluster(daemon(7), [daemon(8), daemon(9)])
    site = site_of(cluster, tmp_path)
    site.may_end(0)
    cluster.rm.exit_status = -9
    await site.bring_back(0)
    cluster.rm.exit_status = 70
    await site.bring_back(0)
    site.note_ends()
    assert site.died == ["rm (process 8) ended by itself, status 70"]


async def test_one_that_was_killed_while_it_started_is_brought_back_by_who_did_it(tmp_path: Path) -> None:
    cluster = PlayedCluster(daemon(7, -9), [daemon(8, -9), daemon(9, 1)])
    site = site_of(cluster, tmp_path)
    site._may_end = {7, 8}
    await site.bring_back(0)
    with pytest.raises(DaemonFailed):
        await site.bring_back(0)


class Refreshed:
    """A client whose ResourceManager is killed when it has been asked the first time."""

    def __init__(self) -> None:
        self.asked: list[tuple[DecommissionType, int | None]] = []

    async def refresh_nodes(self, kind: DecommissionType, timeout_s: int | None) -> None:
        self.asked.append((kind, timeout_s))
        if len(self.asked) == 1:
            raise CallOutcomeUnknown("the connection was lost")


async def test_who_is_to_leave_is_told_to_the_next_resource_manager_too(tmp_path: Path) -> None:
    cluster = PlayedCluster(daemon(7))
    cluster.client = client = Refreshed()
    await site_of(cluster, tmp_path).tell_leaving(5)
    assert client.asked == [(DecommissionType.GRACEFUL, 5)] * 2
