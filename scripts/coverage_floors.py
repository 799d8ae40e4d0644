"""Compare the branch coverage of the last whole run of the tests with the floor of each part of the product.

scripts/test runs this after the tests. The floors are the table [tool.coverage-floors] of pyproject.toml: a part, the
files that it consists of, and the percentage that it has to keep. For a part below its floor the lines that did not
run are listed. A part well above its floor is named too, so that its floor can be raised.
"""

from __future__ import annotations

import io
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from coverage import Coverage
from coverage.exceptions import NoDataError

SLACK = 2
"""Percentage points above a floor from which on it is worth raising."""


@dataclass(frozen=True)
class Part:
    """A part of the product. `floor`: the least percentage of its lines and branches that the tests have to reach."""

    name: str
    files: tuple[str, ...]
    floor: float


def main() -> int:
    root = Path.cwd()
    coverage = Coverage(config_file=str(root / "pyproject.toml"))
    coverage.load()
    found = [(part, measured(coverage, part, io.StringIO())) for part in parts(root)]
    low = [part for part, percentage in found if percentage < part.floor]
    for part in low:
        measured(coverage, part, sys.stdout, show_missing=True)
    for part, percentage in found:
        print(f"{part.name:<12}{percentage:6.1f} %, floor {part.floor:g} %{remark(part, percentage)}")
    return 1 if low else 0


def parts(root: Path) -> list[Part]:
    table = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["coverage-floors"]
    return [Part(name, tuple(row["files"]), row["floor"]) for name, row in table.items()]


def measured(coverage: Coverage, part: Part, report: TextIO, *, show_missing: bool = False) -> float:
    """The percentage of lines and branches that ran; 0 if nothing of the part was measured. Files go to `report`."""
    try:
        return coverage.report(include=list(part.files), file=report, show_missing=show_missing)
    except NoDataError:
        return 0.0


def remark(part: Part, percentage: float) -> str:
    if percentage < part.floor:
        return ": below its floor (test what is new)"
    if percentage >= part.floor + SLACK:
        return f" (could be {int(percentage)})"
    return ""


if __name__ == "__main__":
    sys.exit(main())
