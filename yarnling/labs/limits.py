"""Bounds the processor time of a learner's code, so that a loop without an end is reported and does not hang."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeVar

from yarn.errors import InvalidArgumentException

Loaded = TypeVar("Loaded")
LOAD_S = 20.0
"""The processor time that loading a learner's file may take."""


class TooSlow(BaseException):
    """A run has used up its processor time. Not an Exception, so that `except Exception` in a loop does not stop it.

    `line`: the line of the watched file that was being executed, 0 if none was.
    """

    def __init__(self, seconds: float, line: int) -> None:
        super().__init__(f"more than {seconds:g} s of processor time")
        self.seconds = seconds
        self.line = line

    def sentence(self, file: Path) -> str:
        """Say that a run was stopped, and at which line of the learner's file."""
        where = f" It was executing line {self.line} of {file.name}." if self.line else ""
        return f"The run was stopped after {self.seconds:g} s of processor time: a loop without an end?{where}"


@contextmanager
def processor_time(seconds: float, source: str) -> Iterator[None]:
    """A context that may use `seconds` of processor time, in the main thread. Raises TooSlow, again each second.

    `source`: the file to look for in the stack, as code objects name it.
    """

    def expired(_: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code.co_filename != source:
            frame = frame.f_back
        raise TooSlow(seconds, 0 if frame is None else frame.f_lineno)

    before = signal.signal(signal.SIGVTALRM, expired)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def load_within(seconds: float, path: Path, load: Callable[[Path], Loaded]) -> Loaded:
    """The result of `load`. Raises InvalidArgumentException if it takes more than `seconds` of processor time."""
    try:
        with processor_time(seconds, str(path)):
            return load(path)
    except TooSlow as slow:
        raise InvalidArgumentException(
            f"{path}: loading it takes more than {slow.seconds:g} s (line {slow.line})"
        ) from None
