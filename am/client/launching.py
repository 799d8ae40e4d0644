"""A client's preparations before it submits an application: launch contexts, local resources, the staging directory.

A container inherits almost nothing from its NodeManager, so the launch context of a Python module must name the
interpreter and the directory of our packages. It names those of the submitting process, because all nodes run on one
machine.

An application has one staging directory, readable only by its owner, where its client leaves files for its AM (Hadoop:
/tmp/hadoop-yarn/staging). Hadoop keeps staging directories in HDFS; here all nodes share one file system.
"""

from __future__ import annotations

import getpass
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import am
from wire.files.full_disk import full_disk_named
from wire.files.json_records import from_json, to_json
from yarn.containers import ContainerLaunchContext, LocalResource, ServiceData
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import ApplicationId
from yarn.states import LocalResourceType

TO_LOG_FILES = "1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"
"""The redirection of a command's output to the log files of its container. The NM replaces `<LOG_DIR>`."""

_ARCHIVES = (".zip", ".jar", ".tar", ".tgz", ".tar.gz")


def packages_dir() -> str:
    """The directory that contains the packages of yarnling."""
    module = am.__file__
    assert module is not None, "am is a package with a file"
    return str(Path(module).resolve().parent.parent)


def python_command(module: str, arguments: Iterable[str] = ()) -> str:
    """The shell command that runs a Python module of yarnling.

    The option -P keeps files in the work directory from shadowing modules.
    """
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
    """A launch context that runs a Python module of yarnling.

    `environment` is added to the variables that Python needs.
    """
    return ContainerLaunchContext(
        commands=(python_command(module, arguments),),
        environment={"PYTHONPATH": packages_dir(), **(environment or {})},
        local_resources=dict(local_resources or {}),
        service_data=dict(service_data or {}),
    )


def local_file(path: Path) -> LocalResource:
    """Describe a file as a local resource, to be copied into work directories; archives are unpacked there.

    An NM refuses the file if it was modified afterwards. Raises InvalidArgumentException if `path` is not a regular
    file.
    """
    try:
        found = path.resolve(strict=True)
        status = found.stat()
    except OSError as error:
        raise InvalidArgumentException(f"file {path}: {error.strerror}") from None
    if not found.is_file():
        raise InvalidArgumentException(f"file {path}: not a regular file")
    kind = LocalResourceType.ARCHIVE if found.name.endswith(_ARCHIVES) else LocalResourceType.FILE
    return LocalResource(f"file:{found}", status.st_size, status.st_mtime_ns // 1_000_000, kind)


def default_staging_root() -> Path:
    """The default root of staging directories: `<temporary directory>/yarnling-<user>/staging`."""
    return Path(tempfile.gettempdir()) / f"yarnling-{getpass.getuser()}" / "staging"


def make_staging_directory(root: Path, application_id: ApplicationId) -> Path:
    """Create the staging directory of an application, with mode 0700, and return its path.

    Raises YarnException if the directory exists or cannot be created.
    """
    directory = root / str(application_id)
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700)
    except OSError as error:
        raise YarnException(f"staging directory {directory}: {error.strerror} (choose another staging root)") from None
    return directory.resolve()


def write_record(path: Path, record: object) -> None:
    """Write a record as JSON. A concurrent reader sees either the new content or the old content, never a part."""
    write_atomically(path, json.dumps(to_json(record)).encode())


def read_record(path: Path) -> object:
    """Read a record that `write_record` wrote. Raises InvalidArgumentException if the file does not contain one."""
    try:
        data = path.read_bytes()
        return from_json(json.loads(data))
    except OSError as error:
        raise InvalidArgumentException(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidArgumentException(f"{path}: not valid JSON ({error})") from None


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content in one step, by renaming a temporary file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with full_disk_named(path):
        temporary.write_bytes(data)
    temporary.replace(path)
