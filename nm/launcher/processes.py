"""Processes of containers as the kernel shows them, and signals that only reach processes of containers.

A process id alone does not identify a process: the kernel may have reused it. So before a process gets a signal, it is
identified by its parent (the wrapper, which is the NM's own child) or by its tag: the variables that all processes of a
container carry in their environment.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from nm.launcher.directories import is_below

_PROC = "/proc"
_ROUNDS_MAX = 50
"""The number of looks for processes to kill. A process that forks while it is killed is found in the next round; a
process that survives all rounds cannot be killed."""
_ROUND_S = 0.02


class ProcessStat(NamedTuple):
    """A process as described by /proc/<pid>/stat.

    `started_ticks` is the start time in clock ticks since boot. Process id and start time together identify a process.
    """

    pid: int
    parent: int
    group: int
    session: int
    started_ticks: int


def stat_of(pid: int) -> ProcessStat | None:
    """The process with this id; None if it does not exist."""
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name is in parentheses and may contain any character, so the last parenthesis ends it.
    fields = text[text.rfind(b")") + 2 :].split()
    return ProcessStat(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def started_s_of(process: ProcessStat, now_s: float) -> float:
    """The start of a process in seconds of the clock that shows `now_s` now."""
    up_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    return now_s - up_s + process.started_ticks / os.sysconf("SC_CLK_TCK")


def environment_of(pid: int) -> dict[str, str]:
    """The variables that a process was started with; empty if they cannot be read."""
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:
            text = file.read()
    except OSError:
        return {}
    pairs = (part.partition(b"=") for part in text.split(b"\0") if b"=" in part)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def all_processes() -> Iterator[ProcessStat]:
    """Yield every process of the machine that is visible to this one."""
    for name in os.listdir(_PROC):
        if name.isdecimal():
            found = stat_of(int(name))
            if found is not None:
                yield found


def group_exists(group: int) -> bool:
    """True if the process group has at least one process."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def signal_group(group: int, number: int) -> bool:
    """Send a signal to every process of a container's group; False if no process received it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_group_of(group: int, container_id: str) -> bool:
    """True if the processes of a group belong to the container.

    At least one process of the group must have the container's id in its CONTAINER_ID variable, and none may have
    another id. A process without this variable, or whose environment cannot be read, does not count.

    The check is for a group whose leader has exited, so that the leader's process id may have been reused. The other
    processes that the container started have its environment, unless they replaced it.
    """
    tags = {
        environment_of(process.pid).get("CONTAINER_ID") for process in all_processes() if process.group == group
    } - {None}
    return tags == {container_id}


def kill_process(process: ProcessStat) -> bool:
    """Send KILL to one process, through a pidfd, so that no later process with the same id is hit.

    Returns False if the process has exited.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        # The parent is not compared, because it changes if the parent process exits.
        now = stat_of(process.pid)
        if now is None or now.started_ticks != process.started_ticks:
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def kill_orphans(local_dirs: Sequence[str], spared: Collection[str] = ()) -> list[ProcessStat]:
    """Send KILL to every process of a container that ran in these directories. Returns the processes found.

    Those of the containers in `spared` (their ids) are left alone.

    A container's processes have two variables in their environment: CONTAINER_ID, and HADOOP_TOKEN_FILE_LOCATION with a
    path below a directory of their NM, which no other NM uses. Returns when no such process is left, or after a second;
    a process that is left then cannot be killed.
    """
    found: dict[tuple[int, int], ProcessStat] = {}
    for _ in range(_ROUNDS_MAX):
        # Kill parents first: a parent that saw its child killed would report to its AM that the child has failed.
        alive = sorted(_container_processes(local_dirs, spared), key=attrgetter("started_ticks", "pid"))
        if not alive:
            break
        for process in alive:
            found[process.pid, process.started_ticks] = process
            kill_process(process)
        time.sleep(_ROUND_S)
    return list(found.values())


def _container_processes(local_dirs: Sequence[str], spared: Collection[str]) -> Iterator[ProcessStat]:
    for process in all_processes():
        variables = environment_of(process.pid)
        token_file = variables.get("HADOOP_TOKEN_FILE_LOCATION", "")
        container_id = variables.get("CONTAINER_ID", "")
        if (
            container_id.startswith("container_")
            and container_id not in spared
            and any(is_below(token_file, directory) for directory in local_dirs)
        ):
            yield process
