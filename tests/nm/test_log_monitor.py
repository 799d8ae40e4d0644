"""Containers whose logs are too large are killed: the rule, the measurement of directories, and real containers."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from nm.core.container_limits import LogLimits, check_logs
from nm.core.effects import MonitorContainer
from nm.core.emulation import EmulationTable
from nm.core.events import Event
from nm.emulation.launcher import EmulatedLauncher
from nm.launcher.containers_launcher import ContainersLauncher, Launchers
from nm.launcher.directories import NodeDirectories
from nm.launcher.reacquired_containers import ReacquiredContainers
from nm.shell.log_monitor import DirectorySize, LogMonitor, LogMonitorSettings, directory_size
from tests.nm.lone_node import lone_node, lone_nodes
from tests.nm.nodes import container_id
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext
from yarn.states import ContainerState

LIMITS = LogLimits(directory_bytes=100, total_bytes=150)
LIMIT = 200_000
"""In bytes; the node's own files in a log directory have a few thousand."""
MONITORED = {
    "yarn.nodemanager.container-log-monitor.enable": "true",
    "yarn.nodemanager.container-log-monitor.interval-ms": "200",
    "yarn.nodemanager.container-log-monitor.dir-size-limit-bytes": str(LIMIT),
}
PACKED = {"yarn.yarnling.pack": "2", "yarn.nodemanager.hostname": "127.0.0.171"}
FLOODS = "yes a line of the log | head -c 10000000 1><LOG_DIR>/stdout; sleep 300"
FILLS = """
import os, sys
for directory in os.environ["LOG_DIRS"].split(","):
    os.makedirs(directory, exist_ok=True)
    with open(f"{directory}/large", "wb") as file:
        file.write(bytes(int(sys.argv[1])))
"""


@pytest.mark.parametrize(
    ("sizes", "killed"),
    [
        ([], False),
        ([0], False),
        ([100], False),
        ([101], True),
        ([75, 75], False),
        ([75, 76], True),
        ([10, 101], True),
        ([50, 50, 50, 1], True),
    ],
)
def test_a_container_exceeds_the_limit_of_one_directory_or_of_all(sizes: Iterable[int], *, killed: bool) -> None:
    """ContainersMonitorImpl.LogMonitorThread: what equals a limit is allowed."""
    named = [(f"/logs{number}/c", size) for number, size in enumerate(sizes)]
    violation = check_logs(container_id(1), 10, named, LIMITS)
    assert (violation and violation.exit_status) == (-109 if killed else None)


def test_the_message_for_one_directory_is_that_of_hadoop() -> None:
    violation = check_logs(container_id(1), 10, [("/logs0/c", 40), ("/logs1/c", 101)], LIMITS)
    assert violation is not None
    assert violation.diagnostics == (
        f"Container [pid=10,containerID={container_id(1)}] is logging beyond the container single log directory limit."
        "\nLimit: 100 Log Directory Size: 101 Log Directory: /logs1/c\nKilling container.\n"
    )


def test_the_message_for_the_total_is_that_of_hadoop() -> None:
    violation = check_logs(container_id(1), 10, [("/logs0/c", 80), ("/logs1/c", 81), ("/logs2/c", 82)], LIMITS)
    assert violation is not None
    assert violation.diagnostics == (
        f"Container [pid=10,containerID={container_id(1)}] is logging beyond the container total log limit."
        "\nLimit: 150 Total Size: >=161\nKilling container.\n"
    )


def test_the_settings_have_hadoops_defaults() -> None:
    assert LogMonitorSettings.read(Configuration.of({})) == LogMonitorSettings(False, 60_000, LogLimits(10**9, 10**10))


async def test_only_running_containers_are_watched_and_only_if_that_is_configured() -> None:
    """A node runs many containers in its life; those that have ended are not kept."""
    launchers = Launchers(
        ContainersLauncher(None, None, list[Event]().append),  # type: ignore[arg-type]  # it launches nothing
        ReacquiredContainers(None, list[Event]().append),  # type: ignore[arg-type]  # it has no container
        EmulatedLauncher(EmulationTable(), list[Event]().append),
    )
    directories = NodeDirectories(["/local"], ["/logs"], random.Random(1))
    on, off = (
        LogMonitor(launchers, directories, list[Event]().append, LogMonitorSettings(enabled))
        for enabled in (True, False)
    )
    for monitor in (on, off):
        monitor.watch(MonitorContainer(container_id(1), 1, 1 << 20, 1 << 20))
    assert (on.watched, off.watched) == ((container_id(1),), ())
    await on.measure()
    assert on.watched == ()


# The measurement


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    directory = tmp_path / "logs"
    directory.mkdir()
    return directory


def measured(directory: Path, entries_max: int = 1000) -> DirectorySize:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return directory_size(descriptor, entries_max)
    finally:
        os.close(descriptor)


def test_the_size_is_that_of_all_files_below(logs: Path) -> None:
    """FileUtil.getDU: the lengths of files, also of sparse ones; directories themselves count nothing."""
    (logs / "stdout").write_bytes(b"x" * 10)
    (logs / "a" / "b").mkdir(parents=True)
    (logs / "a" / "c").mkdir()
    (logs / "a" / "b" / "syslog").write_bytes(b"x" * 200)
    with open(logs / "a" / "sparse", "wb") as file:
        file.truncate(3000)
    assert measured(logs) == DirectorySize(3210, is_complete=True)


def test_a_directory_that_becomes_a_link_meanwhile_is_not_followed(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The container replaces a directory when its entries have been read, and those below it have not."""
    outside, scandir = logs.parent / "outside", os.scandir
    for directory in (logs / "a" / "b", outside / "b"):
        directory.mkdir(parents=True)
    (outside / "b" / "large").write_bytes(b"x" * 5000)

    def replacing(descriptor: int) -> object:
        if os.path.samestat(os.fstat(descriptor), (logs / "a").stat()):
            (logs / "a").rename(logs / "moved")
            (logs / "a").symlink_to(outside)
        return scandir(descriptor)

    monkeypatch.setattr(os, "scandir", replacing)
    assert measured(logs) == DirectorySize(0, is_complete=True)
    assert (logs / "a").is_symlink()


def test_links_are_not_followed(logs: Path) -> None:
    outside = logs.parent / "outside"
    outside.mkdir()
    (outside / "large").write_bytes(b"x" * 5000)
    (logs / "directory").symlink_to(outside)
    (logs / "file").symlink_to(outside / "large")
    (logs / "around").symlink_to(logs)
    assert measured(logs) == DirectorySize(0, is_complete=True)


def test_the_work_is_bounded(logs: Path) -> None:
    for number in range(20):
        (logs / f"{number}").write_bytes(b"x")
    assert measured(logs, entries_max=20) == DirectorySize(20, is_complete=True)
    assert measured(logs, entries_max=19) == DirectorySize(19, is_complete=False)


# Real containers


@pytest.mark.cluster
async def test_a_container_that_floods_its_log_is_killed_with_minus_109(tmp_path: Path) -> None:
    async with lone_node(tmp_path, MONITORED) as node:
        quiet = await node.start(ContainerLaunchContext(("echo one line; sleep 300",)))
        flooding = await node.start(ContainerLaunchContext((FLOODS,)))
        end = await node.end_of(flooding)
        assert (await node.status(quiet)).state is ContainerState.RUNNING
        logs = node.logs_of(flooding)
    assert end.exit_status == -109
    assert f"containerID={flooding}] is logging beyond the container single log directory limit.\n" in end.diagnostics
    assert f"Limit: {LIMIT} Log Directory Size: " in end.diagnostics
    assert f"Log Directory: {logs}\nKilling container.\n" in end.diagnostics
    assert "Container killed on request. Exit code is 143\n" in end.diagnostics


@pytest.mark.cluster
async def test_the_logs_on_all_disks_are_added_up(tmp_path: Path) -> None:
    """Each of the two directories has less than its limit; together they have more than the total."""
    disks = [tmp_path / "logs", tmp_path / "more"]
    settings = MONITORED | {
        "yarn.nodemanager.log-dirs": ",".join(map(str, disks)),
        "yarn.nodemanager.container-log-monitor.dir-size-limit-bytes": str(2 * LIMIT),
        "yarn.nodemanager.container-log-monitor.total-size-limit-bytes": str(2 * LIMIT),
    }
    (tmp_path / "fill.py").write_text(FILLS)
    fills = f"{sys.executable} {tmp_path / 'fill.py'} {LIMIT + 1}; sleep 300"
    async with lone_node(tmp_path, settings) as node:
        end = await node.run(ContainerLaunchContext((fills,)))
    assert end.exit_status == -109
    assert "is logging beyond the container total log limit.\n" in end.diagnostics
    assert f"Limit: {2 * LIMIT} Total Size: >=4" in end.diagnostics


@pytest.mark.cluster
async def test_the_logs_of_packed_nodes_are_measured(tmp_path: Path) -> None:
    async with lone_nodes(tmp_path, MONITORED | PACKED) as nodes:
        end = await nodes[-1].run(ContainerLaunchContext((FLOODS,)))
    assert end.exit_status == -109
    assert f"Log Directory: {nodes[-1].log_dir}/" in end.diagnostics


@pytest.mark.cluster
async def test_without_the_monitor_a_container_may_log_what_it_likes(tmp_path: Path) -> None:
    """The monitor is off by default, as in Hadoop."""
    settings = {key: value for key, value in MONITORED.items() if not key.endswith(".enable")}
    async with lone_node(tmp_path, settings) as node:
        end = await node.run(ContainerLaunchContext((f"head -c {10 * LIMIT} /dev/zero 1><LOG_DIR>/stdout; sleep 1",)))
    assert (end.exit_status, end.diagnostics) == (0, "")
