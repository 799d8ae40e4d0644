"""scripts/wheel keeps a wheel only if it has the modules that were to be compiled, and they run."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts import wheel

SOURCES = ["rm/scheduler/server.py", "yarn/resource.py"]
SO = ".cpython-311-x86_64-linux-gnu.so"
COMPILED = ["yarn/resource.py", f"yarn/resource{SO}", f"rm/scheduler/server{SO}", f"c1__mypyc{SO}"]


@pytest.mark.parametrize(
    ("compiled", "name", "files"),
    [(True, "yarnling-1-cp311-cp311-linux_x86_64.whl", COMPILED), (False, "yarnling-1-py3-none-any.whl", SOURCES)],
)
def test_a_wheel_with_the_modules_of_the_list_is_accepted(
    *, compiled: bool, name: str, files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel, "compiled_sources", lambda _: SOURCES)
    wheel.check_modules(_wheel(tmp_path / name, files), compiled=compiled)


@pytest.mark.parametrize(
    ("compiled", "name", "files", "fault"),
    [
        (True, "yarnling-1-cp311-cp311-linux_x86_64.whl", COMPILED[1:2], r"missing \['rm.scheduler.server'\]"),
        (True, "yarnling-1-py3-none-any.whl", COMPILED, "for which platform"),
        (False, "yarnling-1-py3-none-any.whl", COMPILED, "unexpected .*'yarn.resource'"),
    ],
)
def test_a_wheel_with_other_modules_is_refused(
    *, compiled: bool, name: str, files: list[str], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel, "compiled_sources", lambda _: SOURCES)
    with pytest.raises(wheel.WheelFailed, match=fault):
        wheel.check_modules(_wheel(tmp_path / name, files), compiled=compiled)


@pytest.mark.soak
def test_a_compiled_wheel_runs_in_an_empty_environment(tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, wheel.ROOT / "scripts" / "wheel.py", "--compiled", "--out", tmp_path]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    assert [path.suffix for path in tmp_path.iterdir()] == [".whl"]


def _wheel(path: Path, files: list[str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in files:
            archive.writestr(name, "")
    return path
