"""The lease in the state store's SQLite file: each change of it is one transaction.

The term is the epoch of the file. Taking the lease raises it, so the file refuses the writes of every earlier leader
from then on (SQLiteStateStore.take_over).
"""

from __future__ import annotations

import json

from msgspec import Struct

from rm.core import lease as rules
from rm.core.lease import Lease
from rm.shell.sqlite_store import EPOCH, stored_epoch
from wire.files.store_file import StoreFile, Transaction

LEASE = ("lease",)
"""The key of the lease's row in the table `cluster`."""


class LeaseStore(Struct, frozen=True):
    """The lease in an open file. Its methods block, and may be called from any thread."""

    file: StoreFile

    def read(self) -> Lease | None:
        """The lease as it is stored; None if there never was one. Raises StoreDamaged."""
        found = self.file.rows("cluster", LEASE)
        with self.file.reading():
            return Lease(**json.loads(found[0][1])) if found else None

    def take(self, rm_id: str, now_ms: int, length_ms: int, *, gone_holder: str) -> Lease | None:
        """Take the lease for the next term; None if another leads.

        `gone_holder`: the id of the holder whose process has ended, "" if it lives.
        """
        with self.file.writing() as group:
            stored = self.read()
            is_gone = stored is not None and stored.holder == gone_holder
            if not rules.may_take(stored, rm_id, now_ms, length_ms, holder_is_gone=is_gone):
                return None
            term = stored_epoch(self.file) + 1
            group.put("cluster", EPOCH, (str(term),))
            own = rules.taken(term, rm_id, now_ms, length_ms)
            _put(own, group)
            return own

    def renew(self, own: Lease, now_ms: int, length_ms: int) -> Lease | None:
        """Prolong the lease; None if another has taken it."""
        with self.file.writing() as group:
            renewed = rules.renewed(self.read(), own, now_ms, length_ms)
            if renewed is not None:
                _put(renewed, group)
            return renewed

    def give_up(self, own: Lease) -> None:
        """Leave the lease to the others, unless one of them has it already."""
        with self.file.writing() as group:
            stored = self.read()
            if stored is not None and (stored.term, stored.holder) == (own.term, own.holder):
                _put(Lease(own.term, "", 0), group)


def _put(lease: Lease, group: Transaction) -> None:
    text = json.dumps({"term": lease.term, "holder": lease.holder, "ends_ms": lease.ends_ms}, separators=(",", ":"))
    group.put("cluster", LEASE, (text,))
