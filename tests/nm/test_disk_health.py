"""Which directories are good, and the health report on the others."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import pytest

from nm.core.disk_health import DirectoryHealth, DiskLimits, DiskSample, check_directories, health_report, is_healthy
from nm.shell import disks

GB = 1 << 30
ALL_GOOD = DirectoryHealth(("/a", "/b"), {}, {})
LIMITS = DiskLimits(used_percent_max=90.0, used_percent_good=80.0, free_mb_min=100, free_mb_good=200)


def disk(free_percent: float) -> DiskSample:
    return DiskSample("", 100 * GB, int(free_percent * GB))


def test_a_disk_is_full_above_its_limit_and_good_again_below_the_lower_one() -> None:
    health = ALL_GOOD
    for free_percent, good in ((10.0, True), (9.9, False), (15.0, False), (19.9, False), (20.1, True), (15.0, True)):
        health = check_directories({"/a": disk(free_percent), "/b": disk(50)}, health, LIMITS)
        assert ("/a" in health.good) is good, free_percent


def test_a_disk_needs_a_minimum_of_free_space() -> None:
    tiny = DiskSample("", GB, 150 << 20)
    limits = DiskLimits(used_percent_max=100.0, used_percent_good=100.0, free_mb_min=100, free_mb_good=200)
    assert check_directories({"/a": tiny, "/b": tiny}, ALL_GOOD, limits).good == ("/a", "/b")
    after = DirectoryHealth(("/b",), {}, {"/a": "full"})
    health = check_directories({"/a": tiny, "/b": tiny}, after, limits)
    assert health.full == {"/a": "free space below limit of 200MB"}


def test_a_lower_limit_above_the_upper_one_is_ignored() -> None:
    limits = DiskLimits(used_percent_max=80.0, used_percent_good=95.0)
    after = DirectoryHealth((), {}, {"/a": "full"})
    assert check_directories({"/a": disk(15)}, after, limits).good == ()


def test_a_node_is_healthy_while_a_quarter_of_each_kind_is_good() -> None:
    quarter = DirectoryHealth(("/a",), {"/b": "x", "/c": "x"}, {"/d": "x"})
    none = DirectoryHealth((), {"/a": "x"}, {})
    assert is_healthy(quarter, ALL_GOOD, LIMITS)
    assert not is_healthy(none, ALL_GOOD, LIMITS)
    assert not is_healthy(ALL_GOOD, none, LIMITS)


def test_the_report_names_every_bad_directory() -> None:
    local = DirectoryHealth(("/a",), {"/b": "broken", "/c": "gone"}, {"/d": "used space above threshold of 90.0%"})
    logs = DirectoryHealth((), {"/l": "broken"}, {"/m": "free space below limit of 5MB"})
    full = "usable space is below configured utilization percentage/no more usable space"
    assert health_report(local, logs) == (
        "2/4 local-dirs have errors:  [ /b : broken , /c : gone ] "
        f"1/4 local-dirs {full} [ /d : used space above threshold of 90.0% ] ; "
        "1/2 log-dirs have errors:  [ /l : broken ] "
        f"1/2 log-dirs {full} [ /m : free space below limit of 5MB ] "
    )
    assert health_report(ALL_GOOD, ALL_GOOD) == ""


def test_a_check_writes_to_a_directory_unless_it_has_just_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that was just made is known to be writable.

    So a thousand nodes write a thousand files less at their start.
    """
    written, real = [], disks.tempfile.TemporaryFile

    def temporary_file(**options: str) -> IO[bytes]:
        written.append(options["dir"])
        return real(**options)

    monkeypatch.setattr(disks.tempfile, "TemporaryFile", temporary_file)
    new = str(tmp_path / "new")
    for looks in ([], [new]):
        seen = disks.sample(new)
        assert (seen.problem, written) == ("", looks)
        assert seen.free_bytes > 1
