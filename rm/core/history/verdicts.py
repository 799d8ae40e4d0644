"""Why each application waited in the past: verdicts of `explain`, sampled now and then and kept as their changes.

An application that waits for the same reason for hours takes one entry. Two verdicts are the same if their causes are,
and their sentences but for the numbers in them, which change with every container that is placed.
"""

from __future__ import annotations

import re
from collections import OrderedDict

from yarn.ids import ApplicationId
from yarn.protocols.inspection import PastVerdict

PAST_VERDICTS_MAX = 5_000
"""The number of entries that are kept of all applications, those of the last change: about 4 MB."""
OF_APPLICATION_MAX = 100
"""The number of entries that are kept of one application, the last ones."""
SENTENCE_MAX = 600
"""The number of characters that are kept of a sentence."""
_NUMBERS = re.compile(r"\d+")


class PastVerdicts:
    """The entries of each application. Times are in ms, by the clock of the samples."""

    __slots__ = ("_by_app", "_count", "_open")

    def __init__(self) -> None:
        self._by_app: OrderedDict[ApplicationId, list[PastVerdict]] = OrderedDict()
        self._open: dict[ApplicationId, tuple[str, str]] = {}  # the cause, and the sentence without its numbers
        self._count = 0

    def note(self, application_id: ApplicationId, at_ms: int, cause: str, sentence: str) -> None:
        """Note that the application waits for this reason; nothing is kept if it did so at the last sample."""
        reason = (cause, _NUMBERS.sub("#", sentence))
        if self._open.get(application_id) == reason:
            return
        self.end(application_id, at_ms)
        entries = self._by_app.setdefault(application_id, [])
        self._by_app.move_to_end(application_id)
        entries.append(PastVerdict(at_ms, None, cause, sentence[:SENTENCE_MAX]))
        self._open[application_id] = reason
        self._count += 1
        if len(entries) > OF_APPLICATION_MAX:
            del entries[0]
            self._count -= 1
        self._make_room()

    def end(self, application_id: ApplicationId, at_ms: int) -> None:
        """Note that the application does not wait for that reason any more, if it did."""
        if self._open.pop(application_id, None) is not None:
            entries = self._by_app[application_id]
            last = entries[-1]
            entries[-1] = PastVerdict(last.from_ms, at_ms, last.cause, last.sentence)

    def waiting(self) -> list[ApplicationId]:
        """The applications that waited at their last sample."""
        return list(self._open)

    def of(self, application_id: ApplicationId) -> tuple[PastVerdict, ...]:
        """The entries of an application, the oldest first."""
        return tuple(self._by_app.get(application_id, ()))

    def _make_room(self) -> None:
        """Forget the applications whose verdict changed longest ago."""
        while self._count > PAST_VERDICTS_MAX:
            forgotten, entries = self._by_app.popitem(last=False)
            self._open.pop(forgotten, None)
            self._count -= len(entries)
