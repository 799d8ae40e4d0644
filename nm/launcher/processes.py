"""Processes of containers by the kernel's own word: who they are, and signals to the right ones only.

A process id alone says nothing: it may have been given to another process meanwhile. So nothing here is signalled
before it is known again: by its parent (the wrapper that the NM holds), or by the tag in its environment.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import NamedTuple

_PROC = "/proc"


class ProcessStat(NamedTuple):
    """What /proc/<pid>/stat tells. `started_ticks` counts from the boot: with the pid it names a process for good."""

    pid: int
    parent: int
    group: int
    session: int
    started_ticks: int


def stat_of(pid: int) -> ProcessStat | None:
    """The process with this id, None if there is none (any more)."""
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name stands in parentheses and may hold anything: the last one ends it.
    fields = text[text.rfind(b")") + 2 :].split()
    return ProcessStat(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


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
    """Every process of the machine that can be seen."""
    for name in os.listdir(_PROC):
        if name.isdecimal():
            found = stat_of(int(name))
            if found is not None:
                yield found


def group_exists(group: int) -> bool:
    """True if any process is in the group."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def signal_group(group: int, number: int) -> bool:
    """Send a signal to every process of a group that is known to be ours; False if none is left or none may be."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_group_of(group: int, container_id: str) -> bool:
    """True if every process of the group that shows its environment carries the container's tag, and one does.

    For a group whose leader is gone: its members were started by the container and have its environment, unless they
    replaced it.
    """
    tags = {
        environment_of(process.pid).get("CONTAINER_ID") for process in all_processes() if process.group == group
    } - {None}
    return tags == {container_id}


def kill_process(process: ProcessStat) -> bool:
    """KILL one process, through a descriptor that cannot come to mean another one; False if it is gone already."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        # Not its parent: that may have ended since, then it has another one.
        now = stat_of(process.pid)
        if now is None or now.started_ticks != process.started_ticks:
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
