"""Notes that container processes write about themselves: that they started, still live, or exited. See note.sh.

Only the containers know what really ran; the ResourceManager reports what it believes.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from msgspec.structs import replace

from am.programs.gang.application_master import HOSTS, RANK, TRY, read_member
from yarn.applications import ApplicationSubmissionContext
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarnling.faults.history import ProcessRole, ProcessSpan

SCRIPT = Path(__file__).with_name("note.sh")
FRESH_S = 1.0
"""The age in seconds at which a process's last note proves that it has ended: the process has missed ten notes."""
FIRST_HOST = 2
"""The last part of the address of node 1, which is 127.0.0.2 (ClusterDirectory)."""
_EXEC = "exec "
_IGNORE_TERM = "trap '' TERM; "
"""A signal that is ignored stays ignored in the program that follows."""


def now_s() -> float:
    """The current time on the clock of the notes: seconds since boot, unaffected by changes of the system time."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ProcessNotes:
    """The notes of the containers of one run, in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def command(self, role: ProcessRole, seconds: float | None, *, ignores_term: bool = False) -> str:
        """A command line that writes notes and runs for `seconds`; None: until it is killed."""
        lasts = "-" if seconds is None else str(round(seconds * 100))
        first = _IGNORE_TERM if ignores_term else ""
        return f"{first}exec {self._script()} {role.value} {lasts}"

    def with_master(
        self, context: ApplicationSubmissionContext, *, ignores_term: bool = False
    ) -> ApplicationSubmissionContext:
        """A copy of the submission context in which the ApplicationMasters write notes."""
        container = context.am_container
        first = f"{_IGNORE_TERM if ignores_term else ''}exec {self._script()} {ProcessRole.MASTER.value}"
        commands = tuple(f"{first} {command.removeprefix(_EXEC)}" for command in container.commands)
        return replace(context, am_container=replace(container, commands=commands))

    def read(self) -> list[ProcessSpan]:
        """All processes that have written notes so far, by start time."""
        spans = [span for path in self._directory.iterdir() if (span := _read(path)) is not None]
        return sorted(spans, key=lambda span: (span.start_s, str(span.container_id)))

    def alive(self, *roles: ProcessRole) -> list[ProcessSpan]:
        """The processes in these roles that are running now, ordered by container id."""
        now = now_s()
        fresh = [
            span for span in self.read() if span.role in roles and span.status is None and now - span.last_s < FRESH_S
        ]
        return sorted(fresh, key=lambda span: str(span.container_id))

    def _script(self) -> str:
        return shlex.join(["/bin/bash", str(SCRIPT), str(self._directory)])


def _read(path: Path) -> ProcessSpan | None:
    """Read the notes in one file. Returns None if the first line is incomplete; an incomplete last line is ignored."""
    name, _, pid = path.name.rpartition(".")
    lines = path.read_text().split("\n")[:-1]
    if not lines:
        return None
    try:
        role, task, host, started, *gang = lines[0].split()
        last, status = int(lines[-1].split()[-1]), None
        if lines[-1].startswith("end "):
            status = int(lines[-1].split()[1])
        node = int(host.rpartition(".")[2]) - FIRST_HOST + 1
        return ProcessSpan(
            ContainerId.parse(name),
            ProcessRole(role),
            int(pid),
            node,
            int(started) / 100,
            last / 100,
            status,
            int(task),
            read_member(dict(zip((TRY, RANK, HOSTS), gang, strict=True))) if gang else None,
        )
    except (ValueError, YarnException):
        return None
