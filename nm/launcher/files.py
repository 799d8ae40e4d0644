"""The files that the NM writes before a container's process starts, and reads after it has exited."""

from __future__ import annotations

import errno
import fnmatch
import grp
import os
import pwd
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import IO

from msgspec import Struct

from nm.core.effects import LaunchContainer
from nm.core.events import ErrorLogs
from nm.core.launch_script import (
    BROKEN_LINKS_TITLE,
    DIRECTORY_INFO,
    LS_TITLE,
    PRELAUNCH_ERR,
    SCRIPT,
    SESSION,
    TOKENS,
    TREE_TITLE,
    WRAPPER,
    DebugFiles,
    Directories,
    Environment,
    NodeEnvironment,
    environment,
    launch_script,
    session_script,
    wrapper_script,
)
from nm.launcher.directories import CONTAINER_MODE, PLAIN_MODE, NodeDirectories, check_part, make_below, private_dir
from wire.files.full_disk import full_disk_named

_SCRIPT_MODE = 0o700
_READABLE_MODE = 0o644
_SCRIPT_COPY_MODE = 0o640
_PID_BYTES_MAX = 32
"""The size limit of a pid file: a process id and the end of the line."""
NO_CREDENTIALS = b"HDTS\x00\x00\x00"
"""A credentials file without credentials (as Hadoop's container_tokens if there are no tokens)."""


class PreparedLaunch(Struct, frozen=True):
    """The files of a launch, which have been written.

    `wrapper` is the script to run; `pid_file` will contain a process id.
    """

    wrapper: str
    directories: Directories
    variables: Environment
    pid_file: str


def prepare_launch(
    launch: LaunchContainer,
    *,
    node: NodeEnvironment,
    directories: NodeDirectories,
    chosen: Directories,
    debug: bool,
    cgroup_procs: str = "",
) -> PreparedLaunch:
    """Make a container's directories and write its scripts. Links of an earlier launch are removed.

    Raises OSError if a directory or file cannot be written, DisksFailed if all disks are bad.
    """
    container_id, work_dir = launch.container_id, chosen.work_dir
    debug_by = _debug_by(launch, work_dir) if debug else DebugFiles.NOBODY
    directories.make_first()
    private = private_dir(directories.choose_local(), container_id)
    for application_dir in chosen.application_dirs:
        directories.make(f"{application_dir}/{container_id}", CONTAINER_MODE)
    for log_dir in chosen.log_dirs:
        directories.make(log_dir, CONTAINER_MODE)
    variables = environment(
        container_id,
        launch.user,
        launch.environment,
        node=node,
        directories=chosen,
        localization_counters=launch.localization_counters,
    )
    script = launch_script(
        variables,
        launch.commands,
        inherited=node.inherited,
        links=launch.links,
        log_dir=chosen.log_dir,
        debug=debug_by,
        java_version=node.java_version,
    ).encode()
    pid_file = f"{private}/{container_id}.pid"
    tokens = launch.tokens or NO_CREDENTIALS
    with full_disk_named(private), directories.open(private, PLAIN_MODE) as private_fd:
        for stale in (f"{container_id}.pid", f"{container_id}.pid.exitcode"):
            _remove(stale, private_fd)
        _write(SCRIPT, private_fd, script, _READABLE_MODE)
        _write(f"{container_id}.tokens", private_fd, tokens, _READABLE_MODE)
    with full_disk_named(work_dir), directories.open(work_dir) as work_fd:
        make_below(work_fd, "tmp", CONTAINER_MODE)
        _remove_links(work_fd, launch.links)
        _write(TOKENS, work_fd, tokens, _READABLE_MODE)
        _write_scripts(work_fd, work_dir, script, pid_file, cgroup_procs)
        if debug_by is DebugFiles.NODE_MANAGER:
            with full_disk_named(chosen.log_dir), directories.open(chosen.log_dir) as log_fd:
                for name, content, mode in debug_files(work_fd, script):
                    _write(name, log_fd, content, mode)
    return PreparedLaunch(f"{work_dir}/{WRAPPER}", chosen, variables, pid_file)


def _debug_by(launch: LaunchContainer, work_dir: str) -> DebugFiles:
    """The writer of the debug files: the launch script, if it makes links or an earlier launch left files, else the NM.

    The NM knows the entries of a work directory only if it is new and has no links.
    """
    return DebugFiles.SCRIPT if launch.links or os.path.lexists(work_dir) else DebugFiles.NODE_MANAGER


def _write_scripts(work_fd: int, work_dir: str, script: bytes, pid_file: str, cgroup_procs: str) -> None:
    session = session_script(f"{work_dir}/{SCRIPT}", pid_file, cgroup_procs)
    wrapper = wrapper_script(f"{work_dir}/{SESSION}", f"{pid_file}.exitcode")
    _write(SCRIPT, work_fd, script, _SCRIPT_MODE)
    _write(SESSION, work_fd, session.encode(), _SCRIPT_MODE)
    _write(WRAPPER, work_fd, wrapper.encode(), _SCRIPT_MODE)


def read_error_logs(directories: NodeDirectories, log_dir: str, pattern: str, tail_bytes: int) -> ErrorLogs:
    """Read the last part of each error log of a failed container; the result is empty if they cannot be read.

    Symbolic links are not followed: they may point to files that readers of the diagnostics must not see.
    """
    try:
        with directories.open(log_dir) as log_fd:
            return _error_logs(log_fd, pattern, tail_bytes)
    except OSError:
        return ErrorLogs()


def _error_logs(log_fd: int, pattern: str, tail_bytes: int) -> ErrorLogs:
    prelaunch = _tail(PRELAUNCH_ERR, log_fd, tail_bytes)
    with os.scandir(log_fd) as entries:
        files = sorted(
            (entry.name, entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000)
            for entry in entries
            if entry.is_file(follow_symlinks=False) and _matches(entry.name, pattern)
        )
    if not files:
        return ErrorLogs(prelaunch)
    newest, newest_ms = files[0]
    for name, modified_ms in files[1:]:
        if modified_ms > newest_ms:
            newest, newest_ms = name, modified_ms
    tail = _tail(newest, log_fd, tail_bytes)
    return ErrorLogs(prelaunch, tuple(name for name, _ in files), newest, tail or "")


def read_pid(pid_file: str) -> int | None:
    """The process id in the pid file; None until the session script has written it completely."""
    try:
        text = _read_file(pid_file, lambda file: file.read(_PID_BYTES_MAX)).decode("ascii")
        return int(text) if text.endswith("\n") else None
    except (OSError, ValueError):
        return None


def alternatives(pattern: str) -> Sequence[str]:
    """Expand braces in a pattern: `{*stderr*,*STDERR*}` -> `*stderr*`, `*STDERR*`."""
    start, end = pattern.find("{"), pattern.find("}")
    if start < 0 or end < start:
        return [pattern]
    head, tail = pattern[:start], pattern[end + 1 :]
    return [plain for part in pattern[start + 1 : end].split(",") for plain in alternatives(head + part + tail)]


def _matches(name: str, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, plain) for plain in alternatives(pattern))


def _tail(name: str, directory: int, tail_bytes: int) -> str | None:
    def read(file: IO[bytes]) -> bytes:
        file.seek(max(0, os.fstat(file.fileno()).st_size - tail_bytes))
        return file.read(tail_bytes)

    try:
        return _read_file(name, read, directory).decode("utf-8", "replace")
    except OSError:
        return None


def _read_file(path: str, read: Callable[[IO[bytes]], bytes], directory: int | None = None) -> bytes:
    """Read a file that a container may have replaced. Raises OSError for a link, a pipe or a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    with open(descriptor, "rb") as file:
        return read(file)


def _write(name: str, directory: int, content: bytes, mode: int) -> None:
    """Replace a file, without writing through a link that a container may have created in its place."""
    _remove(name, directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, mode, dir_fd=directory)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)


def _remove(name: str, directory: int) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return


def _remove_links(work_fd: int, links: Mapping[str, str]) -> None:
    """Remove the links of an earlier launch, because `ln -sf` onto a link to a directory makes the link in that
    directory.

    A parent directory that has become a link is removed as well, but not what that link points to.
    """
    for link in links:
        current = os.dup(work_fd)
        try:
            for part in link.split("/"):
                check_part(part)
                found = _kind_of(part, current)
                if stat.S_ISLNK(found):
                    os.unlink(part, dir_fd=current)
                if not stat.S_ISDIR(found):
                    break
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
                os.close(current)
                current = below
        finally:
            os.close(current)


def _kind_of(name: str, directory: int) -> int:
    """The mode of a directory entry; 0 if the entry does not exist."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0


def debug_files(work_dir: int, script: bytes) -> list[tuple[str, bytes, int]]:
    """The debug files of a launch: a copy of the script and listings of the work directory, as (name, content, mode).

    In Hadoop the launch script makes these files, with four programs that often run longer than the container itself.
    Here the content is the same, but the NM writes it, because it knows all entries of a new work directory without
    links. `work_dir` is a descriptor of such a directory; it may contain files and empty directories.
    """
    return [
        (SCRIPT, script, _SCRIPT_COPY_MODE),
        (DIRECTORY_INFO, listing(work_dir).encode(errors="surrogateescape"), _READABLE_MODE),
    ]


def listing(directory: str | int) -> str:
    """The output of `ls -l`, `find -L . -maxdepth 5 -ls` and `find -L . -maxdepth 5 -type l -ls`, with titles."""
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    tree = [(".", os.stat(directory)), *((f"./{name}", status) for name, status in found)]
    lines = [LS_TITLE, *_ls(found), TREE_TITLE, *(_find(name, status) for name, status in tree), BROKEN_LINKS_TITLE]
    return "\n".join(lines) + "\n"


def _ls(found: list[tuple[str, os.stat_result]]) -> list[str]:
    visible = sorted(entry for entry in found if not entry[0].startswith("."))
    rows = [(name, status, _user(status.st_uid), _group(status.st_gid)) for name, status in visible]
    links, users, groups, sizes = (
        max((len(str(value)) for value in column), default=0)
        for column in (
            [status.st_nlink for _, status, _, _ in rows],
            [user for _, _, user, _ in rows],
            [group for _, _, _, group in rows],
            [status.st_size for _, status, _, _ in rows],
        )
    )
    blocks = sum(status.st_blocks for _, status, _, _ in rows)
    return [
        f"total {blocks // 2}",
        *(
            f"{stat.filemode(status.st_mode)} {status.st_nlink:>{links}} {user:<{users}} {group:<{groups}} "
            f"{status.st_size:>{sizes}} {_moment(status)} {name}"
            for name, status, user, group in rows
        ),
    ]


def _find(name: str, status: os.stat_result) -> str:
    return (
        f"{status.st_ino:>9} {status.st_blocks // 2:>6} {stat.filemode(status.st_mode)} {status.st_nlink:>3} "
        f"{_user(status.st_uid):<8} {_group(status.st_gid):<8} {status.st_size:>8} {_moment(status)} {name}"
    )


def _moment(status: os.stat_result) -> str:
    """Format the modification time without a year, as `ls` does for files of the last six months."""
    return time.strftime("%b %e %H:%M", time.localtime(status.st_mtime))


@lru_cache(maxsize=64)
def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


@lru_cache(maxsize=64)
def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
