"""scripts/both-ways [--runs N]: runs the same work in simulation and as processes; writes the page of differences."""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path

from benchmarks.both_ways.cases import CASES, Case
from benchmarks.both_ways.page import Outcomes, page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "simulation-and-processes.md"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/both-ways", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each case, both ways (default: 3)")
    parser.add_argument("-o", "--output", type=Path, default=PAGE, metavar="FILE", help="where to write the page")
    arguments = parser.parse_args()
    before = os.getloadavg()[0]
    found = [outcomes_of(case, arguments.runs) for case in CASES]
    load = f"load {before:.0f} at the start, {os.getloadavg()[0]:.0f} at the end"
    machine = f"{len(os.sched_getaffinity(0))} cores, CPython {platform.python_version()}, {load}"
    arguments.output.write_text(page(found, machine))


def outcomes_of(case: Case, runs: int) -> Outcomes:
    """Run a case so many times both ways."""
    numbers = range(1, runs + 1)
    return Outcomes(
        case.name, case.about, [case.simulated(number) for number in numbers], [case.processes(n) for n in numbers]
    )


if __name__ == "__main__":
    main()
