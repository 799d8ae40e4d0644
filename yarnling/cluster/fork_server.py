"""The process that starts a cluster's daemons: it imports all modules once, then forks.

A forked daemon starts in milliseconds, and shares the memory of the imported modules. A program would import them
again, which takes 75 ms of CPU and twice the memory. Forking is only safe while this process has one thread and has not
used gRPC. So the fork server uses a selector instead of asyncio, and asserts before every fork that there is one
thread.

The fork server is the ancestor of every process of the cluster (a child subreaper), so no process can outlive it
unnoticed. When its owner closes the socket or exits, even if killed, the fork server ends all of these processes and
exits.

The fork server is started as `python -m yarnling.cluster.fork_server SOCKET-FD DIRECTORY [--temporary]`. The directory
is the cluster's. A later cluster in this directory finds an orphaned fork server by this argument. With --temporary,
the directory is deleted at the end.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

from yarn.errors import YarnException
from yarnling.cluster.fork_messages import (
    PACKET_BYTES_MAX,
    RM,
    DaemonExited,
    DaemonReady,
    DaemonRefused,
    DaemonRequest,
    DaemonStarted,
    Message,
    decode,
    encode,
)
from yarnling.cluster.processes import adopt_orphans, descendants, kill

STOP_GRACE_S = 1.0
"""The time in seconds between SIGTERM and SIGKILL for daemons. It is short, so that a cluster ends
within two seconds."""
RM_GRACE_S = 0.2
"""The minimum grace period of the ResourceManager in seconds, however long its nodes took."""
KILL_ROUNDS_MAX = 50
"""The limit on rounds of killing descendants. Each round kills the processes that the previous round missed; nearly
always one round is enough."""
STARTING_MAX = 4 * (os.cpu_count() or 1)
"""Daemons that start at the same time. The next are started when half of them are ready. On two cores, starting 300
at the same time took four times the CPU, because the kernel serialises their first writes to shared pages."""
READY_BYTES_MAX = 64 * 1024


@dataclass
class RunningDaemon:
    """A daemon that has been started and has not ended. `ready_fd` is -1 once its ready line has been read."""

    name: str
    package: str
    pid: int
    ready_fd: int
    ready_line: bytes = b""


class Starter(Protocol):
    """A way to start daemons (yarnling.cluster.daemon_starters)."""

    def prepare(self, request: DaemonRequest) -> Callable[[int], int]:
        """Prepare the start of a daemon. Returns a function that starts it, given the ready pipe's file descriptor.

        Raises YarnException if the configuration has faults.
        """
        ...

    def import_ahead(self) -> None:
        """Import modules that the next requests probably need, while the daemons just started initialise."""
        ...


class ForkServer:
    """Starts daemons at the request of `owner`, reports their ready lines and exits to it, and ends when the owner
    ends.
    """

    def __init__(self, owner: socket.socket, starter: Starter) -> None:
        self._owner = owner
        self._starter = starter
        self._daemons: dict[int, RunningDaemon] = {}
        self._waiting: deque[DaemonRequest] = deque()
        self._selector = selectors.DefaultSelector()
        self._stopping = False

    def serve(self) -> None:
        """Serve requests until the owner disconnects; then end all descendants."""
        wakeup = _signals_to_pipe()
        self._selector.register(self._owner, selectors.EVENT_READ, self._on_request)
        self._selector.register(wakeup, selectors.EVENT_READ, lambda: self._on_signal(wakeup))
        while not self._stopping:
            for key, _ in self._selector.select():
                key.data()
        self._end_everything()

    def _on_request(self) -> None:
        """Handle every request that has arrived."""
        while (packet := self._next_packet()) is not None:
            if not packet:
                self._stopping = True
                return
            request = decode(packet)
            assert isinstance(request, DaemonRequest), request
            if request.package == RM:
                self._launch([request])
            else:
                self._waiting.append(request)
        self._start_waiting()

    def _next_packet(self) -> bytes | None:
        """The next packet; b"" if the owner has disconnected, None if no packet has arrived."""
        try:
            return self._owner.recv(PACKET_BYTES_MAX, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def _start_waiting(self) -> None:
        """Start a batch of waiting daemons, unless enough daemons are starting already."""
        starting = sum(daemon.ready_fd >= 0 and daemon.package != RM for daemon in self._daemons.values())
        if self._waiting and starting <= STARTING_MAX // 2 and not self._stopping:
            self._launch([self._waiting.popleft() for _ in range(min(len(self._waiting), STARTING_MAX - starting))])

    def _launch(self, requests: list[DaemonRequest]) -> None:
        for request in requests:
            self._start_one(request)
        self._starter.import_ahead()

    def _start_one(self, request: DaemonRequest) -> None:
        try:
            start = self._starter.prepare(request)
            reader, writer = os.pipe()
        except (YarnException, OSError, ImportError, AssertionError) as error:
            self._report(DaemonRefused(request.name, str(error)))
            return
        try:
            pid = start(writer)
        except OSError as error:
            os.close(reader)
            self._report(DaemonRefused(request.name, str(error)))
        else:
            self._add_started(RunningDaemon(request.name, request.package, pid, reader))
        finally:
            os.close(writer)

    def _add_started(self, daemon: RunningDaemon) -> None:
        self._daemons[daemon.pid] = daemon
        self._selector.register(daemon.ready_fd, selectors.EVENT_READ, lambda: self._on_ready_pipe(daemon))
        self._report(DaemonStarted(daemon.name, daemon.pid))

    def _on_ready_pipe(self, daemon: RunningDaemon) -> None:
        # A call of select may also have returned the daemon's exit, which was handled first.
        if daemon.ready_fd >= 0:
            self._on_ready_line(daemon)
        self._start_waiting()

    def _on_ready_line(self, daemon: RunningDaemon) -> None:
        data = os.read(daemon.ready_fd, READY_BYTES_MAX)
        daemon.ready_line += data
        if data and b"\n" not in daemon.ready_line and len(daemon.ready_line) < READY_BYTES_MAX:
            return
        self._close_ready_pipe(daemon)
        with contextlib.suppress(ValueError):
            self._report(DaemonReady(daemon.name, json.loads(daemon.ready_line)))

    def _close_ready_pipe(self, daemon: RunningDaemon) -> None:
        if daemon.ready_fd >= 0:
            self._selector.unregister(daemon.ready_fd)
            os.close(daemon.ready_fd)
            daemon.ready_fd = -1

    def _on_signal(self, wakeup: int) -> None:
        signals = os.read(wakeup, 4096)
        if signal.SIGTERM in signals:
            self._stopping = True
        self._reap()
        self._start_waiting()

    def _reap(self) -> None:
        """Wait for every child that has ended: daemons, and orphans that this process adopted."""
        while (ended := _next_ended_child()) is not None:
            pid, status = ended
            daemon = self._daemons.pop(pid, None)
            if daemon is None:
                continue
            if daemon.ready_fd >= 0 and not self._stopping:
                self._on_ready_line(daemon)
            self._close_ready_pipe(daemon)
            self._report(DaemonExited(daemon.name, pid, os.waitstatus_to_exitcode(status)))

    def _report(self, message: Message) -> None:
        try:
            self._owner.sendall(encode(message))
        except OSError:
            self._stopping = True

    def _end_everything(self) -> None:
        """Send SIGTERM to the daemons, which end their containers.

        After the grace period send SIGKILL to the remaining ones. NodeManagers get SIGTERM first: they unregister from
        the ResourceManager, and would wait for it if it had ended.
        """
        self._selector.unregister(self._owner)
        deadline = time.monotonic() + STOP_GRACE_S
        self._end([daemon for daemon in self._daemons.values() if daemon.package != RM], deadline)
        self._end(list(self._daemons.values()), max(deadline, time.monotonic() + RM_GRACE_S))
        _kill_descendants()

    def _end(self, daemons: list[RunningDaemon], deadline: float) -> None:
        for daemon in daemons:
            os.kill(daemon.pid, signal.SIGTERM)
        while any(daemon.pid in self._daemons for daemon in daemons):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return
            for key, _ in self._selector.select(left_s):
                key.data()


def main(arguments: list[str]) -> None:
    # Garbage collection is off during imports, because imported objects are never garbage. Daemons enable it again.
    gc.disable()
    from yarnling.cluster.daemon_starters import chosen

    adopt_orphans()
    owner = socket.socket(fileno=int(arguments[0]))
    try:
        ForkServer(owner, chosen()).serve()
    finally:
        if "--temporary" in arguments:
            shutil.rmtree(arguments[1], ignore_errors=True)


def _signals_to_pipe() -> int:
    """A file descriptor from which a byte can be read for every SIGCHLD and SIGTERM. SIGINT is ignored."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, _do_nothing)
    return reader


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """A signal handler that does nothing. Python writes to the wake-up pipe only for signals that have a handler."""


def _next_ended_child() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _kill_descendants() -> None:
    for _ in range(KILL_ROUNDS_MAX):
        rest = descendants(os.getpid())
        for process in rest:
            kill(process)
        if not rest:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)
        while _next_ended_child() is not None:
            pass


if __name__ == "__main__":
    main(sys.argv[1:])
