"""Rows of a state store as znodes, written by one ResourceManager at a time: the last one that took over.

    <parent>/yarnling/fence                               who writes, and the digest of all rows
    <parent>/yarnling/application/1700000000000_1         a row: its content and its checksum
    <parent>/yarnling/attempt/1700000000000_1_1

A transaction of rows is a transaction of ZooKeeper, with the fence (`zookeeper_fence`).
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
from msgspec import Struct

from rm.shell.znodes import CreateZnode, DeleteZnode, Operation, SetZnode
from rm.shell.zookeeper_fence import ZooKeeperFence
from wire.files.store_file import EMPTY_DIGEST, Row, Tables, Value, decoding, row_checksum, xor
from yarn.errors import YarnException

REQUEST_BYTES_MAX = 0xFFFFF
"""The largest request that ZooKeeper accepts unless it is configured otherwise (jute.maxbuffer)."""
RESERVED_BYTES = 0x4000
"""Room in a request for the fence, paths and access control lists, and for what is added to a record later."""
RECORD_BYTES_MAX = REQUEST_BYTES_MAX - RESERVED_BYTES
TRANSACTION_BYTES = 0x80000
"""A transaction of this size is not extended."""
OPERATION_BYTES = 0x100
"""The most that an operation takes in a request beside its record."""

Key = tuple[Value, ...]
Content = tuple[Value, ...]
Known = dict[str, dict[Key, bytes]]
"""{table: {key: checksum}} of all rows."""


class ZnodeRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """The data of a row's znode. Bytes are in base64; `checksum` is that of the row, in hexadecimal."""

    content: list[str | int]
    checksum: str


class Change(Struct, frozen=True):
    """A row with the new data of its znode and its new checksum; both are None if the row is deleted."""

    table: str
    key: Key
    data: bytes | None = None
    checksum: bytes | None = None

    @property
    def size(self) -> int:
        """The bytes that the change takes in a request, at most."""
        return OPERATION_BYTES + len(self.data or b"")


class ZnodeTransaction:
    """The writes of one transaction: the last content of each row."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._changes: dict[tuple[str, Key], Content | None] = {}

    def put(self, table: str, key: Key, content: Content) -> None:
        """Insert the row, or replace the one with the same key."""
        self._changes[table, tuple(key)] = content

    def remove(self, table: str, key: Key) -> None:
        """Delete the rows whose keys begin with `key`."""
        added = [known for of, known in self._changes if of == table]
        for known in [*self._known[table], *added]:
            if known[: len(key)] == tuple(key):
                self._changes[table, known] = None

    def changes(self) -> list[Change]:
        """The changes in the order of the first write of each row, without rows that never existed."""
        return [
            Change(table, key) if content is None else Change(table, key, *_record(table, key, content))
            for (table, key), content in self._changes.items()
            if content is not None or key in self._known[table]
        ]


class ZooKeeperRows:
    """The rows. Call `take_over` first. Methods block; they may be called from any thread, one at a time."""

    def __init__(self, fence: ZooKeeperFence, tables: Tables) -> None:
        self._fence = fence
        self._znodes = fence.znodes
        self._root = fence.root
        self._tables = tables
        self._known: Known = {}
        self._taken_over: dict[str, list[Row]] | None = None
        """The rows as they were taken over; None after the first write."""

    @property
    def epoch(self) -> int:
        """The number of ResourceManagers that took over before this one."""
        return self._fence.content.epoch - 1

    def take_over(self, term: int) -> int:
        """Become the one that writes, and read all rows; returns the epoch.

        Raises StoreFenced if a ResourceManager with a later term has taken over, StoreUnavailable if ZooKeeper does not
        answer, StoreDamaged, and YarnException if ZooKeeper does not allow it.
        """
        parent = self._root.rpartition("/")[0]
        if parent:
            self._fence.answered(lambda: self._znodes.ensure(parent, shared=True))
        directories = [f"{self._root}/{table}" for table in self._tables]
        for path in directories:
            self._fence.answered(lambda path=path: self._znodes.ensure(path))  # type: ignore[misc]
        self._fence.take_over(term, directories)
        self._read_all()
        return self.epoch

    def rows(self, table: str, key: Key = ()) -> list[Row]:
        """Rows whose keys begin with `key`, ordered by key, without their checksums."""
        rows = self._rows_of(table) if self._taken_over is None else self._taken_over[table]
        return [row for row in rows if row[: len(key)] == tuple(key)]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A context for decoding rows.

        Raises StoreDamaged for a row that cannot be decoded although its checksum is right.
        """
        with decoding(self._fence.damaged):
            yield

    @contextmanager
    def writing(self) -> Iterator[ZnodeTransaction]:
        """A transaction: at the end of the block everything is in ZooKeeper, or an error is raised.

        Raises StoreUnavailable if nothing was sent, StoreFenced if another ResourceManager has taken over,
        OutcomeUnknown if ZooKeeper does not say what became of it. What does not fit into one request is sent in
        several, in order; the first ones may have been carried out if StoreFenced or OutcomeUnknown is raised.
        """
        group = ZnodeTransaction(self._known)
        yield group
        changes = group.changes()
        self._check_sizes(changes)
        for number, part in enumerate(_parts(changes)):
            self._write(part, is_first=number == 0)

    def close(self) -> None:
        """End the session; closing twice is a no-op."""
        self._znodes.close()

    def _read_all(self) -> None:
        self._taken_over = None
        read = {table: self._rows_of(table) for table in self._tables}
        digest = EMPTY_DIGEST
        for table, columns in self._tables.items():
            checksums = {row[: len(columns.key)]: row_checksum(table, row) for row in read[table]}
            for checksum in checksums.values():
                digest = xor(digest, checksum)
            self._known[table] = checksums
        if digest.hex() != self._fence.content.digest:
            raise self._fence.damaged("its records are not all of those that were written last")
        self._taken_over = read

    def _rows_of(self, table: str) -> list[Row]:
        directory = f"{self._root}/{table}"
        names = self._fence.answered(lambda: self._znodes.children(directory))
        znodes = self._fence.answered(lambda: self._znodes.read_all([f"{directory}/{name}" for name in names]))
        rows: list[Row] = []
        for name, znode in zip(names, znodes, strict=True):
            row = None if znode is None else self._row(table, name, znode.data)
            if row is None:
                raise self._fence.damaged(f"the record {table}/{name:.100} does not match its checksum")
            rows.append(row)
        return sorted(rows)

    def _row(self, table: str, name: str, data: bytes) -> Row | None:
        """The row of a znode; None if it cannot be decoded or does not match its checksum."""
        columns = self._tables[table]
        try:
            record = msgspec.json.decode(data, type=ZnodeRecord)
            names = name.rsplit("_", len(columns.key) - 1)
            values = (*zip(columns.key, names, strict=True), *zip(columns.content, record.content, strict=True))
            row = tuple(_value(column, value) for column, value in values)
        except (msgspec.DecodeError, ValueError):
            return None
        is_intact = _name(row[: len(columns.key)]) == name and row_checksum(table, row).hex() == record.checksum
        return row if is_intact else None

    def _check_sizes(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.size > REQUEST_BYTES_MAX:
                raise YarnException(
                    f"the record {change.table}/{_name(change.key)} has {len(change.data or b'')} bytes, "
                    f"ZooKeeper accepts {REQUEST_BYTES_MAX}"
                )

    def _write(self, changes: Sequence[Change], *, is_first: bool) -> None:
        """Write what fits into one request."""
        digest = bytes.fromhex(self._fence.content.digest)
        for change in changes:
            for checksum in (self._known[change.table].get(change.key), change.checksum):
                digest = digest if checksum is None else xor(digest, checksum)
        self._fence.commit([self._operation(change) for change in changes], digest, is_first=is_first)
        self._taken_over = None
        for change in changes:
            if change.checksum is None:
                del self._known[change.table][change.key]
            else:
                self._known[change.table][change.key] = change.checksum

    def _operation(self, change: Change) -> Operation:
        path = f"{self._root}/{change.table}/{_name(change.key)}"
        if change.data is None:
            return DeleteZnode(path)
        exists = change.key in self._known[change.table]
        return SetZnode(path, change.data) if exists else CreateZnode(path, change.data)


def record_bytes(table: str, key: Key, content: Content) -> int:
    """The size of a row's record in ZooKeeper."""
    return len(_record(table, key, content)[0])


def _parts(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """The changes in pieces that fit into a request each."""
    part: list[Change] = []
    size = 0
    for change in changes:
        if part and size + change.size > TRANSACTION_BYTES:
            yield part
            part, size = [], 0
        part.append(change)
        size += change.size
    if part:
        yield part


def _record(table: str, key: Key, content: Content) -> tuple[bytes, bytes]:
    """The data of a row's znode, and the row's checksum."""
    checksum = row_checksum(table, (*key, *content))
    return msgspec.json.encode({"content": content, "checksum": checksum.hex()}), checksum


def _value(column: str, value: str | int) -> Value:
    """A value of a key or a content, in the type of its column. Raises ValueError if it has another."""
    _, kind = column.split()
    if kind == "INTEGER":
        return int(value)
    if not isinstance(value, str):
        raise ValueError(f"{column} is a number")
    return b64decode(value, validate=True) if kind == "BLOB" else value


def _name(key: Key) -> str:
    """The name of a row's znode."""
    return "_".join(map(str, key))
