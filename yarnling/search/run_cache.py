"""The figures of runs that a search has made: one SQLite file, valid after each run.

The key of a run is the digest of everything that decides its result: the version of yarnling, the configuration, the
workload, the nodes, the seed and the time. So a run is never made twice, neither after a restart nor for other goals,
and a file can never have the result of another input.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from yarn.errors import YarnException
from yarn.resource import Resource
from yarnling.cluster.own_packages import version
from yarnling.whatif.figures import Figures
from yarnling.whatif.run import InputNames
from yarnling.whatif.sides import SideRun

APPLICATION_ID = 0x79_6E_73_72
"""Marks the file as ours in SQLite's header ("ynsr")."""
_SCHEMA = "CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, figures BLOB, refusal TEXT NOT NULL) WITHOUT ROWID"


class Refused(Struct, frozen=True):
    """A configuration that the ResourceManager refuses, with all its faults in `message`."""

    message: str


class RunCache:
    """An open file of runs."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def get(self, key: str) -> Figures | Refused | None:
        """The outcome of a run; None if there is none that this version can read."""
        row = self._database.execute("SELECT figures, refusal FROM runs WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        if row[0] is None:
            return Refused(row[1])
        try:
            return msgspec.json.decode(zlib.decompress(row[0]), type=Figures)
        except (msgspec.MsgspecError, zlib.error):
            return None

    def put(self, key: str, outcome: Figures | Refused) -> None:
        """Keep the outcome of a run."""
        if isinstance(outcome, Refused):
            row: tuple[bytes | None, str] = (None, outcome.message)
        else:
            row = (zlib.compress(msgspec.json.encode(outcome)), "")
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", (key, *row))


@contextmanager
def open_cache(path: Path) -> Iterator[RunCache]:
    """Open a file of runs, which is created if there is none. Raises YarnException if it is something else."""
    try:
        database = sqlite3.connect(path)
    except sqlite3.Error as error:
        raise YarnException(f"{path}: cannot be opened: {error} (name another directory)") from None
    try:
        _check(database, path)
        yield RunCache(database)
    finally:
        database.close()


def digest_of(run: SideRun) -> bytes:
    """The digest of everything but the configuration that decides the result of a run."""
    options = replace(run.options, names=InputNames(), warnings=())
    data = msgspec.json.encode(replace(run, title="", configuration={}, options=options), enc_hook=_encode)
    return hashlib.sha256(version().encode() + b"\n" + data).digest()


def key_of(digest: bytes, configuration: dict[str, str]) -> str:
    """The key of a run with the digest of its other inputs."""
    data = msgspec.json.encode(configuration, order="sorted")
    return hashlib.sha256(digest + data).hexdigest()


def _check(database: sqlite3.Connection, path: Path) -> None:
    try:
        (tables,) = database.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
        (mark,) = database.execute("PRAGMA application_id").fetchone()
    except sqlite3.DatabaseError as error:
        raise YarnException(f"{path}: is not a file of runs: {error} (name another directory)") from None
    if tables and mark != APPLICATION_ID:
        raise YarnException(f"{path}: is a database, but not of a search (name another directory)")
    with database:
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(_SCHEMA)


def _encode(value: object) -> object:
    if isinstance(value, Resource):
        return value.amounts()
    raise NotImplementedError(f"{type(value).__name__} is not an input of a run")
