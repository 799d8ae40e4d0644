"""Faults at daemons that are not there yet."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from tests.yarnling.chaos.test_site import PlayedCluster, daemon, site_of
from yarnling.chaos.faults import FAULTS, NothingThere
from yarnling.chaos.history import Role
from yarnling.chaos.notes import now_s
from yarnling.chaos.plan import KINDS
from yarnling.chaos.schedule import Blow
from yarnling.cluster.launcher import Daemon


class Killed(PlayedCluster):
    """Whom `kill_rm` ended."""

    killed: Daemon | None = None

    async def kill_rm(self) -> None:
        self.killed = self.rm


def orphan(*command: str, **variables: str) -> psutil.Process:
    """A process that does not descend from this one."""
    line = f"{shlex.join(command)} >/dev/null 2>&1 & echo $!"
    shell = subprocess.run(["sh", "-c", line], env={**os.environ, **variables}, capture_output=True, check=True)
    return psutil.Process(int(shell.stdout))


async def test_a_resource_manager_that_another_fault_has_just_killed_is_waited_for(tmp_path: Path) -> None:
    cluster = Killed(daemon(7, exit_status=-9))
    fault = FAULTS["kill-rm"](site_of(cluster, tmp_path), Blow(1, KINDS["kill-rm"], 0, 0))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        killing = tasks.create_task(fault.start())
        await asyncio.sleep(0)
        assert cluster.killed is None
        cluster.rm = next_one = daemon(8)
    assert (killing.result(), cluster.killed) == ("rm", next_one)


async def test_one_that_ended_while_its_processes_were_looked_for_is_nobody(tmp_path: Path) -> None:
    """On a busy machine that took seconds: what is told to have been killed has been killed."""
    site = site_of(Killed(daemon(7)), tmp_path)
    now = round(now_s() * 100)
    (tmp_path / "container_1_0001_01_000001.1").write_text(f"master 0 127.0.0.2 {now}\n{now}\n")
    assert site.notes.alive(Role.MASTER)
    blow = replace(Blow(1, KINDS["kill-master"], 0, 0), optional=True)
    with pytest.raises(NothingThere, match="no master runs"):
        await FAULTS["kill-master"](site, blow).start()


async def test_a_process_of_somebody_else_is_nobody(tmp_path: Path) -> None:
    """A container of another cluster may have the same id: ids count from one, and clusters start in one moment."""
    stranger = orphan("sleep", "60", CONTAINER_ID="container_1_0001_01_000001")
    try:
        site = site_of(Killed(daemon(7)), tmp_path)
        (tmp_path / "container_1_0001_01_000001.1").write_text(f"master 0 127.0.0.2 {round(now_s() * 100)}\n")
        blow = replace(Blow(1, KINDS["kill-master"], 0, 0), optional=True)
        with pytest.raises(NothingThere, match="no master runs"):
            await FAULTS["kill-master"](site, blow).start()
        assert stranger.is_running()
    finally:
        stranger.kill()


async def test_an_optional_fault_waits_for_nobody(tmp_path: Path) -> None:
    cluster = Killed(daemon(7, exit_status=-9))
    blow = replace(Blow(1, KINDS["kill-rm"], 0, 0), optional=True)
    with pytest.raises(NothingThere, match="the ResourceManager is down already"):
        await FAULTS["kill-rm"](site_of(cluster, tmp_path), blow).start()
    assert cluster.killed is None
