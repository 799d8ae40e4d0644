"""The places of NodeManagers that recover: an address that a node keeps, and a directory of its own for its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from nm.shell.recovery_store import FILE_NAME
from wire.files.store_file import store_files
from yarn.settings import nodemanager
from yarnling.cluster.directory import NodePlace

RECOVERY = "nm-recovery"


class NodeRecoveryPlaces:
    """The places of the processes of one cluster. `reserve` keeps an address for a node while its process is down."""

    def __init__(self, reserve: Callable[[str], str]) -> None:
        self._reserve = reserve
        self._addresses: dict[str, str] = {}

    def overrides(self, place: NodePlace, home: Path, values: Mapping[str, str]) -> dict[str, str]:
        """{key: value} for the process of `place`, whose directory is `home` and whose other values are `values`.

        The state that an earlier cluster left there is deleted: none of its processes is left.
        """
        configured = values.get(nodemanager.RECOVERY_DIR.key)
        directory = Path(configured, place.process) if configured else home / RECOVERY
        if place.process not in self._addresses:
            self._addresses[place.process] = self._reserve(values[nodemanager.ADDRESS.key])
            for state in (directory / FILE_NAME, *directory.glob(f"*/{FILE_NAME}")):
                for file in store_files(state):
                    file.unlink(missing_ok=True)
        return {
            nodemanager.ADDRESS.key: self._addresses[place.process],
            nodemanager.RECOVERY_DIR.key: str(directory),
        }
