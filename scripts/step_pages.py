"""Write the pages of the documentation's site in which a reader steps through the scenes of the lessons.

They are made when the site is built, and not kept in the repository.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from yarnling.cluster.silent_logs import without_logs  # noqa: E402  the checkout must be on the path first
from yarnling.lessons.catalogue import LESSONS, find_lesson  # noqa: E402
from yarnling.lessons.page import step_page  # noqa: E402
from yarnling.stepping.session import Session  # noqa: E402
from yarnling.stepping.sources import Scene  # noqa: E402
from yarnling.stepping.web.exported import exported_page  # noqa: E402


def main(directory: Path) -> None:
    """Write a page for each lesson into this directory."""
    directory.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:
        list(pool.map(write, [lesson.name for lesson in LESSONS], [directory] * len(LESSONS)))


def write(name: str, directory: Path) -> None:
    """Write the page of a lesson."""
    lesson = find_lesson(name)
    with without_logs():
        page = exported_page(Scene(lesson), (), Session.go_to_opening, lambda _: None)
    (directory / step_page(lesson)).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
