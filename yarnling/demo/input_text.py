"""The text that is counted: files by path, or what the Python installation holds; and the count that judges."""

from __future__ import annotations

import sysconfig
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from am.programs.mapreduce.client import find_inputs
from am.programs.mapreduce.wordcount import words_of
from yarn.errors import InvalidArgumentException

DEFAULT_BYTES_MAX = 8 << 20
"""So much of the standard library: some thirty maps of a second each."""
SUFFIXES = (".py", ".txt", ".rst")


class InputText(Struct, frozen=True):
    """`files` {path: bytes}, and where they were found."""

    files: dict[Path, int]
    origin: str

    @property
    def size_bytes(self) -> int:
        return sum(self.files.values())


def find_text(paths: Iterable[str], bytes_max: int = DEFAULT_BYTES_MAX) -> InputText:
    """The files of `paths`, all of them; without any, text of the Python installation up to `bytes_max`.

    Raises InvalidArgumentException if a path matches nothing, or there is no text at all.
    """
    named = list(paths)
    if named:
        found = InputText(
            {path: size for path, size in find_inputs(named, recursive=True).items() if size}, ", ".join(named)
        )
    else:
        library = Path(sysconfig.get_path("stdlib"))
        found = InputText(_some_of(library, bytes_max), f"{library}, of which at most {bytes_max >> 20} MiB")
    if not found.files:
        raise InvalidArgumentException(f"{found.origin}: no text there (name files or directories that hold some)")
    return found


def count_words(files: Iterable[Path]) -> Counter[bytes]:
    """A plain count of the same words, one file after another."""
    counts: Counter[bytes] = Counter()
    for path in files:
        with path.open("rb") as lines:
            counts.update(words_of(lines))
    return counts


def read_counts(output: Path) -> Counter[bytes]:
    """What the reduces wrote: `word<TAB>count` lines of every part."""
    counts: Counter[bytes] = Counter()
    for part in sorted(output.glob("part-*")):
        for line in part.read_bytes().splitlines():
            word, _, count = line.rpartition(b"\t")
            counts[word] += int(count)
    return counts


def _some_of(library: Path, bytes_max: int) -> dict[Path, int]:
    """Files in order of their paths until there is enough; third-party packages are left out."""
    files: dict[Path, int] = {}
    total = 0
    for path in sorted(library.rglob("*")):
        if path.suffix not in SUFFIXES or "site-packages" in path.parts or not path.is_file():
            continue
        size = path.stat().st_size
        if size > 0 and total + size <= bytes_max:
            files[path] = size
            total += size
    return files
