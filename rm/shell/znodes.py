"""The calls to ZooKeeper that the state store needs, and what can happen to them; `kazoo_znodes` makes them with kazoo.

A call whose answer is lost may have been carried out or not: ConnectionLost says whether it can have been.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

ANY_VERSION = -1


class Znode(Struct, frozen=True):
    """The data of a znode, and how often it was set."""

    data: bytes
    version: int


class CreateZnode(Struct, frozen=True):
    """Create a znode with data; its parent must exist."""

    path: str
    data: bytes


class SetZnode(Struct, frozen=True):
    """Replace the data of a znode, if it has this version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


class DeleteZnode(Struct, frozen=True):
    """Delete a znode without children."""

    path: str


Operation = CreateZnode | SetZnode | DeleteZnode


class ConnectionLost(Exception):
    """There is no answer. `was_sent`: the call may have been carried out; False: it surely was not."""

    def __init__(self, *, was_sent: bool) -> None:
        super().__init__("no answer from ZooKeeper")
        self.was_sent = was_sent


class OperationRefused(Exception):
    """ZooKeeper refused the operation with this place in its transaction, and so all of the transaction."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason


class WrongVersion(OperationRefused):
    """The znode of the operation has another version."""


class Znodes(Protocol):
    """A session's calls. They block, and raise ConnectionLost or OperationRefused (with place 0 for a single call)."""

    def wait_connected(self, timeout_s: float) -> bool:
        """Wait until calls can be sent; False if they still cannot after this time."""
        ...

    def read(self, path: str) -> Znode | None:
        """The znode; None if there is none."""
        ...

    def read_all(self, paths: Sequence[str]) -> list[Znode | None]:
        """The znodes, with all calls sent before the first answer is awaited."""
        ...

    def children(self, path: str) -> list[str]:
        """The names of the znodes below `path`, in no order."""
        ...

    def ensure(self, path: str, *, shared: bool = False) -> None:
        """Create the znode and those above it, without data, if they do not exist. `shared`: open to all identities."""
        ...

    def commit(self, operations: Sequence[Operation]) -> None:
        """Carry out all operations at once, or none."""
        ...

    def close(self) -> None:
        """End the session; closing twice is a no-op."""
        ...
