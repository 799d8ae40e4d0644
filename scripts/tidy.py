"""Checks that ruff does not have: file sizes, banned words, paths and links in documents, raise within except*.

The script reads the files that git tracks or would track, except generated ones.
"""

from __future__ import annotations

import ast
import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 500
GENERATED = re.compile(r"^wire/generated/\w+_pb2(_grpc)?\.pyi?$")
BINARY = {".gz", ".zip", ".png", ".jar", ".tgz"}

# Written in two parts so that this file passes its own rules.
BANNED = {
    re.compile(r"(?<![\w.])/ro" + r"ot/|(?<![\w.])/wo" + r"rk/"): "a path of one machine does not belong here",
    re.compile(r"^(<<<<<<<|>>>>>>>) "): "finish the merge",
    re.compile(r"\(spec [A-Z]?\.?\d|golden-" + r"runs|protocol" + r"\.md|reliability" + r"\.md"): (
        "not in this repository: name Hadoop's class, or say what it is"
    ),
}
# A path between backquotes in a document, if it starts with one of the repository's folders.
PATH = re.compile(
    r"`((?:protos|yarn|wire|rm|nm|am|yarnling|scripts|tests|docs|benchmarks|examples|conf|\.ci)/[\w./-]*)`"
)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


def main() -> int:
    refusals = [refusal for path in files() for refusal in check(path)]
    print(*refusals, sep="\n", end="\n" if refusals else "")
    return 1 if refusals else 0


def files() -> list[Path]:
    """The files that are tracked or not ignored, in git's order."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [Path(name) for name in listed.stdout.split("\0") if name and not GENERATED.match(name)]
    return [path for path in paths if path.suffix not in BINARY and (ROOT / path).is_file()]


def check(path: Path) -> Iterator[str]:
    """Yield the faults of one file as `path:line: reason`."""
    try:
        text = (ROOT / path).read_text()
    except UnicodeDecodeError:
        yield f"{path}:1: not UTF-8 (save it as UTF-8, or name its suffix in scripts/tidy.py if it is binary)"
        return
    yield from banned_words(path, text)
    if path.suffix == ".md":
        yield from dead_links(path, text)
    if path.suffix == ".py" or text.startswith("#!/usr/bin/env python"):
        yield from code(path, text)


def banned_words(path: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, reason in BANNED.items():
            if match := pattern.search(line):
                yield f"{path}:{number}: {match.group().strip()!r} is banned: {reason}"


def dead_links(path: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        for target in LINK.findall(line):
            if "://" not in target and not (ROOT / path.parent / target).exists():
                yield f"{path}:{number}: the link's target {target} does not exist (links are relative to the file)"
        for target in PATH.findall(line):
            if not (ROOT / target).exists():
                yield f"{path}:{number}: {target} does not exist (correct the path)"


def code(path: Path, text: str) -> Iterator[str]:
    lines = text.count("\n")
    if lines > FILE_LINES_MAX:
        yield f"{path}:1: {lines} lines, at most {FILE_LINES_MAX} (split it by concept)"
    with contextlib.suppress(SyntaxError):  # ruff reports it
        yield from raises_in_groups(path, ast.parse(text))


def raises_in_groups(path: Path, tree: ast.Module) -> Iterator[str]:
    handlers = [handler for node in ast.walk(tree) if isinstance(node, ast.TryStar) for handler in node.handlers]
    for line in sorted({found.lineno for handler in handlers for found in raises(handler.body)}):
        yield (
            f"{path}:{line}: raise within except*: Python 3.11.2 wraps the exception in a group, 3.11.7 does not"
            " (keep the exception, and raise it after the try)"
        )


def raises(body: list[ast.stmt]) -> Iterator[ast.Raise]:
    """Yield the raise statements that run in this body; those in nested functions or classes do not."""
    for node in body:
        if isinstance(node, ast.Raise):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for inner in ast.iter_child_nodes(node):
                nested = [inner] if isinstance(inner, ast.stmt) else getattr(inner, "body", [])
                yield from raises(nested if isinstance(nested, list) else [])


if __name__ == "__main__":
    sys.exit(main())
