"""Long tests begin first, and those marked `no_cover` are run without coverage, fixtures included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLOW = "import pytest\n\n@pytest.mark.slow\ndef test_slow(): pass\n\ndef test_beside_it(): pass\n"
CLUSTER = "import pytest\n\n@pytest.mark.cluster\ndef test_cluster(): pass\n"
MEASURED = """
import pytest
import measured

@pytest.fixture
def made_without(): measured.only_without()

@pytest.fixture
def made_with(): measured.only_with()

@pytest.mark.no_cover
def test_without(made_without): measured.only_without()

def test_with(made_with): measured.only_with()
"""


def pytest_in(directory: Path, *arguments: str) -> str:
    (directory / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-o", "markers=slow\ncluster", "-o", "addopts="]
    command += ["--rootdir", str(directory), "-p", "no:cacheprovider", *arguments, str(directory)]
    ran = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def test_files_with_long_tests_come_first_in_turns_and_stay_whole(tmp_path: Path) -> None:
    quick = "def test_quick(): pass\n"
    for name, text in {"a": quick, "b": SLOW, "c": quick, "d": SLOW, "e": CLUSTER, "f": CLUSTER}.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    listed = pytest_in(tmp_path, "--collect-only", "-q").splitlines()
    assert [line for line in listed if "::" in line] == [
        "test_b.py::test_slow",
        "test_b.py::test_beside_it",
        "test_e.py::test_cluster",
        "test_d.py::test_slow",
        "test_d.py::test_beside_it",
        "test_f.py::test_cluster",
        "test_a.py::test_quick",
        "test_c.py::test_quick",
    ]


def test_tests_without_coverage_have_fixtures_without_coverage(tmp_path: Path) -> None:
    (tmp_path / "measured.py").write_text("def only_without():\n    one = 1\n\ndef only_with():\n    two = 2\n")
    (tmp_path / "test_it.py").write_text(MEASURED)
    pytest_in(tmp_path, "--cov=measured", "--cov-report=json:report.json")
    (file,) = json.loads((tmp_path / "report.json").read_text())["files"].values()
    assert file["missing_lines"] == [2]
