"""Splits of files, and the ids of tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from am.programs.mapreduce.core.job import (
    MapReduceJob,
    SplitPart,
    TaskAttemptId,
    TaskId,
    TaskKind,
    parse_attempt_id,
    splits_of,
)
from tests.am.builders import APP
from yarn.errors import InvalidArgumentException


def test_small_files_share_a_split_and_large_ones_are_cut() -> None:
    assert splits_of([("a", 3), ("b", 4), ("c", 25)], 10) == (
        (SplitPart("a", 0, 3), SplitPart("b", 0, 4), SplitPart("c", 0, 3)),
        (SplitPart("c", 3, 10),),
        (SplitPart("c", 13, 10),),
        (SplitPart("c", 23, 2),),
    )


def test_empty_files_and_no_files_make_no_splits() -> None:
    assert splits_of([]) == ()
    assert splits_of([("a", 0), ("b", 0)]) == ()


@given(st.lists(st.integers(0, 50), max_size=10), st.integers(1, 30))
def test_every_byte_is_in_exactly_one_part_and_no_split_is_too_large(sizes: list[int], split_bytes: int) -> None:
    files = [(str(number), size) for number, size in enumerate(sizes)]
    splits = splits_of(files, split_bytes)
    covered = [
        (piece.path, piece.start + offset) for split in splits for piece in split for offset in range(piece.length)
    ]
    assert covered == [(path, offset) for path, size in files for offset in range(size)]
    lengths = [sum(part.length for part in split) for split in splits]
    assert all(0 < length <= split_bytes for length in lengths)
    assert all(length == split_bytes for length in lengths[:-1])


def test_ids_are_printed_and_parsed_as_hadoop_does() -> None:
    attempt_id = TaskAttemptId(TaskId(APP, TaskKind.REDUCE, 12), 1000)
    assert str(attempt_id.task_id) == "task_1700000000000_0001_r_000012"
    assert str(attempt_id) == "attempt_1700000000000_0001_r_000012_1000"
    assert parse_attempt_id(str(attempt_id)) == attempt_id
    with pytest.raises(InvalidArgumentException, match="not the id of a task attempt"):
        parse_attempt_id("attempt_1_2_x_3_4")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"reduces": -1}, "reduces -1"),
        ({"reduces": 10_000}, "reduces 10000"),
        ({"reduce_command": ""}, "need a reduce command"),
        ({"map_command": ""}, "needs a map command"),
    ],
)
def test_a_job_that_contradicts_itself_is_refused(changes: dict[str, object], fault: str) -> None:
    settings: dict[str, object] = {"map_command": "cat", "reduce_command": "cat", **changes}
    with pytest.raises(InvalidArgumentException, match=fault):
        MapReduceJob(name="j", splits=(), output="/out", **settings)  # type: ignore[arg-type]
