"""The state store as rows: applications, attempts, node labels and keys, whichever engine keeps the rows.

Submissions are stored as Hadoop's message, so that users' credentials are complete; the rest is JSON.
`rm/shell/sqlite_store.py` keeps the rows in a file, `rm/shell/zookeeper_store.py` in ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from rm.core.effects import RemoveApplication, SaveApplication, SaveAttempt, SaveNodeLabels, StoreEffect
from rm.core.stored_state import (
    ApplicationAttemptStateData,
    ApplicationStateData,
    NodeLabelState,
    RMState,
    StoredApplication,
)
from rm.shell.store_rows import RecordTooLarge, RowTransaction, StoreRows
from wire.codec.applications import read_submission, write_submission
from wire.files.json_records import fields_of, fields_text
from wire.files.store_file import StoreTable
from wire.generated.yarn_protos_pb2 import ApplicationSubmissionContextProto
from yarn.ids import ApplicationId
from yarn.protocols.tracker import MasterKey

TABLES = {
    "application": StoreTable(("cluster_timestamp INTEGER", "number INTEGER"), ("submission BLOB", "state TEXT")),
    "attempt": StoreTable(("cluster_timestamp INTEGER", "application INTEGER", "number INTEGER"), ("state TEXT",)),
    "cluster": StoreTable(("name TEXT",), ("state TEXT",)),
    "master_key": StoreTable(("kind TEXT", "place INTEGER"), ("key_id INTEGER", "secret BLOB")),
}
NODE_LABELS = ("node-labels",)
"""The key of the row in the table `cluster` that has the labels."""

Keys = tuple[MasterKey, ...]
"""The keys of one kind of token: the current one, and while they are being replaced also the next one."""


class RowStateStore:
    """An open state store. Its methods block; they may be called from any thread, one at a time."""

    def __init__(self, rows: StoreRows) -> None:
        self._rows = rows

    def close(self) -> None:
        """Release the store; closing twice is a no-op."""
        self._rows.close()

    def check_term(self) -> None:
        """Raise StoreFenced within a transaction of this ResourceManager if another has taken over."""

    def recover(self) -> RMState:
        """The state for a ResourceManager that is the only one; the epoch is raised for the next one.

        Raises StoreDamaged, and StoreUnavailable if the store cannot be reached.
        """
        raise NotImplementedError(type(self).__name__)

    def epoch(self) -> int:
        """The epoch of the ResourceManager that has taken over, or of the next one: how many there were before it."""
        raise NotImplementedError(type(self).__name__)

    def load(self) -> RMState:
        """All applications, in the order of their ids. Raises StoreDamaged for a record that cannot be read."""
        with self._rows.reading():
            attempts: dict[ApplicationId, list[ApplicationAttemptStateData]] = {}
            for timestamp, number, _, state in self._rows.rows("attempt"):
                read = ApplicationAttemptStateData(**fields_of(state))
                attempts.setdefault(ApplicationId(timestamp, number), []).append(read)
            applications = [
                _application(submission, state) for _, _, submission, state in self._rows.rows("application")
            ]
            labels = [state for _, state in self._rows.rows("cluster", NODE_LABELS)]
            return RMState(
                self.epoch(),
                tuple(
                    StoredApplication(application, tuple(attempts.get(application.application_id, ())))
                    for application in applications
                ),
                NodeLabelState(**fields_of(labels[0])) if labels else NodeLabelState(),
            )

    def keys(self, kind: str) -> Keys:
        """The keys of one kind of token, empty if none were written."""
        return tuple(MasterKey(key_id, secret) for _, _, key_id, secret in self._rows.rows("master_key", (kind,)))

    def write_keys(self, kind: str, keys: Keys) -> None:
        """Replace the keys of this kind."""
        with self._rows.writing() as group:
            self.check_term()
            group.remove("master_key", (kind,))
            for place, key in enumerate(keys):
                group.put("master_key", (kind, place), (key.key_id, key.secret))

    def refusal(self, effect: SaveApplication) -> RecordTooLarge | None:
        """The error for a new application that this store can never take."""
        return None

    def write(self, effects: Iterable[StoreEffect]) -> None:
        """Write all effects in one transaction.

        After an error nothing was written; StoreUnavailable: try again later; StoreFenced: never.
        """
        with self._rows.writing() as group:
            self.check_term()
            for effect in effects:
                _apply(effect, group)


def application_content(application: ApplicationStateData) -> tuple[bytes, str]:
    """The content of an application's row."""
    proto = ApplicationSubmissionContextProto()
    write_submission(application.submission, proto)
    return proto.SerializeToString(), fields_text(application, "submission")


def _apply(effect: StoreEffect, group: RowTransaction) -> None:
    match effect:
        case SaveApplication(application, _):
            group.put("application", application.application_id, application_content(application))
        case SaveAttempt(attempt, _):
            application_id, number = attempt.attempt_id
            group.put("attempt", (*application_id, number), (fields_text(attempt),))
        case RemoveApplication(application_id):
            group.remove("attempt", application_id)
            group.remove("application", application_id)
        case SaveNodeLabels(node_labels):
            group.put("cluster", NODE_LABELS, (fields_text(node_labels),))
        case _:
            assert_never(effect)


def _application(submission: bytes, state: str) -> ApplicationStateData:
    proto = ApplicationSubmissionContextProto.FromString(submission)
    return ApplicationStateData(submission=read_submission(proto), **fields_of(state))
