"""The state store in a SQLite file.

    store = SQLiteStateStore.open(path, said="yarn.yarnling.state-store-file = /var/...")
    state = store.load()
    store.write([SaveApplication(...), SaveAttempt(...)])        all of it durable, or an error and none of it

`rm/shell/row_state_store.py` has the records as rows, `wire/files/store_file.py` the file: transactions, the lock, and
the checksums that detect damage.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from rm.core.stored_state import RMState
from rm.shell.row_state_store import TABLES, RowStateStore
from wire.files.store_file import StoreFenced, StoreFile, StoreForm
from yarn.settings import resourcemanager

SCHEMA_VERSION = 3
FILE_KIND = 0x7961726E
"""`yarn`, in the header of the file."""
FORM = StoreForm(TABLES, FILE_KIND, SCHEMA_VERSION, "ResourceManager", "applications")
SHARED_FORM = replace(FORM, shared=True)
"""The form of a file that several ResourceManagers share."""
EPOCH = ("epoch",)
"""The key of the row in the table `cluster` that has the epoch."""


class SQLiteStateStore(RowStateStore):
    """An open state store in a file. `owns_file`: closing the store closes the file, too."""

    description = resourcemanager.SQLITE_STORE

    def __init__(self, file: StoreFile, *, owns_file: bool = True) -> None:
        super().__init__(file)
        self._file = file
        self._owns_file = owns_file
        self._term: int | None = None

    @classmethod
    def open(cls, path: Path, said: str) -> SQLiteStateStore:
        """The store at `path`, created if there is none. `said`: how errors refer to it.

        Raises StoreDamaged for damage, and YarnException for a file that is in use, of another program or version,
        or open to others.
        """
        return cls(StoreFile.open(path, said, FORM))

    def close(self) -> None:
        if self._owns_file:
            super().close()

    def recover(self) -> RMState:
        state = self.load()
        self.raise_epoch()
        return state

    def take_over(self, term: int) -> int:
        """Write only as long as nobody takes a newer term than this one, which the elector has written as the epoch.

        Returns the epoch of this ResourceManager, as `load` does. Raises StoreFenced if there is a newer term.
        """
        self._term = term
        self.check_term()
        return term - 1

    def check_term(self) -> None:
        """Raises StoreFenced if the epoch in the file is not ours; within a transaction it cannot change any more."""
        if self._term is not None and (epoch := stored_epoch(self._file)) != self._term:
            raise StoreFenced(
                f"another ResourceManager has taken over: the state store is in epoch {epoch}, "
                f"this ResourceManager was active in epoch {self._term}"
            )

    def epoch(self) -> int:
        return stored_epoch(self._file) if self._term is None else self._term - 1

    def raise_epoch(self) -> None:
        """Increase the epoch by 1, for the next ResourceManager that recovers."""
        epoch = stored_epoch(self._file) + 1
        with self._file.writing() as group:
            group.put("cluster", EPOCH, (str(epoch),))


def stored_epoch(file: StoreFile) -> int:
    """The number of ResourceManagers that have recovered from the file so far, or have become active with it."""
    found = file.rows("cluster", EPOCH)
    return int(found[0][1]) if found else 0
