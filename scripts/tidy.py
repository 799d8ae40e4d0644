"""Checks that ruff does not have: sizes, banned words, paths and links in documents, wording, raise within except*.

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
BODY_LINES_MAX = 70
PRODUCT = {"yarn", "wire", "rm", "nm", "am", "yarnling"}
GENERATED = re.compile(r"^wire/generated/\w+_pb2\.pyi?$")
BINARY = {".gz", ".zip", ".png", ".jar", ".tgz", ".jhist"}

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
# The class names that two places of the product have. No name may be added.
SHARED_NAMES = "scripts/shared_class_names.txt"
CLASS = re.compile(r"^ *class (?P<name>\w+)", re.MULTILINE)
# A docstring that opens with one of these says neither what its function does nor what it describes.
OPENER = re.compile(r"(What|Those|It|The same|One|Who|How|Whether)\b")
# A comment between two empty lines, other than a sentence.
BANNER = re.compile(r"(?<=\n\n)[ ]*#(?! noqa| type:) (?P<text>[^\n]*[^\n.:;?!)])(?=\n\n)")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


def main() -> int:
    paths = files()
    refusals = [refusal for path in paths for refusal in check(path)]
    refusals += shared_class_names(paths)
    print(*refusals, sep="\n", end="\n" if refusals else "")
    return 1 if refusals else 0


MADE_WITH_THE_SITE = re.compile(r"step-[\w-]+\.html")
"""Links to pages that scripts/step_pages.py makes; scripts/docs fails if one is missing."""


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
            if "://" in target or MADE_WITH_THE_SITE.fullmatch(target):
                continue
            if not (ROOT / path.parent / target).exists():
                yield f"{path}:{number}: the link's target {target} does not exist (links are relative to the file)"
        for target in PATH.findall(line):
            if not (ROOT / target).exists():
                yield f"{path}:{number}: {target} does not exist (correct the path)"


def code(path: Path, text: str) -> Iterator[str]:
    lines = text.count("\n")
    if lines > FILE_LINES_MAX:
        yield f"{path}:1: {lines} lines, at most {FILE_LINES_MAX} (split it by concept)"
    with contextlib.suppress(SyntaxError):  # ruff reports it
        tree = ast.parse(text)
        yield from raises_in_groups(path, tree)
        if path.parts[0] in PRODUCT:
            yield from unclear_docstrings(path, tree)
            yield from long_functions(path, tree)
            yield from banners(path, text)


def shared_class_names(paths: list[Path]) -> list[str]:
    """Refuse classes of one name in two places of the product, except the names in SHARED_NAMES, while they last."""
    allowed = (ROOT / SHARED_NAMES).read_text().split() if (ROOT / SHARED_NAMES).exists() else []
    places: dict[str, list[str]] = {}
    for path in paths:
        if path.suffix == ".py" and path.parts[0] in PRODUCT:
            for match in CLASS.finditer((ROOT / path).read_text()):
                places.setdefault(match["name"], []).append(str(path))
    shared = {name: found for name, found in places.items() if len(found) > 1}
    return [
        *(
            f"{found[1]}:1: the class name {name} is taken by {found[0]} (find a name that tells the two apart)"
            for name, found in shared.items()
            if name not in allowed
        ),
        *(f"{SHARED_NAMES}:1: {name} is one class now (delete it here)" for name in allowed if name not in shared),
    ]


def unclear_docstrings(path: Path, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node.value.value, str) and (match := OPENER.match(node.value.value)):
            yield (
                f"{path}:{node.lineno}: a docstring opens with {match.group()!r}"
                " (begin with a verb, or with the name of the thing that it describes)"
            )


def long_functions(path: Path, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.body[0].lineno + 1
            if lines > BODY_LINES_MAX:
                yield f"{path}:{node.lineno}: {node.name} has {lines} lines, at most {BODY_LINES_MAX} (split it)"


def banners(path: Path, text: str) -> Iterator[str]:
    for match in BANNER.finditer(text):
        line = text.count("\n", 0, match.start("text")) + 1
        yield (
            f"{path}:{line}: the banner {match['text']!r}"
            " (delete it, cut the file, or write a sentence that says why the parts are there)"
        )


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
