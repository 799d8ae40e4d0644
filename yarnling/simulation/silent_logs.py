"""Runs simulations without the log lines of the real services and applications in them.

The lines have the wall clock's times, and they would be mixed with the report of the run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_logs() -> Iterator[None]:
    """Log nothing in this process. Afterwards the level is as before."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
