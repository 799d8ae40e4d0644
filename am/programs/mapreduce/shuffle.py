"""The shuffle: partitions, sorts, spills and merges the output lines of maps into the input of reduces.

The module starts no processes. A map's output is one file, sorted by partition and key, and an index of where each
partition lies, as Hadoop writes them. The node's mapreduce_shuffle service sends a reduce its partition
(am.programs.mapreduce.fetcher).

    file.out         a\\t1 b\\t1 ... | c\\t1 d\\t1 ...
    file.out.index   (start, length, length)* checksum

The key of a line is the text before the first tab (the whole line if there is none). A partition is the CRC-32 of the
key modulo the number of reduces: the same in every process and every run, which Python's hash() is not.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from wire.full_disk import full_disk_named
from wire.shuffle import INDEX, OUTPUT, IndexRecord, index_bytes

BUFFER_BYTES = 32 << 20
"""The size of the lines sorted in memory at once (mapreduce.task.io.sort.mb; smaller, for small containers)."""

LINE_OVERHEAD_BYTES = 100
"""The memory of a line in addition to its bytes: the object, its place in a list, its sort key."""

MERGE_FILES_MAX = 64
"""The number of files that are merged at once (mapreduce.task.io.sort.factor); more files need another pass."""

_Segment = tuple[int, int]


def partition_of(key: bytes, reduces: int) -> int:
    return zlib.crc32(key) % reduces


def sort_key(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Sorts lines by key, then by value, so that the same input gives the same bytes in every run."""
    return line.partition(b"\t")


class MapOutputWriter:
    """Writes a map's lines (added without line ends) as file.out with its index into `directory`. Call `close`."""

    def __init__(self, directory: Path, reduces: int, buffer_bytes: int = BUFFER_BYTES) -> None:
        self._directory = directory
        self._reduces = reduces
        self._buffer_bytes = buffer_bytes
        self._lines: list[list[bytes]] = [[] for _ in range(reduces)]
        self._buffered = 0
        self._spills: list[tuple[Path, list[_Segment]]] = []

    def add(self, line: bytes) -> None:
        key, _, _ = line.partition(b"\t")
        self._lines[partition_of(key, self._reduces)].append(line)
        self._buffered += len(line) + LINE_OVERHEAD_BYTES
        if self._buffered >= self._buffer_bytes:
            self._spill()

    def close(self) -> None:
        """Finish the output. The index is written last: output without an index is not used."""
        if self._buffered or not self._spills:
            self._spill()
        if len(self._spills) == 1:
            path, segments = self._spills[0]
            path.replace(self._directory / OUTPUT)
        else:
            segments = self._merge_spills()
        index = self._directory / INDEX
        temporary = index.with_suffix(".tmp")
        with full_disk_named(index):
            temporary.write_bytes(index_bytes(IndexRecord(start, length, length) for start, length in segments))
        temporary.replace(index)

    def _spill(self) -> None:
        path = self._directory / f"spill-{len(self._spills)}"
        with full_disk_named(path), path.open("wb") as file:
            segments = [_write_segment(file, sorted(lines, key=sort_key)) for lines in self._lines]
        self._spills.append((path, segments))
        self._lines = [[] for _ in range(self._reduces)]
        self._buffered = 0

    def _merge_spills(self) -> list[_Segment]:
        merged: list[_Segment] = []
        path = self._directory / OUTPUT
        with full_disk_named(path), ExitStack() as stack, path.open("wb") as out:
            files = [stack.enter_context(path.open("rb")) for path, _ in self._spills]
            for partition in range(self._reduces):
                runs = [
                    _read_segment(file, segments[partition])
                    for file, (_, segments) in zip(files, self._spills, strict=True)
                ]
                merged.append(_write_segment(out, heapq.merge(*runs, key=sort_key)))
        for path, _ in self._spills:
            path.unlink()
        return merged


def merged_lines(runs: list[Path], work: Path, files_max: int = MERGE_FILES_MAX) -> Iterator[bytes]:
    """All lines of sorted files, in order, with line ends; at most `files_max` files are merged at once."""
    passes = 0
    while len(runs) > files_max:
        merged = work / f"merge-{passes}"
        with full_disk_named(merged), merged.open("wb") as out:
            out.writelines(_merge(runs[:files_max]))
        for run in runs[:files_max]:
            run.unlink()
        runs = [*runs[files_max:], merged]
        passes += 1
    yield from _merge(runs)


def _merge(runs: list[Path]) -> Iterator[bytes]:
    with ExitStack() as stack:
        files = [stack.enter_context(run.open("rb")) for run in runs]
        for line in heapq.merge(*(map(_strip, file) for file in files), key=sort_key):
            yield line + b"\n"


def _strip(line: bytes) -> bytes:
    return line.rstrip(b"\n")


def _write_segment(file: IO[bytes], lines: Iterable[bytes]) -> _Segment:
    offset = file.tell()
    file.writelines(line + b"\n" for line in lines)
    return offset, file.tell() - offset


def _read_segment(file: IO[bytes], segment: _Segment) -> Iterator[bytes]:
    """The lines of a segment. The segments of one file are read in order, so the file position need not be restored."""
    offset, length = segment
    file.seek(offset)
    end = offset + length
    while offset < end:
        line = file.readline()
        offset += len(line)
        yield _strip(line)


def copy_lines(source: Path, start: int, length: int, target: IO[bytes]) -> None:
    """Copy the lines whose first byte lies in [start, start + length), each with its line end.

    So each line belongs to exactly one of the parts that cover a file (LineRecordReader's rule, except for a line that
    starts exactly where a part ends).
    """
    with source.open("rb") as file:
        begin = _line_start(file, start)
        end = _line_start(file, start + length)
        if begin >= end:
            return
        file.seek(begin)
        left = end - begin
        last = b"\n"
        while left > 0 and (data := file.read(min(left, 1 << 20))):
            target.write(data)
            left -= len(data)
            last = data[-1:]
        if last != b"\n":
            target.write(b"\n")


def _line_start(file: IO[bytes], offset: int) -> int:
    """The first position at or after `offset` where a line starts (or the file ends)."""
    if offset == 0:
        return 0
    file.seek(offset - 1)
    return offset - 1 + len(file.readline())
