"""The directories of a node: their layout, which disks are good, and which directory a launch uses.

<local>/filecache/<n>/                                        files for all users
<local>/usercache/<user>/filecache/<n>/                       files for one user
<local>/usercache/<user>/appcache/<application>/filecache/<n>/  files for one application
<local>/usercache/<user>/appcache/<application>/<container>/   work directories
<local>/nmPrivate/<application>/<container>/                   the NM's own scripts and tokens
<logs>/<application>/<container>/                              log files
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from nm.core.disk_health import DirectoryHealth
from nm.core.launch_script import Directories
from wire.files.full_disk import full_disk_named
from yarn.ids import ApplicationId, ContainerId
from yarn.states import LocalResourceVisibility

USERCACHE = "usercache"
APPCACHE = "appcache"
FILECACHE = "filecache"
NM_PRIVATE = "nmPrivate"

CONTAINER_MODE = 0o710
USER_MODE = 0o750
PRIVATE_MODE = 0o700
PLAIN_MODE = 0o755


class DisksFailed(Exception):
    """All local directories, or all log directories, are bad. The message says why."""


class NodeDirectories:
    """The local directories and the log directories of a node.

    `local_health` and `log_health` are the results of the last check. Containers use only good directories.
    """

    def __init__(self, local_dirs: Sequence[str], log_dirs: Sequence[str], choice: random.Random) -> None:
        self.local_dirs = tuple(os.path.abspath(directory) for directory in local_dirs)
        self.log_dirs = tuple(os.path.abspath(directory) for directory in log_dirs)
        self.local_health = DirectoryHealth(self.local_dirs, {}, {})
        self.log_health = DirectoryHealth(self.log_dirs, {}, {})
        self._choice = choice
        self._made: set[str] = set()

    def choose_local(self) -> str:
        """Choose a good local directory at random, in proportion to free space. Raises DisksFailed if all are bad."""
        return self._choose(self.local_health.good, "local")

    def choose_log(self) -> str:
        """Choose a good log directory at random, in proportion to free space. Raises DisksFailed if all are bad."""
        return self._choose(self.log_health.good, "log")

    def make_first(self) -> None:
        """Make the caches and the private directory in each good local directory, before the first use of that
        directory.

        The directories are not made when the node starts, because most nodes of a large cluster never use them. If one
        cannot be made, the error appears when it is used.
        """
        for local in self.local_health.good:
            if local not in self._made:
                with suppress(OSError):
                    make_node_dirs(local)
                    self._made.add(local)

    def for_launch(self, container_id: ContainerId, user: str) -> Directories:
        """Choose the directories of a launch. Only names are returned, nothing is created. Raises DisksFailed."""
        application_id = container_id.application_id
        local = self.choose_local()
        return Directories(
            work_dir=work_dir(local, user, container_id),
            log_dir=log_dir(self.choose_log(), container_id),
            application_dirs=tuple(application_dir(good, user, application_id) for good in self.local_health.good),
            user_dirs=tuple(f"{good}/{USERCACHE}/{user}/" for good in self.local_health.good),
            log_dirs=tuple(log_dir(good, container_id) for good in self.log_health.good),
        )

    @contextmanager
    def open(self, path: str, mode: int | None = None) -> Iterator[int]:
        """Open a directory below one of the node's, and yield its descriptor. No symbolic link on the way is followed.

        With a `mode`, a missing directory is created. Raises OSError if the directory is missing, or if a part of its
        path is a link or a file.
        """
        descriptor = self._descend(path, mode)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def make(self, path: str, mode: int) -> None:
        """Make a directory below one of the node's, as `make_dir` does, without following a link on the way."""
        os.close(self._descend(path, mode))

    def root_of(self, path: str) -> str:
        """The directory of the node that contains `path`. Raises ValueError if none does."""
        for root in (*self.local_dirs, *self.log_dirs):
            if path.startswith(f"{root}/"):
                return root
        raise ValueError(f"{path} is not below a directory of the node")

    def _descend(self, path: str, mode: int | None) -> int:
        root = self.root_of(path)
        return descend(root, path[len(root) + 1 :].split("/"), mode)

    def _choose(self, good: Sequence[str], kind: str) -> str:
        if not good:
            raise DisksFailed(f"No space available in any of the {kind} directories.")
        if len(good) == 1:
            return good[0]
        room = [_free_bytes(directory) for directory in good]
        if not any(room):
            raise DisksFailed(f"No space available in any of the {kind} directories.")
        return self._choice.choices(good, weights=room)[0]


def application_dir(local: str, user: str, application_id: ApplicationId) -> str:
    return f"{local}/{USERCACHE}/{user}/{APPCACHE}/{application_id}"


def work_dir(local: str, user: str, container_id: ContainerId) -> str:
    return f"{application_dir(local, user, container_id.application_id)}/{container_id}"


def private_dir(local: str, container_id: ContainerId) -> str:
    return f"{local}/{NM_PRIVATE}/{container_id.application_id}/{container_id}"


def log_dir(logs: str, container_id: ContainerId) -> str:
    return f"{logs}/{container_id.application_id}/{container_id}"


def cache_dir(local: str, visibility: LocalResourceVisibility, user: str, application_id: ApplicationId) -> str:
    """The directory of the cache for files of this visibility."""
    if visibility is LocalResourceVisibility.PUBLIC:
        return f"{local}/{FILECACHE}"
    if visibility is LocalResourceVisibility.PRIVATE:
        return f"{local}/{USERCACHE}/{user}/{FILECACHE}"
    return f"{application_dir(local, user, application_id)}/{FILECACHE}"


def descend(root: str, parts: Sequence[str], mode: int | None = None) -> int:
    """Open the directory `parts` below `root`. Returns a descriptor, which the caller must close.

    `root` itself may be a link (made by the administrator), but nothing below it. With a `mode`, missing directories
    are made, the last one with exactly this mode, the others with 0755. Raises OSError.
    """
    if mode is not None and not os.path.isdir(root):
        make_dir(root, PLAIN_MODE)
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return descend_in(top, parts, mode)
    except OSError as error:
        path = os.path.join(root, *parts)
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise OSError(error.errno, "a part of it is a symbolic link or a file, not a directory", path) from None
        with full_disk_named(path):
            raise OSError(error.errno, os.strerror(error.errno or 0), path) from None
    finally:
        os.close(top)


def descend_in(parent: int, parts: Sequence[str], mode: int | None = None) -> int:
    """Open the directory `parts` below an open one, as `descend` does. Returns a descriptor, which the caller must
    close. Raises OSError, which does not name the path.
    """
    current = os.dup(parent)
    try:
        for number, part in enumerate(parts, 1):
            below = _enter(current, part, mode if mode is None or number == len(parts) else PLAIN_MODE)
            os.close(current)
            current = below
    except (OSError, ValueError):
        os.close(current)
        raise
    return current


def check_part(part: str) -> str:
    """Return `part` if it can only name an entry of the directory in which it is looked up.

    Raises ValueError otherwise.
    """
    if part in ("", ".", "..") or "/" in part or "\0" in part:
        raise ValueError(f"{part!r} cannot be a part of a path inside a directory")
    return part


def make_below(parent: int, part: str, mode: int) -> None:
    """Make a directory in `parent` with exactly this mode, if it does not exist."""
    os.close(_enter(parent, part, mode))


def _enter(parent: int, part: str, mode: int | None) -> int:
    """Open a directory in `parent` and return its descriptor; with a `mode`, create the directory if it is missing."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    check_part(part)
    try:
        return os.open(part, flags, dir_fd=parent)
    except FileNotFoundError:
        if mode is None:
            raise
    try:
        os.mkdir(part, dir_fd=parent)
    except FileExistsError:
        # Another thread has created the directory meanwhile, and sets its mode.
        return os.open(part, flags, dir_fd=parent)
    descriptor = os.open(part, flags, dir_fd=parent)
    os.fchmod(descriptor, mode)
    return descriptor


def make_dir(path: str, mode: int) -> bool:
    """Make a directory with exactly this mode, and missing parents with 0755. Returns False if the directory exists."""
    if os.path.lexists(path):
        return False
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        make_dir(parent, PLAIN_MODE)
    try:
        os.mkdir(path)
    except FileExistsError:
        return False
    os.chmod(path, mode)
    return True


def make_user_dirs(directories: NodeDirectories, user: str, application_id: ApplicationId) -> None:
    """Make the directories that a localizer needs to fetch files for a user.

    The modes of these directories are stricter than those of other directories. Existing directories keep their modes.
    The layout is that of DefaultContainerExecutor.startLocalizer and ContainerLocalizer.initDirs.
    """
    for local in directories.local_health.good:
        home = f"{local}/{USERCACHE}/{user}"
        directories.make(home, USER_MODE)
        for path in (
            f"{home}/{APPCACHE}",
            f"{home}/{FILECACHE}",
            application_dir(local, user, application_id),
            f"{application_dir(local, user, application_id)}/{FILECACHE}",
        ):
            directories.make(path, CONTAINER_MODE)
    for logs in directories.log_health.good:
        directories.make(f"{logs}/{application_id}", CONTAINER_MODE)


def make_node_dirs(local: str) -> None:
    """Make the caches and the private directory in a local directory."""
    make_dir(f"{local}/{FILECACHE}", PLAIN_MODE)
    make_dir(f"{local}/{USERCACHE}", PLAIN_MODE)
    make_dir(f"{local}/{NM_PRIVATE}", PRIVATE_MODE)


def _free_bytes(directory: str) -> int:
    try:
        stats = os.statvfs(directory)
    except OSError:
        return 0
    return stats.f_bavail * stats.f_frsize


def is_below(path: str, directory: str) -> bool:
    """True if `path` is inside `directory`; only the names are compared."""
    return Path(path).is_relative_to(directory)
