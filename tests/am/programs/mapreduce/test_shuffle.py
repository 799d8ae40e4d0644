"""Lines from files to maps and from maps to reduces: none lost or duplicated, sorted, in the right partition."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from am.programs.mapreduce.core.job import splits_of
from am.programs.mapreduce.shuffle import (
    MapOutputWriter,
    copy_lines,
    merged_lines,
    partition_of,
)
from am.programs.mapreduce.wordcount import map_lines, reduce_lines
from wire.files.shuffle import INDEX, OUTPUT, index_record

LINES = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=40)
TEXTS = st.lists(st.text(alphabet="ab \n\té", max_size=40).map(str.encode), min_size=1, max_size=5)
ON_FILES = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def copy_partition(output: Path, partition: int, target: Path) -> None:
    """A reduce's part of a map's output."""
    record = index_record((output / INDEX).read_bytes(), partition, output.name)
    assert record.raw_length == record.part_length
    target.write_bytes((output / OUTPUT).read_bytes()[record.start :][: record.part_length])


def fresh(directory: Path) -> Path:
    """An empty directory: hypothesis gives all examples of a test one tmp_path."""
    number = sum(1 for _ in directory.iterdir())
    path = directory / f"example-{number}"
    path.mkdir()
    return path


def test_a_partition_is_the_same_in_every_process() -> None:
    assert [partition_of(word, 100) for word in (b"", b"the", b"yarn")] == [0, 78, 94]


def test_lines_of_one_key_are_neighbours(tmp_path: Path) -> None:
    """A key may contain bytes that sort before the tab."""
    write(tmp_path / "map", [b"a\t2", b"a\x01\t1", b"ab\t1", b"a\t1", b"a"], 1)
    assert (tmp_path / "map" / OUTPUT).read_bytes() == b"a\na\x01\t1\na\t1\na\t2\nab\t1\n"


@ON_FILES
@given(TEXTS, st.integers(1, 12))
def test_each_line_is_read_by_exactly_one_split(tmp_path: Path, texts: list[bytes], split_bytes: int) -> None:
    directory = fresh(tmp_path)
    files = [directory / str(number) for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text)
    read = io.BytesIO()
    for split in splits_of(((str(file), file.stat().st_size) for file in files), split_bytes):
        for piece in split:
            copy_lines(Path(piece.path), piece.start, piece.length, read)
    whole = [line for text in texts for line in text.removesuffix(b"\n").split(b"\n") if text]
    assert read.getvalue() == b"".join(line + b"\n" for line in whole)


@ON_FILES
@given(st.lists(LINES, max_size=6), st.integers(1, 4))
def test_what_maps_write_is_what_reduces_read(tmp_path: Path, maps: list[list[bytes]], reduces: int) -> None:
    directory = fresh(tmp_path)
    outputs = [write(directory / f"map-{n}", lines, reduces) for n, lines in enumerate(maps)]
    for partition in range(reduces):
        runs = [directory / f"run-{partition}-{n}" for n in range(len(outputs))]
        for output, run in zip(outputs, runs, strict=True):
            copy_partition(output, partition, run)
        read = [line.removesuffix(b"\n") for line in merged_lines(runs, directory, files_max=2)]
        mine = [
            line for lines in maps for line in lines if partition_of(line.partition(b"\t")[0], reduces) == partition
        ]
        assert read == sorted(mine)


def write(directory: Path, lines: list[bytes], reduces: int) -> Path:
    directory.mkdir()
    writer = MapOutputWriter(directory, reduces)
    for line in lines:
        writer.add(line)
    writer.close()
    assert sorted(path.name for path in directory.iterdir()) == [OUTPUT, INDEX]
    return directory


@ON_FILES
@given(TEXTS, st.integers(1, 15), st.integers(1, 3))
def test_a_word_count_through_splits_and_shuffle_is_a_plain_count(
    tmp_path: Path, texts: list[bytes], split_bytes: int, reduces: int
) -> None:
    directory = fresh(tmp_path)
    files = [directory / f"in-{number}" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text)
    outputs = []
    for number, split in enumerate(splits_of(((str(f), f.stat().st_size) for f in files), split_bytes)):
        share = io.BytesIO()
        for piece in split:
            copy_lines(Path(piece.path), piece.start, piece.length, share)
        lines = [line.removesuffix(b"\n") for line in map_lines(io.BytesIO(share.getvalue()))]
        outputs.append(write(directory / f"map-{number}", lines, reduces))
    counted: Counter[bytes] = Counter()
    for partition in range(reduces):
        runs = [directory / f"run-{partition}-{n}" for n in range(len(outputs))]
        for output, run in zip(outputs, runs, strict=True):
            copy_partition(output, partition, run)
        for line in reduce_lines(merged_lines(runs, directory)):
            word, _, count = line.removesuffix(b"\n").partition(b"\t")
            assert word not in counted
            counted[word] = int(count)
    assert counted == Counter(word for text in texts for word in text.split())
