"""The targets of faults, which may be missing, starting or exiting."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from tests.yarnling.faults.test_process_target import FakeCluster, daemon, target_of
from yarnling.cluster.launcher import Daemon
from yarnling.faults.history import ProcessRole
from yarnling.faults.kinds import KINDS
from yarnling.faults.notes import now_s
from yarnling.faults.phases import inject
from yarnling.faults.schedule import FaultInjection
from yarnling.faults.target import NoTarget


class KillRecorder(FakeCluster):
    """Records the daemon that `kill_rm` was called for."""

    killed: Daemon | None = None

    async def kill_rm(self) -> None:
        self.killed = self.rm


def orphan(*command: str, **variables: str) -> psutil.Process:
    """A process that does not descend from this one."""
    line = f"{shlex.join(command)} >/dev/null 2>&1 & echo $!"
    shell = subprocess.run(["sh", "-c", line], env={**os.environ, **variables}, capture_output=True, check=True)
    return psutil.Process(int(shell.stdout))


async def test_a_fault_waits_for_a_resource_manager_that_another_fault_has_killed(tmp_path: Path) -> None:
    cluster = KillRecorder(daemon(7, exit_status=-9))
    target, injection = target_of(cluster, tmp_path), FaultInjection(1, KINDS["kill-rm"], 0, 0)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        killing = tasks.create_task(inject(AsyncExitStack(), target, injection))
        await asyncio.sleep(0)
        assert cluster.killed is None
        cluster.rm = next_one = daemon(8)
    assert (killing.result(), cluster.killed) == ("rm", next_one)


async def test_a_container_that_exits_during_the_lookup_of_its_processes_is_not_a_target(tmp_path: Path) -> None:
    """On a busy machine the lookup took seconds, and a kill was reported that never happened."""
    target = target_of(KillRecorder(daemon(7)), tmp_path)
    now = round(now_s() * 100)
    (tmp_path / "container_1_0001_01_000001.1").write_text(f"master 0 127.0.0.2 {now}\n{now}\n")
    assert target.notes.alive(ProcessRole.MASTER)
    injection = replace(FaultInjection(1, KINDS["kill-master"], 0, 0), optional=True)
    with pytest.raises(NoTarget, match="no ApplicationMaster is running"):
        await inject(AsyncExitStack(), target, injection)


async def test_a_process_of_another_cluster_is_not_a_target(tmp_path: Path) -> None:
    """Two clusters started in the same millisecond use the same container ids."""
    stranger = orphan("sleep", "60", CONTAINER_ID="container_1_0001_01_000001")
    try:
        target = target_of(KillRecorder(daemon(7)), tmp_path)
        (tmp_path / "container_1_0001_01_000001.1").write_text(f"master 0 127.0.0.2 {round(now_s() * 100)}\n")
        injection = replace(FaultInjection(1, KINDS["kill-master"], 0, 0), optional=True)
        with pytest.raises(NoTarget, match="no ApplicationMaster is running"):
            await inject(AsyncExitStack(), target, injection)
        assert stranger.is_running()
    finally:
        stranger.kill()


async def test_an_optional_fault_does_not_wait(tmp_path: Path) -> None:
    cluster = KillRecorder(daemon(7, exit_status=-9))
    injection = replace(FaultInjection(1, KINDS["kill-rm"], 0, 0), optional=True)
    with pytest.raises(NoTarget, match="the ResourceManager is already down"):
        await inject(AsyncExitStack(), target_of(cluster, tmp_path), injection)
    assert cluster.killed is None
