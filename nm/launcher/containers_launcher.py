"""Runs containers as processes: starts them, sends signals, reports exits (ContainersLauncher,
DefaultContainerExecutor).

Each container is one child process of the NM, the wrapper: a bash that waits for the container's session and exits with
its exit code. The NM watches a file descriptor of the wrapper (pidfd) in its event loop, so a container needs neither a
thread nor polling.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from nm.core.container_limits import ProcessSample
from nm.core.effects import ChangeMonitoring, LaunchContainer, ReacquireContainer, Signal, SignalProcess
from nm.core.events import (
    ContainerExited,
    ContainerLaunched,
    ContainerSignalled,
    ErrorLogs,
    Event,
    LaunchCancelled,
    LaunchFailed,
)
from nm.core.launch_script import Directories, NodeEnvironment
from nm.emulation.launcher import EmulatedLauncher
from nm.launcher.cgroups import CpuCgroups
from nm.launcher.directories import DisksFailed, NodeDirectories
from nm.launcher.files import PreparedLaunch, prepare_launch, read_error_logs, read_pid
from nm.launcher.processes import group_exists, is_group_of, signal_group, stat_of
from nm.launcher.reacquired_containers import ReacquiredContainers
from yarn.ids import ContainerId
from yarn.states import ContainerExitStatus

_logger = logging.getLogger(f"yarnling.{__name__}")

_LAUNCH_FAILED = -1
_PID_POLL_S: Final = 0.005
_WRAPPER_TEXT_MAX = 64 * 1024
_SIGNAL_BASE = 128


@dataclass(slots=True)
class LaunchedContainer:
    """A launch of a container's process.

    The launcher keeps this object until KILL has been sent to all processes of the launch. `pid` is the process id of
    the session leader, None until it is known; `pending_signals` wait for it. `killed` is True once KILL was sent; no
    other signal follows.
    """

    container_id: ContainerId
    launch: int
    prepared: PreparedLaunch
    wrapper: subprocess.Popen[bytes]
    wrapper_fd: int
    stdin_fd: int
    error_fd: int
    output_fd: int
    started_s: float
    pid: int | None = None
    exited: bool = False
    killed: bool = False
    pending_signals: list[SignalProcess] = field(default_factory=list)


class ContainersLauncher:
    """The running containers of a node, by id.

    `send` receives the events; `launch` and `signal` never call it before they return. `idle` is set while no process
    runs. `has_launched` is True once a process was started.
    """

    def __init__(
        self,
        node: NodeEnvironment,
        directories: NodeDirectories,
        send: Callable[[Event], None],
        *,
        stderr_pattern: str = "{*stderr*,*STDERR*}",
        stderr_tail_bytes: int = 4096,
        debug: bool = True,
        kill_wait_ms: int = 5000,
        disks_problem: Callable[[], str] = lambda: "",
        cgroups: CpuCgroups | None = None,
    ) -> None:
        self.launched: dict[ContainerId, LaunchedContainer] = {}
        self.has_launched = False
        self.idle = asyncio.Event()
        self.idle.set()
        self._node = node
        self._directories = directories
        self._send = send
        self._stderr_pattern = stderr_pattern
        self._stderr_tail_bytes = stderr_tail_bytes
        self._debug = debug
        self._kill_wait_s = kill_wait_ms / 1000
        self._disks_problem = disks_problem
        self._cgroups = cgroups
        self._chosen: dict[ContainerId, Directories] = {}
        self._pending: dict[ContainerId, LaunchContainer] = {}

    def launch(self, effect: LaunchContainer) -> None:
        """Start the process in the loop's next turn; a signal that comes before that cancels the launch."""
        self._pending[effect.container_id] = effect
        asyncio.get_running_loop().call_soon(self._launch, effect)

    def signal(self, effect: SignalProcess) -> None:
        """Send a signal to the container's process group, as soon as the group exists."""
        pending = self._pending.get(effect.container_id)
        if pending is not None and pending.launch == effect.launch:
            if effect.signal is not Signal.QUIT and not effect.command:
                del self._pending[effect.container_id]
                self._send_soon(LaunchCancelled(effect.container_id, effect.launch))
            return
        launched = self.launched.get(effect.container_id)
        if launched is None or launched.launch != effect.launch:
            return
        if launched.exited:
            self._signal_orphans(launched, effect.signal)
        else:
            launched.pending_signals.append(effect)
            self._send_pending(launched)

    def change_cpu(self, effect: ChangeMonitoring) -> None:
        """Set the CPU share of a running container to that of its new size."""
        if self._cgroups is not None:
            self._cgroups.change(effect.container_id, effect.vcores, opportunistic=effect.opportunistic)

    def is_running(self, container_id: ContainerId) -> bool:
        launched = self.launched.get(container_id)
        return launched is not None and not launched.exited

    def pid_of(self, container_id: ContainerId) -> int | None:
        """The process id of the session leader; None before it has started and after it has exited."""
        launched = self.launched.get(container_id)
        if launched is None or launched.exited:
            return None
        return self._find_pid(launched)

    def kill_all(self) -> None:
        """Send KILL to every process group, because the node stops."""
        for launched in list(self.launched.values()):
            if launched.exited:
                self._signal_orphans(launched, Signal.KILL)
            else:
                launched.pending_signals.append(SignalProcess(launched.container_id, launched.launch, Signal.KILL))
                self._send_pending(launched)

    def leave_all(self) -> None:
        """Watch no container any more: they run on, for the next NodeManager."""
        for launched in self.launched.values():
            if not launched.exited:
                asyncio.get_running_loop().remove_reader(launched.wrapper_fd)
                for descriptor in (launched.wrapper_fd, launched.stdin_fd, launched.error_fd, launched.output_fd):
                    os.close(descriptor)
                # Without it, Python warns that the process was not waited for.
                launched.wrapper.returncode = 0
        self.launched.clear()

    def _launch(self, effect: LaunchContainer) -> None:
        if self._pending.get(effect.container_id) is not effect:
            return
        del self._pending[effect.container_id]
        try:
            launched = self._start(effect)
        except DisksFailed as error:
            self._fail(effect, ContainerExitStatus.DISKS_FAILED, str(error))
        except OSError as error:
            self._fail(effect, _LAUNCH_FAILED, _describe(error))
        except Exception as bug:
            # An exception would be lost in this callback, and a launch without an answer would never end.
            _logger.exception("cannot launch container=%s", effect.container_id)
            self._fail(effect, _LAUNCH_FAILED, f"{type(bug).__name__}: {bug}")
        else:
            self.launched[effect.container_id] = launched
            self.has_launched = True
            self.idle.clear()
            self._send(ContainerLaunched(effect.container_id, effect.launch))
            loop = asyncio.get_running_loop()
            loop.add_reader(launched.wrapper_fd, self._exited, launched)

    def _start(self, effect: LaunchContainer) -> LaunchedContainer:
        problem = self._disks_problem()
        if problem:
            raise DisksFailed(f"Most of the disks failed. {problem}")
        earlier = self.launched.pop(effect.container_id, None)
        if earlier is not None:
            self._signal_orphans(earlier, Signal.KILL)
        chosen = self._chosen.get(effect.container_id)
        if chosen is None:
            chosen = self._directories.for_launch(effect.container_id, effect.user)
            self._chosen[effect.container_id] = chosen
        procs = ""
        if self._cgroups is not None:
            procs = self._cgroups.enter(effect.container_id, effect.resource.vcores, opportunistic=effect.opportunistic)
        prepared = prepare_launch(
            effect,
            node=self._node,
            directories=self._directories,
            chosen=chosen,
            debug=self._debug,
            cgroup_procs=procs,
        )
        return _start_wrapper(effect, prepared)

    def _fail(self, effect: LaunchContainer, exit_status: int, problem: str) -> None:
        self._forget(effect.container_id)
        self._send(LaunchFailed(effect.container_id, effect.launch, exit_status, problem))

    def _send_soon(self, event: Event) -> None:
        asyncio.get_running_loop().call_soon(self._send, event)

    def _exited(self, launched: LaunchedContainer) -> None:
        asyncio.get_running_loop().remove_reader(launched.wrapper_fd)
        code = launched.wrapper.wait()
        # This is the last chance to read the pid: orphans of the container are found by its process group.
        if launched.pid is None:
            launched.pid = read_pid(launched.prepared.pid_file)
        launched.exited = True
        error, output = _drain(launched.error_fd), _drain(launched.output_fd)
        for descriptor in (launched.wrapper_fd, launched.stdin_fd):
            os.close(descriptor)
        exit_code = code if code >= 0 else _SIGNAL_BASE - code
        failed = exit_code not in (0, ContainerExitStatus.FORCE_KILLED, ContainerExitStatus.TERMINATED)
        log_dir = launched.prepared.directories.log_dir
        logs = self._error_logs(log_dir) if failed else ErrorLogs()
        for effect in launched.pending_signals:
            self._signal_orphans(launched, effect.signal)
        launched.pending_signals.clear()
        if launched.killed:
            self._signal_orphans(launched, Signal.KILL)
        if all(other.exited for other in self.launched.values()):
            self.idle.set()
        self._send(ContainerExited(launched.container_id, launched.launch, exit_code, error, output, logs))

    def _error_logs(self, log_dir: str) -> ErrorLogs:
        return read_error_logs(self._directories, log_dir, self._stderr_pattern, self._stderr_tail_bytes)

    def _signal_orphans(self, launched: LaunchedContainer, sent: Signal) -> None:
        """Send a signal to the processes that an exited container left in its group.

        After KILL, forget the container.
        """
        group = launched.pid
        if group is not None and group_exists(group) and is_group_of(group, str(launched.container_id)):
            signal_group(group, sent.value)
        if sent is Signal.KILL and self.launched.get(launched.container_id) is launched:
            del self.launched[launched.container_id]
            self._forget(launched.container_id)

    def _forget(self, container_id: ContainerId) -> None:
        self._chosen.pop(container_id, None)
        if self._cgroups is not None:
            self._cgroups.leave(container_id)

    def _send_pending(self, launched: LaunchedContainer) -> None:
        """Send the pending signals once the container has its session; until then, try again a little later."""
        if launched.exited or not launched.pending_signals:
            return
        pid = self._find_pid(launched)
        if pid is None and time.monotonic() - launched.started_s > self._kill_wait_s:
            # The container never made its session. The wrapper leads a group of its own and is known to be the NM's
            # child.
            pid = launched.wrapper.pid
        if pid is None:
            asyncio.get_running_loop().call_later(_PID_POLL_S, self._send_pending, launched)
            return
        pending, launched.pending_signals = launched.pending_signals, []
        for effect in pending:
            delivered = signal_group(pid, effect.signal.value)
            launched.killed = launched.killed or effect.signal is Signal.KILL
            if effect.command:
                event = ContainerSignalled(launched.container_id, effect.command, effect.signal, pid, delivered)
                self._send_soon(event)

    def _find_pid(self, launched: LaunchedContainer) -> int | None:
        """The process id of the session leader: that in the pid file, if this process is the wrapper's child and leads
        a session.
        """
        pid = launched.pid if launched.pid is not None else read_pid(launched.prepared.pid_file)
        if pid is None:
            return None
        found = stat_of(pid)
        if found is None or found.parent != launched.wrapper.pid or found.session != pid:
            return None
        launched.pid = pid
        return pid


def _start_wrapper(effect: LaunchContainer, prepared: PreparedLaunch) -> LaunchedContainer:
    """Start the wrapper.

    The wrapper gets a session of its own, so that Ctrl-C in a terminal does not reach it. Its standard input stays
    open.
    """
    read_fd, stdin_fd = os.pipe()
    error_fd, output_fd = os.memfd_create("wrapper-error"), os.memfd_create("wrapper-output")
    try:
        wrapper = subprocess.Popen(
            ["bash", prepared.wrapper],
            executable="/bin/bash",
            stdin=read_fd,
            stdout=output_fd,
            stderr=error_fd,
            cwd=prepared.directories.work_dir,
            env=prepared.variables.of_node,
            start_new_session=True,
        )
        wrapper_fd = os.pidfd_open(wrapper.pid)
    except (OSError, ValueError) as error:
        for descriptor in (stdin_fd, error_fd, output_fd):
            os.close(descriptor)
        raise OSError(str(error)) from error
    finally:
        os.close(read_fd)
    return LaunchedContainer(
        effect.container_id,
        effect.launch,
        prepared,
        wrapper,
        wrapper_fd,
        stdin_fd,
        error_fd,
        output_fd,
        time.monotonic(),
    )


def _drain(descriptor: int) -> str:
    with open(descriptor, "rb") as file:
        file.seek(0)
        return file.read(_WRAPPER_TEXT_MAX).decode("utf-8", "replace")


def _describe(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


class Launchers:
    """Passes each container to the part that runs it: as a process, one of an earlier NodeManager, or emulated."""

    def __init__(self, real: ContainersLauncher, reacquired: ReacquiredContainers, emulated: EmulatedLauncher) -> None:
        self.real = real
        self.reacquired = reacquired
        self.emulated = emulated

    @property
    def has_launched(self) -> bool:
        """True once a process was started or reacquired."""
        return self.real.has_launched or self.reacquired.has_reacquired

    def launch(self, effect: LaunchContainer) -> None:
        if effect.emulation:
            self.emulated.launch(effect)
        else:
            self.reacquired.drop(effect.container_id)
            self.real.launch(effect)

    def reacquire(self, effect: ReacquireContainer) -> None:
        if effect.effect.emulation:
            self.emulated.reacquire(effect)
        else:
            self.reacquired.reacquire(effect)

    def signal(self, effect: SignalProcess) -> None:
        if self.emulated.has(effect.container_id):
            self.emulated.signal(effect)
        elif self.reacquired.has(effect.container_id):
            self.reacquired.signal(effect)
        else:
            self.real.signal(effect)

    def change_cpu(self, effect: ChangeMonitoring) -> None:
        self.real.change_cpu(effect)

    def is_running(self, container_id: ContainerId) -> bool:
        parts = (self.real, self.reacquired, self.emulated)
        return any(part.is_running(container_id) for part in parts)

    def pid_of(self, container_id: ContainerId) -> int | None:
        """The process id of the session leader; None before it has started and after it has exited."""
        return self.real.pid_of(container_id) or self.reacquired.pid_of(container_id)

    def emulated_sample(self, container_id: ContainerId) -> ProcessSample | None:
        """The usage of an emulated container; None for a container with processes."""
        return self.emulated.sample(container_id)

    def kill_all(self) -> None:
        self.real.kill_all()
        self.reacquired.kill_all()
        self.emulated.kill_all()

    def leave_all(self) -> None:
        """Watch no container any more: the node ends, and they run on."""
        self.real.leave_all()
        self.reacquired.leave_all()

    async def wait_idle(self) -> None:
        """Wait until no container runs."""
        await self.real.idle.wait()
        await self.reacquired.idle.wait()
        await self.emulated.idle.wait()
