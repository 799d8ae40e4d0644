"""Launch contexts for yarnling's own Python modules, and local resources for files.

A container inherits almost nothing from its NM, so its launch context must name the interpreter and the directory of
our packages. Both are those of the submitting process: on one machine they are the same everywhere.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

import am
from yarn.containers import ContainerLaunchContext, LocalResource, ServiceData
from yarn.errors import InvalidArgumentException
from yarn.states import LocalResourceType, LocalResourceVisibility

TO_LOG_FILES = "1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"
"""Redirects output to the files where an NM expects it; the NM replaces `<LOG_DIR>`."""

_ARCHIVES = (".zip", ".jar", ".tar", ".tgz", ".tar.gz")


def packages_dir() -> str:
    """The directory that holds our packages."""
    module = am.__file__
    assert module is not None, "am is a package with a file"
    return str(Path(module).resolve().parent.parent)


def python_command(module: str, arguments: Iterable[str] = ()) -> str:
    """The command that runs a module of ours. -P: files in the work directory must not shadow modules."""
    words = [sys.executable, "-P", "-m", module, *arguments]
    return f"exec {shlex.join(words)} {TO_LOG_FILES}"


def python_launch_context(
    module: str,
    arguments: Iterable[str] = (),
    *,
    environment: Mapping[str, str] | None = None,
    local_resources: Mapping[str, LocalResource] | None = None,
    service_data: Mapping[str, ServiceData] | None = None,
) -> ContainerLaunchContext:
    """A launch context for a module of ours; `environment` is added to the variables that Python needs."""
    return ContainerLaunchContext(
        commands=(python_command(module, arguments),),
        environment={"PYTHONPATH": packages_dir(), **(environment or {})},
        local_resources=dict(local_resources or {}),
        service_data=dict(service_data or {}),
    )


def local_file(path: Path, visibility: LocalResourceVisibility = LocalResourceVisibility.APPLICATION) -> LocalResource:
    """A file as a local resource. An NM refuses it if the file is modified afterwards; archives are unpacked.

    Raises InvalidArgumentException if `path` is not a regular file.
    """
    try:
        found = path.resolve(strict=True)
        status = found.stat()
    except OSError as error:
        raise InvalidArgumentException(f"file {path}: {error.strerror}") from None
    if not found.is_file():
        raise InvalidArgumentException(f"file {path}: not a regular file")
    kind = LocalResourceType.ARCHIVE if found.name.endswith(_ARCHIVES) else LocalResourceType.FILE
    return LocalResource(f"file:{quote(str(found))}", status.st_size, status.st_mtime_ns // 1_000_000, kind, visibility)
