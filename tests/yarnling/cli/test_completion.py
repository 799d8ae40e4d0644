"""Completion in a shell: our verbs and Hadoop's together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]


def offered(*words: str) -> list[str]:
    """The completions for the last of `words`, as bash gets them from the function that --show-completion prints."""
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


@pytest.mark.slow
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
    """Neither Hadoop's options, which Typer does not know, nor internal names are offered."""
    assert offered(*words) == expected


def test_bash_completes_with_the_printed_script(tmp_path: Path) -> None:
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
