"""Write the pages of docs/lessons with the output of their commands.

With --check, nothing is written, and the exit status is 1 if a page is not current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from yarnling.cluster.silent_logs import without_logs  # noqa: E402  the checkout must be on the path first
from yarnling.lessons.page import pages  # noqa: E402

PAGES = ROOT / "docs" / "lessons"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/lessons", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is not current")
    check_only = parser.parse_args().check
    with without_logs():
        made = pages()
    stale = [name for name, text in made.items() if content(name) != text]
    for name in stale:
        if check_only:
            print(f"docs/lessons/{name} is not current (run scripts/lessons)")
        else:
            PAGES.mkdir(parents=True, exist_ok=True)
            (PAGES / name).write_text(made[name])
            print(f"wrote docs/lessons/{name}")
    return 1 if check_only and stale else 0


def content(name: str) -> str | None:
    """The text of a page, None if there is none."""
    path = PAGES / name
    return path.read_text() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
