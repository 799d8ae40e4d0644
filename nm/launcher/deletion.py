"""Deletes files of containers and applications, one directory tree after the other, in a thread
beside the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
import stat
from collections.abc import Sequence

from nm.core.effects import DeleteApplicationFiles, DeleteApplicationLogs, DeleteContainerFiles, DeleteResource
from nm.launcher.directories import (
    NM_PRIVATE,
    NodeDirectories,
    application_dir,
    check_part,
    descend,
    private_dir,
    work_dir,
)

_logger = logging.getLogger(f"yarnling.{__name__}")

TREE_DEPTH_MAX = 64
"""The depth of a tree that is deleted at once: shutil.rmtree recurses, with an open descriptor for each level."""
_NAME_CHARS_KEPT = 100
"""The number of characters of a tree's name that are kept in the names of the trees that are cut from it."""

Deletion = DeleteContainerFiles | DeleteApplicationFiles | DeleteApplicationLogs | DeleteResource


class TreeDeleter:
    """A queue of trees to delete, for all nodes of a process. A tree that cannot be deleted is logged and stays."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def delete_tree(self, root: str, path: str) -> None:
        """Queue the deletion of `path`, which is below `root`."""
        self._queue.put_nowait((root, path))

    async def run(self) -> None:
        """Delete the queued trees one after the other, until cancelled."""
        while True:
            root, path = await self._queue.get()
            try:
                if _exists(path):
                    await asyncio.to_thread(delete_tree, root, path)
            finally:
                self._queue.task_done()

    async def join(self) -> None:
        """Wait until the queue is empty."""
        await self._queue.join()


class DeletionService:
    """Finds the paths for a deletion that the core requests, and queues them."""

    def __init__(self, directories: NodeDirectories, deleter: TreeDeleter) -> None:
        self._directories = directories
        self._deleter = deleter

    def delete(self, deletion: Deletion) -> None:
        """Queue the deletions for an effect of the core."""
        for root, path in self._paths(deletion):
            self._deleter.delete_tree(root, path)

    async def join(self) -> None:
        """Wait until the queue is empty."""
        await self._deleter.join()

    def _paths(self, deletion: Deletion) -> Sequence[tuple[str, str]]:
        # Files are deleted on every disk, good or bad: also a file on a full disk can be deleted.
        disks, logs = self._directories.local_dirs, self._directories.log_dirs
        match deletion:
            case DeleteContainerFiles(container_id, user):
                return [
                    *((disk, private_dir(disk, container_id)) for disk in disks),
                    *((disk, work_dir(disk, user, container_id)) for disk in disks),
                ]
            case DeleteApplicationFiles(application_id, user):
                return [
                    *((disk, f"{disk}/{NM_PRIVATE}/{application_id}") for disk in disks),
                    *((disk, application_dir(disk, user, application_id)) for disk in disks),
                ]
            case DeleteApplicationLogs(application_id):
                return [(directory, f"{directory}/{application_id}") for directory in logs]
            case DeleteResource(path):
                return [(self._directories.root_of(path), os.path.dirname(path))]


def delete_tree(root: str, path: str) -> None:
    """Delete a file or a tree below `root`, without following links, and also where the owner's permissions are
    missing.

    A path that cannot be deleted is logged and stays.
    """
    *parents, name = path[len(root) + 1 :].split("/")
    try:
        parent = descend(root, parents)
        try:
            _delete_entry(check_part(name), parent)
        finally:
            os.close(parent)
    except FileNotFoundError:
        return
    except OSError as error:
        _logger.warning("cannot delete path=%s: %s", path, error)


def _exists(path: str) -> bool:
    """True if the path exists.

    The check runs in the event loop, because most paths do not exist, and a thread for each would cost more.
    """
    return os.path.lexists(path)


def _delete_entry(name: str, parent: int) -> None:
    waiting = [name]
    while waiting:
        entry = waiting.pop()
        if stat.S_ISDIR(os.stat(entry, dir_fd=parent, follow_symlinks=False).st_mode):
            _make_writable(entry, parent)
            waiting += _cut_deep_trees(entry, parent)
            shutil.rmtree(entry, dir_fd=parent)
        else:
            os.unlink(entry, dir_fd=parent)


def _cut_deep_trees(name: str, parent: int) -> list[str]:
    """Move the trees that are TREE_DEPTH_MAX levels below `name` beside it, and make directories writable.

    Returns the names of the moved trees.
    """
    moved = []
    for path, names, _, directory in os.fwalk(name, dir_fd=parent):
        for below in names:
            _make_writable(below, directory)
        if path.count("/") >= TREE_DEPTH_MAX:
            for below in names:
                moved.append(f"{name[:_NAME_CHARS_KEPT]}.{secrets.token_hex(8)}")
                os.rename(below, moved[-1], src_dir_fd=directory, dst_dir_fd=parent)
            names.clear()
    return moved


def _make_writable(name: str, parent: int) -> None:
    """Give the owner of a directory all permissions on it; a link to a directory is left alone."""
    if os.access(name, os.R_OK | os.W_OK | os.X_OK, dir_fd=parent, follow_symlinks=False):
        return
    try:
        descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except NotADirectoryError:
        return
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", 0o700)
    finally:
        os.close(descriptor)
