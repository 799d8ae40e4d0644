"""The owner's side of the fork server: daemons that are started, awaited until ready, and watched until they end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wire.daemon import grpc_environment
from yarn.errors import YarnException
from yarnling.cluster.processes import kill, kill_with_descendants, those_of_cluster, wait_gone
from yarnling.cluster.start_request import (
    PACKET_BYTES_MAX,
    Exited,
    Message,
    Ready,
    Refused,
    Started,
    StartRequest,
    decode,
    encode,
    socket_pair,
)

LOG_TAIL_LINES = 15
STOP_S = 2.0
"""How long the fork server has for ending all; then what names the cluster's directory is killed from here."""
KILL_S = 1.0
LOG_FILE = "fork-server.log"

_PROJECT = Path(__file__).resolve().parent.parent


class DaemonFailed(YarnException):
    """A daemon ended before it was ready; the text has the end of its log."""


@dataclass
class Daemon:
    """A daemon of the cluster. `pid` counts once it has `begun`; `exit_status` is None before its end, negative for a
    signal."""

    name: str
    log_file: Path
    pid: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    exit_status: int | None = None
    ready: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    exited: asyncio.Event = field(default_factory=asyncio.Event)


class Launcher:
    """Starts daemons through a fork server of its own. `directory` is what the cluster keeps its files in.

    `temporary`: the fork server deletes the directory when all has ended, even if this process was killed.
    """

    def __init__(self, directory: Path, *, temporary: bool) -> None:
        self._directory = directory
        self._temporary = temporary
        self._socket, self._theirs = socket_pair()
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._gone = asyncio.Event()
        # A loop keeps one writer a socket: a second sock_sendall that has to wait would make the first wait for ever.
        self._sending = asyncio.Lock()
        self.daemons: dict[str, Daemon] = {}

    @property
    def pid(self) -> int:
        """The fork server's process."""
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

    async def start(self, request: StartRequest) -> Daemon:
        """Start a daemon and wait for its ready line. Raises DaemonFailed if it ends before."""
        if self._gone.is_set():
            raise DaemonFailed(f"{request.name} did not start: {self._end_of_fork_server()}")
        daemon = Daemon(request.name, Path(request.log_file))
        self.daemons[request.name] = daemon
        async with self._sending:
            await asyncio.get_running_loop().sock_sendall(self._socket, encode(request))
        await daemon.ready
        return daemon

    async def close(self) -> None:
        """End all daemons and all that they run; returns when nothing is left."""
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
        """Have a daemon end in its own way. One that is paused hears nothing until it goes on."""
        os.kill(daemon.pid, signal.SIGTERM)
        # On a busy machine the first signal may have ended it already.
        with contextlib.suppress(ProcessLookupError):
            os.kill(daemon.pid, signal.SIGCONT)

    def kill(self, daemon: Daemon, *, descendants: bool) -> None:
        """SIGKILL, also to what it runs if `descendants`."""
        if descendants:
            kill_with_descendants(daemon.pid)
        else:
            os.kill(daemon.pid, signal.SIGKILL)

    def discard(self, daemon: Daemon) -> None:
        """End one that is not ready, by any means."""
        self.kill(daemon, descendants=True)

    def pause(self, daemon: Daemon) -> None:
        os.kill(daemon.pid, signal.SIGSTOP)

    def resume(self, daemon: Daemon) -> None:
        os.kill(daemon.pid, signal.SIGCONT)

    async def wait_gone(self) -> str:
        """Return once the fork server has ended, and what it said last."""
        await self._gone.wait()
        return self._end_of_fork_server()

    def _read(self) -> None:
        """Take one packet; the loop comes again if there are more."""
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
            case Started(_, pid):
                daemon.pid = pid
                daemon.begun.set()
            case Ready(_, facts):
                daemon.facts = facts
                if not daemon.ready.done():
                    daemon.ready.set_result(None)
            case Exited(_, pid, status) if pid == daemon.pid:
                self._note_exit(daemon, status, _ending(status))
            case Refused(_, problem):
                self._note_exit(daemon, 1, problem)
            case Exited() | StartRequest():
                # The end of an earlier process of that name, which a restart has taken the place of.
                pass

    def _note_exit(self, daemon: Daemon, status: int, how: str) -> None:
        if daemon.exit_status is not None:
            return
        daemon.exit_status = status
        daemon.begun.set()
        daemon.exited.set()
        if not daemon.ready.done():
            problem = f"{daemon.name} did not start: {how}{log_tail(daemon.log_file)}"
            daemon.ready.set_exception(DaemonFailed(problem))

    def _on_gone(self) -> None:
        """The fork server has ended; what it said before is still in the socket."""
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
            self._note_exit(daemon, -signal.SIGKILL, self._end_of_fork_server())

    def _end_of_fork_server(self) -> str:
        assert self._process is not None
        assert self._process.returncode is not None, "it is asked about after its end"
        how = _ending(self._process.returncode)
        by = "was killed by" if self._process.returncode < 0 else "ended with"
        return f"the fork server, process {self._process.pid}, {by} {how}{log_tail(self._directory / LOG_FILE)}"

    def _sweep(self, process: subprocess.Popen[bytes]) -> None:
        """What is left if the fork server could not end all: nothing, unless it was killed itself."""
        if process.poll() == 0:
            return
        rest = those_of_cluster(self._directory)
        for leftover in rest:
            kill(leftover)
        wait_gone(rest, KILL_S)
        if self._temporary:
            shutil.rmtree(self._directory, ignore_errors=True)


def log_tail(log_file: Path, lines: int = LOG_TAIL_LINES) -> str:
    """The end of a log on lines of its own; nothing if there is none."""
    try:
        text = log_file.read_text(errors="replace").strip()
    except OSError:
        return ""
    return "".join(f"\n  {line}" for line in text.splitlines()[-lines:])


def _ending(status: int) -> str:
    """How a process ended, in words: "exit status 2", "SIGKILL"."""
    return f"exit status {status}" if status >= 0 else signal.Signals(-status).name


def environment_of_daemons() -> dict[str, str]:
    """What daemons inherit."""
    path = os.pathsep.join(part for part in (str(_PROJECT), os.environ.get("PYTHONPATH")) if part)
    return {**os.environ, "PYTHONPATH": path, **grpc_environment(os.environ)}
