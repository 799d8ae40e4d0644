"""The table of mission cases in docs/design/mission-cases.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "design" / "mission-cases.md"
LAST = {"A": 8, "B": 8, "C": 7, "D": 5, "E": 8, "F": 6, "G": 3, "H": 4, "I": 5}
SIMULATION, CLUSTER = Path(__file__).parent, ROOT / "tests" / "cluster"
IN_PLANS = "test_mission_cases.py"


def rows() -> dict[str, tuple[str, str]]:
    """{case: (processes, simulation)}."""
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| [A-I]\d ", line)]
    split = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {case: (processes, simulation) for case, _, processes, simulation in split}


def marked(path: Path) -> set[str]:
    """The cases that a test file marks."""
    marks = re.findall(r"mark\.case\(([^)]*)\)", path.read_text())
    return {case for mark in marks for case in re.findall(r"\"(\w+)\"", mark)}


def test_each_case_has_a_row_and_each_named_file_its_marker() -> None:
    table = rows()
    assert list(table) == [f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)]
    for case, (processes, simulation) in table.items():
        named = re.findall(r"`(test_\w+\.py)`", simulation) or ([IN_PLANS] if simulation.startswith("plans") else [])
        assert named or case == "D3", case
        paths = [SIMULATION / name for name in named]
        paths += [CLUSTER / name for name in re.findall(r"`(.+)`", processes)]
        for path in paths:
            assert case in marked(path), (case, path)
