"""Staging directories: where a client leaves an application's files for its AM (Hadoop: /tmp/hadoop-yarn/staging).

Each application has one, readable only by its owner. Hadoop keeps them in HDFS; here all nodes share the file system of
one machine.
"""

from __future__ import annotations

import getpass
import json
import os
import tempfile
from pathlib import Path

from wire.json_records import from_json, to_json
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import ApplicationId


def default_staging_root() -> Path:
    """`<temporary directory>/yarnling-<user>/staging`."""
    return Path(tempfile.gettempdir()) / f"yarnling-{getpass.getuser()}" / "staging"


def make_staging_directory(root: Path, application_id: ApplicationId) -> Path:
    """Create a directory of mode 0700. Raises YarnException if it cannot be created, or exists already."""
    directory = root / str(application_id)
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700)
    except OSError as error:
        raise YarnException(f"staging directory {directory}: {error.strerror} (choose another staging root)") from None
    return directory.resolve()


def write_record(path: Path, record: object) -> None:
    """Write a record as JSON; readers see either all of it or the previous content."""
    write_atomically(path, json.dumps(to_json(record)).encode())


def read_record(path: Path) -> object:
    """The record that `write_record` wrote. Raises InvalidArgumentException if the file does not contain one."""
    try:
        data = path.read_bytes()
        return from_json(json.loads(data))
    except OSError as error:
        raise InvalidArgumentException(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidArgumentException(f"{path}: not valid JSON ({error})") from None


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content in one step."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)
