"""Moves aside the files in a node's directories that the stored state of an earlier NodeManager does not name.

These are the files of containers and applications that have ended, whose deletion was under way, and copies of files
that were being fetched. Names below these directories are the containers' choice, so no link on the way is followed.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from nm.core.stored_state import RecoveredContainerStatus, RecoveredNode
from nm.launcher.directories import APPCACHE, FILECACHE, NM_PRIVATE, USERCACHE, NodeDirectories, descend

_CONTAINER = "container_"
_ASIDE = "_DEL_"


def move_unknown_aside(directories: NodeDirectories, state: RecoveredNode) -> list[str]:
    """Rename what `state` does not name. Returns the new paths, which are to be deleted."""
    return [path for local in directories.local_dirs for path in _LocalDirectory(local, state).move()]


class _LocalDirectory:
    """A local directory of the node."""

    def __init__(self, local: str, state: RecoveredNode) -> None:
        self._local = local
        self._applications = {str(application.application_id) for application in state.applications}
        self._containers = {
            str(container.token.container_id)
            for container in state.containers
            if container.progress.status is not RecoveredContainerStatus.COMPLETED
        }
        self._copies = {os.path.dirname(resource.path) for resource in state.resources}
        self._stamp = time.time_ns()
        self._moved: list[str] = []

    def move(self) -> list[str]:
        """Move everything unknown; returns where it is, with what earlier NodeManagers have moved."""
        earlier = [f"{self._local}/{name}" for name in self._names() if _ASIDE in name]
        self._check_copies((FILECACHE,))
        for user in self._names(USERCACHE):
            self._check_copies((USERCACHE, user, FILECACHE))
            self._check_applications((USERCACHE, user, APPCACHE))
        self._check_applications((NM_PRIVATE,))
        return [*earlier, *self._moved]

    def _check_applications(self, parts: tuple[str, ...]) -> None:
        for application in self._names(*parts):
            below = (*parts, application)
            if application not in self._applications:
                self._move(parts, application)
                continue
            self._check_copies((*below, FILECACHE))
            for name in self._names(*below):
                if name.startswith(_CONTAINER) and name not in self._containers:
                    self._move(below, name)

    def _check_copies(self, parts: tuple[str, ...]) -> None:
        for name in self._names(*parts):
            if os.path.join(self._local, *parts, name) not in self._copies:
                self._move(parts, name)

    def _names(self, *parts: str) -> list[str]:
        """The names in a directory, sorted; empty if it cannot be read."""
        try:
            directory = descend(self._local, parts)
        except (OSError, ValueError):
            return []
        try:
            return sorted(os.listdir(directory))
        except OSError:
            return []
        finally:
            os.close(directory)

    def _move(self, parts: tuple[str, ...], name: str) -> None:
        aside = f"{NM_PRIVATE}{_ASIDE}{self._stamp}_{len(self._moved)}"
        with suppress(OSError, ValueError):
            source, target = descend(self._local, parts), descend(self._local, ())
            try:
                os.rename(name, aside, src_dir_fd=source, dst_dir_fd=target)
            finally:
                os.close(source)
                os.close(target)
            self._moved.append(f"{self._local}/{aside}")
