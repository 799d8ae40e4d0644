"""Look for planted bugs with one seed after another, and write docs/planted-bugs.md.

The findings are kept in docs/planted-bugs.json, so a search can be interrupted and continued. A bug is looked for again
if its changes of code have changed, if it was not found and --seeds allows more seeds, or with --again. With --check,
nothing is run or written, and the exit status is 1 if the page is not current.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from types import FrameType

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.mutants.bug import version_of  # noqa: E402
from tests.mutants.catalogue import BUGS  # noqa: E402
from tests.mutants.page import page  # noqa: E402
from tests.mutants.search import Finding, search  # noqa: E402
from tests.yarnling.simulation.intruder import simulate  # noqa: E402
from yarnling.faults.plan import Plan  # noqa: E402  the checkout must be on the path first
from yarnling.simulation.runner import Options, SimulatedRun  # noqa: E402

FINDINGS = ROOT / "docs" / "planted-bugs.json"
PAGE = ROOT / "docs" / "planted-bugs.md"
SEEDS = 100
RUN_CPU_S_MAX = 30
"""The CPU time for one run. One that takes more does not end because of the bug, and counts as failed."""

Findings = dict[str, Finding]


def main() -> int:
    arguments = _arguments()
    findings = _load()
    if arguments.check:
        is_current = PAGE.exists() and PAGE.read_text() == page(findings)
        if not is_current:
            print("docs/planted-bugs.md is not current (run scripts/planted --seeds 0)")
        return 0 if is_current else 1
    names = arguments.names or list(BUGS)
    due = {name: first for name in names if (first := _first_seed(name, findings, arguments)) <= arguments.seeds}
    with ProcessPoolExecutor(arguments.jobs) as pool:
        tasks = {
            pool.submit(_search, name, first, arguments.seeds, _reached(findings.get(name), first)): name
            for name, first in due.items()
        }
        for task in as_completed(tasks):
            name = tasks[task]
            findings[name] = found = task.result()
            _store(findings)
            outcome = f"{found.plan} {found.seed}: {found.reason}" if found.is_found else f"NOT FOUND ({found.reached})"
            print(f"{name}: {outcome}", flush=True)
    _store(findings)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/planted", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="the bugs (default: all)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"seeds for each plan of a bug (default: {SEEDS})")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--again", action="store_true", help="forget earlier findings")
    parser.add_argument("--check", action="store_true", help="run nothing; exit 1 if the page is not current")
    return parser.parse_args()


def _first_seed(name: str, findings: Findings, arguments: argparse.Namespace) -> int:
    """The seed to begin with; more than --seeds if nothing is to do."""
    known = findings.get(name)
    if known is None or known.version != version_of(BUGS[name]) or arguments.again:
        return 1
    return arguments.seeds + 1 if known.is_found else known.seeds + 1


def _reached(known: Finding | None, first: int) -> int:
    return known.reached if known is not None and first > 1 else 0


def _search(name: str, first: int, seeds: int, reached: int) -> Finding:
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGVTALRM, _out_of_time)
    return search(BUGS[name], range(first, seeds + 1), reached, _bounded)


def _bounded(plan: Plan, seed: int, options: Options) -> SimulatedRun:
    signal.setitimer(signal.ITIMER_VIRTUAL, RUN_CPU_S_MAX)
    try:
        return simulate(plan, seed, options)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("the run does not end")


def _load() -> Findings:
    if not FINDINGS.exists():
        return {}
    return msgspec.json.decode(FINDINGS.read_bytes(), type=Findings)


def _store(findings: Findings) -> None:
    known = {name: findings[name] for name in BUGS if name in findings}
    FINDINGS.write_bytes(msgspec.json.format(msgspec.json.encode(known), indent=1) + b"\n")
    PAGE.write_text(page(known))


if __name__ == "__main__":
    sys.exit(main())
