"""faults.json: the faults of a chaos run, beside its event logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from wire.full_disk import full_disk_named
from yarn.errors import YarnException
from yarnling.faults.history import History
from yarnling.timeline.faults import faults_of
from yarnling.timeline.model import Fault

NAME = "faults.json"
BYTES_MAX = 10_000_000


def write_faults(directory: Path, history: History, ms_of: Callable[[float], int]) -> None:
    """Write the faults of a run. `ms_of`: wall-clock milliseconds for a time of the history."""
    with full_disk_named(directory / NAME):
        (directory / NAME).write_bytes(msgspec.json.encode(list(faults_of(history, ms_of))))


def read_faults(directory: Path) -> list[Fault]:
    """The faults of the run in `directory`; none if it has no such file. Raises YarnException for another file."""
    path = directory / NAME
    if not path.is_file():
        return []
    if path.stat().st_size > BYTES_MAX:
        raise YarnException(f"{path}: has {path.stat().st_size} bytes, at most {BYTES_MAX} are read")
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Fault])
    except msgspec.MsgspecError as error:
        raise YarnException(f"{path}: is not a list of faults: {error}") from None
