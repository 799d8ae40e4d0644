"""A planted bug: a small change of the product's source, made in memory for the length of a run.

    with planted(bug) as planting:
        run = simulate(plan, seed)
    planting.count                     how often the broken code ran

A change names a function, a text that occurs once in its source, and the text that replaces it. The function object
itself gets the changed code, so every reference to it is changed: bound methods, handlers, rows of transition tables.
The new text calls `planted()` where it deviates; that counts, and is True. So the product has no switches, and a change
of the product's code that moves the safeguard away is noticed: the old text is not there any more.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from msgspec import Struct

from yarn.errors import YarnException

MARK = "planted"
"""The name by which changed code reports that it runs."""
_ABSENT = object()


class Change(Struct, frozen=True):
    """In function `function` (Class.method or name) of `module`, replace the only occurrence of `old` by `new`."""

    module: str
    function: str
    old: str
    new: str


class PlantedBug(Struct, frozen=True):
    """`breaks`: what goes wrong, one sentence. `plans`: where it is looked for, ready-made plans or "random".

    `unseen`: why runs cannot show it, one sentence; "" if they can.
    """

    name: str
    breaks: str
    changes: tuple[Change, ...]
    plans: tuple[str, ...] = ("random",)
    unseen: str = ""


class CannotPlant(YarnException):
    """The code to change is not there, or is compiled."""


class Planting:
    """A bug that is planted now. `count`: how often its code has run."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> bool:
        self.count += 1
        return True


@contextmanager
def planted(bug: PlantedBug) -> Iterator[Planting]:
    """Run with the bug. Raises CannotPlant before anything is changed."""
    planting = Planting()
    changed: dict[FunctionType, str] = {}
    for change in bug.changes:
        function = _function(bug, change)
        changed[function] = _changed_source(bug, change, changed.get(function) or _source(bug, change, function))
    codes = {function: _code(function, source, bug.name) for function, source in changed.items()}
    with ExitStack() as stack:
        for function, code in codes.items():
            stack.callback(_restore, function, function.__code__, function.__globals__.get(MARK, _ABSENT))
            function.__globals__[MARK] = planting
            function.__code__ = code
        yield planting


def _restore(function: FunctionType, code: CodeType, mark: object) -> None:
    function.__code__ = code
    if mark is _ABSENT:
        del function.__globals__[MARK]
    else:
        function.__globals__[MARK] = mark


def _function(bug: PlantedBug, change: Change) -> FunctionType:
    where: Any = import_module(change.module)
    for part in change.function.split("."):
        where = inspect.getattr_static(where, part, None)
    found = _unwrapped(where)
    if not isinstance(found, FunctionType):
        raise CannotPlant(
            f"planted bug {bug.name}: {change.module} has no Python function {change.function}. If the module is "
            "compiled, run without the compiled build; otherwise adapt the bug to the code "
            "(tests/mutants)"
        )
    return found


def _unwrapped(found: object) -> object:
    if isinstance(found, property):
        return found.fget
    return found.__func__ if isinstance(found, staticmethod | classmethod) else found


def _source(bug: PlantedBug, change: Change, function: FunctionType) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function))
    except OSError:
        raise CannotPlant(
            f"planted bug {bug.name}: the source of {change.module} cannot be read; run from a checkout or a wheel "
            "that has the sources"
        ) from None


def _changed_source(bug: PlantedBug, change: Change, source: str) -> str:
    count = source.count(change.old)
    if count != 1:
        raise CannotPlant(
            f"planted bug {bug.name}: {change.module}:{change.function} has {change.old!r} {count} times, and must "
            "have it once; adapt the bug to the code (tests/mutants)"
        )
    return source.replace(change.old, change.new)


def _code(function: FunctionType, source: str, name: str) -> CodeType:
    """The code of the changed function. Defaults and decorators stay those of the original function."""
    compiled = compile("from __future__ import annotations\n" + source, f"<planted bug {name}>", "exec")
    scope = dict(function.__globals__)
    exec(compiled, scope)
    made = _unwrapped(scope[function.__name__])
    assert isinstance(made, FunctionType), f"{function.__qualname__} has a decorator that hides its code"
    return made.__code__


def change(where: str, old: str, new: str) -> Change:
    """A change in `where`, "module:function"."""
    module, _, function = where.partition(":")
    return Change(module, function, old, new)
