"""Commands, recordings and tests that docs/articles.md and docs/what-hadoop-does.md name are there.

The commands of lessons and examples are run by their own tests.
"""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from yarnling.cli.app import app
from yarnling.cli.lesson import chosen
from yarnling.lessons.catalogue import find_lesson

ROOT = Path(__file__).resolve().parents[1]
RECORDINGS = ROOT / "tests/conformance/recordings"
COMMAND: Any = typer.main.get_command(app)

ARTICLES, CLAIMS = ((ROOT / "docs" / name).read_text() for name in ("articles.md", "what-hadoop-does.md"))
MECHANISMS = [line.strip("| ").split(" | ") for line in ARTICLES.splitlines() if re.match(r"\| \d+ \|", line)]
ROWS = [line.strip("| ").split(" | ") for line in CLAIMS.splitlines() if re.match(r"\| (?!you |---)", line)]
COMMANDS = sorted({row[-2].strip("`") for row in [*MECHANISMS, *ROWS] if re.match("`(yarnling|python) ", row[-2])})
PROOFS = sorted({proof.strip("`") for row in [*MECHANISMS, *ROWS] for proof in row[-1].split(", ")})


def parse(command: Any, words: list[str]) -> None:
    """Parse a command line and run nothing; raises for a wrong one. Paths are those of ROOT."""
    context = command.make_context(command.name, list(words))
    if hasattr(command, "commands"):
        name, *rest = [*context._protected_args, *context.args]
        assert name in command.commands, f"no such command: {name}"
        parse(command.commands[name], rest)
    elif command.name == "lesson":
        chosen(find_lesson(words[0]), context.args)


def test_the_mechanisms_of_the_articles_are_42() -> None:
    assert [row[0] for row in MECHANISMS] == [str(number) for number in range(1, 43)]
    assert all(len(row) == 5 for row in MECHANISMS)
    assert len(ROWS) > 30


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_a_command(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    program, *words = shlex.split(command)
    if program == "python":
        assert (ROOT / words[0]).is_file()
    else:
        assert program == "yarnling"
        parse(COMMAND, words)


@pytest.mark.parametrize(
    "command",
    ["yarnling lessons 3", "yarnling lesson 6 --nope 2", "yarnling simulate --confx a", "yarnling explain --x"],
)
def test_a_wrong_command_is_found(command: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|does not take"):
        parse(COMMAND, shlex.split(command)[1:])


@pytest.mark.parametrize("command", [command for command in COMMANDS if " -" in command and "lesson" not in command])
def test_the_files_of_a_command_are_there(command: str) -> None:
    for word in shlex.split(command):
        assert not word.startswith("examples/") or (ROOT / word).exists(), word


@pytest.mark.parametrize("proof", PROOFS)
def test_what_proves_a_row_is_there(proof: str) -> None:
    path, _, test = proof.partition("::")
    if not path.startswith("tests/"):
        assert (RECORDINGS / f"{path}.jsonl.gz").is_file()
        return
    module = ast.parse((ROOT / path).read_text())
    names = {node.name for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    assert not test or test in names
