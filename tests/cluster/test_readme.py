"""The programs and commands in README.md and in the first pages of docs/ work as printed."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README, COMMANDS, PYTHON, WHAT_IF = (
    (ROOT / name).read_text() for name in ("README.md", "docs/commands.md", "docs/python.md", "docs/what-if.md")
)
TIMEOUT_S = 250
COMPUTING_S = 1_500
"""For commands that only compute, for half a minute: on a machine with ten other jobs they took more than 250 s."""

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def blocks(text: str, language: str) -> list[str]:
    """The blocks of code in that language; a line that is continued is one line."""
    return [
        str(found).replace("\\\n", "")
        for found in re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    ]


def python(*arguments: str, timeout_s: float = TIMEOUT_S, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        timeout=timeout_s,
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def name(tmp_path: Path) -> Iterator[str]:
    """A name for the cluster of the example, which is ended at the end of the test."""
    chosen = f"readme-{os.getpid()}"
    yield chosen
    python("-m", "yarnling", "down", YARNLING_NAME=chosen)


PROGRAMS = blocks(PYTHON, "python")
PRINTED = re.findall(r"^prints `(.*?)`", PYTHON, re.MULTILINE)


@pytest.mark.parametrize(("program", "printed"), list(zip(PROGRAMS, PRINTED, strict=True)))
def test_each_program_prints_the_output_in_the_text(program: str, printed: str) -> None:
    done = python("-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{printed}\n", "")


def test_the_first_program_is_short_and_imports_the_package_alone() -> None:
    lines = PROGRAMS[0].splitlines()
    assert len(lines) <= 6
    assert [line for line in lines if "import" in line] == ["from yarnling import LocalCluster"]


(TOUR,) = blocks(COMMANDS, "sh")
WAITING, CHANGE = blocks(README, "sh")
(DAY,) = blocks(WHAT_IF, "sh")
INSTALLED = "scripts/install --run && . .venv/bin/activate"
"""The tests run in such an environment already."""


@pytest.mark.parametrize("commands", [TOUR, WAITING], ids=["tour", "waiting"])
def test_the_commands_run(name: str, commands: str) -> None:
    lines = [line for line in commands.splitlines() if line != INSTALLED]
    assert len(lines) >= 3
    for line in lines:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "yarnling"
        done = python("-m", "yarnling", *arguments, YARNLING_NAME=name)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def simulated(commands: str, tmp_path: Path, *, timeout_s: float = TIMEOUT_S, **instead: str) -> str:
    """The output of the commands, with their output in the directory and `instead` as values of options."""
    printed = ""
    for line in commands.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "yarnling"
        if "-o" in arguments:
            arguments[arguments.index("-o") + 1] = str(tmp_path / arguments[arguments.index("-o") + 1])
        for option, value in instead.items():
            if f"--{option}" in arguments:
                arguments[arguments.index(f"--{option}") + 1] = value
        done = python("-m", "yarnling", *arguments, timeout_s=timeout_s)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        printed += done.stdout
    return printed


@pytest.mark.timeout(2 * COMPUTING_S)
def test_the_change_has_the_answer_in_the_text(tmp_path: Path) -> None:
    """Who pays, not "No difference that matters": the example is there to show a difference."""
    printed = simulated(CHANGE, tmp_path, timeout_s=COMPUTING_S)
    assert printed.splitlines()[0] == answer(README)
    assert "`out/change/compare.html`" in README
    assert "<svg" in (tmp_path / "out/change/compare.html").read_text()


def answer(text: str) -> str:
    """The first line that the comparison of a page prints, as the page has it."""
    (line,) = [line for line in text.splitlines() if line.startswith("> Shorter waits in")]
    return line.removeprefix("> ")


@pytest.mark.timeout(2 * COMPUTING_S)
def test_the_day_runs(tmp_path: Path) -> None:
    """With a minute instead of two hours. It asks for no container that is larger than those of the configuration."""
    printed = simulated(DAY, tmp_path, timeout_s=COMPUTING_S, until="1m")
    assert "larger than the largest" not in printed
    assert "`out/day/compare.html`" in WHAT_IF
    for page in ("compare.html", "before/report.html", "after/report.html"):
        assert "<svg" in (tmp_path / "out/day" / page).read_text()


def test_the_day_has_as_many_applications_and_containers_as_the_text_says(tmp_path: Path) -> None:
    shown, _ = DAY.splitlines()
    said = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) (?:applications|containers)", shown)]
    printed = simulated(shown, tmp_path).replace(",", "").split()
    assert [int(printed[printed.index(word) - 1]) for word in ("applications", "containers")] == pytest.approx(
        said, rel=0.05
    )


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_day_has_the_answer_in_the_text(tmp_path: Path) -> None:
    """Two virtual hours of both sides."""
    printed = simulated(DAY.splitlines()[1], tmp_path, timeout_s=3600)
    assert printed.splitlines()[0] == answer(WHAT_IF)


def test_the_readme_is_short_and_has_three_pictures() -> None:
    assert len(README.splitlines()) <= 100
    pictures = [ROOT / path for path in re.findall(r"!\[[^]]+\]\((.*?)\)", README)]
    assert len(pictures) == 3
    assert [picture.name for picture in pictures if picture.stat().st_size > 150_000] == []


def test_the_scripts_exist() -> None:
    scripts = set(re.findall(r"scripts/\w+", README))
    assert {"scripts/demo", "scripts/test", "scripts/install"} <= scripts
    for script in scripts:
        assert os.access(ROOT / script, os.X_OK), script
