"""Log aggregation: what the core does at an application's end, what is written, and what is left on the node."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest

from nm.core.effects import AggregateLogs, DeleteApplicationLogs, ForgetApplicationKeys, SendHeartbeat
from nm.core.events import ContainerExited, ContainerLaunched, LogsAggregated, NodeHeartbeatFailed, Tick
from nm.core.settings import CoreSettings
from nm.launcher.directories import NodeDirectories
from nm.launcher.log_aggregation import RemoteLogs, aggregate_logs
from tests.nm.lone_node import LoneNode, lone_node
from tests.nm.nodes import APP, NODE, Node, container_id
from tests.nm.waiting import until
from wire.files.aggregated_logs import read_aggregated_logs, read_content
from wire.files.full_disk import DiskFull
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext
from yarn.ids import ContainerId
from yarn.machine import Warn
from yarn.protocols.tracker import LogAggregationReport
from yarn.settings.logs import log_dir_suffix, remote_log_dir
from yarn.states import ApplicationAccessType, LogAggregationStatus

RETAIN_MS = 10_000
ACLS = {ApplicationAccessType.VIEW_APP: "bob"}

# The core


def ended(settings: CoreSettings) -> Node:
    """A node on which the application has just ended."""
    node = Node(settings).register()
    node.start(1, launch=ContainerLaunchContext(("true",), application_acls=ACLS))
    node.step(ContainerLaunched(container_id(1), 1))
    node.step(ContainerExited(container_id(1), 1, 0))
    node.answer(applications_to_clean_up=(APP,))
    return node


def test_logs_are_aggregated_when_the_application_ends_and_then_deleted() -> None:
    node = ended(CoreSettings(aggregate_logs=True, log_retain_ms=RETAIN_MS))
    assert node.one(AggregateLogs) == AggregateLogs(APP, "alice", ACLS)
    assert node.of(ForgetApplicationKeys)
    assert node.of(DeleteApplicationLogs) == []
    assert APP in node.core.applications
    node.step(LogsAggregated(APP))
    assert node.one(DeleteApplicationLogs) == DeleteApplicationLogs(APP)
    assert APP not in node.core.applications


def test_the_local_logs_are_kept_for_the_debug_delay() -> None:
    node = ended(CoreSettings(aggregate_logs=True, deletion_delay_ms=5_000))
    node.step(LogsAggregated(APP))
    assert node.of(DeleteApplicationLogs) == []
    node.after(5_000, Tick())
    assert node.one(DeleteApplicationLogs) == DeleteApplicationLogs(APP)


def test_logs_that_could_not_be_aggregated_are_retained_as_without_aggregation() -> None:
    node = ended(CoreSettings(aggregate_logs=True, log_retain_ms=RETAIN_MS))
    node.step(LogsAggregated(APP, "No space left on device"))
    assert node.one(Warn).text == f"Log aggregation failed for application {APP}: No space left on device"
    assert node.of(DeleteApplicationLogs) == []
    assert APP not in node.core.applications
    node.after(RETAIN_MS, Tick())
    assert node.one(DeleteApplicationLogs) == DeleteApplicationLogs(APP)


def reports_after(node: Node) -> tuple[LogAggregationReport, ...]:
    """The reports in the next heartbeat."""
    node.after(1000, Tick())
    return node.one(SendHeartbeat).request.log_aggregation_reports


def test_the_outcome_is_reported_until_a_heartbeat_is_answered() -> None:
    node = ended(CoreSettings(aggregate_logs=True))
    node.step(LogsAggregated(APP))
    expected = (LogAggregationReport(APP, LogAggregationStatus.SUCCEEDED),)
    assert reports_after(node) == expected
    node.step(NodeHeartbeatFailed("lost", unreachable=False))
    assert reports_after(node) == expected
    node.answer()
    assert reports_after(node) == expected, "the answer may be that to the lost one"
    node.answer()
    assert reports_after(node) == ()


def test_a_failure_is_reported_with_its_reason() -> None:
    node = ended(CoreSettings(aggregate_logs=True))
    node.step(LogsAggregated(APP, "No space left on device"))
    assert reports_after(node) == (LogAggregationReport(APP, LogAggregationStatus.FAILED, "No space left on device"),)


def test_a_late_answer_changes_nothing() -> None:
    node = ended(CoreSettings(aggregate_logs=True))
    node.step(LogsAggregated(APP))
    assert node.step(LogsAggregated(APP)) == []


def test_without_aggregation_nothing_is_aggregated() -> None:
    assert ended(CoreSettings(log_retain_ms=RETAIN_MS)).of(AggregateLogs) == []


# The files


class Logs:
    """The log directories of a node, and the remote one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dirs = [path / "logs-0", path / "logs-1"]
        self.directories = NodeDirectories([], [str(each) for each in self.dirs], random.Random(1))
        self.remote = RemoteLogs(str(path / "remote"), "logs-tfile")

    def write(self, number: int, name: str, content: bytes, directory: int = 0) -> Path:
        path = self.dirs[directory] / str(APP) / str(container_id(number)) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def aggregate(self) -> Path:
        return Path(aggregate_logs(AggregateLogs(APP, "alice", ACLS), NODE, self.directories, self.remote))


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


def contents(path: Path) -> list[tuple[ContainerId, str, bytes]]:
    with path.open("rb") as file:
        return [(log.container_id, log.name, b"".join(read_content(file, log))) for log in read_aggregated_logs(file)]


def test_the_files_of_all_containers_and_directories_are_in_one_file(logs: Logs) -> None:
    logs.write(2, "stdout", b"two")
    logs.write(1, "stderr", b"")
    logs.write(1, "stdout", b"one")
    logs.write(1, "syslog", b"elsewhere", directory=1)
    path = logs.aggregate()
    assert path.relative_to(logs.path) == Path(
        "remote/alice/bucket-logs-tfile/0001", str(APP), f"{NODE.host}_{NODE.port}"
    )
    assert contents(path) == [
        (container_id(1), "stderr", b""),
        (container_id(1), "stdout", b"one"),
        (container_id(1), "syslog", b"elsewhere"),
        (container_id(2), "stdout", b"two"),
    ]


def test_the_modes_are_hadoops(logs: Logs) -> None:
    """The modes are those that Hadoop's NodeManager gives; the umask of the NodeManager does not matter."""
    logs.write(1, "stdout", b"one")
    before = os.umask(0o077)
    try:
        path = logs.aggregate()
    finally:
        os.umask(before)
    modes = {str(each.relative_to(logs.path)): stat.S_IMODE(each.stat().st_mode) for each in (path, *path.parents[:5])}
    assert list(modes.values()) == [0o640, 0o770, 0o770, 0o770, 0o770, 0o1777], modes


def test_only_regular_files_of_the_containers_own_directories_are_read(logs: Logs, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    file = logs.write(1, "stdout", b"one")
    (file.parent / "link").symlink_to(secret)
    (file.parent / "directory").mkdir()
    (file.parent / "directory" / "below").write_bytes(b"below")
    os.mkfifo(file.parent / "pipe")
    (file.parent.parent / str(container_id(2))).symlink_to(file.parent)
    (file.parent.parent / "not-a-container").mkdir()
    assert contents(logs.aggregate()) == [(container_id(1), "stdout", b"one")]


def test_a_node_without_logs_writes_no_file(logs: Logs) -> None:
    logs.write(1, "stdout", b"").unlink()
    assert aggregate_logs(AggregateLogs(APP, "alice", ACLS), NODE, logs.directories, logs.remote) == ""
    assert not (logs.path / "remote").exists()


def test_a_second_file_of_the_same_node_does_not_replace_the_first(logs: Logs) -> None:
    logs.write(1, "stdout", b"one")
    first = logs.aggregate()
    second = logs.aggregate()
    assert second.name.startswith(f"{first.name}_")
    assert contents(first) == contents(second)


def test_a_failure_leaves_no_part_of_the_file(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    logs.write(1, "stdout", b"one")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFull, match=r"No space left on device \(free some space there\)") as caught:
        logs.aggregate()
    assert caught.value.filename.startswith(f"{logs.path}/remote/")
    assert [path for path in (logs.path / "remote").rglob("*") if path.is_file()] == []


def test_a_file_that_shrinks_while_it_is_read_keeps_its_length(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the files after it could not be read."""
    cut = logs.write(1, "stdout", b"longer")
    logs.write(1, "syslog", b"next")
    fstat = os.fstat

    def then_cut(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        if status.st_size == len(b"longer"):
            cut.write_bytes(b"lo")
        return status

    monkeypatch.setattr(os, "fstat", then_cut)
    path = logs.aggregate()
    monkeypatch.undo()
    assert contents(path) == [(container_id(1), "stdout", b"lo\0\0\0\0"), (container_id(1), "syslog", b"next")]


def test_a_link_in_place_of_a_users_directory_is_refused(logs: Logs, tmp_path: Path) -> None:
    logs.write(1, "stdout", b"one")
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote" / "alice").symlink_to(tmp_path)
    with pytest.raises(OSError, match="symbolic link"):
        logs.aggregate()


# The node


def settings_of(path: Path) -> dict[str, str]:
    return {"yarn.log-aggregation-enable": "true", "yarn.nodemanager.remote-app-log-dir": str(path / "remote")}


async def run_one(node: LoneNode) -> ContainerId:
    number = await node.start(ContainerLaunchContext(("echo out 0 ><LOG_DIR>/stdout",)))
    await node.end_of(number)
    await node.finish_application()
    return number


@pytest.mark.cluster
async def test_logs_move_to_the_remote_directory_when_the_application_ends(tmp_path: Path) -> None:
    async with lone_node(tmp_path, settings_of(tmp_path)) as node:
        number = await run_one(node)
        (path,) = [path for path in (tmp_path / "remote").rglob("*") if path.is_file()]
        assert (number, "stdout", b"out 0\n") in contents(path)
        assert {name for _, name, _ in contents(path)} >= {"stdout", "prelaunch.out", "launch_container.sh"}
        local = node.log_dir / str(number.application_id)
        await until(lambda: not local.exists(), "the local logs are deleted")


@pytest.mark.cluster
async def test_logs_stay_if_the_remote_directory_cannot_be_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "remote").write_text("a file")
    async with lone_node(tmp_path, settings_of(tmp_path)) as node:
        number = await run_one(node)
        assert (node.logs_of(number) / "stdout").read_text() == "out 0\n"
        assert f"Log aggregation failed for application {number.application_id}: Not a directory" in caplog.text


@pytest.mark.cluster
async def test_a_node_that_stops_aggregates_first(tmp_path: Path) -> None:
    async with lone_node(tmp_path, settings_of(tmp_path)) as node:
        number = await node.start(ContainerLaunchContext(("echo out 0 ><LOG_DIR>/stdout; sleep 300",)))
        await node.running(number)
        stdout = node.logs_of(number) / "stdout"
        await until(lambda: stdout.exists() and stdout.read_bytes(), "the container has written")
    (path,) = [path for path in (tmp_path / "remote").rglob("*") if path.is_file()]
    assert (number, "stdout", b"out 0\n") in contents(path)


# The configuration


@pytest.mark.parametrize(
    ("values", "place", "suffix"),
    [
        ({}, "/tmp/logs", "logs-tfile"),
        ({"yarn.nodemanager.remote-app-log-dir": "file:///a/b"}, "/a/b", "logs-tfile"),
        ({"yarn.nodemanager.remote-app-log-dir": "file:/a/b"}, "/a/b", "logs-tfile"),
        ({"yarn.log-aggregation.TFile.remote-app-log-dir": "/own"}, "/own", "logs-tfile"),
        ({"yarn.nodemanager.remote-app-log-dir-suffix": "kept"}, "/tmp/logs", "kept-tfile"),
        ({"yarn.log-aggregation.TFile.remote-app-log-dir-suffix": "own"}, "/tmp/logs", "own"),
    ],
)
def test_the_place_is_read_as_hadoop_reads_it(values: dict[str, str], place: str, suffix: str) -> None:
    conf = Configuration.of(values)
    assert (remote_log_dir(conf), log_dir_suffix(conf)) == (place, suffix)
