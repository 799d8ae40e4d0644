"""Runs simulations without the log lines of the real services and applications in them.

The lines have the wall clock's times, and they would be mixed with the report of the run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


class _Silence:
    """The number of simulations that run in this process, in its threads; the first one stores the level of before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before = logging.NOTSET

    def enter(self) -> None:
        with self._lock:
            if self._count == 0:
                self._before = logging.root.manager.disable
                logging.disable(logging.CRITICAL)
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                logging.disable(self._before)


_silence: Final = _Silence()


@contextmanager
def without_logs() -> Iterator[None]:
    """Log nothing in this process. After the last of several such blocks the level is as before the first."""
    _silence.enter()
    try:
        yield
    finally:
        _silence.leave()
