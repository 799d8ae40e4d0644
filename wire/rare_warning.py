"""Warnings about connections, at most one a minute: thousands of refused connections must not fill the log."""

from __future__ import annotations

import logging
import time

INTERVAL_S = 60.0


class RareWarning:
    """A kind of warning of one server, logged rarely."""

    def __init__(self, logger: logging.Logger, text: str) -> None:
        """`text` has one %s for what the warning is about."""
        self._logger = logger
        self._text = text
        self._next_s = 0.0
        self._left_out = 0

    def log(self, about: object) -> None:
        """Log the warning, or count it if one was logged less than INTERVAL_S ago."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            self._left_out += 1
            return
        more = f" ({self._left_out} more since the last such line)" if self._left_out else ""
        self._logger.warning(self._text + "%s", about, more)
        self._next_s, self._left_out = now_s + INTERVAL_S, 0
