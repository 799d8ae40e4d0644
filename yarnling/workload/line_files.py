"""Reads logs and recordings line by line: one file, or all files of a directory, plain or compressed with gzip.

A day of a busy ResourceManager's log is larger than memory, so no file is held as a whole. Daemons and loggers are
killed while they write: a gzip file without its end is read as far as it goes.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from msgspec import Struct

from yarnling.workload.documents import refusal

LINE_BYTES_MAX = 4 << 20
"""A longer line is left out. Spark writes plans of some 100 KB into its event log."""
BYTES_MAX = 64 << 30
"""The bound of all files of one input, after decompression: a week's log of a large cluster."""
BINARY_BYTES_MAX = 1 << 30
"""The bound of one file that is not read line by line."""
FILES_MAX = 10_000

_GZIP = b"\x1f\x8b"
_COMPRESSED = {b"\x28\xb5\x2f\xfd": "zstd -d", b"BZh": "bunzip2", b"\xfd7zXZ": "unxz", b"LZ4Block": "lz4"}


class Line(Struct, frozen=True, gc=False):
    """A line without its end. `number` counts from 1 in its file."""

    source: str
    number: int
    text: str


def files_of(path: Path) -> list[Path]:
    """The file, or the files below a directory by name. Hidden ones are left out, and those whose name begins with _.

    Raises ConfigurationException if there is none, or too many.
    """
    if not path.is_dir():
        return [path]
    found = [each for each in path.rglob("*") if each.is_file() and not each.name.startswith((".", "_"))]
    if not found:
        raise refusal(path, "is a directory without files", "name a file, or a directory with files")
    if len(found) > FILES_MAX:
        raise refusal(path, f"has more than {FILES_MAX} files", "name a directory with fewer files")
    return sorted(found)


def lines_of(path: Path) -> Iterator[Line]:
    """The lines of a file or directory. Raises ConfigurationException for what cannot be read, or is too large."""
    left = BYTES_MAX
    for file in files_of(path):
        number = 0
        with _opened(file) as stream:
            while raw := _next_line(stream, file):
                number, left = number + 1, left - len(raw)
                if left < 0:
                    raise refusal(path, f"is larger than {BYTES_MAX} bytes", "split it into several inputs")
                if len(raw) <= LINE_BYTES_MAX:
                    yield Line(str(file), number, raw.decode("utf-8", "replace").rstrip("\r\n"))


def bytes_of(file: Path, mark: bytes) -> bytes | None:
    """The content of a file that begins with `mark`; None for another file. Raises ConfigurationException."""
    with _opened(file) as stream:
        try:
            if stream.read(len(mark)) != mark:
                return None
            content = stream.read(BINARY_BYTES_MAX + 1)
        except EOFError:
            return None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise refusal(file, f"cannot be decompressed: {error}", "name another file") from None
    if len(content) > BINARY_BYTES_MAX:
        raise refusal(file, f"is larger than {BINARY_BYTES_MAX} bytes", "leave it out")
    return mark + content


def head_of(path: Path, size: int) -> str:
    """The beginning of a file, or of the oldest file of a directory, as text; "" if it is empty."""
    file = files_of(path)[0]
    with _opened(file) as stream:
        lines = b""
        while len(lines) < size and (line := _next_line(stream, file)):
            lines += line
    return lines[:size].decode("utf-8", "replace")


def _opened(file: Path) -> IO[bytes]:
    try:
        with file.open("rb") as stream:
            head = stream.read(8)
        for magic, command in _COMPRESSED.items():
            if head.startswith(magic):
                raise refusal(file, "is compressed in a format that is not read here", f"decompress it: {command}")
        return cast(IO[bytes], gzip.open(file)) if head.startswith(_GZIP) else file.open("rb")
    except OSError as error:
        raise refusal(file, f"cannot be read: {error.strerror}", "name another file") from None


def _next_line(stream: IO[bytes], file: Path) -> bytes:
    """The next line, of which at most LINE_BYTES_MAX + 1 bytes are kept; b"" at the end, or where a file breaks off."""
    try:
        line = stream.readline(LINE_BYTES_MAX + 1)
        rest = line
        while len(rest) > LINE_BYTES_MAX and not rest.endswith(b"\n"):
            rest = stream.readline(LINE_BYTES_MAX + 1)
    except EOFError:
        return b""
    except (zlib.error, gzip.BadGzipFile) as error:
        raise refusal(file, f"cannot be decompressed: {error}", "name another file") from None
    return line
