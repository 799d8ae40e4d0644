"""Run every check of the source, two at a time, and print one line for each. Exit with 1 if any failed.

The tools are those beside the running interpreter. So `python scripts/check.py` does the same as scripts/check in any
environment with the dev dependencies; scripts/check installs them first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PARALLEL_MAX = 2
"""The number of checks that run at the same time. mypy and pyright take most of the time and one core each."""


@dataclass(frozen=True)
class Check:
    """A command that exits with 0 if the check passes. `repair` is the remedy that is printed if it fails."""

    name: str
    command: tuple[str, ...]
    repair: str = ""


@dataclass(frozen=True)
class Outcome:
    check: Check
    passed: bool
    seconds: float
    output: str


def tool(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(BIN / name), *arguments)


def script(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, str(ROOT / "scripts" / name), *arguments)


# The slow checks come first, so that the quick ones fill the other core.
CHECKS = (
    Check("mypy", tool("mypy")),
    Check("pyright", tool("pyright")),
    Check("imports", tool("lint-imports", "--no-logo"), "move the import, or the contract in pyproject.toml"),
    Check("cycles", script("cycles.py")),
    Check("protos", script("gen_protos", "--check"), "scripts/gen_protos"),
    Check("diagrams", script("diagrams.py", "--check"), "scripts/diagrams"),
    Check("lint", tool("ruff", "check", "--quiet"), "scripts/check --fix"),
    Check("format", tool("ruff", "format", "--check"), "scripts/check --fix"),
    Check("tidy", script("tidy.py")),
)
_FORMAT = tool("ruff", "format", "--quiet")
FIXES = (_FORMAT, tool("ruff", "check", "--quiet", "--fix"), _FORMAT)


def main() -> int:
    names = [check.name for check in CHECKS]
    parser = argparse.ArgumentParser(prog="scripts/check", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="format and repair what can be repaired, then check")
    parser.add_argument("names", nargs="*", metavar="CHECK", help=f"only these, of: {', '.join(names)}")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in names]:
        parser.error(f"no check called {', '.join(unknown)}; there are {', '.join(names)}")
    if arguments.fix:
        for command in FIXES:
            subprocess.run(command, cwd=ROOT, check=False)
    return run_all([check for check in CHECKS if not arguments.names or check.name in arguments.names])


def run_all(checks: list[Check]) -> int:
    started = time.monotonic()
    failures: list[Outcome] = []
    with ThreadPoolExecutor(PARALLEL_MAX) as pool:
        for done in as_completed([pool.submit(run, check) for check in checks]):
            outcome = done.result()
            print(f"{'ok    ' if outcome.passed else 'FAILED'}  {outcome.check.name:<9}{outcome.seconds:5.1f} s")
            sys.stdout.flush()
            if not outcome.passed:
                failures.append(outcome)
    for failure in failures:
        print(f"\n--- {failure.check.name}\n{failure.output.rstrip()}")
        if failure.check.repair:
            print(f"To repair: {failure.check.repair}")
    print(f"\n{len(checks) - len(failures)} passed, {len(failures)} failed, {time.monotonic() - started:.1f} s")
    return 1 if failures else 0


def run(check: Check) -> Outcome:
    started = time.monotonic()
    try:
        done = subprocess.run(
            check.command,
            cwd=ROOT,
            env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        passed, output = done.returncode == 0, done.stdout
    except OSError as error:
        passed, output = False, f"{check.command[0]}: {error} (run scripts/install)"
    return Outcome(check, passed, time.monotonic() - started, output)


if __name__ == "__main__":
    sys.exit(main())
