"""The text that the demonstration counts: files that the user names, or some of the Python installation."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from am.programs.mapreduce.client import find_inputs
from yarn.errors import InvalidArgumentException

DEFAULT_BYTES_MAX = 8 << 20
"""Bytes of the standard library: about thirty map tasks of a second each."""
SUFFIXES = (".py", ".txt", ".rst")


class InputText(Struct, frozen=True):
    """`files` {path: size in bytes}; `origin` says where they were found."""

    files: dict[Path, int]
    origin: str

    @property
    def size_bytes(self) -> int:
        return sum(self.files.values())


def find_text(paths: Iterable[str], bytes_max: int = DEFAULT_BYTES_MAX) -> InputText:
    """All files of `paths`; without paths, text of the Python installation up to `bytes_max`.

    Raises InvalidArgumentException if a path matches nothing, or no file has any text.
    """
    named = list(paths)
    if named:
        found = InputText({path: size for path, size in find_inputs(named).items() if size}, ", ".join(named))
    else:
        library = Path(sysconfig.get_path("stdlib"))
        found = InputText(_some_of(library, bytes_max), f"{library}, of which at most {bytes_max >> 20} MiB")
    if not found.files:
        raise InvalidArgumentException(f"{found.origin}: no text found (name files or directories that contain text)")
    return found


def _some_of(library: Path, bytes_max: int) -> dict[Path, int]:
    """Files in order of their paths until `bytes_max` is reached, without third-party packages."""
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
