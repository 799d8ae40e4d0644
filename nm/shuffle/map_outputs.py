"""Finds the files of map outputs below a node's local directories, and opens them without following links.

    <local>/usercache/<user>/appcache/<application>/output/<attempt>/file.out and file.out.index

Containers write these files: whatever is in them, only bytes of a regular file at exactly this place are sent.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from msgspec import Struct

from nm.launcher.directories import NodeDirectories, application_dir
from nm.shuffle.requests import MapOutputRequest
from wire.files.shuffle import INDEX, INDEX_BYTES_MAX, OUTPUT, IndexRecord, ShuffleHeader, index_record
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationId


class MapOutputMissing(Exception):
    """The output of a map is not on this node, or is damaged; the text says what."""


class MapOutput(Struct, frozen=True):
    """A reduce's partition of one map's output; `directory` contains its files."""

    directory: str
    header: ShuffleHeader
    start: int


class ShuffleReply(Struct, frozen=True):
    """The parts to send to a reduce; the connection stays open for `keep_alive_s` if that is not 0."""

    outputs: list[MapOutput]
    headers: list[tuple[str, str]]
    keep_alive_s: int = 0


def find_outputs(
    directories: NodeDirectories, user: str, application_id: ApplicationId, request: MapOutputRequest
) -> list[MapOutput]:
    """The outputs to send, in the order of the request. Raises MapOutputMissing."""
    return [_find(directories, user, application_id, attempt, request.reduce) for attempt in request.maps]


@contextmanager
def opened(directories: NodeDirectories, output: MapOutput) -> Iterator[IO[bytes]]:
    """The output's file. Raises MapOutputMissing if it is not a file that has all of the partition."""
    with _open(directories, output.directory, OUTPUT) as file:
        if os.fstat(file.fileno()).st_size < output.start + output.header.part_length:
            raise MapOutputMissing(f"{OUTPUT} of {output.header.attempt} is shorter than its index says")
        yield file


def _find(
    directories: NodeDirectories, user: str, application_id: ApplicationId, attempt: str, reduce: int
) -> MapOutput:
    # On every disk, good or bad: what was written to a disk that is full now can still be read.
    for local in directories.local_dirs:
        directory = f"{application_dir(local, user, application_id)}/output/{attempt}"
        if os.path.lexists(directory):
            break
    else:
        path = f"{application_dir('', user, application_id)[1:]}/output/{attempt}/{INDEX}"
        raise MapOutputMissing(f"Could not find {path} in any of the directories")
    record = _record(directories, directory, attempt, reduce)
    header = ShuffleHeader(attempt, record.part_length, record.raw_length, reduce)
    output = MapOutput(directory, header, record.start)
    # Opened here too, because an error can be answered only before the first byte.
    with opened(directories, output):
        return output


def _record(directories: NodeDirectories, directory: str, attempt: str, reduce: int) -> IndexRecord:
    with _open(directories, directory, INDEX) as file:
        data = file.read(INDEX_BYTES_MAX + 1)
    if len(data) > INDEX_BYTES_MAX:
        raise MapOutputMissing(f"{INDEX} of {attempt} has more than {INDEX_BYTES_MAX} bytes")
    try:
        record = index_record(data, reduce, attempt)
    except InvalidArgumentException as error:
        raise MapOutputMissing(error.message) from None
    if min(record.start, record.raw_length, record.part_length) < 0:
        raise MapOutputMissing(f"{INDEX} of {attempt} has negative numbers")
    return record


@contextmanager
def _open(directories: NodeDirectories, directory: str, name: str) -> Iterator[IO[bytes]]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with directories.open(directory) as parent:
            descriptor = os.open(name, flags, dir_fd=parent)
    except OSError as error:
        raise MapOutputMissing(f"cannot open {name} of {os.path.basename(directory)}: {error.strerror}") from None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise MapOutputMissing(f"{name} of {os.path.basename(directory)} is not a file")
        yield file
