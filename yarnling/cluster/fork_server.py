"""The process that starts a cluster's daemons: it imports everything once, then forks.

A forked daemon starts in milliseconds and shares the memory of everything imported; a program of its own imports again
(75 ms of CPU, twice the memory). Forking is sound only while this process has one thread and has touched no gRPC
object, so it serves with a selector, not with asyncio, and every fork asserts it.

It is the ancestor of every process of the cluster (a child subreaper), so none can outlive it unnoticed. It exits, and
ends all of them, when its owner closes the socket or exits: an owner that was killed leaves nothing behind either.

Started as `python -m yarnling.cluster.fork_server SOCKET-FD DIRECTORY [--temporary]`. The directory is the cluster's:
what is left of the cluster is found by that word, and with --temporary it is deleted at the end.
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
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from yarn.errors import YarnException
from yarnling.cluster.processes import adopt_orphans, descendants, kill
from yarnling.cluster.start_request import (
    PACKET_BYTES_MAX,
    RM,
    Exited,
    Message,
    Ready,
    Refused,
    Started,
    StartRequest,
    decode,
    encode,
)

if TYPE_CHECKING:
    from yarnling.cluster.starters import Starter

STOP_GRACE_S = 1.0
"""What daemons have between TERM and KILL. With it a cluster is gone within the two seconds that it promises."""
RM_GRACE_S = 0.2
"""What the ResourceManager has at least, however long its nodes took."""
KILL_ROUNDS_MAX = 50
"""Rounds of killing descendants; each takes those that the last one missed. One nearly always does."""
STARTING_MAX = 4 * (os.cpu_count() or 1)
"""Daemons that start at once; more are started when half of them are ready. 300 at once on two cores took four times
the CPU, because the kernel serialises their first writes to shared pages."""
READY_BYTES_MAX = 64 * 1024


@dataclass
class RunningDaemon:
    """A daemon that was started and has not ended. `ready_fd` is -1 once its ready line was read."""

    name: str
    package: str
    pid: int
    ready_fd: int
    ready_line: bytes = b""


class ForkServer:
    """Starts daemons on request of `owner`, reports their ready lines and exits to it, and exits when it does."""

    def __init__(self, owner: socket.socket, starter: Starter) -> None:
        self._owner = owner
        self._starter = starter
        self._daemons: dict[int, RunningDaemon] = {}
        self._waiting: deque[StartRequest] = deque()
        self._selector = selectors.DefaultSelector()
        self._stopping = False

    def serve(self) -> None:
        """Serve until the owner goes; then end every process below this one."""
        wakeup = _signals_to_pipe()
        self._selector.register(self._owner, selectors.EVENT_READ, self._on_request)
        self._selector.register(wakeup, selectors.EVENT_READ, lambda: self._on_signal(wakeup))
        while not self._stopping:
            for key, _ in self._selector.select():
                key.data()
        self._end_everything()

    def _on_request(self) -> None:
        """Take every request that has arrived."""
        while (packet := self._next_packet()) is not None:
            if not packet:
                self._stopping = True
                return
            request = decode(packet)
            assert isinstance(request, StartRequest), request
            if request.package == RM:
                self._launch([request])
            else:
                self._waiting.append(request)
        self._start_waiting()

    def _next_packet(self) -> bytes | None:
        """b"" if the owner is gone, None if there is none now."""
        try:
            return self._owner.recv(PACKET_BYTES_MAX, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def _start_waiting(self) -> None:
        """Start a batch of those that wait, unless enough are on their way."""
        starting = sum(daemon.ready_fd >= 0 and daemon.package != RM for daemon in self._daemons.values())
        if self._waiting and starting <= STARTING_MAX // 2 and not self._stopping:
            self._launch([self._waiting.popleft() for _ in range(min(len(self._waiting), STARTING_MAX - starting))])

    def _launch(self, requests: list[StartRequest]) -> None:
        for request in requests:
            self._start_one(request)
        self._starter.import_ahead()

    def _start_one(self, request: StartRequest) -> None:
        try:
            start = self._starter.prepare(request)
            reader, writer = os.pipe()
        except (YarnException, OSError, ImportError, AssertionError) as error:
            self._tell(Refused(request.name, str(error)))
            return
        try:
            pid = start(writer)
        except OSError as error:
            os.close(reader)
            self._tell(Refused(request.name, str(error)))
        else:
            self._note_start(RunningDaemon(request.name, request.package, pid, reader))
        finally:
            os.close(writer)

    def _note_start(self, daemon: RunningDaemon) -> None:
        self._daemons[daemon.pid] = daemon
        self._selector.register(daemon.ready_fd, selectors.EVENT_READ, lambda: self._on_end_of_start(daemon))
        self._tell(Started(daemon.name, daemon.pid))

    def _on_end_of_start(self, daemon: RunningDaemon) -> None:
        # Its exit may have been handled first, after one select that returned both.
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
            self._tell(Ready(daemon.name, json.loads(daemon.ready_line)))

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
        """Take the status of every child that has ended: daemons, and orphans that came to this process."""
        while (ended := _next_ended_child()) is not None:
            pid, status = ended
            daemon = self._daemons.pop(pid, None)
            if daemon is None:
                continue
            if daemon.ready_fd >= 0 and not self._stopping:
                self._on_ready_line(daemon)
            self._close_ready_pipe(daemon)
            self._tell(Exited(daemon.name, pid, os.waitstatus_to_exitcode(status)))

    def _tell(self, message: Message) -> None:
        try:
            self._owner.sendall(encode(message))
        except OSError:
            self._stopping = True

    def _end_everything(self) -> None:
        """TERM to the daemons, which end their containers; KILL to whatever is left after the grace.

        NodeManagers first: they take leave of the ResourceManager, and would wait for it if it was gone.
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
    # No collection while importing: imported objects are never garbage. Daemons enable it again.
    gc.disable()
    from yarnling.cluster.starters import chosen

    adopt_orphans()
    owner = socket.socket(fileno=int(arguments[0]))
    try:
        ForkServer(owner, chosen()).serve()
    finally:
        if "--temporary" in arguments:
            shutil.rmtree(arguments[1], ignore_errors=True)


def _signals_to_pipe() -> int:
    """The end of a pipe that gets a byte for every SIGCHLD and SIGTERM; Ctrl-C is the owner's business."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, _noted)
    return reader


def _noted(number: int, frame: FrameType | None) -> None:
    """A signal counts by its byte in the pipe; without a handler there would be none."""


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
