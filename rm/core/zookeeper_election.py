"""The part of a ResourceManager in an election by ZooKeeper, a pure state machine (Hadoop's ActiveStandbyElector).

The leader is the session that owns the lock, an ephemeral znode: ZooKeeper deletes it when the session ends or expires.
Every candidate tries to create it, and reads it again and again, with a watch.

**A leader leads until its session may have expired.** ZooKeeper expires a session no earlier than a session timeout
after it received the last message of it, so not before a session timeout after that message was sent. So each answer to
a read of the lock that shows this session as the owner extends the leadership to the time when the read was sent plus a
session timeout: `leads_until_ms`. A leader that is cut off, or whose process is stopped, stops to lead at that time, by
its own clock, before ZooKeeper lets another lead. (Hadoop's starts to count when it notices that the connection is
lost.) Clocks only have to run at the same speed. The state store's fence holds without any clock.

The lock is read after each attempt to create it, whatever the answer was: the first attempt may have succeeded and its
answer been lost.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

READS_PER_TIMEOUT = 3
"""The number of reads of the lock within a session timeout; each read keeps the session alive as well."""


class Connected(Struct, frozen=True):
    """The session exists and calls can be sent, for the first time or again."""

    session_id: int


class Disconnected(Struct, frozen=True):
    """The connection is lost; calls that were not answered are not answered any more."""


class SessionOver(Struct, frozen=True):
    """The session has expired or was closed, and with it its lock."""


class LockTried(Struct, frozen=True):
    """The answer to CreateLock or DeleteLock, whatever it was."""

    call: int


class LockRead(Struct, frozen=True):
    """The answer to ReadLock.

    `owner`: the session that holds the lock, 0 if none does. `term`: the id of the transaction that created the lock.
    """

    call: int
    owner: int = 0
    term: int = 0
    holder: str = ""


class LockCallFailed(Struct, frozen=True):
    """There is no answer to this call, and the connection may still be there."""

    call: int


class LockChanged(Struct, frozen=True):
    """The watch reports that the lock was deleted or changed."""


class JoinElection(Struct, frozen=True):
    """Take part in elections from now on."""


class QuitElection(Struct, frozen=True):
    """Take part no more, and give up the leadership."""


class TimePassed(Struct, frozen=True):
    """The time of `next_deadline_ms` has come."""


ElectionEvent: TypeAlias = (
    Connected
    | Disconnected
    | SessionOver
    | LockTried
    | LockRead
    | LockCallFailed
    | LockChanged
    | JoinElection
    | QuitElection
    | TimePassed
)


class CreateLock(Struct, frozen=True):
    """Create the lock, as an ephemeral znode of this session."""

    call: int


class ReadLock(Struct, frozen=True):
    """Read the lock, with a watch."""

    call: int


class DeleteLock(Struct, frozen=True):
    """Delete the lock, which this session owns."""

    call: int


class Won(Struct, frozen=True):
    """This ResourceManager leads. `term` is larger than that of every earlier leader."""

    term: int


class Lost(Struct, frozen=True):
    """This ResourceManager leads no more."""

    reason: str


ElectionEffect: TypeAlias = CreateLock | ReadLock | DeleteLock | Won | Lost


class ZooKeeperElection:
    """The machine: `handle(event, now_ms)` returns what to do, in order. Times are ms of a monotonic clock.

    One call is under way at a time. `timeout_ms`: the session timeout.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._session_id = 0
        """0 while there is no session or it cannot be reached."""
        self._campaigns = False
        self._call = 0
        self._is_calling = False
        self._sent_ms = 0
        """Time at which the last call was sent."""
        self._was_create = self._has_tried = False
        """True if the last call, or the one before it, was CreateLock."""
        self._read_at_ms = 0
        """Time at which the lock is read again, unless a call is under way."""
        self._is_changed = False
        """True if the lock must be read again as soon as the call under way is answered."""
        self._term = 0
        """The term in which this ResourceManager leads, 0 if it does not."""
        self._leads_until_ms = 0
        self.holder = ""
        """The id of the leader when the lock was last read."""

    def holds(self, now_ms: int) -> bool:
        """True while this ResourceManager surely leads."""
        return self._term != 0 and now_ms < self._leads_until_ms

    def next_deadline_ms(self) -> int | None:
        """The time at which TimePassed is due; None for never."""
        times = [self._leads_until_ms] if self._term else []
        if self._session_id and not self._is_calling:
            times.append(self._read_at_ms)
        return min(times, default=None)

    def handle(self, event: ElectionEvent, now_ms: int) -> list[ElectionEffect]:
        """The effects of an event."""
        effects: list[ElectionEffect] = []
        if self._term and now_ms >= self._leads_until_ms:
            effects += self._lose("ZooKeeper has not answered for a session timeout")
        match event:
            case Connected(session_id):
                self._session_id = session_id
                effects += self._send(ReadLock, now_ms)
            case Disconnected():
                self._disconnect()
            case SessionOver():
                self._disconnect()
                effects += self._lose("the session with ZooKeeper is over")
            case LockTried(call) if self._is_current(call):
                effects += self._send(ReadLock, now_ms)
            case LockRead(call, owner, term, holder) if self._is_current(call):
                effects += self._decide(owner, term, holder, now_ms)
            case LockCallFailed(call) if self._is_current(call):
                effects += self._wait(now_ms)
            case LockChanged():
                effects += self._read_soon(now_ms)
            case JoinElection():
                self._campaigns = True
                effects += self._read_soon(now_ms)
            case QuitElection():
                self._campaigns, self._term = False, 0
                effects += self._read_soon(now_ms)
            case TimePassed() if self._session_id and not self._is_calling and now_ms >= self._read_at_ms:
                effects += self._send(ReadLock, now_ms)
            case _:
                # An answer that comes too late, or nothing is due.
                pass
        return effects

    def _decide(self, owner: int, term: int, holder: str, now_ms: int) -> list[ElectionEffect]:
        """Act on what the lock was when it was read."""
        self.holder = holder if owner else ""
        if owner == 0:
            lost = self._lose("the lock was deleted")
            if not self._campaigns or self._has_tried:
                # If it could not be created just now, something prevents it.
                return [*lost, *self._wait(now_ms)]
            return [*lost, *self._send(CreateLock, now_ms)]
        if owner != self._session_id:
            return [*self._lose(f"{holder or 'another ResourceManager'} leads"), *self._wait(now_ms)]
        if not self._campaigns:
            return self._send(DeleteLock, now_ms)
        return self._lead(term, now_ms)

    def _lead(self, term: int, now_ms: int) -> list[ElectionEffect]:
        """Go on to lead, or begin to, for a session timeout from when the lock was sent for."""
        until_ms = self._sent_ms + self._timeout_ms
        if term == self._term:
            self._leads_until_ms = until_ms
            return self._wait(now_ms)
        effects = self._lose("the lock was created again")
        if now_ms < until_ms:
            self._term, self._leads_until_ms = term, until_ms
            effects.append(Won(term))
        return [*effects, *self._wait(now_ms)]

    def _lose(self, reason: str) -> list[ElectionEffect]:
        led, self._term = self._term, 0
        return [Lost(reason)] if led else []

    def _disconnect(self) -> None:
        self._session_id = 0
        self._is_calling = False

    def _is_current(self, call: int) -> bool:
        """True if this call is under way; then it is no longer."""
        is_current = self._is_calling and call == self._call
        if is_current:
            self._is_calling = False
        return is_current

    def _read_soon(self, now_ms: int) -> list[ElectionEffect]:
        """Read the lock now, or once the call under way is answered, or once there is a connection."""
        if not self._session_id:
            return []
        self._is_changed = self._is_calling
        return [] if self._is_calling else self._send(ReadLock, now_ms)

    def _wait(self, now_ms: int) -> list[ElectionEffect]:
        """Read the lock again after a part of the session timeout, or at once if it has changed meanwhile."""
        self._read_at_ms = now_ms + max(self._timeout_ms // READS_PER_TIMEOUT, 1)
        return self._send(ReadLock, now_ms) if self._is_changed else []

    def _send(self, call: type[CreateLock | ReadLock | DeleteLock], now_ms: int) -> list[ElectionEffect]:
        self._has_tried = self._was_create
        self._was_create = call is CreateLock
        self._call += 1
        self._is_calling, self._is_changed = True, False
        self._sent_ms = now_ms
        return [call(self._call)]
