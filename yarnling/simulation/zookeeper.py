"""A model of ZooKeeper: sessions that expire, ephemeral znodes, watches, and transactions, in virtual time.

    model = ZooKeeperModel(tick_ms=100)
    session = model.open(timeout_ms=1000, now_ms=0)
    model.commit(session, [CreateZnode("/a", b"1")], now_ms=5)
    model.advance(1_200)                                  sessions that were silent for their timeout expire
    model.events(session)                                 what its watches have reported since the last call

It is one server, or an ensemble that answers as one. As in SessionTrackerImpl, sessions expire at whole ticks, so up to
a tick later than their timeout. A call by a session that is over raises SessionEnded. What ZooKeeper refuses is an
OperationRefused with ZooKeeper's name of the error. Access control lists, sequential znodes and watches on children are
not modelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from rm.shell.znodes import (
    ANY_VERSION,
    CreateZnode,
    DeleteZnode,
    Operation,
    OperationRefused,
    SetZnode,
    WrongVersion,
    Znode,
)

TICKS_MIN, TICKS_MAX = 2, 20
"""The bounds of a session timeout, in ticks (minSessionTimeout, maxSessionTimeout)."""


class SessionEnded(Exception):
    """The session has expired or was closed."""


class WatchReport(Struct, frozen=True):
    """The report of a watch, which it makes once. `change`: created, changed or deleted."""

    path: str
    change: str


class ZnodeState(Struct, frozen=True):
    """A znode. `owner`: the session of an ephemeral one, 0 otherwise. `created`: the transaction that created it."""

    data: bytes
    version: int
    owner: int
    created: int


@dataclass(slots=True)
class ModelSession:
    """A session. `ends_ms`: when it expires unless it is heard of. `reports`: of its watches, not yet fetched."""

    timeout_ms: int
    ends_ms: int
    watches: set[str] = field(default_factory=set)
    reports: list[WatchReport] = field(default_factory=list)


class ZooKeeperModel:
    """The model. Times are ms and never fall; each call first expires the sessions that are due."""

    def __init__(self, tick_ms: int = 2000) -> None:
        self._tick_ms = tick_ms
        self._znodes: dict[str, ZnodeState] = {"/": ZnodeState(b"", 0, 0, 0)}
        self._sessions: dict[int, ModelSession] = {}
        self._next_session = 1
        self._transaction = 0

    def open(self, timeout_ms: int, now_ms: int) -> int:
        """A new session's id. Its timeout is brought into the server's bounds."""
        self.advance(now_ms)
        granted_ms = min(max(timeout_ms, TICKS_MIN * self._tick_ms), TICKS_MAX * self._tick_ms)
        session_id, self._next_session = self._next_session, self._next_session + 1
        self._transaction += 1
        self._sessions[session_id] = ModelSession(granted_ms, self._ends_ms(granted_ms, now_ms))
        return session_id

    def hear(self, session_id: int, now_ms: int) -> None:
        """Note a message of the session, such as a ping or a new connection. Raises SessionEnded."""
        self.advance(now_ms)
        session = self._sessions.get(session_id)
        if session is None:
            raise SessionEnded(str(session_id))
        session.ends_ms = self._ends_ms(session.timeout_ms, now_ms)

    def close(self, session_id: int, now_ms: int) -> None:
        """End the session and delete its ephemeral znodes; a session that is over is left alone."""
        self.advance(now_ms)
        if session_id in self._sessions:
            self._end(session_id)

    def advance(self, now_ms: int) -> None:
        """Expire the sessions that are due."""
        for session_id in [known for known, session in self._sessions.items() if session.ends_ms <= now_ms]:
            self._end(session_id)

    def lives(self, session_id: int) -> bool:
        """True while the session is not over."""
        return session_id in self._sessions

    def events(self, session_id: int) -> list[WatchReport]:
        """The reports of the session's watches since the last call."""
        session = self._sessions.get(session_id)
        if session is None:
            return []
        reports, session.reports = session.reports, []
        return reports

    def read(self, session_id: int, path: str, now_ms: int, *, watch: bool = False) -> ZnodeState | None:
        """The znode; None if there is none, and then no watch is left."""
        self.hear(session_id, now_ms)
        found = self._znodes.get(path)
        if watch and found is not None:
            self._sessions[session_id].watches.add(path)
        return found

    def children(self, session_id: int, path: str, now_ms: int) -> list[str]:
        """The names of the znodes below `path`, sorted."""
        self.hear(session_id, now_ms)
        if path not in self._znodes:
            raise OperationRefused(0, "NoNode")
        return sorted(other.rpartition("/")[2] for other in self._znodes if other != "/" and _parent(other) == path)

    def create(self, session_id: int, path: str, data: bytes, now_ms: int, *, ephemeral: bool = False) -> None:
        """Create a znode; an ephemeral one lasts as long as the session."""
        self.hear(session_id, now_ms)
        self._transaction += 1
        report = self._apply(0, CreateZnode(path, data))
        if ephemeral:
            self._znodes[path] = replace(self._znodes[path], owner=session_id)
        self._report([report])

    def commit(self, session_id: int, operations: Sequence[Operation], now_ms: int) -> None:
        """Carry out all operations, or none."""
        self.hear(session_id, now_ms)
        self._transaction += 1
        before = dict(self._znodes)
        try:
            reports = [self._apply(place, operation) for place, operation in enumerate(operations)]
        except OperationRefused:
            self._znodes = before
            raise
        self._report(reports)

    def _ends_ms(self, timeout_ms: int, now_ms: int) -> int:
        """The end of a session that was just heard of, rounded up to the next tick (ExpiryQueue)."""
        return ((now_ms + timeout_ms) // self._tick_ms + 1) * self._tick_ms

    def _end(self, session_id: int) -> None:
        del self._sessions[session_id]
        self._transaction += 1
        owned = [path for path, znode in self._znodes.items() if znode.owner == session_id]
        for path in owned:
            del self._znodes[path]
        self._report([WatchReport(path, "deleted") for path in owned])

    def _apply(self, place: int, operation: Operation) -> WatchReport:
        path = operation.path
        found = self._znodes.get(path)
        match operation:
            case CreateZnode(_, data):
                self._check_new(place, path)
                self._znodes[path] = ZnodeState(data, 0, 0, self._transaction)
                return WatchReport(path, "created")
            case SetZnode(_, data, version):
                self._znodes[path] = _set(_expected(place, found, version), data)
                return WatchReport(path, "changed")
            case DeleteZnode():
                _expected(place, found, ANY_VERSION)
                if any(_parent(other) == path for other in self._znodes if other != "/"):
                    raise OperationRefused(place, "NotEmpty")
                del self._znodes[path]
                return WatchReport(path, "deleted")

    def _check_new(self, place: int, path: str) -> None:
        parent = self._znodes.get(_parent(path))
        if parent is None:
            raise OperationRefused(place, "NoNode")
        if path in self._znodes:
            raise OperationRefused(place, "NodeExists")
        if parent.owner:
            raise OperationRefused(place, "NoChildrenForEphemerals")

    def _report(self, reports: Sequence[WatchReport]) -> None:
        """Fire the watches on these znodes, each once."""
        for report in reports:
            for session in self._sessions.values():
                if report.path in session.watches:
                    session.watches.discard(report.path)
                    session.reports.append(report)


class ModelZnodes:
    """A session's calls to the model, as the state store makes them (Znodes). `now_ms` is set by who owns it."""

    def __init__(self, model: ZooKeeperModel, timeout_ms: int = 10_000) -> None:
        self.model = model
        self.now_ms = 0
        self._timeout_ms = timeout_ms
        self._session_id = model.open(timeout_ms, 0)

    def wait_connected(self, timeout_s: float) -> bool:
        """True: calls can be sent."""
        return True

    def read(self, path: str) -> Znode | None:
        """The znode; None if there is none."""
        found = self.model.read(self._session(), path, self.now_ms)
        return None if found is None else Znode(found.data, found.version)

    def read_all(self, paths: Sequence[str]) -> list[Znode | None]:
        """The znodes, in the order of their paths."""
        return [self.read(path) for path in paths]

    def children(self, path: str) -> list[str]:
        """The names of the znodes below `path`."""
        return self.model.children(self._session(), path, self.now_ms)

    def ensure(self, path: str, *, shared: bool = False) -> None:
        """Create the znode and those above it, without data, if they do not exist. `shared`: open to all identities."""
        parts = path.strip("/").split("/")
        for length in range(1, len(parts) + 1):
            part = "/" + "/".join(parts[:length])
            if self.model.read(self._session(), part, self.now_ms) is None:
                self.model.create(self._session(), part, b"", self.now_ms)

    def commit(self, operations: Sequence[Operation]) -> None:
        """Carry out all operations at once, or none."""
        self.model.commit(self._session(), operations, self.now_ms)

    def close(self) -> None:
        """End the session; closing twice is a no-op."""
        self.model.close(self._session_id, self.now_ms)

    def _session(self) -> int:
        """The session, or a new one in its place if it has expired, as kazoo does."""
        self.model.advance(self.now_ms)
        if not self.model.lives(self._session_id):
            self._session_id = self.model.open(self._timeout_ms, self.now_ms)
        return self._session_id


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _expected(place: int, found: ZnodeState | None, version: int) -> ZnodeState:
    """The znode, if it has this version."""
    if found is None:
        raise OperationRefused(place, "NoNode")
    if version not in (ANY_VERSION, found.version):
        raise WrongVersion(place, "BadVersion")
    return found


def _set(found: ZnodeState, data: bytes) -> ZnodeState:
    return ZnodeState(data, found.version + 1, found.owner, found.created)
