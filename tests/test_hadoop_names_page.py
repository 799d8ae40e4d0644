"""docs/hadoop-names.md names functions that are there, for each step of the path of a container."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/hadoop-names.md").read_text()
NAMES = sorted(set(re.findall(r"`([\w/]+\.py)::([\w.]+)`", PAGE)))
PARTS = ("Allocate", "Who places", "Down the tree", "In the application", "The commit")
"""The parts of the walk, whose rows are numbered."""


@cache
def defined_in(path: str) -> frozenset[str]:
    """The functions, classes and methods of a file, as NAME and CLASS.NAME."""
    found = set[str]()
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            members = node.body if isinstance(node, ast.ClassDef) else []
            found |= {f"{node.name}.{member.name}" for member in members if isinstance(member, ast.FunctionDef)}
    return frozenset(found)


@pytest.mark.parametrize(("path", "name"), NAMES)
def test_a_name_of_the_page_is_there(path: str, name: str) -> None:
    assert name in defined_in(path), f"{path} has no {name}: correct its row in docs/hadoop-names.md"


def test_each_row_has_a_method_of_hadoop_a_name_of_ours_and_a_rule() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and "`" in line]
    assert len(rows) > 100
    for row in rows:
        assert re.fullmatch(r"\|(?: \d+ \|)? `[A-Z]\w+\.\w+` \| `[\w/]+\.py::[\w.]+` \| \S.*\. \|", row), row


def test_the_rows_of_the_walk_are_numbered_in_order() -> None:
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [heading for heading in re.findall(r"^## (.+?)[:,]", PAGE, re.MULTILINE) if heading in PARTS] == list(PARTS)
