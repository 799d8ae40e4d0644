"""Real processes are measured: their usage is reported, and containers above a limit are killed."""

from __future__ import annotations

import asyncio
import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nm.core.effects import MonitorContainer
from nm.core.emulation import EmulationTable
from nm.core.events import Event, UtilizationSampled
from nm.emulation.launcher import EmulatedLauncher
from nm.launcher.containers_launcher import ContainersLauncher, Launchers
from nm.launcher.reacquired_containers import ReacquiredContainers
from nm.shell.monitor import ContainersMonitor, MonitorLoop, MonitorSettings, Processes
from tests.nm.lone_node import lone_node
from tests.nm.nodes import container_id
from tests.processes import running
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext
from yarn.nodes import ResourceUtilization

pytestmark = pytest.mark.cluster

EVERY_200_MS = {"yarn.nodemanager.container-monitor.interval-ms": "200"}


def holds_200_mb(seconds: int) -> str:
    """A command that allocates more than its container has, and keeps it for some time."""
    return f"{sys.executable} -c 'import time; x=bytearray(200<<20); time.sleep({seconds})'"


@pytest.mark.case("H4")
async def test_a_process_above_its_memory_is_killed_with_minus_104_and_the_numbers(tmp_path: Path) -> None:
    async with lone_node(tmp_path, EVERY_200_MS) as node:
        end = await node.run(ContainerLaunchContext((holds_200_mb(60),)), memory_mb=128)
    assert end.exit_status == -104
    match = re.search(
        r"is running (\d+)B beyond the 'PHYSICAL' memory limit\. Current usage: ([\d.]+) MB of 128 MB physical memory",
        end.diagnostics,
    )
    assert match is not None, end.diagnostics
    # Part of the 200 MB, if they were being allocated during the measurement.
    excess_mb, used_mb = int(match[1]) / (1 << 20), float(match[2])
    assert 128 < used_mb < 280
    assert used_mb - 128 == pytest.approx(excess_mb, abs=0.1)
    assert "x=bytearray(200<<20)" in end.diagnostics
    assert "Container killed on request. Exit code is 143\n" in end.diagnostics


async def test_a_child_counts_for_its_container(tmp_path: Path) -> None:
    """Two processes of 90 MB each run in a container of 128 MB, so only the whole tree exceeds the limit."""
    hold = f"{sys.executable} -c 'import time; x=bytearray(90<<20); time.sleep(60)'"
    async with lone_node(tmp_path, EVERY_200_MS) as node:
        end = await node.run(ContainerLaunchContext((f"{hold} & {hold}",)), memory_mb=128)
    assert end.exit_status == -104
    assert end.diagnostics.count("x=bytearray(90<<20)") >= 2


async def test_with_memory_enforced_by_cgroups_nothing_is_killed(tmp_path: Path) -> None:
    """yarn.nodemanager.resource.memory.enforced=true, Hadoop's default, switches off the polling of memory, as in
    Hadoop.
    """
    settings = EVERY_200_MS | {"yarn.nodemanager.resource.memory.enforced": "true"}
    async with lone_node(tmp_path, settings) as node:
        end = await node.run(ContainerLaunchContext((holds_200_mb(2),)), memory_mb=128)
    assert (end.exit_status, end.diagnostics) == (0, "")


def idle_monitor(settings: MonitorSettings, sampled: list[Event]) -> ContainersMonitor:
    """That of an emulating node whose containers have all exited."""
    launchers = Launchers(
        ContainersLauncher(None, None, sampled.append),  # type: ignore[arg-type]  # it launches nothing
        ReacquiredContainers(None, list[Event]().append),  # type: ignore[arg-type]  # it has no container
        EmulatedLauncher(EmulationTable(), sampled.append),
    )
    return ContainersMonitor(launchers, sampled.append, settings, 4, emulating=True)


def test_an_emulating_node_without_containers_reports_its_usage_once() -> None:
    sampled: list[Event] = []
    monitor = idle_monitor(MonitorSettings(), sampled)
    machine, nothing = ResourceUtilization(1, 2, 3.0), ResourceUtilization()
    for _ in range(2):
        monitor.measure(Processes(), machine)
    assert sampled == [UtilizationSampled(nothing, nothing)]
    # This container has already exited.
    monitor.watch(MonitorContainer(container_id(1), 1, 1 << 20, 1 << 20))
    for _ in range(3):
        monitor.measure(Processes(), machine)
    assert sampled == [UtilizationSampled(nothing, nothing)] * 3


def test_ended_containers_are_forgotten_if_none_is_measured() -> None:
    sampled: list[Event] = []
    monitor = idle_monitor(MonitorSettings(watch_containers=False), sampled)
    monitor.watch(MonitorContainer(container_id(1), 1, 1 << 20, 1 << 20))
    for _ in range(3):
        monitor.measure(Processes(), ResourceUtilization())
    assert len(sampled) == 2, "the second is the last one: no containers are left"


async def test_a_machine_that_cannot_be_measured_for_a_moment_does_not_end_the_node(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without free descriptors, for one, /proc cannot be read."""
    error = OSError(errno.EMFILE, "Too many open files", "/proc/meminfo")
    usage = ResourceUtilization(1, 2, 3.0)
    outcomes = iter((error, usage))

    def measure(_: int) -> ResourceUtilization:
        outcome = next(outcomes, usage)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    measured = asyncio.Event()

    def monitors() -> list[ContainersMonitor]:
        if loop.machine == usage:
            measured.set()
        return []

    monkeypatch.setattr("nm.shell.monitor.node_utilization", measure)
    loop = MonitorLoop(monitors, interval_ms=1)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(loop.run())
        await measured.wait()
        running.cancel()
    assert "cannot measure the resource usage of the machine" in caplog.text


def test_each_check_can_be_switched_off() -> None:
    def read(**settings: str) -> MonitorSettings:
        return MonitorSettings.read(Configuration.of({f"yarn.nodemanager.{k}": v for k, v in settings.items()}))

    assert read() == MonitorSettings(3000, True, True, True)
    assert not read(**{"vmem-check-enabled": "false"}).check_virtual
    assert not read(**{"pmem-check-enabled": "false"}).check_physical
    assert not read(**{"container-monitor.enabled": "false"}).watch_containers
    assert read(**{"resource-monitor.interval-ms": "500"}).interval_ms == 500


async def test_heartbeats_report_the_measured_usage_of_containers_and_node(tmp_path: Path) -> None:
    busy = f"{sys.executable} -c 'x=bytearray(60<<20)\nwhile True: pass'"
    async with lone_node(tmp_path, EVERY_200_MS) as node:
        await node.start(ContainerLaunchContext((busy,)), memory_mb=1024)
        await node.rm.wait_for(
            lambda: any(
                (beat.containers_utilization is not None and beat.containers_utilization.physical_memory_mb >= 60)
                for beat in node.rm.heartbeats
            )
        )
        await node.rm.wait_for(lambda: (node.rm.heartbeats[-1].containers_utilization or ResourceUtilization()).cpu > 0)
        use = node.rm.heartbeats[-1].node_utilization
    assert use is not None
    assert use.physical_memory_mb > 60
    assert use.virtual_memory_mb >= use.physical_memory_mb


def test_a_tree_contains_orphans_of_its_session() -> None:
    """A child whose parent has exited gets init or the subreaper as parent, but stays in its container's session."""
    script = "(sleep 30 & echo $!); echo ended; exec sleep 30"
    with running("bash", "-c", script, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        orphan = int(process.stdout.readline())
        assert process.stdout.readline() == b"ended\n"
        assert set(Processes().trees([process.pid])[process.pid]) == {process.pid, orphan}


def test_a_root_that_has_exited_has_no_tree() -> None:
    with running("true") as process:
        process.wait()
    assert Processes().trees([process.pid]) == {}
