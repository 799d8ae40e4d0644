"""The state store's file: a SQLite database with an application a row, an attempt a row, labels, the epoch and keys.

    store = SQLiteStateStore.open(path, said="yarn.yarnling.state-store-file = /var/...")
    state = store.load()
    store.write([SaveApplication(...), SaveAttempt(...)])        all of it durable, or YarnException and none of it

A write is one transaction in SQLite's write-ahead log, on the disk before `write` returns; what a killed process left
half written is not there. Submissions are kept as Hadoop's message, so that users' credentials are whole; the rest is
JSON. The file is locked while it is open, and its owner's only.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, assert_never

from google.protobuf.message import DecodeError

from protos.yarn_protos_pb2 import ApplicationSubmissionContextProto
from rm.effects import RemoveApplication, SaveApplication, SaveAttempt, SaveNodeLabels, StoreEffect
from rm.stored_state import (
    ApplicationAttemptStateData,
    ApplicationStateData,
    NodeLabelState,
    RMState,
    StoredApplication,
)
from wire.codec.applications import read_submission, write_submission
from wire.json_records import from_json, to_json
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import ApplicationId
from yarn.protocols.tracker import MasterKey

SCHEMA_VERSION = 2
FILE_KIND = 0x7961726E
"""`yarn`, in the header of the file: no other program's database is taken for a state store."""

_SCHEMA = """
CREATE TABLE application (
    cluster_timestamp INTEGER, number INTEGER, submission BLOB NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY (cluster_timestamp, number)
) WITHOUT ROWID;
CREATE TABLE attempt (
    cluster_timestamp INTEGER, application INTEGER, number INTEGER, state TEXT NOT NULL,
    PRIMARY KEY (cluster_timestamp, application, number)
) WITHOUT ROWID;
CREATE TABLE node_labels (state TEXT NOT NULL);
CREATE TABLE epoch (epoch INTEGER NOT NULL);
CREATE TABLE master_key (kind TEXT, place INTEGER, key_id INTEGER NOT NULL, secret BLOB NOT NULL,
    PRIMARY KEY (kind, place)
) WITHOUT ROWID;
INSERT INTO epoch VALUES (0);
"""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

_TRY_AGAIN = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
    }
)
"""Errors of a disk or a machine that somebody may mend."""

Keys = tuple[MasterKey, ...]
"""The keys of one kind of token: the current one, and the next one while they change."""


class StoreUnavailable(YarnException):
    """The file takes nothing now. It may again: nothing of the call was written, and nothing before it is lost."""


class SQLiteStateStore:
    """One open file. Its calls block; they may come from any thread, one at a time."""

    def __init__(self, database: sqlite3.Connection, said: str) -> None:
        self._database = database
        self._said = said

    @classmethod
    def open(cls, path: Path, said: str) -> SQLiteStateStore:
        """The store at `path`, made if there is none. `said`: what errors call it.

        Raises YarnException for a file that is damaged, in use, of another kind or version, or open to others.
        """
        _make_private(path, said)
        store = cls(_connected(path, said), said)
        try:
            with store._refusing():
                store._prepare()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Let the file go; twice is once."""
        self._database.close()

    def load(self) -> RMState:
        """All applications, in the order of their ids. Raises YarnException for what cannot be read."""
        with self._refusing():
            (epoch,) = self._database.execute("SELECT epoch FROM epoch").fetchone()
            labels = self._database.execute("SELECT state FROM node_labels").fetchone()
            attempts: dict[ApplicationId, list[ApplicationAttemptStateData]] = {}
            for timestamp, number, state in self._database.execute(
                "SELECT cluster_timestamp, application, state FROM attempt ORDER BY 1, 2, number"
            ):
                read = ApplicationAttemptStateData(**_fields_of(state))
                attempts.setdefault(ApplicationId(timestamp, number), []).append(read)
            applications = [
                _application(submission, state)
                for submission, state in self._database.execute(
                    "SELECT submission, state FROM application ORDER BY cluster_timestamp, number"
                )
            ]
        return RMState(
            epoch,
            tuple(
                StoredApplication(application, tuple(attempts.get(application.application_id, ())))
                for application in applications
            ),
            NodeLabelState(**_fields_of(labels[0])) if labels is not None else NodeLabelState(),
        )

    def raise_epoch(self) -> None:
        """The next ResourceManager to recover is another one."""
        with self._refusing(), self._database:
            self._database.execute("UPDATE epoch SET epoch = epoch + 1")

    def keys(self, kind: str) -> Keys:
        """The keys of one kind of token; none if none were written."""
        with self._refusing():
            rows = self._database.execute("SELECT key_id, secret FROM master_key WHERE kind = ? ORDER BY place", [kind])
            return tuple(MasterKey(key_id, secret) for key_id, secret in rows)

    def write_keys(self, kind: str, keys: Keys) -> None:
        """Put `keys` in the place of those of the kind."""
        with self._refusing(), self._database:
            self._database.execute("DELETE FROM master_key WHERE kind = ?", [kind])
            rows = [(kind, place, key.key_id, key.secret) for place, key in enumerate(keys)]
            self._database.executemany("INSERT INTO master_key VALUES (?, ?, ?, ?)", rows)

    def write(self, effects: Iterable[StoreEffect]) -> None:
        """All in one transaction. Raises YarnException, with nothing written; StoreUnavailable for a full disk."""
        with self._refusing(), self._database:
            for effect in effects:
                self._apply(effect)

    def _apply(self, effect: StoreEffect) -> None:
        execute = self._database.execute
        match effect:
            case SaveApplication(application, _):
                proto = ApplicationSubmissionContextProto()
                write_submission(application.submission, proto)
                row = (*application.application_id, proto.SerializeToString(), _json_of(application, "submission"))
                execute("INSERT OR REPLACE INTO application VALUES (?, ?, ?, ?)", row)
            case SaveAttempt(attempt, _):
                application_id, number = attempt.attempt_id
                row_of_attempt = (*application_id, number, _json_of(attempt))
                execute("INSERT OR REPLACE INTO attempt VALUES (?, ?, ?, ?)", row_of_attempt)
            case RemoveApplication(application_id):
                execute("DELETE FROM attempt WHERE cluster_timestamp = ? AND application = ?", application_id)
                execute("DELETE FROM application WHERE cluster_timestamp = ? AND number = ?", application_id)
            case SaveNodeLabels(node_labels):
                execute("DELETE FROM node_labels")
                execute("INSERT INTO node_labels VALUES (?)", [_json_of(node_labels)])
            case _:
                assert_never(effect)

    def _prepare(self) -> None:
        """Lock the file, see that it is ours and whole, and make its tables if it is new."""
        database = self._database
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        is_new = self._check()
        # Only now: it changes the file, which may have been another program's.
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        if is_new:
            database.executescript(
                f"BEGIN; PRAGMA application_id = {FILE_KIND}; PRAGMA user_version = {SCHEMA_VERSION}; {_SCHEMA} COMMIT;"
            )

    def _check(self) -> bool:
        """True for a new file. Raises YarnException for one that is not ours, and sqlite3's for a damaged one."""
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        (kind,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        database.execute("COMMIT")
        if tables == 0 and kind in (0, FILE_KIND):
            return True
        if kind != FILE_KIND:
            raise YarnException(f"{self._said}: is another program's database (name another file)")
        if version != SCHEMA_VERSION:
            raise YarnException(
                f"{self._said}: is of version {version}, this is version {SCHEMA_VERSION} "
                "(start the release that wrote it, or move the file away to start without its applications)"
            )
        found = [text for (text,) in database.execute("PRAGMA quick_check")]
        if found != ["ok"]:
            raise sqlite3.DatabaseError(found[0])
        return False

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """What SQLite, or what it brings, complains of, as a refusal that names the file and a remedy."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise YarnException(
                    f"{self._said}: another ResourceManager uses it (end that one, or name another file)"
                ) from None
            kind = StoreUnavailable if error.sqlite_errorcode & 0xFF in _TRY_AGAIN else YarnException
            raise kind(f"{self._said}: {error} (make room, or give a file that can be written)") from None
        except (sqlite3.DatabaseError, InvalidArgumentException, DecodeError, ValueError, TypeError) as error:
            raise YarnException(
                f"{self._said}: is damaged: {error} "
                "(put a copy in its place, or move it away to start without its applications)"
            ) from None


def _make_private(path: Path, said: str) -> None:
    """See to it that the file is there, and its owner's only; its log becomes what it is.

    SQLite would begin anew in an empty file, and delete the log that the lost one left.
    """
    log = Path(f"{path}-wal")
    if not _has_content(path) and _has_content(log):
        raise YarnException(
            f"{said}: is missing or empty, but its log {log.name} is there "
            "(put the file back, or move the log away to start without its applications)"
        )
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        mode = os.fstat(descriptor).st_mode
        os.close(descriptor)
    except OSError as error:
        raise YarnException(f"{said}: {error.strerror} (give a file that can be written)") from None
    if mode & _OTHERS:
        raise YarnException(f"{said}: mode {stat.S_IMODE(mode):04o} lets others read it (chmod 0600)")


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _connected(path: Path, said: str) -> sqlite3.Connection:
    try:
        return sqlite3.connect(path, timeout=0, check_same_thread=False)
    except sqlite3.Error as error:
        raise YarnException(f"{said}: {error} (give a file that can be written)") from None


def _json_of(record: ApplicationStateData | ApplicationAttemptStateData | NodeLabelState, without: str = "") -> str:
    values = {field.name: to_json(getattr(record, field.name)) for field in fields(record) if field.name != without}
    return json.dumps(values, separators=(",", ":"))


def _fields_of(text: str) -> Mapping[str, Any]:
    return {name: from_json(value) for name, value in json.loads(text).items()}


def _application(submission: bytes, state: str) -> ApplicationStateData:
    proto = ApplicationSubmissionContextProto.FromString(submission)
    return ApplicationStateData(submission=read_submission(proto), **_fields_of(state))
