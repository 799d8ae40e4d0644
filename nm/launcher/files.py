"""What is written before a container's process starts, and read after it has ended."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence

from nm.effects import LaunchContainer
from nm.events import ErrorLogs
from nm.launch_script import (
    PRELAUNCH_ERR,
    SCRIPT,
    SESSION,
    TOKENS,
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
from nm.launcher.debug_files import debug_files
from nm.launcher.directories import CONTAINER_MODE, NodeDirectories, make_dir, private_dir
from yarn.records import dataclass

_SCRIPT_MODE = 0o700
_READABLE_MODE = 0o644
NO_CREDENTIALS = b"HDTS\x00\x00\x00"
"""A file of credentials that holds none (Hadoop's container_tokens without tokens)."""


@dataclass(frozen=True, slots=True)
class PreparedLaunch:
    """Everything is in place: what to run, where, in which environment, and the file that will name its process."""

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
    """Make the container's directories and write its scripts; a start in the same place finds its old links gone.

    Raises OSError if a disk does not let it, DisksFailed if none is good.
    """
    container_id, work_dir = launch.container_id, chosen.work_dir
    debug_by = _debug_by(launch, work_dir) if debug else DebugFiles.NOBODY
    directories.begin()
    private = private_dir(directories.choose_local(), container_id)
    make_dir(private, 0o755)
    for application_dir in chosen.application_dirs:
        make_dir(f"{application_dir}/{container_id}", CONTAINER_MODE)
    for log_dir in chosen.log_dirs:
        make_dir(log_dir, CONTAINER_MODE)
    make_dir(f"{work_dir}/tmp", CONTAINER_MODE)
    _remove_links(work_dir, launch.links)
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
    ).encode()
    pid_file = f"{private}/{container_id}.pid"
    for stale in (pid_file, f"{pid_file}.exitcode"):
        _remove(stale)
    tokens = launch.tokens or NO_CREDENTIALS
    _write(f"{private}/{SCRIPT}", script, _READABLE_MODE)
    _write(f"{private}/{container_id}.tokens", tokens, _READABLE_MODE)
    _write(f"{work_dir}/{TOKENS}", tokens, _READABLE_MODE)
    _write_scripts(work_dir, script, pid_file, cgroup_procs)
    if debug_by is DebugFiles.NODE_MANAGER:
        for path, content, mode in debug_files(work_dir, chosen.log_dir, script):
            _write(path, content, mode)
    return PreparedLaunch(f"{work_dir}/{WRAPPER}", chosen, variables, pid_file)


def _debug_by(launch: LaunchContainer, work_dir: str) -> DebugFiles:
    """Links are made by the script, and what an earlier start left may be anything: listing that takes its programs."""
    return DebugFiles.SCRIPT if launch.links or os.path.lexists(work_dir) else DebugFiles.NODE_MANAGER


def _write_scripts(work_dir: str, script: bytes, pid_file: str, cgroup_procs: str) -> None:
    session = session_script(f"{work_dir}/{SCRIPT}", pid_file, cgroup_procs)
    wrapper = wrapper_script(f"{work_dir}/{SESSION}", f"{pid_file}.exitcode")
    _write(f"{work_dir}/{SCRIPT}", script, _SCRIPT_MODE)
    _write(f"{work_dir}/{SESSION}", session.encode(), _SCRIPT_MODE)
    _write(f"{work_dir}/{WRAPPER}", wrapper.encode(), _SCRIPT_MODE)


def read_error_logs(log_dir: str, pattern: str, tail_bytes: int) -> ErrorLogs:
    """The ends of what a failed container wrote to its error streams, as far as it can be read.

    A link in the log directory is not followed: it may point at what the container's user may not read.
    """
    prelaunch = _tail(f"{log_dir}/{PRELAUNCH_ERR}", tail_bytes)
    try:
        with os.scandir(log_dir) as entries:
            files = sorted(
                (entry.name, entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000)
                for entry in entries
                if entry.is_file(follow_symlinks=False) and _matches(entry.name, pattern)
            )
    except OSError:
        files = []
    if not files:
        return ErrorLogs(prelaunch)
    newest, newest_ms = files[0]
    for name, modified_ms in files[1:]:
        if modified_ms > newest_ms:
            newest, newest_ms = name, modified_ms
    tail = _tail(f"{log_dir}/{newest}", tail_bytes)
    return ErrorLogs(prelaunch, tuple(name for name, _ in files), newest, tail or "")


def read_pid(pid_file: str) -> int | None:
    """The process that the session script wrote there; None if it has not, or not all of it yet."""
    try:
        with open(pid_file, encoding="ascii") as file:
            text = file.read(32)
        return int(text) if text.endswith("\n") else None
    except (OSError, ValueError):
        return None


def alternatives(pattern: str) -> Sequence[str]:
    """The plain patterns of one with braces: `{*stderr*,*STDERR*}` -> `*stderr*`, `*STDERR*`."""
    start, end = pattern.find("{"), pattern.find("}")
    if start < 0 or end < start:
        return [pattern]
    head, tail = pattern[:start], pattern[end + 1 :]
    return [plain for part in pattern[start + 1 : end].split(",") for plain in alternatives(head + part + tail)]


def _matches(name: str, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, plain) for plain in alternatives(pattern))


def _tail(path: str, tail_bytes: int) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        file.seek(max(0, size - tail_bytes))
        return file.read(tail_bytes).decode("utf-8", "replace")


def _write(path: str, content: bytes, mode: int) -> None:
    """Write a file anew: what a container may have put in its place is not written through."""
    _remove(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _remove_links(work_dir: str, links: dict[str, str]) -> None:
    """`ln -sf` onto a link to a directory would put the new link inside that directory."""
    for link in links:
        path = os.path.join(work_dir, link)
        if os.path.islink(path):
            os.unlink(path)
