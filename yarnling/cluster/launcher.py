"""The owner's side of the fork server: starts daemons, waits until they are ready, and notices when they end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wire.daemon import grpc_environment
from yarn.errors import YarnException
from yarnling.cluster.fork_messages import (
    PACKET_BYTES_MAX,
    DaemonExited,
    DaemonReady,
    DaemonRefused,
    DaemonRequest,
    DaemonStarted,
    Message,
    decode,
    encode,
    socket_pair,
)
from yarnling.cluster.processes import kill, kill_with_descendants, those_of_cluster, wait_gone

LOG_TAIL_LINES = 15
STOP_S = 2.0
"""The time, in seconds, the fork server may take to end all processes, before this process kills them."""
KILL_TIMEOUT_S = 1.0
LOG_END_BYTES_MAX = 64 * 1024
"""The bytes of each log that are kept when a cluster with a temporary directory fails: a few hundred lines."""
LOG_FILE = "fork-server.log"

PROJECT = Path(__file__).resolve().parents[2]
"""The directory that contains the packages yarnling, rm, nm, am, wire and yarn."""


class DaemonFailed(YarnException):
    """A daemon ended before it was ready. The message contains the end of its log."""


@dataclass
class Daemon:
    """A daemon of the cluster.

    `pid` is valid once `spawned` is set. `exit_status` is None while the daemon runs, and a negative signal number if a
    signal ended it.
    """

    name: str
    log_file: Path
    pid: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    exit_status: int | None = None
    ready: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    spawned: asyncio.Event = field(default_factory=asyncio.Event)
    exited: asyncio.Event = field(default_factory=asyncio.Event)

    def note_ready(self, facts: dict[str, Any]) -> None:
        """Note the content of the daemon's ready line."""
        self.facts = facts
        if not self.ready.done():
            self.ready.set_result(None)

    def note_exit(self, status: int, how: str) -> None:
        """Note that the daemon has ended; again is a no-op. `how`: in words, for those who wait until it is ready."""
        if self.exit_status is not None:
            return
        self.exit_status = status
        self.spawned.set()
        self.exited.set()
        if not self.ready.done():
            self.ready.set_exception(DaemonFailed(f"{self.name} did not start: {how}{log_tail(self.log_file)}"))


class Launcher:
    """Starts daemons through its own fork server. `directory` is the cluster's directory.

    If `temporary`, the fork server deletes the directory when all processes have ended, even if this process was
    killed.
    """

    def __init__(self, directory: Path, *, temporary: bool) -> None:
        self._directory = directory
        self._temporary = temporary
        self._socket, self._theirs = socket_pair()
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._gone = asyncio.Event()
        # An event loop keeps one writer for each socket: if two sock_sendall calls wait, the first would wait forever.
        self._sending = asyncio.Lock()
        self.daemons: dict[str, Daemon] = {}

    @property
    def pid(self) -> int:
        """The process id of the fork server."""
        assert self._process is not None, "open() comes first"
        return self._process.pid

    def open(self) -> None:
        """Start the fork server."""
        with self._theirs as theirs, (self._directory / LOG_FILE).open("ab") as log:
            arguments = [str(theirs.fileno()), str(self._directory), *(["--temporary"] if self._temporary else [])]
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "yarnling.cluster.fork_server", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                env=environment_of_daemons(),
                start_new_session=True,
            )
        self._socket.setblocking(False)
        self._pidfd = os.pidfd_open(self._process.pid)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._socket, self._read)
        loop.add_reader(self._pidfd, self._on_gone)

    async def start(self, request: DaemonRequest) -> Daemon:
        """Start a daemon and wait for its ready line. Raises DaemonFailed if the daemon ends before that."""
        if self._gone.is_set():
            raise DaemonFailed(f"{request.name} did not start: {self._end_of_fork_server()}")
        daemon = Daemon(request.name, Path(request.log_file))
        self.daemons[request.name] = daemon
        async with self._sending:
            await asyncio.get_running_loop().sock_sendall(self._socket, encode(request))
        await daemon.ready
        return daemon

    async def close(self) -> None:
        """End all daemons and their containers. Returns when no process is left."""
        if self._process is None:
            return
        try:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(STOP_S):
                await self._gone.wait()
        except TimeoutError:
            self._process.kill()
            await self._gone.wait()
        finally:
            self._sweep(self._process)

    def terminate(self, daemon: Daemon) -> None:
        """Send SIGTERM to a daemon, and SIGCONT so that a paused daemon receives it."""
        os.kill(daemon.pid, signal.SIGTERM)
        # The first signal may already have ended the daemon.
        with contextlib.suppress(ProcessLookupError):
            os.kill(daemon.pid, signal.SIGCONT)

    def kill(self, daemon: Daemon, *, descendants: bool) -> None:
        """Send SIGKILL to a daemon; with `descendants`, also to its containers."""
        if descendants:
            kill_with_descendants(daemon.pid)
        else:
            os.kill(daemon.pid, signal.SIGKILL)

    def discard(self, daemon: Daemon) -> None:
        """Kill a daemon that is not ready."""
        self.kill(daemon, descendants=True)

    def pause(self, daemon: Daemon) -> None:
        os.kill(daemon.pid, signal.SIGSTOP)

    def resume(self, daemon: Daemon) -> None:
        os.kill(daemon.pid, signal.SIGCONT)

    async def wait_gone(self) -> str:
        """Wait until the fork server has ended, and return the end of its log."""
        await self._gone.wait()
        return self._end_of_fork_server()

    def _read(self) -> None:
        """Read one packet. The event loop calls this method again if more packets have arrived."""
        try:
            packet = self._socket.recv(PACKET_BYTES_MAX)
        except BlockingIOError:
            return
        except ConnectionError:
            packet = b""
        if packet:
            self._note(decode(packet))
        else:
            asyncio.get_running_loop().remove_reader(self._socket)

    def _note(self, message: Message) -> None:
        daemon = self.daemons[message.name]
        match message:
            case DaemonStarted(_, pid):
                daemon.pid = pid
                daemon.spawned.set()
            case DaemonReady(_, facts):
                daemon.note_ready(facts)
            case DaemonExited(_, pid, status) if pid == daemon.pid:
                daemon.note_exit(status, _exit_text(status))
            case DaemonRefused(_, problem):
                daemon.note_exit(1, problem)
            case DaemonExited() | DaemonRequest():
                # This is the exit of an earlier process of a daemon that has been restarted since.
                pass

    def _on_gone(self) -> None:
        """Handle the end of the fork server, whose last messages are still in the socket."""
        assert self._process is not None
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while packet := self._socket.recv(PACKET_BYTES_MAX):
                self._note(decode(packet))
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._process.wait()
        self._gone.set()
        for daemon in self.daemons.values():
            daemon.note_exit(-signal.SIGKILL, self._end_of_fork_server())

    def _end_of_fork_server(self) -> str:
        assert self._process is not None
        assert self._process.returncode is not None, "the fork server has ended"
        how = _exit_text(self._process.returncode)
        by = "was killed by" if self._process.returncode < 0 else "ended with"
        return f"the fork server, process {self._process.pid}, {by} {how}{log_tail(self._directory / LOG_FILE)}"

    def _sweep(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the processes that the fork server left behind because it was itself killed."""
        if process.poll() == 0:
            return
        orphans = those_of_cluster(self._directory)
        for orphan in orphans:
            kill(orphan)
        wait_gone(orphans, KILL_TIMEOUT_S)
        if self._temporary:
            shutil.rmtree(self._directory, ignore_errors=True)


def log_tail(log_file: Path, lines: int = LOG_TAIL_LINES) -> str:
    """The end of a log, each line after a newline; "" if the log cannot be read."""
    try:
        text = log_file.read_text(errors="replace").strip()
    except OSError:
        return ""
    return "".join(f"\n  {line}" for line in text.splitlines()[-lines:])


def log_ends(log_files: Iterable[Path]) -> bytes:
    """The ends of logs, each after its name; only the name if a log cannot be read."""
    return b"".join(_end_of(log_file) for log_file in log_files)


def _end_of(log_file: Path) -> bytes:
    title = f"==> {log_file.name} <==\n".encode()
    with contextlib.suppress(OSError), log_file.open("rb") as log:
        log.seek(max(0, log_file.stat().st_size - LOG_END_BYTES_MAX))
        return title + log.read(LOG_END_BYTES_MAX) + b"\n"
    return title


def _exit_text(status: int) -> str:
    """Describe how a process ended: "exit status 2", "SIGKILL"."""
    return f"exit status {status}" if status >= 0 else signal.Signals(-status).name


def environment_of_daemons() -> dict[str, str]:
    """The environment of the daemons."""
    path = os.pathsep.join(part for part in (str(PROJECT), os.environ.get("PYTHONPATH")) if part)
    return {**os.environ, "PYTHONPATH": path, **grpc_environment(os.environ)}
