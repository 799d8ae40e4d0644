"""The trace of a simulation: every step of a core, as text; and the hash of all of it.

The text is that of event logs (wire.event_log): records by their fields, sets in the order of their text. So it is the
same in every run with the same seed, whatever the order of Python's hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from wire.event_log import LoggedStep, step_text

Line: TypeAlias = Callable[[str], None]


class Trace:
    """Hashes the steps of all cores, in order. `line` gets the text of each step, and each of `observers` the step.

    Without `hashed`, and without a `line`, the text is not even made.
    """

    def __init__(self, line: Line | None = None, *, hashed: bool = True) -> None:
        self._needs_text = hashed or line is not None
        self.steps = 0
        self.observers: list[Callable[[LoggedStep], None]] = []
        self._hash = hashlib.sha256()
        self._line = line

    def note(self, now_ms: int, host: str, event: object, effects: Sequence[object]) -> None:
        """Add a step of the core on `host`."""
        self.steps += 1
        if self._needs_text:
            text = step_text(now_ms, host, event, effects)
            self._hash.update(text.encode())
            self._hash.update(b"\n")
            if self._line is not None:
                self._line(text)
        if self.observers:
            step = LoggedStep(now_ms, host, event, tuple(effects))
            for observe in self.observers:
                observe(step)

    def hexdigest(self) -> str:
        """The SHA-256 of all steps so far."""
        return self._hash.hexdigest()
