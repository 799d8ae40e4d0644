"""A state store that reports a record as stored in the step that writes it.

So does the store of the recordings' driver (a MemoryRMStateStore without a thread of its own). With it several attempts
that end in one step go on side by side, event by event. With a disk each waits for its own record, in Hadoop as well as
here, and which of their next events comes first depends on the time that the disk takes.
"""

from __future__ import annotations

from rm.core.effects import Effect, StoreEffect
from rm.core.events import ApplicationSaved, AttemptSaved
from rm.core.state_store import PersistentStateStore
from tests.rm.stored import Disk
from yarn.machine import Dispatcher


class StoreAtOnce(PersistentStateStore):
    """Writes to `disk`, which survives the core."""

    def __init__(self, dispatcher: Dispatcher[Effect], disk: Disk) -> None:
        super().__init__(dispatcher)
        self._disk = disk

    def write(self, effect: StoreEffect) -> None:
        saved = self._disk.take(effect)
        if isinstance(saved, ApplicationSaved):
            self.application_saved(saved.application_id, saved.saving)
        elif isinstance(saved, AttemptSaved):
            self.attempt_saved(saved.attempt_id, saved.saving)
