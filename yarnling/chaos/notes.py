"""What containers note of themselves: that they began, that they live, how they ended. See note.sh.

The containers are the only ones who know what really ran: a ResourceManager tells what it believes.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from msgspec.structs import replace

from yarn.applications import ApplicationSubmissionContext
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarnling.chaos.history import Life, Role

SCRIPT = Path(__file__).with_name("note.sh")
FRESH_S = 1.0
"""A process whose last note is older than that counts as ended; ten notes were missed."""
FIRST_HOST = 2
"""Node 1 is 127.0.0.2 (ClusterDirectory)."""
_EXEC = "exec "


def now_s() -> float:
    """The time as notes have it: since the machine's start, whatever is done to its clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Notes:
    """The notes of one run's containers, in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def command(self, role: Role, seconds: float | None) -> str:
        """A command line that works for so long, or until it is ended."""
        lasts = "-" if seconds is None else str(round(seconds * 100))
        return f"exec {self._script()} {role.value} {lasts}"

    def with_master(self, context: ApplicationSubmissionContext) -> ApplicationSubmissionContext:
        """The same application, whose masters note that they live."""
        container = context.am_container
        commands = tuple(
            f"exec {self._script()} {Role.MASTER.value} {command.removeprefix(_EXEC)}" for command in container.commands
        )
        return replace(context, am_container=replace(container, commands=commands))

    def read(self) -> list[Life]:
        """All lives so far, in the order of their starts."""
        lives = [life for path in self._directory.iterdir() if (life := _read(path)) is not None]
        return sorted(lives, key=lambda life: (life.start_s, str(life.container_id)))

    def alive(self, *roles: Role) -> list[Life]:
        """Those in these roles that have noted something just now, in the order of their ids."""
        now = now_s()
        fresh = [
            life for life in self.read() if life.role in roles and life.status is None and now - life.last_s < FRESH_S
        ]
        return sorted(fresh, key=lambda life: str(life.container_id))

    def _script(self) -> str:
        return shlex.join(["/bin/bash", str(SCRIPT), str(self._directory)])


def _read(path: Path) -> Life | None:
    """One file; None while it has no whole first line. A last line that is cut off says nothing."""
    name, _, pid = path.name.rpartition(".")
    lines = path.read_text().split("\n")[:-1]
    if not lines:
        return None
    try:
        role, task, host, begun = lines[0].split()
        last, status = int(lines[-1].split()[-1]), None
        if lines[-1].startswith("end "):
            status = int(lines[-1].split()[1])
        node = int(host.rpartition(".")[2]) - FIRST_HOST + 1
        return Life(
            ContainerId.parse(name), Role(role), int(pid), node, int(begun) / 100, last / 100, status, int(task)
        )
    except (ValueError, YarnException):
        return None
