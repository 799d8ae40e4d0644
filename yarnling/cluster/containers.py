"""What the containers of a cluster leave on this machine: log files and, while they run, processes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import psutil
from msgspec import Struct

from yarn.errors import InvalidIdException
from yarn.ids import ApplicationId, ContainerId
from yarnling.cluster.processes import descendants

TEXT_LENGTH_MAX = 16 * 1024 * 1024
"""How many bytes are read from one log file at most; a log may have any size."""

NO_OUTPUT = frozenset({"launch_container.sh", "directory.info", "prelaunch.out"})
"""Files that the NodeManager writes to help debug a launch."""


class ContainerLog(Struct, frozen=True):
    """A log file of a container, for example its stdout."""

    container_id: ContainerId
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def is_output(self) -> bool:
        """True for output of the container: not for the NodeManager's own files, nor for an empty prelaunch.err."""
        if self.name == "prelaunch.err":
            return self.path.stat().st_size > 0
        return self.name not in NO_OUTPUT

    def text(self, bytes_max: int = TEXT_LENGTH_MAX) -> str:
        """The last `bytes_max` bytes of the file as text. Bytes that are not UTF-8 are replaced."""
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - bytes_max))
            return file.read(bytes_max).decode(errors="replace")


def find_logs(log_dirs: Iterable[Path], app_id: ApplicationId) -> list[ContainerLog]:
    """The files `<log dir>/<application>/<container>/<file>` of all directories, sorted by container and name."""
    logs: list[ContainerLog] = []
    for log_dir in log_dirs:
        for path in (log_dir / str(app_id)).glob("container_*/*"):
            container_id = _container_id(path.parent.name)
            if container_id is not None and path.is_file() and not path.is_symlink():
                logs.append(ContainerLog(container_id, path))
    return sorted(logs, key=lambda log: (log.container_id, log.name))


def processes_of(container_id: ContainerId, below: int | None = None) -> list[psutil.Process]:
    """The processes of a container, found by the variable CONTAINER_ID that YARN sets in each of them.

    If `below` is given, only the descendants of this process id are searched, for example of a cluster's fork server.
    """
    wanted = f"CONTAINER_ID={container_id}".encode()
    processes = psutil.process_iter() if below is None else descendants(below)
    return [process for process in processes if wanted in _environment(process)]


def _container_id(name: str) -> ContainerId | None:
    try:
        return ContainerId.parse(name)
    except InvalidIdException:
        return None


def _environment(process: psutil.Process) -> list[bytes]:
    """The environment that the process was started with; empty if the process has ended."""
    try:
        return Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
