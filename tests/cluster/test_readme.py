"""What the README shows works as it stands there."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
TIMEOUT_S = 100

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def block(language: str) -> str:
    """The one block of code in that language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return str(found)


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        timeout=TIMEOUT_S,
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def name(tmp_path: Path) -> Iterator[str]:
    """A name for the example's cluster, which is ended whatever happens."""
    chosen = f"readme-{os.getpid()}"
    yield chosen
    python("-m", "yarnling", "down", YARNLING_NAME=chosen)


def test_the_python_prints_what_the_text_says() -> None:
    done = python("-c", block("python"))
    (promised,) = re.findall(r"^prints `(.*?)`", README, re.MULTILINE)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{promised}\n", "")


def test_the_commands_run(name: str) -> None:
    lines = block("sh").splitlines()
    assert len(lines) >= 5
    for line in lines:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "yarnling"
        done = python("-m", "yarnling", *arguments, YARNLING_NAME=name)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_the_scripts_are_there() -> None:
    scripts = set(re.findall(r"scripts/\w+", README))
    assert {"scripts/demo", "scripts/test", "scripts/install"} <= scripts
    for script in scripts:
        assert os.access(ROOT / script, os.X_OK), script
