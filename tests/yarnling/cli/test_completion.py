"""What a shell offers at Tab: our verbs and Hadoop's beside each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]


def offered(*words: str) -> list[str]:
    """What bash is told for the last of `words`, through the function that --show-completion prints."""
    line = ("yarnling", *words)
    asked = {
        "_YARNLING_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(line),
        "COMP_CWORD": str(len(line) - 1),
        "PYTHONPATH": str(PROJECT),
    }
    command = [sys.executable, "-m", "yarnling"]
    done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("app",), ["application", "applicationattempt"]),
        (("ex",), ["explain"]),
        (("submit", "dist"), ["distributed-shell"]),
        (("watch", "--e"), ["--errors"]),
        (("application", "-li"), []),
        (("yarn-",), []),
    ],
)
def test_a_shell_completes_verbs_and_our_options(words: tuple[str, ...], expected: list[str]) -> None:
    """Hadoop's options are read elsewhere, so none are offered; inner names are nobody's to type."""
    assert offered(*words) == expected


def test_a_bash_that_has_read_the_script_completes(tmp_path: Path) -> None:
    command = tmp_path / "yarnling"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={PROJECT} exec {sys.executable} -m yarnling "$@"\n')
    command.chmod(0o755)
    asked = """
        eval "$(yarnling --show-completion)"
        complete -p yarnling
        COMP_WORDS=(yarnling kill-n) COMP_CWORD=1
        _yarnling_completion yarnling
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    bash = ["bash", "--norc", "--noprofile", "-c", asked]
    done = subprocess.run(bash, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["complete -o default -F _yarnling_completion yarnling", "kill-node"], (
        done.stderr
    )
