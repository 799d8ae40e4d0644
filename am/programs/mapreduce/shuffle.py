"""The shuffle: partitions, sorts and merges the output lines of maps into the input of reduces.

The module starts no processes. A map's output is sorted in memory, which holds the few MB of a split, and written as
one file with an index of where each partition lies, in Hadoop's format. The node's mapreduce_shuffle service sends a
reduce its partition (am.programs.mapreduce.fetcher).

    file.out         a\\t1 b\\t1 ... | c\\t1 d\\t1 ...
    file.out.index   (start, length, length)* checksum

The key of a line is the text before the first tab (the whole line if there is none). A partition is the CRC-32 of the
key modulo the number of reduces: the same in every process and every run, which Python's hash() is not.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from wire.files.full_disk import full_disk_named
from wire.files.shuffle import INDEX, OUTPUT, IndexRecord, index_bytes

MERGE_FILES_MAX = 64
"""The number of files that are merged at once (mapreduce.task.io.sort.factor); more files need another pass."""


def partition_of(key: bytes, reduces: int) -> int:
    return zlib.crc32(key) % reduces


class MapOutputWriter:
    """Writes a map's lines (added without line ends) as file.out with its index into `directory`. Call `close`.

    Lines are sorted as bytes: those of one key are neighbours, and the same input gives the same bytes in every run.
    """

    def __init__(self, directory: Path, reduces: int) -> None:
        self._directory = directory
        self._partitions: list[list[bytes]] = [[] for _ in range(reduces)]

    def add(self, line: bytes) -> None:
        key, _, _ = line.partition(b"\t")
        self._partitions[partition_of(key, len(self._partitions))].append(line)

    def close(self) -> None:
        """Write the output. The index is written last: output without an index is not used."""
        records: list[IndexRecord] = []
        output, index = self._directory / OUTPUT, self._directory / INDEX
        with full_disk_named(output), output.open("wb") as file:
            for lines in self._partitions:
                start = file.tell()
                file.writelines(line + b"\n" for line in sorted(lines))
                records.append(IndexRecord(start, file.tell() - start, file.tell() - start))
        temporary = index.with_suffix(".tmp")
        with full_disk_named(index):
            temporary.write_bytes(index_bytes(records))
        temporary.replace(index)


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
        for line in heapq.merge(*(map(_strip, file) for file in files)):
            yield line + b"\n"


def _strip(line: bytes) -> bytes:
    return line.rstrip(b"\n")


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
