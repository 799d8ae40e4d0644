"""The fork server with small daemons: how they start, what they inherit, and that nothing outlives its owner."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from tests.processes import running
from tests.yarnling.apart import PROJECT, output
from yarnling.cluster import daemon_starters
from yarnling.cluster.conditions import until_blocking
from yarnling.cluster.fork_messages import (
    PACKET_BYTES_MAX,
    DaemonExited,
    DaemonRefused,
    DaemonRequest,
    DaemonStarted,
    Message,
    decode,
    encode,
    socket_pair,
)
from yarnling.cluster.fork_server import RM_GRACE_S, STARTING_MAX, STOP_GRACE_S, ForkServer
from yarnling.cluster.launcher import STOP_S, DaemonFailed, Launcher

pytestmark = pytest.mark.cluster

DAEMONS = Path(__file__).parent / "daemons"

Request = Callable[..., DaemonRequest]


@pytest.fixture(params=["fork", "plain"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use both starters in turn. The daemons in this folder can be imported."""
    monkeypatch.setenv("YARNLING_START", request.param)
    monkeypatch.setenv("PYTHONPATH", str(DAEMONS))
    chosen: str = request.param
    return chosen


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    home = tmp_path / "cluster"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "yarn-site.xml").write_text("<configuration/>")
    return home


@pytest.fixture
def request_for(directory: Path) -> Request:
    def request(mode: str = "", *, package: str = "probe", **overrides: str) -> DaemonRequest:
        values = {"probe.mode": mode, **overrides}
        log_file = str(directory / "probe.log")
        return DaemonRequest(
            "probe", package, str(directory / "conf"), log_file, values, {"PROBE": str(directory / "conf")}
        )

    return request


@pytest.fixture
async def launcher(way: str, directory: Path) -> AsyncIterator[Launcher]:
    launcher = Launcher(directory, temporary=True)
    launcher.open()
    yield launcher
    await launcher.close()


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def test_a_daemon_has_its_own_session_files_environment_and_configuration(
    launcher: Launcher, request_for: Request
) -> None:
    request = request_for(**{"yarn.nodemanager.resource.memory-mb": "4096"})
    daemon = await launcher.start(request)
    assert daemon.facts["pid"] == daemon.facts["session"] == daemon.pid
    assert daemon.facts["variable"] == request.conf_dir
    assert daemon.facts["memory_mb"] == "4096"
    assert daemon.facts["threads"] == 1
    own = {"/dev/null", str(daemon.log_file), "pipe", "anon_inode", "socket"}
    assert set(daemon.facts["files"]) <= own
    assert len(daemon.facts["files"]) <= 8, daemon.facts["files"]


async def test_more_requests_than_fit_into_the_socket_are_all_served(
    launcher: Launcher, request_for: Request, way: str
) -> None:
    if way == "plain":
        pytest.skip("it is the same socket")
    request = request_for()
    padding = {**request.environment, "PADDING": "x" * 8_000}
    requests = [replace(request, name=f"probe-{number}", environment=padding) for number in range(40)]
    async with asyncio.timeout(60):
        daemons = await asyncio.gather(*(launcher.start(request) for request in requests))
    assert len({daemon.pid for daemon in daemons}) == len(requests)


async def test_closing_ends_the_daemons_and_their_children_and_deletes_the_directory(
    launcher: Launcher, request_for: Request, directory: Path
) -> None:
    daemon = await launcher.start(request_for("parent"))
    await launcher.close()
    assert daemon.exit_status == 0, "it had its time for ending by itself"
    assert gone(daemon.facts["child"])
    assert gone(launcher.pid)
    assert not os.path.exists(directory)


async def test_a_daemon_that_ignores_term_is_killed(
    launcher: Launcher, request_for: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fork server kills the daemon after the grace period, long before its owner would kill the fork server."""
    monkeypatch.setattr("yarnling.cluster.launcher.STOP_S", 600.0)
    daemon = await launcher.start(request_for("deaf"))
    async with asyncio.timeout(60):
        await launcher.close()
    assert daemon.exit_status == -signal.SIGKILL


def test_all_grace_periods_fit_into_the_two_seconds_that_a_cluster_promises() -> None:
    assert STOP_GRACE_S + RM_GRACE_S < STOP_S <= 2.0


async def test_the_exit_of_a_daemon_is_reported(launcher: Launcher, request_for: Request) -> None:
    daemon = await launcher.start(request_for())
    os.kill(daemon.pid, signal.SIGKILL)
    await daemon.exited.wait()
    assert daemon.exit_status == -signal.SIGKILL
    again = await launcher.start(request_for())
    assert again.pid != daemon.pid
    assert again.exit_status is None


@pytest.mark.parametrize(
    ("mode", "message"),
    [("refuse", r"exit status \d\n.*port 80 is not for you \(take another\)"), ("die", "exit status 3\n  mode die")],
)
async def test_a_failed_start_is_reported_with_the_end_of_the_log(
    launcher: Launcher, request_for: Request, mode: str, message: str
) -> None:
    with pytest.raises(DaemonFailed, match=f"(?s)probe did not start: {message}"):
        await launcher.start(request_for(mode))


async def test_a_faulty_configuration_is_refused_with_its_faults(launcher: Launcher, request_for: Request) -> None:
    faulty = request_for(**{"yarn.nodemanager.resource.memory-mb": "much"})
    with pytest.raises(DaemonFailed, match=r"yarn.nodemanager.resource.memory-mb = 'much'"):
        await launcher.start(faulty)


async def test_daemons_die_with_a_killed_fork_server_and_closing_ends_the_rest(
    launcher: Launcher, request_for: Request, directory: Path
) -> None:
    daemon = await launcher.start(request_for("parent"))
    os.kill(launcher.pid, signal.SIGKILL)
    await daemon.exited.wait()
    until_blocking(lambda: gone(daemon.pid))
    with pytest.raises(DaemonFailed, match=f"the fork server, process {launcher.pid}, was killed by SIGKILL"):
        await launcher.start(request_for())
    assert not gone(daemon.facts["child"])
    await launcher.close()
    assert gone(daemon.facts["child"])
    assert not os.path.exists(directory)


async def test_a_fork_with_threads_is_refused(launcher: Launcher, request_for: Request, way: str) -> None:
    if way == "plain":
        pytest.skip("a plain start may import what it likes")
    with pytest.raises(DaemonFailed, match=r"2 threads before a fork.*YARNLING_START=plain"):
        await launcher.start(request_for(package="threaded"))


OWNER = """
import asyncio, sys
from pathlib import Path
from yarnling.cluster.launcher import Launcher
from yarnling.cluster.fork_messages import DaemonRequest

async def main(home):
    launcher = Launcher(home, temporary=True)
    launcher.open()
    request = DaemonRequest("probe", "probe", str(home / "conf"), str(home / "log"), {"probe.mode": "parent"})
    daemon = await launcher.start(request)
    print(launcher.pid, daemon.pid, daemon.facts["child"], flush=True)
    await asyncio.Event().wait()

asyncio.run(main(Path(sys.argv[1])))
"""


def test_nothing_outlives_an_owner_that_was_killed(way: str, directory: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{DAEMONS}"}
    command = [sys.executable, "-c", OWNER, str(directory)]
    with running(*command, stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 3
        owner.kill()
    until_blocking(lambda: all(gone(pid) for pid in pids) and not directory.exists())


def test_an_exiting_thread_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may still count a joined thread: this was seen in 2 of 60 starts on a busy machine."""
    counts = [2, 2, 1]
    monkeypatch.setattr(daemon_starters, "thread_count", lambda: counts.pop(0))
    assert daemon_starters._threads_left() == 1
    assert counts == []


READ_AHEAD = """
import sys
from yarnling.cluster.fork_messages import NM, DaemonRequest
from yarnling.cluster.daemon_starters import ForkStarter

starter = ForkStarter()
for table in ({}, {"yarn.yarnling.emulation.table": "default"}):
    starter.prepare(DaemonRequest("nm-1", NM, sys.argv[1], overrides=table, log_file=""))
    print(*(name in sys.modules for name in ("nm.emulation.table_file", "yaml", "pydantic")))
"""


def test_yaml_is_imported_before_the_fork_and_only_for_a_table_of_emulated_containers(tmp_path: Path) -> None:
    (tmp_path / "yarn-site.xml").write_text("<configuration/>")
    assert output(READ_AHEAD, str(tmp_path)) == "False False False\nTrue True True\n"


class FakeStarter:
    """A starter that starts no process: pids count from 1, and `pipes` contains the descriptors for the ready lines."""

    def __init__(self) -> None:
        self.pipes: dict[str, int] = {}
        self.batches: list[list[str]] = [[]]
        self.refused: dict[str, OSError] = {}

    def prepare(self, request: DaemonRequest) -> Callable[[int], int]:
        def start(ready_fd: int) -> int:
            if request.name in self.refused:
                raise self.refused[request.name]
            self.pipes[request.name] = os.dup(ready_fd)
            self.batches[-1].append(request.name)
            return len(self.pipes)

        return start

    def import_ahead(self) -> None:
        self.batches.append([])


@pytest.fixture
def fake() -> Iterator[tuple[ForkServer, FakeStarter, socket.socket]]:
    ours, theirs = socket_pair()
    starter = FakeStarter()
    with ours, theirs:
        yield ForkServer(theirs, starter), starter, ours
    for pipe in starter.pipes.values():
        os.close(pipe)


def request_starts(owner: socket.socket, *names: str, package: str = "nm") -> None:
    for name in names:
        owner.sendall(encode(DaemonRequest(name, package, "", "")))


def reported(owner: socket.socket) -> list[Message]:
    messages: list[Message] = []
    with contextlib.suppress(BlockingIOError):
        while packet := owner.recv(PACKET_BYTES_MAX, socket.MSG_DONTWAIT):
            messages.append(decode(packet))
    return messages


def test_the_next_batch_starts_when_half_of_one_is_ready(
    fake: tuple[ForkServer, FakeStarter, socket.socket],
) -> None:
    server, starter, owner = fake
    names = [f"nm-{number}" for number in range(1, STARTING_MAX + 3)]
    request_starts(owner, *names)
    server._on_request()
    assert starter.batches == [names[:STARTING_MAX], []]
    for name in names[: STARTING_MAX // 2 - 1]:
        os.write(starter.pipes[name], b"{}\n")
    for key, _ in server._selector.select(0):
        key.data()
    assert starter.batches == [names[:STARTING_MAX], []]
    os.write(starter.pipes[names[STARTING_MAX // 2]], b"{}\n")
    for key, _ in server._selector.select(0):
        key.data()
    assert starter.batches == [names[:STARTING_MAX], names[STARTING_MAX:], []]


def test_the_resource_manager_does_not_wait_for_nodes_that_wait_for_it(
    fake: tuple[ForkServer, FakeStarter, socket.socket],
) -> None:
    server, starter, owner = fake
    request_starts(owner, *(f"nm-{number}" for number in range(1, STARTING_MAX + 3)))
    server._on_request()
    request_starts(owner, "rm", package="rm")
    server._on_request()
    assert starter.batches[1] == ["rm"]


def test_other_daemons_start_after_a_failed_start(
    fake: tuple[ForkServer, FakeStarter, socket.socket],
) -> None:
    server, starter, owner = fake
    starter.refused["nm-2"] = BlockingIOError("too many processes")
    request_starts(owner, "nm-1", "nm-2", "nm-3")
    server._on_request()
    assert starter.batches[0] == ["nm-1", "nm-3"]
    assert reported(owner) == [
        DaemonStarted("nm-1", 1),
        DaemonRefused("nm-2", "too many processes"),
        DaemonStarted("nm-3", 2),
    ]


def test_a_daemon_whose_exit_is_seen_before_its_ready_pipe_is_forgotten(
    fake: tuple[ForkServer, FakeStarter, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon was killed while it started. One select returns both the end of its ready pipe and SIGCHLD."""
    server, starter, owner = fake
    request_starts(owner, "nm-1")
    server._on_request()
    os.close(starter.pipes.pop("nm-1"))
    (daemon,) = server._daemons.values()
    ended = iter([(daemon.pid, signal.SIGKILL.value), None])
    monkeypatch.setattr("yarnling.cluster.fork_server._next_ended_child", lambda: next(ended))
    server._reap()
    server._on_ready_pipe(daemon)
    assert reported(owner) == [DaemonStarted("nm-1", daemon.pid), DaemonExited("nm-1", daemon.pid, -signal.SIGKILL)]
