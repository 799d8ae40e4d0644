"""Find import cycles between our files, including imports under TYPE_CHECKING. Exit with 1 if a cycle is not allowed.

Python tolerates a cycle that only type checkers see, but the files of a cycle can only be understood together. ALLOWED
contains the sizes of the remaining cycles, largest first; nothing may be added to it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PACKAGES = ("yarn", "wire", "rm", "nm", "am", "yarnling")
ALLOWED: list[int] = []


def main() -> int:
    found = sorted(cycles(grimp.build_graph(*PACKAGES, cache_dir=None)), key=len, reverse=True)
    sizes = [len(cycle) for cycle in found]
    if sizes == ALLOWED:
        return 0
    for cycle in found:
        print(f"{len(cycle)} files import one another: {', '.join(cycle)}")
    print(
        f"cycles of {sizes} files, allowed are {ALLOWED} (pass ids instead of objects, or lower ALLOWED in {__file__})"
    )
    return 1


def cycles(graph: grimp.ImportGraph) -> Iterator[list[str]]:
    """Yield each group of modules that import one another, directly or not (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []

    def visit(module: str) -> Iterator[list[str]]:
        order[module] = lowest[module] = len(order)
        path.append(module)
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            if imported not in order:
                yield from visit(imported)
                lowest[module] = min(lowest[module], lowest[imported])
            elif imported in path:
                lowest[module] = min(lowest[module], order[imported])
        if lowest[module] == order[module]:
            start = path.index(module)
            cycle, path[start:] = path[start:], []
            if len(cycle) > 1:
                yield sorted(cycle)

    for module in sorted(graph.modules):
        if module not in order:
            yield from visit(module)


if __name__ == "__main__":
    sys.exit(main())
