"""Write into docs/design/mission-cases.md which tests show each case: the columns behind the claims.

A claim is written by hand, in the row of its case. The tests are found by their markers, `@pytest.mark.case("B4")`, and
scenarios by their line `# case: B4`. With --check nothing is written; the exit status is 1 if the page is not current.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "design" / "mission-cases.md"
SCENARIOS, CORES, SIMULATION, PROCESSES = LEVELS = ("scenarios", "cores", "simulation", "processes")
_ROW = re.compile(r"^\| ([A-I]\d) \| (.*?) \|")
_MARK = re.compile(r"mark\.case\(([^)]*)\)")


def main() -> int:
    old = PAGE.read_text()
    new = current(old)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(new)
    elif old != new:
        print("docs/design/mission-cases.md is not current (run scripts/mission-cases)")
        return 1
    return 0


def current(page: str) -> str:
    """The page with the tests of today in each row."""
    shown = tests_of_cases()
    return "".join(_with_tests(line, shown) for line in page.splitlines(keepends=True))


def tests_of_cases() -> Mapping[str, Mapping[str, list[str]]]:
    """{case: {level: the names of files, in order}}."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(ROOT.glob("tests/**/test_*.py")):
        marks = " ".join(_MARK.findall(path.read_text()))
        for case in sorted(set(re.findall(r'"(\w+)"', marks))):
            found[case][_level(path)].append(path.stem.removeprefix("test_"))
    for path in sorted(ROOT.glob("tests/scenarios/scripts/*.txt")):
        for case in _cases_of_scenario(path):
            found[case][SCENARIOS].append(path.stem)
    return found


def _cases_of_scenario(path: Path) -> Iterator[str]:
    for line in path.read_text().splitlines():
        if line.startswith("# case:"):
            yield from line.removeprefix("# case:").replace(",", " ").split()


def _level(path: Path) -> str:
    if "simulation" in path.parts:
        return SIMULATION
    is_of_processes = "cluster" in path.parts or path.stem.endswith("_on_cluster")
    return PROCESSES if is_of_processes else CORES


def _with_tests(line: str, shown: Mapping[str, Mapping[str, list[str]]]) -> str:
    row = _ROW.match(line)
    if row is None:
        return line
    tests = shown.get(row[1], {})
    cells = [f"{len(tests[SCENARIOS])}" if SCENARIOS in tests else ""]
    cells += [", ".join(f"`{name}`" for name in tests.get(level, ())) for level in LEVELS[1:]]
    return f"{row[0]} {' | '.join(cells)} |\n".replace("  ", " ")


if __name__ == "__main__":
    sys.exit(main())
