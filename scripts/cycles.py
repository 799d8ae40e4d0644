"""Import cycles between our files, imports under TYPE_CHECKING included; exit 1 if there are other ones than allowed.

Python tolerates a cycle that only type checkers see; a reader does not: the files of a cycle can only be understood
together. ALLOWED are the sizes of those that are left, largest first. It may only shrink.
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
    """Each group of modules that can all be reached from one another (Tarjan's strongly connected components)."""
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
