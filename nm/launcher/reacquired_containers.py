"""Watches containers that an earlier NodeManager has started, and finds their exit codes (RecoveredContainerLaunch).

The wrapper script of such a container is not a child of this process, so waitpid() does not return its exit code.
Instead its end is seen with a pidfd, which can watch any process, and the exit code is read from a file that the script
writes when its container ends. A container whose process has ended without this file is LOST (exit code 154).

The pid file names the leader of the container's session. A process id alone does not identify a process; this one was
started before its file was written, and has the container's id in its environment unless it has replaced that.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from nm.core.effects import ReacquireContainer, Signal, SignalProcess
from nm.core.events import ContainerExited, ContainerLaunched, ContainerSignalled, Event
from nm.launcher.cgroups import CpuCgroups
from nm.launcher.directories import NodeDirectories, private_dir
from nm.launcher.files import read_pid
from nm.launcher.processes import (
    environment_of,
    group_exists,
    is_group_of,
    signal_group,
    started_s_of,
    stat_of,
)
from yarn.ids import ContainerId
from yarn.states import ContainerExitStatus

_logger = logging.getLogger(f"yarnling.{__name__}")

_POLL_S = 0.02
_CLOCK_SLACK_S = 2.0
"""The start of a process is known to a clock tick, and the machine's clock may have been set a little meanwhile."""


@dataclass(slots=True)
class ReacquiredContainer:
    """A container that is watched. `pid`: the leader of its session, None if it is not known (yet).

    `deadline_s` (of the loop's clock) is the time after which a missing file is given up. `killed`: KILL was sent.
    """

    container_id: ContainerId
    launch: int
    pid_file: str
    deadline_s: float
    pid: int | None = None
    pid_fd: int = -1
    exited: bool = False
    killed: bool = False
    pending_signals: list[SignalProcess] = field(default_factory=list)


class ReacquiredContainers:
    """The containers of a node that an earlier NodeManager has started, by id.

    `send` receives the events; `reacquire` and `signal` never call it before they return. `idle` is set while none
    runs. `has_reacquired` is True once there was one.
    """

    def __init__(
        self,
        directories: NodeDirectories,
        send: Callable[[Event], None],
        *,
        exit_code_wait_ms: int = 2000,
        cgroups: CpuCgroups | None = None,
    ) -> None:
        self.containers: dict[ContainerId, ReacquiredContainer] = {}
        self.has_reacquired = False
        self.idle = asyncio.Event()
        self.idle.set()
        self._directories = directories
        self._send = send
        self._wait_s = exit_code_wait_ms / 1000
        self._cgroups = cgroups

    def reacquire(self, effect: ReacquireContainer) -> None:
        """Watch a container from the loop's next turn on."""
        launch = effect.effect
        loop = asyncio.get_running_loop()
        pid_file = self._find_pid_file(launch.container_id)
        container = ReacquiredContainer(launch.container_id, launch.launch, pid_file, loop.time() + self._wait_s)
        self.containers[launch.container_id] = container
        self.has_reacquired = True
        self.idle.clear()
        if self._cgroups is not None:
            self._cgroups.adopt(launch.container_id)
        loop.call_soon(self._begin, container)

    def has(self, container_id: ContainerId) -> bool:
        """True while the container runs, and until KILL was sent to what it left behind."""
        return container_id in self.containers

    def is_running(self, container_id: ContainerId) -> bool:
        container = self.containers.get(container_id)
        return container is not None and not container.exited

    def pid_of(self, container_id: ContainerId) -> int | None:
        """The process id of the session leader; None before it is known and after it has exited."""
        container = self.containers.get(container_id)
        return None if container is None or container.exited else container.pid

    def signal(self, effect: SignalProcess) -> None:
        """Send a signal to the container's process group, as soon as it is known."""
        container = self.containers.get(effect.container_id)
        if container is None or container.launch != effect.launch:
            return
        if container.exited:
            self._signal_orphans(container, effect.signal)
        elif container.pid is None:
            container.pending_signals.append(effect)
        else:
            self._deliver(container, effect)

    def drop(self, container_id: ContainerId) -> None:
        """End what the container has left behind: it is started again."""
        container = self.containers.get(container_id)
        if container is not None:
            self._signal_orphans(container, Signal.KILL)

    def kill_all(self) -> None:
        """Send KILL to every process group, because the node stops."""
        for container in list(self.containers.values()):
            self.signal(SignalProcess(container.container_id, container.launch, Signal.KILL))

    def leave_all(self) -> None:
        """Watch no container any more: they run on."""
        for container in self.containers.values():
            _close(container)

    def _begin(self, container: ReacquiredContainer) -> None:
        self._send(ContainerLaunched(container.container_id, container.launch))
        self._find_process(container)

    def _find_process(self, container: ReacquiredContainer) -> None:
        """Look for the session leader. The earlier NodeManager may have died before the pid file was written."""
        loop = asyncio.get_running_loop()
        pid = read_pid(container.pid_file)
        if pid is None and container.pid_file and loop.time() < container.deadline_s:
            loop.call_later(_POLL_S, self._find_process, container)
            return
        if pid is None:
            _logger.warning("cannot locate the pid file of container=%s", container.container_id)
        elif _is_leader_of(pid, container):
            try:
                container.pid_fd = os.pidfd_open(pid)
            except OSError:
                pid = None
        else:
            pid = None
        if pid is None:
            self._find_exit_code(container, loop.time() + self._wait_s)
            return
        container.pid = pid
        _logger.info("reacquired container=%s pid=%d", container.container_id, pid)
        loop.add_reader(container.pid_fd, self._exited, container)
        pending, container.pending_signals = container.pending_signals, []
        for effect in pending:
            self._deliver(container, effect)

    def _deliver(self, container: ReacquiredContainer, effect: SignalProcess) -> None:
        assert container.pid is not None, "signals wait until it is known"
        delivered = signal_group(container.pid, effect.signal.value)
        container.killed = container.killed or effect.signal is Signal.KILL
        if effect.command:
            event = ContainerSignalled(container.container_id, effect.command, effect.signal, container.pid, delivered)
            asyncio.get_running_loop().call_soon(self._send, event)

    def _exited(self, container: ReacquiredContainer) -> None:
        _close(container)
        self._find_exit_code(container, asyncio.get_running_loop().time() + self._wait_s)

    def _find_exit_code(self, container: ReacquiredContainer, deadline_s: float) -> None:
        """Report the exit code in its file, or LOST if there is none in time."""
        loop = asyncio.get_running_loop()
        code = read_pid(f"{container.pid_file}.exitcode") if container.pid_file else None
        if code is None and container.pid_file and loop.time() < deadline_s:
            loop.call_later(_POLL_S, self._find_exit_code, container, deadline_s)
            return
        container.exited = True
        if container.killed:
            self._signal_orphans(container, Signal.KILL)
        if all(other.exited for other in self.containers.values()):
            self.idle.set()
        exit_code = ContainerExitStatus.LOST if code is None else code
        self._send(ContainerExited(container.container_id, container.launch, exit_code))

    def _signal_orphans(self, container: ReacquiredContainer, sent: Signal) -> None:
        """Send a signal to the processes that an exited container left in its group; after KILL, forget it."""
        group = container.pid if container.pid is not None else read_pid(container.pid_file)
        if group is not None and group_exists(group) and is_group_of(group, str(container.container_id)):
            signal_group(group, sent.value)
        if sent is Signal.KILL and self.containers.get(container.container_id) is container:
            del self.containers[container.container_id]
            if self._cgroups is not None:
                self._cgroups.leave(container.container_id)

    def _find_pid_file(self, container_id: ContainerId) -> str:
        """The path of the pid file on the disk where the container's private directory is, "" if there is none."""
        for local in self._directories.local_dirs:
            private = private_dir(local, container_id)
            if os.path.isdir(private):
                return f"{private}/{container_id}.pid"
        return ""


def _is_leader_of(pid: int, container: ReacquiredContainer) -> bool:
    """True if the process leads a session, has the container's tag or none, and is as old as its pid file."""
    found = stat_of(pid)
    if found is None or found.session != pid:
        return False
    tag = environment_of(pid).get("CONTAINER_ID")
    if tag not in (None, str(container.container_id)):
        return False
    try:
        written_s = os.stat(container.pid_file).st_mtime
    except OSError:
        return False
    return started_s_of(found, time.time()) <= written_s + _CLOCK_SLACK_S


def _close(container: ReacquiredContainer) -> None:
    if container.pid_fd >= 0:
        asyncio.get_running_loop().remove_reader(container.pid_fd)
        os.close(container.pid_fd)
        container.pid_fd = -1
