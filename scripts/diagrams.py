"""Draw every lifecycle table as a page of docs/lifecycles/: the diagram, then the transitions with their reasons.

The tables are found in the modules of the packages below. With --check, nothing is written, and the exit status is 1 if
a page is not current, missing or superfluous.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from yarn.machine import Lifecycle  # noqa: E402  the checkout must be on the path first

Table = Lifecycle[Any, Enum]

PAGES = ROOT / "docs" / "lifecycles"
SEARCHED = ("rm.core", "rm.scheduler.model", "nm.core", "am.programs.gang.core", "am.programs.mapreduce.core")
INDEX = "README.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/diagrams", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is not current")
    check_only = parser.parse_args().check
    pages = drawn()
    stale = [name for name in sorted(pages.keys() | present()) if content(name) != pages.get(name)]
    if check_only:
        print(*(f"docs/lifecycles/{name} is not current (run scripts/diagrams)" for name in stale), sep="\n")
        return 1 if stale else 0
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if name in pages:
            (PAGES / name).write_text(pages[name])
        else:
            (PAGES / name).unlink()
        print(f"{'wrote' if name in pages else 'removed'} docs/lifecycles/{name}")
    return 0


def drawn() -> dict[str, str]:
    """{file name: text} of all pages and the index; empty if there are no tables."""
    tables = lifecycles()
    pages = {f"{name}.md": page(table, module) for name, (table, module) in tables.items()}
    if pages:
        pages[INDEX] = index(tables)
    return pages


def lifecycles() -> dict[str, tuple[Table, str]]:
    """{name of the lifecycle: (table, module that defines it)}, sorted.

    In the defining module, the name is annotated.
    """
    found: dict[str, tuple[Table, str]] = {}
    for module_name in module_names():
        module = importlib.import_module(module_name)
        for name in getattr(module, "__annotations__", {}):
            value = getattr(module, name, None)
            if isinstance(value, Lifecycle):
                if value.name in found:
                    raise SystemExit(f"two lifecycles are called {value.name}: rename one of them")
                found[value.name] = (value, module_name)
    return dict(sorted(found.items()))


def module_names() -> Iterator[str]:
    """Yield the searched modules that exist, with all modules below them."""
    for name in SEARCHED:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name != name:
                raise
            continue
        yield name
        for below in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}."):
            yield below.name


def page(table: Table, module: str) -> str:
    """The page of one lifecycle: the diagram, then every row of the table in its order."""
    rows = "".join(
        f"| {row.source.name} | {table.event_name(row.event)} | {' or '.join(names(row.targets))} | {row.reason} |\n"
        for row in table.rows
    )
    return (
        f"# {table.name}\n\n"
        f"Drawn by `scripts/diagrams` from `{module}`. What is not in the table is illegal.\n\n"
        f"```mermaid\n{table.mermaid()}```\n\n"
        f"| in state | event | goes to | reason |\n|---|---|---|---|\n{rows}"
    )


def index(tables: dict[str, tuple[Table, str]]) -> str:
    lines = "".join(
        f"| [{name}]({name}.md) | {len(table.states)} | {len(table.rows)} | `{module}` |\n"
        for name, (table, module) in tables.items()
    )
    return (
        "# Lifecycles\n\nDrawn by `scripts/diagrams` from the tables that the daemons run on.\n\n"
        f"| lifecycle | states | transitions | table |\n|---|---|---|---|\n{lines}"
    )


def names(states: tuple[Enum, ...]) -> list[str]:
    return [state.name for state in states]


def present() -> set[str]:
    return {path.name for path in PAGES.glob("*.md")} if PAGES.is_dir() else set()


def content(name: str) -> str | None:
    path = PAGES / name
    return path.read_text() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
