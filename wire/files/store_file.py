"""The file of a daemon's store: a SQLite database that detects any change that it did not make itself.

    file = StoreFile.open(path, said="yarn.yarnling.state-store-file = /var/...", form=FORM)
    with file.writing() as group:                        one transaction
        group.put("attempt", (1_700_000_000_000, 1, 1), ("{...}",))
        group.remove("attempt", (1_700_000_000_000, 2))  every attempt of application 2
    file.rows("attempt")                                 [(1700000000000, 1, 1, "{...}")]

SQLite detects damage to its own structure, but not to the values that it stores. So each row has the SHA-256 of its
table, key and content, and the file has the XOR of all these checksums, which each transaction updates. When the file
is opened, a changed row does not match its checksum, and a row that is missing, additional or of an earlier transaction
changes the XOR.

The rollback journal keeps this check complete: once a commit returns, all that was written is in the one file, so there
is no second file whose loss or damage would take the last transactions with it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from msgspec import Struct

from yarn.errors import InvalidArgumentException, YarnException

PAGE_BYTES = 4096
JOURNAL = "-journal"
"""The suffix of SQLite's rollback journal. The journal is kept with an empty header, so its presence shows that the
store was in use."""
EARLIER_LOG = "-wal"
"""The suffix of the write-ahead log, which releases up to schema version 2 used."""
BUSY_S = 5.0
"""The time a call waits for a transaction of another daemon that shares the file; one takes milliseconds."""
UNFINISHED = "-new-"
"""The suffix, followed by random letters, of the directory in which a new file is created."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"
_ROLLBACK_FORMAT = b"\x01\x01"
_LOG_FORMAT = b"\x02\x02"
_NAMED_MAX = 3
"""The number of damaged records that a message names; the others are counted."""

_TRY_AGAIN = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
    }
)
"""Errors of a disk or a machine that can be repaired without changing the file."""
_CUT = frozenset({sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS})
"""Errors among SQLITE_IOERR that show damage."""

Value = int | str | bytes
Row = tuple[Any, ...]


class StoreUnavailable(YarnException):
    """The file cannot be written now, but may be later. The call wrote nothing, and earlier writes are kept."""


class StoreBusy(StoreUnavailable):
    """A transaction of another daemon that shares the file lasts for more than BUSY_S."""


class StoreDamaged(YarnException):
    """The content of the store's files is not what was written. A daemon must not continue with them."""


class StoreFenced(YarnException):
    """Another daemon has taken the store over. The call wrote nothing, and no later one will."""


class StoreTable(Struct, frozen=True):
    """A table. Columns are written as in SQL, such as "number INTEGER"; those of the key come first."""

    key: tuple[str, ...]
    content: tuple[str, ...]

    def sql(self, name: str) -> str:
        columns = ", ".join(f"{column} NOT NULL" for column in (*self.key, *self.content, "checksum BLOB"))
        return f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({', '.join(self.key_names())})) WITHOUT ROWID"

    def key_names(self) -> tuple[str, ...]:
        return tuple(column.split()[0] for column in self.key)


Tables = Mapping[str, StoreTable]
EMPTY_DIGEST = bytes(sha256().digest_size)
"""The digest of a store without rows."""
_DIGEST_SQL = "CREATE TABLE digest (digest BLOB NOT NULL)"


class StoreForm(Struct, frozen=True):
    """The form of one daemon's store: its tables, and the words of its errors.

    `kind`: a number in the header of the file, so that another program's database is not mistaken for this store.
    `version` grows with each change of the tables. `daemon`: who uses the file ("ResourceManager"). `contents`: what is
    lost without it ("applications"). `synced`: a commit waits until it is on the disk, so it survives a failure of the
    machine; otherwise it survives only the death of the process. `shared`: several daemons on this machine may have the
    file open; it is locked only during their transactions.
    """

    tables: Tables
    kind: int
    version: int
    daemon: str
    contents: str
    synced: bool = True
    shared: bool = False


def store_files(path: Path) -> list[Path]:
    """All files and directories that the store at `path` may consist of, existing or not.

    Deleting all of them starts over without its contents. The store must not be in use.
    """
    unfinished = sorted(path.parent.glob(f"{path.name}{UNFINISHED}*"))
    return [path, _beside(path, JOURNAL), _beside(path, EARLIER_LOG), *unfinished]


class Transaction:
    """The writes of one transaction."""

    def __init__(self, database: sqlite3.Connection, tables: Tables) -> None:
        self._database = database
        self._tables = tables
        self.digest = _stored_digest(database)

    def put(self, table: str, key: tuple[Value, ...], content: tuple[Value, ...]) -> None:
        """Insert the row, or replace the one with the same key."""
        self.remove(table, key)
        row = (*key, *content)
        checksum = row_checksum(table, row)
        self._database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))}, ?)", (*row, checksum))
        self.digest = xor(self.digest, checksum)

    def remove(self, table: str, key: tuple[Value, ...]) -> None:
        """Delete the rows whose keys begin with `key`."""
        where = " AND ".join(f"{name} = ?" for name in self._tables[table].key_names()[: len(key)])
        for (checksum,) in self._database.execute(f"SELECT checksum FROM {table} WHERE {where}", key).fetchall():
            self.digest = xor(self.digest, checksum)
        self._database.execute(f"DELETE FROM {table} WHERE {where}", key)


class StoreFile:
    """An open file, locked until it is closed; a shared one is locked only during its transactions.

    Its methods block; they may be called from any thread.
    """

    def __init__(self, database: sqlite3.Connection, path: Path, said: str, form: StoreForm) -> None:
        self._database = database
        self._path = path
        self._said = said
        self._form = form
        self._tables = form.tables
        self._turn = threading.RLock()

    @classmethod
    def open(cls, path: Path, said: str, form: StoreForm) -> StoreFile:
        """The file at `path`, created if the store does not exist. `said`: how errors refer to it.

        Raises StoreDamaged for damage, and YarnException for a file that is in use, of another program or version,
        or one that other users can read. Nothing of the store changes then.
        """
        try:
            if not os.path.lexists(path):
                _refuse_leftovers(path, said, form)
                _create(path, said, form)
            _check_outside(path, said, form)
        except OSError as error:
            raise YarnException(f"{said}: {error.strerror} (name a file that can be written)") from None
        with _translated(path, said, form):
            timeout_s = BUSY_S if form.shared else 0
            store = cls(sqlite3.connect(path, timeout=timeout_s, check_same_thread=False), path, said, form)
        try:
            with _translated(path, said, form):
                store._prepare()
        except (ValueError, TypeError) as error:
            store.close()
            raise _damaged(path, said, form, str(error)) from None
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Release the file; closing twice is a no-op."""
        self._database.close()

    def rows(self, table: str, key: tuple[Value, ...] = ()) -> list[Row]:
        """Rows whose keys begin with `key`, ordered by key, without their checksums."""
        names = self._tables[table].key_names()
        where = " AND ".join(f"{name} = ?" for name in names[: len(key)]) or "TRUE"
        with self._turn, _translated(self._path, self._said, self._form):
            found = self._database.execute(f"SELECT * FROM {table} WHERE {where} ORDER BY {', '.join(names)}", key)
            return [row[:-1] for row in found]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A context for decoding rows.

        Raises StoreDamaged for a row that cannot be decoded although its checksum is right.
        """
        with decoding(lambda what: _damaged(self._path, self._said, self._form, what)):
            yield

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A transaction: at the end of the block everything is on disk, or nothing is and an error is raised.

        Raises StoreUnavailable for a full disk, YarnException for errors that cannot be repaired while the daemon runs.
        """
        with self._turn, _translated(self._path, self._said, self._form), self._database:
            if self._form.shared:
                # Before anything is read: another daemon must not write between that and our writes.
                self._database.execute("BEGIN IMMEDIATE")
            group = Transaction(self._database, self._tables)
            yield group
            self._database.execute("UPDATE digest SET digest = ?", (group.digest,))

    def _prepare(self) -> None:
        """Lock the file, and check that it is a state store and undamaged. SQLite undoes an unfinished transaction."""
        execute = self._database.execute
        if not self._form.shared:
            execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA journal_mode = PERSIST")
        execute(f"PRAGMA synchronous = {'FULL' if self._form.synced else 'OFF'}")
        execute("BEGIN EXCLUSIVE")
        self._check_kind()
        found = [text for (text,) in execute("PRAGMA quick_check")]
        if found != ["ok"]:
            raise _damaged(self._path, self._said, self._form, str(found[0]))
        self._check_rows()
        execute("COMMIT")

    def _check_kind(self) -> None:
        """Check the tables.

        A valid header with other tables means another program's file; an invalid one means damage.
        """
        execute = self._database.execute
        (kind,) = execute("PRAGMA application_id").fetchone()
        (version,) = execute("PRAGMA user_version").fetchone()
        has_our_header = (kind, version) == (self._form.kind, self._form.version)
        has_our_tables = dict(execute("SELECT name, sql FROM sqlite_master").fetchall()) == _schema(self._tables)
        if has_our_header and has_our_tables:
            return
        if has_our_header or has_our_tables:
            raise _damaged(self._path, self._said, self._form, "its header does not match its tables")
        if kind != self._form.kind:
            raise YarnException(f"{self._said}: this is the database of another program (name another file)")
        raise YarnException(
            f"{self._said}: the file has version {version}, this release reads version {self._form.version} "
            f"(start the release that wrote it, or {_start_over(self._path, self._form)})"
        )

    def _check_rows(self) -> None:
        wrong: list[str] = []
        digest = EMPTY_DIGEST
        for table, columns in self._tables.items():
            for *row, checksum in self._database.execute(f"SELECT * FROM {table}"):
                if checksum != row_checksum(table, tuple(row)):
                    wrong.append(f"{table} {tuple(row[: len(columns.key)])!r:.100}")
                else:
                    digest = xor(digest, checksum)
        if wrong:
            named = ", ".join(wrong[:_NAMED_MAX])
            what = f"{len(wrong)} records do not match their checksums: {named}"
            raise _damaged(self._path, self._said, self._form, what)
        if digest != _stored_digest(self._database):
            what = "its records are not all of those that were written last"
            raise _damaged(self._path, self._said, self._form, what)


def _schema(tables: Tables) -> dict[str, str]:
    return {"digest": _DIGEST_SQL, **{name: table.sql(name) for name, table in tables.items()}}


def _stored_digest(database: sqlite3.Connection) -> bytes:
    found = [digest for (digest,) in database.execute("SELECT digest FROM digest")]
    if len(found) != 1 or not isinstance(found[0], bytes) or len(found[0]) != len(EMPTY_DIGEST):
        raise sqlite3.DatabaseError("the digest of its records cannot be read")
    return found[0]


@contextmanager
def decoding(damaged: Callable[[str], StoreDamaged]) -> Iterator[None]:
    """A context for decoding rows: errors of the decoders become the one that `damaged` makes of a sentence."""
    try:
        yield
    except (DecodeError, ValueError, TypeError, InvalidArgumentException) as error:
        raise damaged(f"a record cannot be read: {error}") from None


def row_checksum(table: str, row: Row) -> bytes:
    """The checksum of the values with their types and lengths, so that different rows have different input."""
    parts = [table.encode()]
    for value in row:
        data = value if isinstance(value, bytes) else str(value).encode()
        parts += (b"%s %d " % (type(value).__name__.encode(), len(data)), data)
    return sha256(b"".join(parts)).digest()


def xor(one: bytes, other: bytes) -> bytes:
    """The digest with a row's checksum added or, if it is in there, taken out."""
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(len(one), "big")


def _beside(path: Path, suffix: str) -> Path:
    return Path(f"{path}{suffix}")


def _start_over(path: Path, form: StoreForm) -> str:
    return f"move {path.name} and {path.name}{JOURNAL} away to start without its {form.contents}"


def _damaged(path: Path, said: str, form: StoreForm, what: str) -> StoreDamaged:
    return StoreDamaged(f"{said}: the file is damaged: {what} (restore a copy, or {_start_over(path, form)})")


def _refuse_leftovers(path: Path, said: str, form: StoreForm) -> None:
    """Raises StoreDamaged if the file is missing but SQLite's journal of it exists."""
    for suffix in (JOURNAL, EARLIER_LOG):
        beside = _beside(path, suffix)
        if beside.exists() and beside.stat().st_size > 0:
            raise StoreDamaged(
                f"{said}: the file is missing, but its journal {beside.name} exists "
                f"(put the file back, or move {beside.name} away to start without its {form.contents})"
            )


def _create(path: Path, said: str, form: StoreForm) -> None:
    """Create an empty store elsewhere and link it to `path`, so that a killed process leaves the whole file or none.

    If another process creates the file at the same time, its file is kept.
    """
    with tempfile.TemporaryDirectory(prefix=f"{path.name}{UNFINISHED}", dir=path.parent) as directory:
        new = Path(directory, path.name)
        new.touch(0o600)
        with _translated(path, said, form):
            _write_empty(new, form)
        try:
            os.link(new, path)
        except FileExistsError:
            return
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _write_empty(path: Path, form: StoreForm) -> None:
    database = sqlite3.connect(path)
    try:
        database.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        database.execute(f"PRAGMA application_id = {form.kind}")
        database.execute(f"PRAGMA user_version = {form.version}")
        with database:
            for statement in _schema(form.tables).values():
                database.execute(statement)
            database.execute("INSERT INTO digest VALUES (?)", (EMPTY_DIGEST,))
    finally:
        database.close()


def _check_outside(path: Path, said: str, form: StoreForm) -> None:
    """Check the file without SQLite, which would change it. Raises YarnException, StoreDamaged and OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        header = os.pread(descriptor, _HEADER_BYTES, 0)
    finally:
        os.close(descriptor)
    if mode & _OTHERS:
        raise YarnException(f"{said}: mode {stat.S_IMODE(mode):04o} lets other users read it (chmod 0600)")
    if not header:
        raise _damaged(path, said, form, "it is empty")
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise _damaged(path, said, form, "file is not a database")
    if header[18:20] == _LOG_FORMAT:
        raise YarnException(
            f"{said}: the file was written by an earlier release or by another program "
            f"(start the program that wrote it, or move {path.name} and {path.name}{EARLIER_LOG} away "
            f"to start without its {form.contents})"
        )
    if header[18:20] != _ROLLBACK_FORMAT:
        raise _damaged(path, said, form, "its header has an unknown format")
    log = _beside(path, EARLIER_LOG)
    if log.exists():
        raise _damaged(path, said, form, f"{log.name} does not belong to it")


@contextmanager
def _translated(path: Path, said: str, form: StoreForm) -> Iterator[None]:
    """Turn errors of SQLite and decoding errors into errors that name the file and a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        # Python's own errors, such as text that is not UTF-8, have no code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        if code & 0xFF == sqlite3.SQLITE_BUSY and form.shared:
            raise StoreBusy(
                f"{said}: a transaction of another {form.daemon} has lasted for more than {BUSY_S:g} s "
                "(that one hangs: resume or kill it)"
            ) from None
        if code & 0xFF == sqlite3.SQLITE_BUSY:
            raise YarnException(
                f"{said}: another {form.daemon} uses it (stop that one, or name another file)"
            ) from None
        if code & 0xFF in _TRY_AGAIN and code not in _CUT:
            raise StoreUnavailable(f"{said}: {error} (free some space, or name a file that can be written)") from None
        raise _damaged(path, said, form, str(error)) from None
