"""Texts about an end, kept within a limit by dropping their beginning (Hadoop's BoundedAppender)."""

from __future__ import annotations


class BoundedText:
    """The last `chars_max` characters of all that was appended; printing says when some are missing."""

    __slots__ = ("_chars_max", "_kept", "_total")

    def __init__(self, chars_max: int) -> None:
        self._chars_max = chars_max
        self._kept = ""
        self._total = 0

    def append(self, text: str) -> None:
        """Add `text` at the end, dropping from the front what exceeds the limit."""
        self._total += len(text)
        self._kept = (self._kept + text)[-self._chars_max :]

    def __bool__(self) -> bool:
        return bool(self._kept)

    def __str__(self) -> str:
        if len(self._kept) == self._total:
            return self._kept
        shown = f"showing last {len(self._kept)} chars out of {self._total}"
        return f"Diagnostic messages truncated, {shown}:\n...{self._kept}"
