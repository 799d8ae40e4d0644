"""The frames of a failure that a user reads: those of the test, without those of yarnling below it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType

import pytest

from yarn.errors import YarnException

OURS = frozenset({"yarnling", "am", "nm", "rm", "wire", "yarn"})
BELOW_OURS = OURS | sys.stdlib_module_names | {"grpc"}
"""Modules that yarnling calls, such as asyncio."""


def without_own_frames(error: pytest.ExceptionInfo[BaseException]) -> pytest.ExceptionInfo[BaseException]:
    """The error without yarnling's frames and those of libraries below them, but with functions that the test passed.

    An error in yarnling itself, which is one of no class that it tells users about, keeps every frame.
    """
    kept: list[TracebackType] = []
    below = False
    for entry in _entries(error.tb):
        package = str(entry.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        below = package in OURS or (below and package in BELOW_OURS)
        if not below:
            kept.append(entry)
    if not kept or (below and not isinstance(error.value, YarnException)):
        return error
    trace: TracebackType | None = None
    for entry in reversed(kept):
        trace = TracebackType(trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    assert trace is not None
    return pytest.ExceptionInfo.from_exc_info((error.type, error.value, trace))


def _entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next
