"""What containers have written: the files in the NodeManagers' log directories of this machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from yarn.errors import InvalidIdException
from yarn.ids import ApplicationId, ContainerId

TEXT_BYTES_MAX = 16 * 1024 * 1024
"""What is read of one file at once; a log may be any size."""

NO_OUTPUT = frozenset({"launch_container.sh", "directory.info", "prelaunch.out"})
"""Files that the NodeManager writes for someone who examines a launch."""


class ContainerLog(Struct, frozen=True):
    """A file that a container wrote, such as stdout."""

    container_id: ContainerId
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def is_output(self) -> bool:
        """False for the NodeManager's own files, and for prelaunch.err while no error is in it."""
        if self.name == "prelaunch.err":
            return self.path.stat().st_size > 0
        return self.name not in NO_OUTPUT

    def text(self, bytes_max: int = TEXT_BYTES_MAX) -> str:
        """The last `bytes_max` bytes; what is not UTF-8 is replaced."""
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - bytes_max))
            return file.read(bytes_max).decode(errors="replace")


def find_logs(log_dirs: Iterable[Path], app_id: ApplicationId) -> list[ContainerLog]:
    """`<log dir>/<application>/<container>/<file>` of all directories, ordered by container and name."""
    logs: list[ContainerLog] = []
    for log_dir in log_dirs:
        for path in (log_dir / str(app_id)).glob("container_*/*"):
            container_id = _container_id(path.parent.name)
            if container_id is not None and path.is_file() and not path.is_symlink():
                logs.append(ContainerLog(container_id, path))
    return sorted(logs, key=lambda log: (log.container_id, log.name))


def _container_id(name: str) -> ContainerId | None:
    try:
        return ContainerId.parse(name)
    except InvalidIdException:
        return None
