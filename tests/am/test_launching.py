"""Launch contexts for Python modules, and local resources."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import am
from am.client.launching import local_file, packages_dir, python_command, python_launch_context
from yarn.errors import InvalidArgumentException
from yarn.states import LocalResourceType, LocalResourceVisibility


def test_the_command_names_interpreter_module_and_logs() -> None:
    command = python_command("am.programs.x", ["--dir", "/a b"])
    assert command == f"exec {sys.executable} -P -m am.programs.x --dir '/a b' 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"


def test_the_context_has_the_path_of_our_packages() -> None:
    context = python_launch_context("m", environment={"A": "b"})
    assert context.environment == {"PYTHONPATH": packages_dir(), "A": "b"}
    assert am.__file__ is not None
    assert Path(packages_dir(), "am", "__init__.py").samefile(am.__file__)


def test_a_local_file_has_its_size_and_time(tmp_path: Path) -> None:
    path = tmp_path / "a b.txt"
    path.write_text("hello")
    resource = local_file(path)
    # As it is: Hadoop does not decode it (Path).
    assert resource.url == f"file:{tmp_path.resolve()}/a b.txt"
    assert (resource.size_bytes, resource.timestamp_ms) == (5, path.stat().st_mtime_ns // 1_000_000)
    assert (resource.type, resource.visibility) == (LocalResourceType.FILE, LocalResourceVisibility.APPLICATION)


def test_archives_are_unpacked(tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").touch()
    assert local_file(tmp_path / "x.tar.gz").type is LocalResourceType.ARCHIVE


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentException, match="No such file"):
        local_file(tmp_path / "nothing")
    with pytest.raises(InvalidArgumentException, match="not a regular file"):
        local_file(tmp_path)
