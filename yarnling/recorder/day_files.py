"""Writes a recording: a file a day, to which each poll adds a gzip member of its own.

So a recorder or a machine that is stopped at any moment loses the poll under way and nothing else: an incomplete member
at the end of a file is cut off before more is written. Tools such as zcat read members one after another as one file.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from wire.files.full_disk import full_disk_named
from yarn.errors import YarnException
from yarnling.workload.recording_lines import SUFFIX, SeenLine

DAY_BYTES_MAX = 4 << 30
"""The bound of a day's file: a hundred times what a large cluster needs."""
BLOCK_BYTES = 1 << 20
LOCK = ".lock"
DAY_MS = 86_400_000


class _At(msgspec.Struct):
    """The time of any line."""

    at: int


class DayFiles:
    """The files of a recording in a directory, which is made if it is missing. One recorder at a time writes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._day = ""
        self.written = 0
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(directory / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise YarnException(f"{directory}: another recorder writes here (name another directory)") from None

    def close(self) -> None:
        """Let another recorder write."""
        os.close(self._lock)

    def begins_file(self, at_ms: int) -> bool:
        """True if nothing was written into this day's file by this recorder."""
        return _day_of(at_ms) != self._day

    def write(self, lines: Iterable[SeenLine], at_ms: int) -> None:
        """Append lines to the file of the day. Raises DiskFull, or YarnException if the file has become too large."""
        day = _day_of(at_ms)
        path = self._directory / f"{day}{SUFFIX}"
        member = gzip.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in lines), mtime=0)
        with full_disk_named(path):
            if day != self._day and path.exists():
                mend(path)
            self._day = day
            with path.open("ab") as file:
                if file.tell() + len(member) > DAY_BYTES_MAX:
                    raise YarnException(f"{path} would be larger than {DAY_BYTES_MAX >> 30} GiB: not recorded further")
                file.write(member)
        self.written += len(member)


def mend(path: Path) -> None:
    """Cut off an incomplete or damaged gzip member at the end of a file, and whatever follows it."""
    whole = at = 0
    inflate = zlib.decompressobj(wbits=31)
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            while block:
                before = len(block)
                try:
                    inflate.decompress(block)
                except zlib.error:
                    block = b""
                    break
                block = inflate.unused_data
                at += before - len(block)
                if inflate.eof:
                    whole, inflate = at, zlib.decompressobj(wbits=31)
            else:
                continue
            break
    if whole < path.stat().st_size:
        os.truncate(path, whole)


def last_poll_ms(directory: Path, now_ms: int) -> int | None:
    """When the last poll in the newest file was, if that is not older than a day; None otherwise."""
    files = sorted(directory.glob(f"*{SUFFIX}"))
    if not files:
        return None
    mend(files[-1])
    last = None
    with gzip.open(files[-1]) as file:
        for line in file:
            last = line
    try:
        at_ms = msgspec.json.decode(last or b"", type=_At).at
    except msgspec.DecodeError:
        return None
    return at_ms if 0 <= now_ms - at_ms <= DAY_MS else None


def _day_of(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")
