"""Lists of calls by several sessions, carried out by the model and by a real ZooKeeper, whose answers must be equal."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import Callback, WatchedEvent
from msgspec import Struct

from rm.shell.kazoo_znodes import KazooZnodes
from rm.shell.znodes import ANY_VERSION, CreateZnode, DeleteZnode, Operation, OperationRefused, SetZnode
from tests.zookeeper.proxy import CuttingProxy
from yarnling.simulation.zookeeper import ZooKeeperModel

NAMES = ("one", "two", "three")
PATHS = ("/test/a", "/test/a/b", "/test/a/c", "/test/d", "/test/d/e")
TIMEOUT_MS = 2000
TICK_MS = 100
EXPIRES_AT = 79
"""The call before which a session expires, which takes its timeout; others are closed."""

Answer = tuple[Any, ...]


class Call(Struct, frozen=True):
    """A call of a session. `what`: create, create_ephemeral, read, watch, children, commit, close, expire or open."""

    session: str
    what: str
    path: str = ""
    operations: tuple[Operation, ...] = ()


class Calls(Protocol):
    """A server that carries out a list of calls."""

    def answer(self, call: Call) -> Answer: ...
    def reports(self, session: str) -> list[tuple[str, str]]: ...


def random_calls(seed: int, count: int) -> list[Call]:
    """A list of calls, in which each session is used only while it is open."""
    draw = Random(seed)
    calls = [Call(name, "open") for name in NAMES]
    kinds = ("create", "create_ephemeral", "read", "watch", "watch", "children", "commit", "commit", "commit")
    for number in range(count):
        name, path = draw.choice(NAMES), draw.choice(PATHS)
        if number % 40 == 39:
            calls += [Call(name, "expire" if number == EXPIRES_AT else "close"), Call(name, "open")]
        kind = draw.choice(kinds)
        operations = tuple(_operation(draw) for _ in range(draw.randint(1, 3))) if kind == "commit" else ()
        calls.append(Call(name, kind, path, operations))
    return calls


def transcript(calls: Sequence[Call], target: Calls) -> list[str]:
    """A line for each call, with its answer and what the watches have reported to each session."""
    lines = []
    created: set[int] = set()
    answers = []
    for call in calls:
        answer = target.answer(call)
        # kazoo reports once for each read with a watch, and the znodes of a session end in any order.
        reports = {name: sorted(set(target.reports(name))) for name in NAMES}
        answers.append((call, answer, {name: found for name, found in reports.items() if found}))
        created |= {answer[4]} if answer[0] == "znode" else set()
    ranks = {transaction: rank for rank, transaction in enumerate(sorted(created))}
    for number, (call, answer, reports) in enumerate(answers):
        shown = (*answer[:4], ranks[answer[4]]) if answer[0] == "znode" else answer
        lines.append(f"{number} {call.session} {call.what} {call.path} {call.operations} -> {shown} {reports}")
    return lines


class ModelCalls:
    """The calls to the model; a millisecond passes with each."""

    def __init__(self) -> None:
        self._model = ZooKeeperModel(TICK_MS)
        self._now_ms = 0
        self._sessions: dict[str, int] = {}
        first = self._model.open(TIMEOUT_MS, 0)
        self._model.create(first, "/test", b"", 0)

    def answer(self, call: Call) -> Answer:
        self._now_ms += 1
        for session in self._sessions.values():
            self._model.hear(session, self._now_ms)
        try:
            return self._carry_out(call)
        except OperationRefused as refused:
            return ("refused", refused.place, refused.reason)

    def reports(self, session: str) -> list[tuple[str, str]]:
        found = self._model.events(self._sessions.get(session, 0))
        return [(report.path, report.change) for report in found]

    def _carry_out(self, call: Call) -> Answer:
        model, now_ms, name = self._model, self._now_ms, call.session
        if call.what == "open":
            self._sessions[name] = model.open(TIMEOUT_MS, now_ms)
            return ("opened",)
        session = self._sessions[name]
        match call.what:
            case "close":
                model.close(session, now_ms)
                del self._sessions[name]
            case "expire":
                del self._sessions[name]
                while model.lives(session):
                    self._now_ms += TICK_MS
                    for other in self._sessions.values():
                        model.hear(other, self._now_ms)
            case "create" | "create_ephemeral":
                model.create(session, call.path, b"new", now_ms, ephemeral=call.what == "create_ephemeral")
            case "read" | "watch":
                found = model.read(session, call.path, now_ms, watch=call.what == "watch")
                if found is None:
                    return ("none",)
                owners = {session: name for name, session in self._sessions.items()}
                return ("znode", found.data, found.version, owners.get(found.owner, ""), found.created)
            case "children":
                return ("children", model.children(session, call.path, now_ms))
            case _:
                model.commit(session, call.operations, now_ms)
        return ("done",)


class RealCalls:
    """The calls to a real ZooKeeper, each session through a proxy of its own. Call `close` at the end."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._proxies: dict[str, CuttingProxy] = {}
        self._clients: dict[str, KazooClient] = {}
        self._znodes: dict[str, KazooZnodes] = {}
        self._reports: dict[str, list[tuple[str, str]]] = {}
        self._first = self._client(f"127.0.0.1:{port}")
        self._first.ensure_path("/test")

    def close(self) -> None:
        for client in (self._first, *self._clients.values()):
            client.stop()
            client.close()
        for proxy in self._proxies.values():
            proxy.close()

    def answer(self, call: Call) -> Answer:
        try:
            return self._carry_out(call)
        except OperationRefused as refused:
            return ("refused", refused.place, refused.reason)

    def reports(self, session: str) -> list[tuple[str, str]]:
        client = self._clients.get(session)
        if client is None:
            return []
        # ZooKeeper sends reports before the answer to a later call, and kazoo calls watches in order.
        client.exists("/")
        is_drained = threading.Event()
        client.handler.dispatch_callback(Callback("watch", is_drained.set, ()))
        assert is_drained.wait(60)
        found, self._reports[session] = self._reports[session], []
        return found

    def _carry_out(self, call: Call) -> Answer:
        name = call.session
        if call.what == "open":
            self._proxies[name] = CuttingProxy(self._port)
            self._reports[name] = []
            self._clients[name] = self._client(self._proxies[name].address)
            self._znodes[name] = KazooZnodes(self._clients[name])
            return ("opened",)
        client = self._clients[name]
        match call.what:
            case "close":
                del self._clients[name]
                client.stop()
                client.close()
                self._proxies.pop(name).close()
            case "expire":
                self._expire(name)
            case "read" | "watch":
                return self._read(name, call.path, is_watched=call.what == "watch")
            case "children":
                return ("children", sorted(self._znodes[name].children(call.path)))
            case "create" | "create_ephemeral":
                is_ephemeral = call.what == "create_ephemeral"
                self._znodes[name]._answered(lambda: client.create(call.path, b"new", ephemeral=is_ephemeral))
            case _:
                self._znodes[name].commit(call.operations)
        return ("done",)

    def _read(self, name: str, path: str, *, is_watched: bool) -> Answer:
        def report(event: WatchedEvent) -> None:
            self._reports[name].append((event.path, event.type.lower()))

        try:
            data, stat = self._clients[name].get(path, watch=report if is_watched else None)
        except NoNodeError:
            return ("none",)
        owners = {client.client_id[0]: name for name, client in self._clients.items()}
        return ("znode", data, stat.version, owners.get(stat.ephemeralOwner, ""), stat.czxid)

    def _expire(self, name: str) -> None:
        """Cut the session off until ZooKeeper has expired it, which its own ephemeral znode shows."""
        client = self._clients.pop(name)
        mark = f"/alive-{name}"
        client.create(mark, ephemeral=True)
        self._proxies.pop(name).close()
        while self._first.exists(mark) is not None:
            time.sleep(0.02)
        client.stop()
        client.close()

    def _client(self, address: str) -> KazooClient:
        client = KazooClient(hosts=address, timeout=TIMEOUT_MS / 1000)
        client.start(60)
        return client


def _operation(draw: Random) -> Operation:
    path, data = draw.choice(PATHS), b"%d" % draw.randint(0, 99)
    match draw.randint(0, 3):
        case 0:
            return CreateZnode(path, data)
        case 1:
            return DeleteZnode(path)
        case _:
            return SetZnode(path, data, draw.choice((ANY_VERSION, 0, 1)))
