"""Find import cycles between our files, and pairs of folders that import each other. Exit with 1 if one is not allowed.

Imports under TYPE_CHECKING count: Python tolerates a cycle that only type checkers see, but the files of a cycle can
only be understood together. ALLOWED has the sizes of the remaining cycles, largest first, and ALLOWED_PAIRS the
remaining pairs of folders; nothing may be added to them.
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
ALLOWED_PAIRS: list[tuple[str, str]] = []


def main() -> int:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    return check_cycles(graph) | check_pairs(graph)


def check_cycles(graph: grimp.ImportGraph) -> int:
    """Print the cycles if they are not those that are allowed; returns 1 then."""
    found = sorted(cycles(graph), key=len, reverse=True)
    sizes = [len(cycle) for cycle in found]
    if sizes == ALLOWED:
        return 0
    for cycle in found:
        print(f"{len(cycle)} files import one another: {', '.join(cycle)}")
    print(
        f"cycles of {sizes} files, allowed are {ALLOWED} (pass ids instead of objects, or lower ALLOWED in {__file__})"
    )
    return 1


def check_pairs(graph: grimp.ImportGraph) -> int:
    """Print the pairs of folders if they are not those that are allowed; returns 1 then."""
    found = pairs(graph)
    if sorted(found) == ALLOWED_PAIRS:
        return 0
    for (one, other), (there, back) in sorted(found.items()):
        print(f"{one} and {other} import each other: {there}, and {back}")
    print(
        f"{len(found)} pairs of folders, allowed are {ALLOWED_PAIRS} (move a file, or shorten the list in {__file__})"
    )
    return 1


def pairs(graph: grimp.ImportGraph) -> dict[tuple[str, str], tuple[str, str]]:
    """{two folders that import each other, each by files directly in it: an import in each direction}."""
    imports: dict[tuple[str, str], str] = {}
    for importer in sorted(graph.modules):
        for imported in sorted(graph.find_modules_directly_imported_by(importer)):
            folders = _folder(graph, importer), _folder(graph, imported)
            imports.setdefault(folders, f"{importer} -> {imported}")
    both = ((one, other) for one, other in imports if one < other and (other, one) in imports)
    return {(one, other): (imports[one, other], imports[other, one]) for one, other in both}


def _folder(graph: grimp.ImportGraph, module: str) -> str:
    return module if graph.find_children(module) else module.rpartition(".")[0] or module


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
