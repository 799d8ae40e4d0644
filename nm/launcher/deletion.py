"""Deletes what containers and applications leave behind, one after the other and never in the event loop's way."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Sequence

from nm.effects import DeleteApplicationFiles, DeleteApplicationLogs, DeleteContainerFiles, DeleteResource
from nm.launcher.directories import NM_PRIVATE, NodeDirectories, application_dir, private_dir, work_dir

_logger = logging.getLogger(__name__)

Deletion = DeleteContainerFiles | DeleteApplicationFiles | DeleteApplicationLogs | DeleteResource


class TreeDeleter:
    """A queue of trees to delete, for all nodes of a process. What cannot be deleted is warned of and left."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str] = asyncio.Queue()

    def delete_tree(self, path: str) -> None:
        self._queue.put_nowait(path)

    async def run(self) -> None:
        """Delete for ever."""
        while True:
            path = await self._queue.get()
            try:
                if _exists(path):
                    await asyncio.to_thread(_delete_tree, path)
            finally:
                self._queue.task_done()

    async def join(self) -> None:
        """Wait until nothing is left to delete."""
        await self._queue.join()


class DeletionService:
    """Knows where what a node is to delete lies."""

    def __init__(self, directories: NodeDirectories, deleter: TreeDeleter) -> None:
        self._directories = directories
        self._deleter = deleter

    def delete(self, deletion: Deletion) -> None:
        """Have a deletion done after those asked for before."""
        for path in self._paths(deletion):
            self._deleter.delete_tree(path)

    async def join(self) -> None:
        """Wait until nothing is left to delete."""
        await self._deleter.join()

    def _paths(self, deletion: Deletion) -> Sequence[str]:
        # Every disk, good or not: one that is full can still be emptied.
        disks, logs = self._directories.local_dirs, self._directories.log_dirs
        match deletion:
            case DeleteContainerFiles(container_id, user):
                return [
                    *(private_dir(disk, container_id) for disk in disks),
                    *(work_dir(disk, user, container_id) for disk in disks),
                ]
            case DeleteApplicationFiles(application_id, user):
                return [
                    *(f"{disk}/{NM_PRIVATE}/{application_id}" for disk in disks),
                    *(application_dir(disk, user, application_id) for disk in disks),
                ]
            case DeleteApplicationLogs(application_id):
                return [f"{directory}/{application_id}" for directory in logs]
            case DeleteResource(path):
                return [os.path.dirname(path)]


def _exists(path: str) -> bool:
    """Looked up here, as most of what is asked for is not on this disk and a thread for it would be dearer."""
    return os.path.lexists(path)


def _delete_tree(path: str) -> None:
    """Delete a file or a tree without following links; a directory that its owner closed is opened first."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            _open_directories(path)
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        _logger.warning("cannot delete path=%s problem=%s", path, error)


def _open_directories(path: str) -> None:
    for parent, names, _ in os.walk(path):
        for name in names:
            entry = os.path.join(parent, name)
            if not os.path.islink(entry) and not os.access(entry, os.R_OK | os.W_OK | os.X_OK):
                os.chmod(entry, 0o700)
