"""The site of the documentation: each page is in the navigation of mkdocs.yml, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
READERS = ["Home", "Run YARN", "Test software", "Learn YARN", "Change yarnling"]


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml without MkDocs, whose objects are None."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)
NAVIGATION = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)["nav"]


def pages_of(entry: object) -> Iterator[str]:
    """The paths of an entry of the navigation and of all below it."""
    if isinstance(entry, str):
        yield entry
    for below in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from pages_of(below)


def test_every_page_is_in_the_navigation_once() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests" / "conformance" / "README.md"]
    assert Counter(pages_of(NAVIGATION)) == Counter(str(path.relative_to(ROOT)) for path in pages)


def test_the_navigation_has_a_part_for_each_reader() -> None:
    assert [name for entry in NAVIGATION for name in entry] == READERS


def test_each_lesson_links_to_the_page_in_which_it_is_stepped_through() -> None:
    pages = [path for path in (ROOT / "docs" / "lessons").glob("*-*.md") if path.name[0].isdigit()]
    assert len(pages) >= 9
    for path in pages:
        assert f"(step-{path.stem}.html)" in path.read_text(), path
