"""A package of another project with the name of one of ours is named in the error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from yarnling.cluster.own_packages import PACKAGES, check_packages

ROOT = Path(__file__).resolve().parents[2]
USES_A_CLUSTER = "def test_one(yarn_cluster): ..."
USES_NOTHING = "import am\n\ndef test_one(): assert am.MINE"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a package `am` and a `protos` of its own."""
    for package in ("am", "protos"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("MINE = True\n")
    return tmp_path


def python(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with the current directory first on its path, and the checkout last."""
    environment = {**os.environ, "PYTHONPATH": f"{directory}{os.pathsep}{ROOT}"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def run_test(project: Path, text: str) -> subprocess.CompletedProcess[str]:
    (project / "test_one.py").write_text(text)
    return python(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_all_packages_are_ours_here() -> None:
    assert all((ROOT / name).is_dir() for name in PACKAGES)
    check_packages()


def test_the_command_names_the_path_and_the_remedy(project: Path) -> None:
    done = python(project, "-m", "yarnling", "--version")
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"error: {project / 'am'} is imported as `am` instead of yarnling's package in {ROOT}"
    )
    assert "rename it" in done.stderr
    assert "python -P" in done.stderr


def test_a_module_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "wire.py").touch()
    done = python(tmp_path, "-c", "from yarnling import LocalCluster")
    assert done.returncode == 1
    assert f"PackageShadowedError: {tmp_path / 'wire.py'} is imported as `wire`" in done.stderr


def test_pytest_names_it_if_a_test_uses_a_cluster(project: Path) -> None:
    done = run_test(project, USES_A_CLUSTER)
    assert done.returncode == 1
    assert f"PackageShadowedError: {project / 'am'} is imported as `am`" in done.stdout


@pytest.mark.slow
def test_pytest_names_it_once_for_marked_tests(project: Path) -> None:
    marked = f"import pytest\npytestmark = pytest.mark.yarn_cluster(nodes=2)\n\n{USES_A_CLUSTER}\ndef test_two(): ...\n"
    done = run_test(project, marked)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.count(f"ERROR: {project / 'am'} is imported as `am`") == 1


@pytest.mark.slow
def test_other_projects_are_left_alone(project: Path) -> None:
    done = run_test(project, USES_NOTHING)
    assert done.returncode == 0, done.stdout


def test_a_project_may_have_protos(project: Path) -> None:
    (project / "am" / "__init__.py").unlink()
    (project / "am").rmdir()
    program = "import protos, wire.generated.security_pb2; print(protos.MINE)"
    assert python(project, "-c", program).stdout == "True\n"
