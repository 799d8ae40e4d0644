"""Files of a recording: they can be read up to the last whole poll, whenever the recorder was stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.yarnling.recorder.fake_cluster import START_MS, lines_in
from yarn.errors import YarnException
from yarnling.recorder import day_files
from yarnling.recorder.day_files import DayFiles, last_poll_ms, mend
from yarnling.workload.recording_lines import PollFailed, SeenLine


def write(directory: Path, *times: int) -> Path:
    """A file with one member for each time. Returns its path."""
    files = DayFiles(directory)
    for at in times:
        files.write([line_of(at)], START_MS)
    files.close()
    (path,) = directory.glob("*.gz")
    return path


def line_of(at: int) -> SeenLine:
    return PollFailed(START_MS + at, f"problem {at} " + "x" * at)


def times(directory: Path) -> list[int]:
    return [line.at - START_MS for line in lines_in(directory)]


def test_a_file_that_ends_anywhere_is_continued(tmp_path: Path) -> None:
    """Cut at each byte of the last member, it keeps the first two, and what is written next can be read."""
    whole = write(tmp_path, 1, 2).stat().st_size
    complete = write(tmp_path, 3).read_bytes()
    (path,) = tmp_path.glob("*.gz")
    for length in range(whole, len(complete)):
        path.write_bytes(complete[:length])
        write(tmp_path, 4)
        assert times(tmp_path) == [1, 2, 4]


def test_a_damaged_end_is_cut_off(tmp_path: Path) -> None:
    path = write(tmp_path, 1, 2)
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0" * 100)
    mend(path)
    assert path.read_bytes() == whole


def test_a_whole_file_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, *range(1, 40))
    whole = path.read_bytes()
    monkeypatch.setattr(day_files, "BLOCK_BYTES", 7)
    mend(path)
    assert path.read_bytes() == whole


def test_the_last_poll_is_found(tmp_path: Path) -> None:
    assert last_poll_ms(tmp_path, START_MS) is None
    write(tmp_path, 1, 5)
    assert last_poll_ms(tmp_path, START_MS + 10) == START_MS + 5
    assert last_poll_ms(tmp_path, START_MS + 2 * 86_400_000) is None


def test_two_recorders_do_not_write_into_one_directory(tmp_path: Path) -> None:
    files = DayFiles(tmp_path)
    with pytest.raises(YarnException, match="another recorder writes here"):
        DayFiles(tmp_path)
    files.close()
    DayFiles(tmp_path).close()


def test_a_day_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(day_files, "DAY_BYTES_MAX", 100)
    with pytest.raises(YarnException, match="not recorded further"):
        write(tmp_path, 1, 2, 3, 4)
