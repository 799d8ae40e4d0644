"""docs/design/mission-cases.md has a row for each mission case, with the tests that show it."""

from __future__ import annotations

import re
from pathlib import Path

from scripts import mission_cases

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "design" / "mission-cases.md").read_text()
LAST = {"A": 8, "B": 8, "C": 7, "D": 5, "E": 8, "F": 6, "G": 3, "H": 4, "I": 5}
CASES = [f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)]
NOT_SIMULATED = ["D3"]


def test_each_case_has_a_row() -> None:
    assert re.findall(r"^\| ([A-I]\d) \|", PAGE, re.MULTILINE) == CASES


def test_the_page_names_the_tests_of_today() -> None:
    assert mission_cases.current(PAGE) == PAGE, "run scripts/mission-cases"


def test_each_case_is_shown_in_simulation() -> None:
    shown = mission_cases.tests_of_cases()
    assert [case for case in CASES if "simulation" not in shown[case]] == NOT_SIMULATED


def test_a_row_gets_the_tests_and_keeps_its_claim() -> None:
    tests = {"B4": {"scenarios": ["b4-one", "b4-two"], "processes": ["web"]}}
    assert (
        mission_cases._with_tests("| B4 | a claim | 1 | `old` | | |\n", tests) == "| B4 | a claim | 2 | | | `web` |\n"
    )
    assert mission_cases._with_tests("| case | what is shown |\n", tests) == "| case | what is shown |\n"
