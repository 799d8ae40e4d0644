"""Rows of a state store, whichever engine keeps them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from wire.files.store_file import Row, Value
from yarn.errors import YarnException


class RecordTooLarge(YarnException):
    """A record is larger than the engine of the store takes. Nothing was written."""


class RowTransaction(Protocol):
    """The writes of one transaction."""

    def put(self, table: str, key: tuple[Value, ...], content: tuple[Value, ...]) -> None:
        """Insert the row, or replace the one with the same key."""
        ...

    def remove(self, table: str, key: tuple[Value, ...]) -> None:
        """Delete the rows whose keys begin with `key`."""
        ...


class StoreRows(Protocol):
    """The rows of an open store. Methods block; they may be called from any thread, one at a time."""

    def rows(self, table: str, key: tuple[Value, ...] = ()) -> list[Row]:
        """Rows whose keys begin with `key`, ordered by key, without their checksums."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """A context for decoding rows, which raises StoreDamaged for a row that cannot be decoded."""
        ...

    def writing(self) -> AbstractContextManager[RowTransaction]:
        """A transaction: at the end of the block everything is durable, or an error is raised."""
        ...

    def close(self) -> None:
        """Release the store; closing twice is a no-op."""
        ...
