"""Long tests begin first; tests marked `unmeasured` run without coverage; CI repeats a failed test on processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SLOW = "import pytest\n\n@pytest.mark.slow\ndef test_slow(): pass\n\ndef test_beside_it(): pass\n"
CLUSTER = "import pytest\n\n@pytest.mark.cluster\ndef test_cluster(): pass\n"
MEASURED = """
import threading
import pytest
import measured

@pytest.fixture
def made_without():
    measured.only_without()
    yield
    measured.only_without()

@pytest.fixture
def made_with(): measured.only_with()

@pytest.mark.unmeasured
def test_without(made_without):
    measured.only_without()
    thread = threading.Thread(target=measured.only_without)
    thread.start()
    thread.join()

def test_with(made_with): measured.only_with()
"""


FAILS_AT_FIRST = """
import pytest
from pathlib import Path

def pass_the_second_time(name):
    if not Path(name).exists():
        Path(name).touch()
        pytest.fail("a busy moment")

@pytest.mark.cluster
def test_on_processes(): pass_the_second_time("processes")

def test_of_a_core(): pass_the_second_time("core")
"""


def pytest_in(directory: Path, *arguments: str, fails: bool = False, **environment: str) -> str:
    (directory / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-o", "markers=slow\ncluster\nunmeasured", "-o", "addopts="]
    command += ["--rootdir", str(directory), "-p", "no:cacheprovider", *arguments, str(directory)]
    variables = {**os.environ, "CI": "", **environment}
    ran = subprocess.run(command, cwd=directory, env=variables, capture_output=True, text=True, check=False)
    assert ran.returncode == (1 if fails else 0), ran.stdout
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


@pytest.mark.parametrize("processes", [(), ("-n", "1")])
def test_nothing_of_an_unmeasured_test_is_measured(tmp_path: Path, processes: tuple[str, ...]) -> None:
    (tmp_path / "measured.py").write_text("def only_without():\n    one = 1\n\ndef only_with():\n    two = 2\n")
    (tmp_path / "test_it.py").write_text(MEASURED)
    pytest_in(tmp_path, "--cov=measured", "--cov-report=json:report.json", *processes)
    (file,) = json.loads((tmp_path / "report.json").read_text())["files"].values()
    assert file["missing_lines"] == [2]


def test_ci_repeats_a_failed_test_on_processes_once_and_shows_the_failure(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILS_AT_FIRST)
    shown = pytest_in(tmp_path, "--rerun-show-tracebacks", fails=True, CI="true")
    assert "RERUN test_it.py::test_on_processes" in shown
    assert "1 failed, 1 passed, 1 rerun" in shown
    tracebacks = re.findall(r"^E +Failed: a busy moment", shown, re.MULTILINE)
    assert len(tracebacks) == 2, "one of them is from the test that was repeated"


@pytest.mark.parametrize("processes", [(), ("-n", "1")])
def test_ci_names_the_tests_that_it_repeated_last(tmp_path: Path, processes: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(FAILS_AT_FIRST)
    counts = tmp_path / "counts"
    shown = pytest_in(tmp_path, *processes, fails=True, CI="true", YARNLING_TEST_COUNTS=str(counts))
    assert "\nreruns: 1 (test_it.py::test_on_processes)\n" in shown
    assert counts.read_text().splitlines() == [
        "tests with Java: 0 ran, 0 were skipped",
        "reruns: 1 (test_it.py::test_on_processes)",
    ]
    assert "\nreruns: 0\n" in pytest_in(tmp_path, CI="true"), "both have failed once, and pass now"


def test_elsewhere_no_test_is_repeated(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILS_AT_FIRST)
    shown = pytest_in(tmp_path, fails=True)
    assert "2 failed" in shown
    assert "reruns:" not in shown
