"""The fence of a state store in ZooKeeper: a znode that says who writes, and which each transaction sets.

**A transaction sets the fence if the fence has the version that the last transaction gave it.** That is all of the
fencing. Taking over sets the fence too, and from then on no transaction of an earlier holder has the right version:
ZooKeeper refuses it as a whole, also if it was sent long before and arrives now. Hadoop's ZKRMStateStore has an access
control list on the root for this, with a password of each process; a version also tells apart two reigns of a process.

**The fence also tells what became of a transaction whose answer was lost.** It has the number of the last write: with
the number of the lost transaction, that one was carried out; with the version from before, it was not, and it can be
sent again, since of two transactions with one version ZooKeeper carries out one at most. So it does not matter that a
read may come from a server that lags behind: the next transaction is refused then, and the fence is read again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rm.shell.znodes import ConnectionLost, CreateZnode, Operation, OperationRefused, SetZnode, WrongVersion, Znodes
from wire.files.store_file import EMPTY_DIGEST, StoreDamaged, StoreFenced, StoreUnavailable
from yarn.errors import YarnException

FENCE = "fence"
FORMAT = 1
"""The version of the layout and of the records."""
NODE_EXISTS = "NodeExists"
CLAIMS_MAX = 1000
"""The number of times that taking over is tried while another ResourceManager writes."""

Result = TypeVar("Result")


class OutcomeUnknown(YarnException):
    """A transaction was sent and not answered, and ZooKeeper cannot be asked: it may have been carried out."""


class FenceContent(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the fence.

    `claim`: random text of the reign that wrote it. `term`: of its election, 0 without elections. `epoch`: how many
    reigns there were. `writes`: transactions of all reigns. `digest`: of all rows, in hexadecimal.
    """

    format: int = FORMAT
    claim: str = ""
    holder: str = ""
    term: int = 0
    epoch: int = 0
    writes: int = 0
    digest: str = EMPTY_DIGEST.hex()


class ZooKeeperFence:
    """The side of a ResourceManager of the fence of the store at `root`.

    `said`: how errors refer to the store. `holder`: the id of this ResourceManager. `wait_s`: how long a call waits for
    ZooKeeper to answer.
    """

    def __init__(self, znodes: Znodes, root: str, said: str, *, holder: str, wait_s: float) -> None:
        self.znodes = znodes
        self.root = root
        self._path = f"{root}/{FENCE}"
        self._said = said
        self._holder = holder
        self._wait_s = wait_s
        self._version = 0
        self.content = FenceContent()
        """The fence as the last transaction of this ResourceManager left it."""

    def take_over(self, term: int, tables: Sequence[str]) -> None:
        """Become the one that writes. `tables`: znodes that have to be empty if there is no fence yet.

        Raises StoreFenced if a ResourceManager with a later term has taken over, StoreUnavailable if ZooKeeper does not
        answer, StoreDamaged if the fence is missing or cannot be read.
        """
        claim = token_hex(8)
        for _ in range(CLAIMS_MAX):
            if not self._exists(tables):
                continue
            found, version = self._read()
            if found.claim == claim:
                self.content, self._version = found, version
                return
            if 0 < term < found.term:
                raise self._fenced(found)
            mine = replace(
                found,
                claim=claim,
                holder=self._holder,
                term=max(term, found.term),
                epoch=found.epoch + 1,
                writes=found.writes + 1,
            )
            try:
                self.znodes.commit([SetZnode(self._path, msgspec.json.encode(mine), version)])
            except (WrongVersion, ConnectionLost):
                continue
            except OperationRefused as refused:
                raise self._refused(refused) from None
            self.content, self._version = mine, version + 1
            return
        raise StoreUnavailable(f"{self._said}: another ResourceManager writes without pause (stop one of the two)")

    def commit(self, operations: Sequence[Operation], digest: bytes, *, is_first: bool) -> None:
        """Carry out a transaction, after which the digest of all rows is `digest`.

        `is_first`: no other transaction of the same call was carried out. Raises StoreUnavailable if it is the first
        and was not sent, StoreFenced if another ResourceManager has taken over, OutcomeUnknown if ZooKeeper does not
        say what became of it, StoreDamaged if the rows are not those that this ResourceManager knows.
        """
        after = replace(self.content, writes=self.content.writes + 1, digest=digest.hex())
        fenced = [SetZnode(self._path, msgspec.json.encode(after), self._version), *operations]
        is_unsent = is_first
        while True:
            try:
                self.znodes.commit(fenced)
                break
            except ConnectionLost as lost:
                is_unsent = is_unsent and not lost.was_sent
                if is_unsent:
                    raise StoreUnavailable(f"{self._said}: ZooKeeper cannot be reached") from None
            except WrongVersion:
                pass
            except OperationRefused as refused:
                raise self.damaged(f"{fenced[refused.place].path}: {refused.reason}") from None
            if self._is_carried_out(after):
                break
        self.content, self._version = after, self._version + 1

    def answered(self, call: Callable[[], Result]) -> Result:
        """The result of a call that changes nothing, sent again until it is answered.

        Raises StoreUnavailable if it was not answered in time, YarnException if it was refused.
        """
        deadline = time.monotonic() + self._wait_s
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not self.znodes.wait_connected(left):
                raise StoreUnavailable(f"{self._said}: ZooKeeper has not answered for {self._wait_s:g} s")
            try:
                return call()
            except ConnectionLost:
                continue
            except OperationRefused as refused:
                raise self._refused(refused) from None

    def damaged(self, what: str) -> StoreDamaged:
        """The error for a store that is not what was written."""
        return StoreDamaged(f"{self._said}: the store is damaged: {what} (restore a copy, or {self._start_over()})")

    def _exists(self, tables: Sequence[str]) -> bool:
        """True if there is a fence; otherwise that of a new store has been sent."""
        if self.answered(lambda: self.znodes.read(self._path)) is not None:
            return True
        has_rows = any(self.answered(lambda path=path: self.znodes.children(path)) for path in tables)  # type: ignore[misc]
        # Read again: another ResourceManager may have created the store meanwhile.
        if has_rows and self.answered(lambda: self.znodes.read(self._path)) is None:
            raise self.damaged("its fence is missing")
        try:
            self.znodes.commit([CreateZnode(self._path, msgspec.json.encode(FenceContent()))])
        except ConnectionLost:
            pass
        except OperationRefused as refused:
            if refused.reason != NODE_EXISTS:
                raise self._refused(refused) from None
        return False

    def _read(self) -> tuple[FenceContent, int]:
        """The fence and its version."""
        znode = self.answered(lambda: self.znodes.read(self._path))
        if znode is None:
            raise self.damaged("its fence is missing")
        try:
            content = msgspec.json.decode(znode.data, type=FenceContent)
        except msgspec.DecodeError as error:
            raise self.damaged(f"its fence cannot be read: {error}") from None
        if content.format != FORMAT:
            raise YarnException(
                f"{self._said}: the store has format {content.format}, this release reads format {FORMAT} "
                f"(start the release that wrote it, or {self._start_over()})"
            )
        return content, znode.version

    def _is_carried_out(self, after: FenceContent) -> bool:
        """True if a transaction has set the fence to `after`; False if it was not carried out until now."""
        try:
            found, version = self._read()
        except StoreUnavailable:
            raise OutcomeUnknown(
                f"{self._said}: a change was sent, and ZooKeeper has not said for {self._wait_s:g} s "
                "whether it is stored"
            ) from None
        if found == after:
            return True
        if version != self._version:
            raise self._fenced(found)
        return False

    def _fenced(self, found: FenceContent) -> StoreFenced:
        by = found.holder or "of another process"
        return StoreFenced(
            f"{self._said}: ResourceManager {by} has taken over (term {found.term}, epoch {found.epoch})"
        )

    def _refused(self, refused: OperationRefused) -> YarnException:
        return YarnException(
            f"{self._said}: {self.root}: {refused.reason} (use the cluster secret, or the hadoop.zk.auth, "
            "with which the store was created, or name another parent path)"
        )

    def _start_over(self) -> str:
        return f"delete {self.root} with zkCli.sh to start without its applications"
