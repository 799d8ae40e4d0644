"""scripts/coverage_floors.py compares the coverage of each part with its floor."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "coverage_floors.py"
PYPROJECT = """
[tool.coverage.run]
branch = true
source = ["part"]

[tool.coverage-floors]
whole = {{ floor = {whole}, files = ["part/**"] }}
inner = {{ floor = {inner}, files = ["part/inner/**"] }}
"""


def command(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, check=False, capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A project of which one file of two, in two folders, runs completely, and the other one to a half."""
    for name, text in (("__init__.py", ""), ("a.py", "x = 1\ny = 2\n"), ("inner/__init__.py", "")):
        path = tmp_path / "part" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "part/inner/b.py").write_text("def f():\n    return 1\n")
    (tmp_path / "main.py").write_text("import part.a, part.inner.b\n")
    (tmp_path / "pyproject.toml").write_text(PYPROJECT.format(whole=0, inner=0))
    assert command(tmp_path, "-m", "coverage", "run", "main.py") == (0, [])
    return tmp_path


def test_parts_at_their_floors_pass(measured: Path) -> None:
    (measured / "pyproject.toml").write_text(PYPROJECT.format(whole=75, inner=48))
    lines = ["whole         75.0 %, floor 75 %", "inner         50.0 %, floor 48 % (could be 50)"]
    assert command(measured, str(SCRIPT)) == (0, lines)


def test_a_part_below_its_floor_fails_and_the_lines_are_listed(measured: Path) -> None:
    (measured / "pyproject.toml").write_text(PYPROJECT.format(whole=75, inner=50.5))
    code, lines = command(measured, str(SCRIPT))
    assert (code, lines[-1]) == (1, "inner         50.0 %, floor 50.5 %: below its floor (test what is new)")
    assert [line.split() for line in lines if "b.py" in line] == [["part/inner/b.py", "2", "1", "0", "0", "50%", "2"]]


def test_a_part_that_no_test_reached_has_nothing(measured: Path) -> None:
    other = PYPROJECT.format(whole=0, inner=1).replace("part/inner/**", "elsewhere/**")
    (measured / "pyproject.toml").write_text(other)
    assert (
        command(measured, str(SCRIPT))[1][-1] == "inner          0.0 %, floor 1 %: below its floor (test what is new)"
    )
