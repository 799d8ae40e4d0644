"""The rules of the embedded lease: who may lead, and for how long (pure; `rm/shell/ha/lease_elector.py` has the file).

    term 4, rm1, until 90,000      rm1 renews it every 3 s, to 10 s from then; rm2 only looks
    rm1 is killed                  rm2 sees that its process is gone, and takes term 5 at once
    rm1 hangs                      rm2 takes term 5 at 90,000; when rm1 wakes, its clock is past 90,000: it acknowledges
                                   nothing, and its next write to the store is refused, because the store has term 5
    rm1 hangs in a transaction     nobody can take the lease; after another 10 s in which nothing was written rm2 ends
                                   the process of rm1, and takes term 5

All times are ms of the machine's monotonic clock, which its processes share and which goes on while one is stopped. A
clock that each process had for itself would need a bound on their difference, so the lease is for one machine.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

MARGIN_PARTS = 10
"""The holder stops to acknowledge a tenth of the lease before it ends, so that a reply on its way is not too late."""


class Lease(Struct, frozen=True):
    """The leadership of one ResourceManager in one term. `holder`: its id; "" if it has given the lease up."""

    term: int
    holder: str
    ends_ms: int


def may_take(lease: Lease | None, rm_id: str, now_ms: int, length_ms: int, *, holder_is_gone: bool) -> bool:
    """True if nobody leads any more, so that `rm_id` may take the lease for the next term.

    A holder that is gone (its process has ended) acknowledges nothing, whatever its lease says. A lease that ends later
    than any can is from before a reboot, since when the clock has started again.
    """
    if lease is None or lease.holder in ("", rm_id) or holder_is_gone:
        return True
    return now_ms >= lease.ends_ms or lease.ends_ms > now_ms + length_ms


def taken(term: int, rm_id: str, now_ms: int, length_ms: int) -> Lease:
    """The lease of a new term. `now_ms`: read before the lease is written, so that it ends early rather than late."""
    return Lease(term, rm_id, now_ms + length_ms)


def renewed(stored: Lease | None, own: Lease, now_ms: int, length_ms: int) -> Lease | None:
    """`own` with a new end; None if another has taken the lease.

    A holder may renew also after the end: as long as nobody has taken the next term, nobody else has led.
    """
    if stored is None or (stored.term, stored.holder) != (own.term, own.holder):
        return None
    return replace(own, ends_ms=now_ms + length_ms)


def holds(own: Lease | None, now_ms: int, length_ms: int) -> bool:
    """True while the holder may acknowledge."""
    return own is not None and now_ms < own.ends_ms - length_ms // MARGIN_PARTS


class Blocked(Struct, frozen=True):
    """The store's file is locked by a transaction of another ResourceManager.

    `since_ms`: when that was seen first. `written_ns`: when the file had been written last, by its own time.
    """

    since_ms: int
    written_ns: int


def still_blocked(earlier: Blocked | None, now_ms: int, written_ns: int) -> Blocked:
    """The block that is seen now: the earlier one, or a new one if the file has been written since."""
    if earlier is not None and earlier.written_ns == written_ns:
        return earlier
    return Blocked(now_ms, written_ns)


def hangs(blocked: Blocked, now_ms: int, length_ms: int) -> bool:
    """True if the transaction has lasted for a whole lease: its process must be ended, for nobody else can lead."""
    return now_ms - blocked.since_ms >= length_ms
