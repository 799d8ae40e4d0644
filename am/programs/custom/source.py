"""Loads an ApplicationMaster of one's own from a Python file, which runs with all rights of its user."""

from __future__ import annotations

import difflib
import inspect
from functools import lru_cache
from pathlib import Path
from types import CodeType

from am.programs.custom.core import MasterMistake, TaskMaster, place_in_source
from yarn.errors import InvalidArgumentException

SOURCE_MAX = 1_000_000
"""The largest file (bytes)."""
_CALLBACKS = ("registered", "allocated", "started", "start_failed", "ended", "heartbeat")
_INDISPENSABLE = ("allocated", "ended")
"""Without these callbacks no task can be started, or confirmed when it is done."""
_SIMILAR = 0.75
"""The similarity of names from which on one may be a misspelling of the other, 0..1."""


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


def run_source(path: Path) -> dict[str, object]:
    """The names that a file defines. It is executed each time, as by a new process.

    Raises InvalidArgumentException if it cannot be read, is not valid Python, or fails.
    """
    text = read_source(path)
    found: dict[str, object] = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(_compiled(text, str(path)), found)
    except (Exception, SystemExit) as error:
        reason = error.message if isinstance(error, MasterMistake) else f"{type(error).__name__}: {error}"
        raise InvalidArgumentException(f"{path}: {reason}{place_in_source(error, str(path))}") from error
    return found


def load_master(path: Path) -> type[TaskMaster]:
    """The subclass of TaskMaster in a file. The file is executed each time, as by a new process.

    Raises InvalidArgumentException if the file is not valid Python, has no such class or several, or if a callback is
    missing or takes other arguments than it is called with.
    """
    found = run_source(path)
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
    if faults := [*_missing_callbacks(last[0]), *_other_arguments(last[0])]:
        raise InvalidArgumentException("\n".join(f"{path}: {fault}" for fault in faults))
    return last[0]


def odd_methods(master: type[TaskMaster]) -> list[str]:
    """The methods that YARN does not call, and whose names are like those of callbacks that are not there."""
    found: list[str] = []
    for name in vars(master):
        absent = [each for each in _CALLBACKS if getattr(master, each) is getattr(TaskMaster, each)]
        similar = difflib.get_close_matches(name, absent, 1, _SIMILAR)
        if similar and not hasattr(TaskMaster, name):
            found.append(f"{master.__name__}.{name} is not a callback (is {similar[0]!r} meant?)")
    return found


def _missing_callbacks(master: type[TaskMaster]) -> list[str]:
    """The callbacks without which no job can end, with the method that may be a misspelling of each."""
    own = [name for name in vars(master) if name not in vars(TaskMaster)]
    faults: list[str] = []
    for name in _INDISPENSABLE:
        if getattr(master, name) is getattr(TaskMaster, name):
            similar = difflib.get_close_matches(name, own, 1, _SIMILAR)
            hint = f" (is {similar[0]!r} meant?)" if similar else ""
            faults.append(f"{master.__name__} has no callback {name!r}{hint}: without it no job can succeed")
    return faults


def _other_arguments(master: type[TaskMaster]) -> list[str]:
    """The methods that YARN calls with other arguments than they take."""
    faults: list[str] = []
    for name in ("__init__", *_CALLBACKS):
        parameters = [*inspect.signature(getattr(TaskMaster, name)).parameters]
        try:
            inspect.signature(getattr(master, name)).bind(*parameters)
        except TypeError as error:
            faults.append(f"{master.__name__}.{name} is called as {name}({', '.join(parameters)}): {error}")
    return faults


@lru_cache(maxsize=8)
def _compiled(text: str, path: str) -> CodeType:
    return compile(text, path, "exec", dont_inherit=True)
