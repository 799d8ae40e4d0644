"""docs/design/invariants.md has a row for each invariant, and names code and tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/design/invariants.md").read_text()
NUMBERS = [f"I-{number:02}" for number in range(1, 70)]
CHECKERS = (
    "rm/core/booking_invariants.py",
    "rm/core/invariants.py",
    "rm/core/protocol_invariants.py",
    "rm/core/timing_invariants.py",
    "rm/scheduler/invariants/state.py",
    "rm/scheduler/invariants/decisions.py",
)
ORDER_WATCH = "rm/scheduler/invariants/decisions.py"


def rows() -> dict[str, str]:
    """{number: what its row says of who checks it}."""
    return {line.split("|")[1].strip(): line for line in PAGE.splitlines() if line.startswith("| I-")}


def test_every_invariant_has_one_row_in_order() -> None:
    assert [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| I-")] == NUMBERS


def test_what_a_row_names_is_there() -> None:
    for path, test in re.findall(r"`((?:rm|tests|yarnling)/[\w/]+\.py)(?:::(\w+))?`", PAGE):
        assert (ROOT / path).is_file(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), f"{path}::{test}"


@pytest.mark.parametrize("path", [*CHECKERS, ORDER_WATCH])
def test_what_a_checker_reports_names_that_checker_in_its_row(path: str) -> None:
    """The numbers of its messages and of its table of checks."""
    reported = set(re.findall(r'"(I-\d\d)": _', (ROOT / path).read_text()))
    reported |= set(re.findall(r'f"(I-\d\d): ', (ROOT / path).read_text()))
    assert reported
    assert {number for number in reported if f"`{path}`" not in rows()[number]} == set()
