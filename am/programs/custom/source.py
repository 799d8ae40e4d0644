"""Loads an ApplicationMaster of one's own from a Python file, which runs with all rights of its user."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import CodeType

from am.programs.custom.core import MasterMistake, TaskMaster
from yarn.errors import InvalidArgumentException

SOURCE_MAX = 1_000_000
"""The largest file (bytes)."""


def read_source(path: Path) -> str:
    """Read the text of an AM's file. Raises InvalidArgumentException."""
    try:
        data = path.read_bytes()
        if len(data) > SOURCE_MAX:
            raise InvalidArgumentException(f"{path}: {len(data)} bytes, at most {SOURCE_MAX}: is it a Python file?")
        return data.decode()
    except OSError as error:
        raise InvalidArgumentException(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgumentException(f"{path}: not text in UTF-8: is it a Python file?") from None


def load_master(path: Path) -> type[TaskMaster]:
    """The subclass of TaskMaster in a file. The file is executed anew each time, as a process of its own would.

    Raises InvalidArgumentException if the file is not valid Python or has no such class, or several.
    """
    found: dict[str, object] = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(_compiled(read_source(path), str(path)), found)
    except (Exception, SystemExit) as error:
        text = error.message if isinstance(error, MasterMistake) else f"{type(error).__name__}: {error}"
        raise InvalidArgumentException(f"{path}: {text}") from error
    classes = [
        each
        for each in found.values()
        if isinstance(each, type) and issubclass(each, TaskMaster) and each.__module__ == path.stem
    ]
    last = [each for each in classes if not any(each in other.__mro__[1:] for other in classes)]
    if len(last) != 1:
        names = ", ".join(each.__name__ for each in last)
        raise InvalidArgumentException(
            f"{path}: {f'several classes ({names})' if last else 'no class'} of TaskMaster: write one, "
            "`class Master(TaskMaster):`"
        )
    return last[0]


@lru_cache(maxsize=8)
def _compiled(text: str, path: str) -> CodeType:
    return compile(text, path, "exec", dont_inherit=True)
