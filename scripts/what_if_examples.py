"""Run the commands of docs/what-if-examples.md, and write their output and exit statuses into the page.

The text between the commands is not changed. A test fails if that text has a figure that the output no longer has.
With --check nothing is written, and the exit status is 1 if the page is not current.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "what-if-examples.md"
EXAMPLE = re.compile(r"```\n\$ yarnling (simulate (?:compare|search) .*?)\n\n(.*?)```\n\nExit status (\d)", re.DOTALL)
"""A command, what it prints, and its exit status."""
COLUMNS = 200
"""Wide enough for every line that is printed."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/what-if-examples", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is not current")
    arguments = parser.parse_args()
    before = PAGE.read_text()
    after = rewritten(before)
    if arguments.check:
        if before != after:
            print("docs/what-if-examples.md is not current (run scripts/what-if-examples)")
        return int(before != after)
    PAGE.write_text(after)
    return 0


def rewritten(page: str) -> str:
    """The page with what its commands print now."""
    return EXAMPLE.sub(lambda found: example(found[1]), page)


def example(command: str) -> str:
    """The section of one command, as EXAMPLE finds it. Raises RuntimeError for one that cannot be carried out."""
    with tempfile.TemporaryDirectory() as directory:
        # The runs of an earlier search are not there.
        (Path(directory) / "examples").symlink_to(ROOT / "examples")
        done = subprocess.run(
            [sys.executable, "-m", "yarnling", *shlex.split(command.replace("\\\n", " "))],
            cwd=directory,
            env={**os.environ, "COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT)},
            check=False,
            capture_output=True,
            text=True,
        )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{command}: exit status {done.returncode}\n{done.stderr}")
    printed = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
    return f"```\n$ yarnling {command}\n\n{printed}\n```\n\nExit status {done.returncode}"


if __name__ == "__main__":
    sys.exit(main())
