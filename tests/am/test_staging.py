"""Staging directories and the records in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from am.client.launching import (
    default_staging_root,
    make_staging_directory,
    read_record,
    write_atomically,
    write_record,
)
from am.programs.mapreduce.core.map_reduce import TaskReport
from tests.am.builders import APP
from yarn.errors import InvalidArgumentException, YarnException


def test_each_application_has_its_own_directory(tmp_path: Path) -> None:
    directory = make_staging_directory(tmp_path / "root", APP)
    assert directory == tmp_path.resolve() / "root" / str(APP)
    assert directory.stat().st_mode & 0o777 == 0o700
    with pytest.raises(YarnException, match="File exists"):
        make_staging_directory(tmp_path / "root", APP)


def test_a_root_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(YarnException, match="choose another staging root"):
        make_staging_directory(tmp_path / "file" / "root", APP)


def test_the_default_root_belongs_to_one_user() -> None:
    assert default_staging_root().name == "staging"


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_record(tmp_path / "r", TaskReport(output="/x"))
    assert read_record(tmp_path / "r") == TaskReport(output="/x")
    with pytest.raises(InvalidArgumentException, match="No such file"):
        read_record(tmp_path / "none")


def test_a_file_is_replaced_in_one_step_without_temporary_files_left(tmp_path: Path) -> None:
    write_atomically(tmp_path / "f", b"one")
    write_atomically(tmp_path / "f", b"two")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_bytes() == b"two"
