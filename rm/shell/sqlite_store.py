"""The state store: applications, attempts, node labels, the epoch and keys as rows of a SQLite file.

    store = SQLiteStateStore.open(path, said="yarn.yarnling.state-store-file = /var/...")
    state = store.load()
    store.write([SaveApplication(...), SaveAttempt(...)])        all of it durable, or an error and none of it

Submissions are stored as Hadoop's message, so that users' credentials are complete; the rest is JSON.
`wire/files/store_file.py` has the file: transactions, the lock, and the checksums that detect damage.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, assert_never

from msgspec.structs import replace

from rm.core.effects import RemoveApplication, SaveApplication, SaveAttempt, SaveNodeLabels, StoreEffect
from rm.core.stored_state import (
    ApplicationAttemptStateData,
    ApplicationStateData,
    NodeLabelState,
    RMState,
    StoredApplication,
)
from wire.codec.applications import read_submission, write_submission
from wire.files.json_records import from_json, to_json
from wire.files.store_file import StoreFenced, StoreFile, StoreForm, StoreTable, Transaction
from wire.generated.yarn_protos_pb2 import ApplicationSubmissionContextProto
from yarn.ids import ApplicationId
from yarn.protocols.tracker import MasterKey
from yarn.settings import resourcemanager

TABLES = {
    "application": StoreTable(("cluster_timestamp INTEGER", "number INTEGER"), ("submission BLOB", "state TEXT")),
    "attempt": StoreTable(("cluster_timestamp INTEGER", "application INTEGER", "number INTEGER"), ("state TEXT",)),
    "cluster": StoreTable(("name TEXT",), ("state TEXT",)),
    "master_key": StoreTable(("kind TEXT", "place INTEGER"), ("key_id INTEGER", "secret BLOB")),
}
SCHEMA_VERSION = 3
FILE_KIND = 0x7961726E
"""`yarn`, in the header of the file."""
FORM = StoreForm(TABLES, FILE_KIND, SCHEMA_VERSION, "ResourceManager", "applications")
SHARED_FORM = replace(FORM, shared=True)
"""The form of a file that several ResourceManagers share."""
EPOCH = ("epoch",)
NODE_LABELS = ("node-labels",)
"""The keys of rows in the table `cluster`."""

Keys = tuple[MasterKey, ...]
"""The keys of one kind of token: the current one, and while they are being replaced also the next one."""


class SQLiteStateStore:
    """An open state store. Its methods block; they may be called from any thread, one at a time.

    `owns_file`: closing the store closes the file, too.
    """

    description = resourcemanager.SQLITE_STORE

    def __init__(self, file: StoreFile, *, owns_file: bool = True) -> None:
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
        """Release the file; closing twice is a no-op."""
        if self._owns_file:
            self._file.close()

    def load(self) -> RMState:
        """All applications, in the order of their ids. Raises StoreDamaged for a record that cannot be read."""
        with self._file.reading():
            attempts: dict[ApplicationId, list[ApplicationAttemptStateData]] = {}
            for timestamp, number, _, state in self._file.rows("attempt"):
                read = ApplicationAttemptStateData(**_fields_of(state))
                attempts.setdefault(ApplicationId(timestamp, number), []).append(read)
            applications = [
                _application(submission, state) for _, _, submission, state in self._file.rows("application")
            ]
            labels = [state for _, state in self._file.rows("cluster", NODE_LABELS)]
            return RMState(
                self._epoch() if self._term is None else self._term - 1,
                tuple(
                    StoredApplication(application, tuple(attempts.get(application.application_id, ())))
                    for application in applications
                ),
                NodeLabelState(**_fields_of(labels[0])) if labels else NodeLabelState(),
            )

    def take_over(self, term: int) -> int:
        """Write only as long as nobody takes a newer term than this one, which the elector has written as the epoch.

        Returns the epoch of this ResourceManager, as `load` does. Raises StoreFenced if there is a newer term.
        """
        self._term = term
        self._check_term()
        return term - 1

    def _check_term(self) -> None:
        """Raises StoreFenced if the epoch in the file is not ours; within a transaction it cannot change any more."""
        if self._term is not None and (epoch := self._epoch()) != self._term:
            raise StoreFenced(
                f"another ResourceManager has taken over: the state store is in epoch {epoch}, "
                f"this ResourceManager was active in epoch {self._term}"
            )

    def _epoch(self) -> int:
        return stored_epoch(self._file)

    def raise_epoch(self) -> None:
        """Increase the epoch by 1, for the next ResourceManager that recovers."""
        epoch = self._epoch() + 1
        with self._file.writing() as group:
            group.put("cluster", EPOCH, (str(epoch),))

    def keys(self, kind: str) -> Keys:
        """The keys of one kind of token, empty if none were written."""
        return tuple(MasterKey(key_id, secret) for _, _, key_id, secret in self._file.rows("master_key", (kind,)))

    def write_keys(self, kind: str, keys: Keys) -> None:
        """Replace the keys of this kind."""
        with self._file.writing() as group:
            self._check_term()
            group.remove("master_key", (kind,))
            for place, key in enumerate(keys):
                group.put("master_key", (kind, place), (key.key_id, key.secret))

    def write(self, effects: Iterable[StoreEffect]) -> None:
        """Write all effects in one transaction.

        After an error nothing was written; StoreUnavailable: try again later; StoreFenced: never.
        """
        with self._file.writing() as group:
            self._check_term()
            for effect in effects:
                _apply(effect, group)


def stored_epoch(file: StoreFile) -> int:
    """The number of ResourceManagers that have recovered from the file so far, or have become active with it."""
    found = file.rows("cluster", EPOCH)
    return int(found[0][1]) if found else 0


def _apply(effect: StoreEffect, group: Transaction) -> None:
    match effect:
        case SaveApplication(application, _):
            proto = ApplicationSubmissionContextProto()
            write_submission(application.submission, proto)
            content = (proto.SerializeToString(), _json_of(application, "submission"))
            group.put("application", application.application_id, content)
        case SaveAttempt(attempt, _):
            application_id, number = attempt.attempt_id
            group.put("attempt", (*application_id, number), (_json_of(attempt),))
        case RemoveApplication(application_id):
            group.remove("attempt", application_id)
            group.remove("application", application_id)
        case SaveNodeLabels(node_labels):
            group.put("cluster", NODE_LABELS, (_json_of(node_labels),))
        case _:
            assert_never(effect)


def _json_of(record: ApplicationStateData | ApplicationAttemptStateData | NodeLabelState, without: str = "") -> str:
    values = {name: to_json(getattr(record, name)) for name in record.__struct_fields__ if name != without}
    return json.dumps(values, separators=(",", ":"))


def _fields_of(text: str) -> Mapping[str, Any]:
    return {name: from_json(value) for name, value in json.loads(text).items()}


def _application(submission: bytes, state: str) -> ApplicationStateData:
    proto = ApplicationSubmissionContextProto.FromString(submission)
    return ApplicationStateData(submission=read_submission(proto), **_fields_of(state))
