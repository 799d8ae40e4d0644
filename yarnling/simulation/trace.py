"""The trace of a simulation: every event that a core handled, with its effects, as text; and the hash of all of it.

The text is that of event logs (wire.json_records): records by their fields, sets in the order of their text. So it is
the same in every run with the same seed, whatever the order of Python's hashes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

from wire.json_records import to_json

Line: TypeAlias = Callable[[str], None]
Stepped: TypeAlias = Callable[[int, str, object, Sequence[object]], None]
"""Gets the time, the host, the event and the effects of each step."""


class Trace:
    """Hashes the steps of all cores, in order. `line` gets the text of each step, and `stepped` the step, if wanted."""

    def __init__(self, line: Line | None = None) -> None:
        self.steps = 0
        self._hash = hashlib.sha256()
        self._line = line
        self.stepped: Stepped | None = None

    def note(self, now_ms: int, host: str, event: object, effects: Sequence[object]) -> None:
        """A step of the core on `host`."""
        step = [now_ms, host, to_json(event), [to_json(effect) for effect in effects]]
        text = json.dumps(step, separators=(",", ":"))
        self.steps += 1
        self._hash.update(text.encode())
        self._hash.update(b"\n")
        if self._line is not None:
            self._line(text)
        if self.stepped is not None:
            self.stepped(now_ms, host, event, effects)

    def hexdigest(self) -> str:
        """The SHA-256 of all steps so far."""
        return self._hash.hexdigest()
