"""How our own Python programs are started in containers: the one place that knows interpreter and module path.

A container inherits next to nothing from its NM, so its launch context must say which interpreter to use and where our
packages are. Both are those of the process that submits: on one machine they are the same for all.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

import am
from yarn.containers import ContainerLaunchContext, LocalResource
from yarn.errors import InvalidArgumentException
from yarn.states import LocalResourceType, LocalResourceVisibility

TO_LOG_FILES = "1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"
"""Sends output where NMs look for it; `<LOG_DIR>` is replaced by the NM."""

_ARCHIVES = (".zip", ".jar", ".tar", ".tgz", ".tar.gz")


def packages_dir() -> str:
    """The directory that holds our packages."""
    module = am.__file__
    assert module is not None, "am is a package with a file"
    return str(Path(module).resolve().parent.parent)


def python_command(module: str, arguments: Iterable[str] = ()) -> str:
    """The command that runs one of our modules. -P: files in the work directory must not shadow modules."""
    words = [sys.executable, "-P", "-m", module, *arguments]
    return f"exec {shlex.join(words)} {TO_LOG_FILES}"


def python_launch_context(
    module: str,
    arguments: Iterable[str] = (),
    *,
    environment: Mapping[str, str] | None = None,
    local_resources: Mapping[str, LocalResource] | None = None,
) -> ContainerLaunchContext:
    """A launch context for one of our modules; `environment` goes over the variables it needs itself."""
    return ContainerLaunchContext(
        commands=(python_command(module, arguments),),
        environment={"PYTHONPATH": packages_dir(), **(environment or {})},
        local_resources=dict(local_resources or {}),
    )


def local_file(path: Path, visibility: LocalResourceVisibility = LocalResourceVisibility.APPLICATION) -> LocalResource:
    """A file as a local resource, as it is now: an NM refuses it once its modification time has changed.

    Archives are unpacked. Raises InvalidArgumentException if there is no such file.
    """
    try:
        found = path.resolve(strict=True)
        status = found.stat()
    except OSError as error:
        raise InvalidArgumentException(f"file {path}: {error.strerror}") from None
    if not found.is_file():
        raise InvalidArgumentException(f"file {path}: is no regular file")
    kind = LocalResourceType.ARCHIVE if found.name.endswith(_ARCHIVES) else LocalResourceType.FILE
    return LocalResource(f"file:{quote(str(found))}", status.st_size, status.st_mtime_ns // 1_000_000, kind, visibility)
