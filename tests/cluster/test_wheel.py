"""The wheel installs into an empty environment, contains only the product, and starts a cluster there."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"am", "nm", "rm", "wire", "yarn", "yarnling"}

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(600)]


def run(*command: str | Path, cwd: Path) -> str:
    """The standard output of a command that succeeds; nothing of this checkout is on its path."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", directory, ROOT, cwd=directory)
    (built,) = directory.glob("*.whl")
    return built


@pytest.fixture
def yarnling(wheel: Path, tmp_path: Path) -> Iterator[Path]:
    """The command of an environment into which only the wheel and its dependencies are installed."""
    venv.create(tmp_path / "venv", with_pip=True)
    scripts = tmp_path / "venv" / "bin"
    run(scripts / "pip", "install", "--quiet", wheel, cwd=tmp_path)
    yield scripts / "yarnling"
    subprocess.run([scripts / "yarnling", "down", "--name", "wheel"], cwd=tmp_path, capture_output=True, check=False)


def test_the_wheel_contains_only_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == PACKAGES
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)


def test_the_installed_wheel_runs_a_cluster(yarnling: Path, tmp_path: Path) -> None:
    run(yarnling, "up", "--nodes", "2", "--fast", "--detach", "--name", "wheel", cwd=tmp_path)
    output = run(yarnling, "run", "--name", "wheel", "-n", "2", "echo hello from the wheel", cwd=tmp_path)
    assert output.count("hello from the wheel") == 2
