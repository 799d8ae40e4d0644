"""Replies that grow with the cluster: other calls are served meanwhile, and unread replies do not pile up."""

from __future__ import annotations

import asyncio
import itertools
import random
import typing
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.wire.random_records import random_value, record_types
from tests.wire.serving import serving, target
from wire import bulky_replies
from wire.bulky_replies import PART_RECORDS, BulkyReplies, in_parts
from wire.caller import Caller
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.inspection import InspectionProtocol
from wire.rpc import Rpc
from yarn.applications import ApplicationFilter, ApplicationReport
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.nodes import ClusterMetrics
from yarn.states import YarnApplicationState

HANGS_S = 60
LONGEST = 50_000
"""Records of a list that other calls cannot end."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, HEADERS, DATA = 4, 1, 0
END_STREAM, END_HEADERS = 1, 4


def _report(number: int) -> ApplicationReport:
    app_id = ApplicationId(1, number)
    attempt_id = ApplicationAttemptId(app_id, 1)
    return ApplicationReport(app_id, "ann", "root.default", "x" * 1000, YarnApplicationState.RUNNING, attempt_id)


FEW = tuple(map(_report, range(1, 4)))
MANY = tuple(map(_report, range(1, 2000)))
"""Two megabytes: much more than a connection takes that does not read."""


class Handler:
    """Lists `applications`; records the peer of each list, and sets `asked` at a call for the metrics."""

    def __init__(self, applications: Iterable[ApplicationReport] = FEW) -> None:
        self.applications = applications
        self.listed: list[str] = []
        self.asked = asyncio.Event()

    async def get_applications(self, caller: Caller[None], request: ApplicationFilter) -> tuple[ApplicationReport, ...]:
        self.listed.append(caller.peer)
        return await in_parts(self.applications)

    async def get_cluster_metrics(self, caller: Caller[None], request: None) -> ClusterMetrics:
        self.asked.set()
        return ClusterMetrics(1)


RPCS = tuple(rpc for rpc in ApplicationClientProtocol.rpcs if rpc.name in ("getApplications", "getClusterMetrics"))


async def test_other_calls_are_served_while_a_long_reply_is_built() -> None:
    """The list goes on until the other call has come through."""
    handler = Handler()
    numbers = itertools.takewhile(lambda _: not handler.asked.is_set(), range(1, LONGEST))
    handler.applications = map(_report, numbers)
    async with (
        asyncio.timeout(HANGS_S),
        serving(RPCS, handler) as served,
        ApplicationClientProtocol(target(served)) as proxy,
        asyncio.TaskGroup() as tasks,
    ):
        listing = tasks.create_task(proxy.get_applications(ApplicationFilter()))
        while not handler.listed:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert (await proxy.get_cluster_metrics()).total == 1
    assert len(listing.result()) < LONGEST - 1


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _header(name: str, value: str) -> bytes:
    """A literal of HPACK, for texts below 127 bytes."""
    return b"\0" + b"".join(bytes([len(text)]) + text.encode() for text in (name, value))


def _call(stream: int, path: str) -> bytes:
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x", "te": "trailers"}
    block = b"".join(_header(*field) for field in {**fields, "content-type": "application/grpc"}.items())
    return _frame(HEADERS, END_HEADERS, stream, block) + _frame(DATA, END_STREAM, stream, bytes(5))


@asynccontextmanager
async def _never_reading(port: int, calls: int) -> AsyncIterator[None]:
    """A connection that has asked so many times for the applications, and has not made room for what comes."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    asked = b"".join(_call(2 * number + 1, ApplicationClientProtocol.get_applications.path) for number in range(calls))
    writer.write(PREFACE + _frame(SETTINGS, 0, 0) + asked)
    try:
        yield
    finally:
        writer.transport.abort()


async def test_a_connection_has_one_unread_reply_and_the_others_get_theirs(caplog: pytest.LogCaptureFixture) -> None:
    handler = Handler(MANY)
    async with (
        asyncio.timeout(HANGS_S),
        serving(RPCS, handler) as served,
        _never_reading(served.port, 5),
        _never_reading(served.port, 5),
        ApplicationClientProtocol(target(served)) as proxy,
    ):
        while len(set(handler.listed)) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        for _ in range(3):
            assert len(await proxy.get_applications(ApplicationFilter())) == len(MANY)
        assert sorted(handler.listed.count(peer) for peer in set(handler.listed)) == [1, 1, 3]
    assert not [record for record in caplog.records if record.exc_info]


async def test_connections_take_turns() -> None:
    """A connection that asks for many lists delays another by one list, not by all of them."""
    bulky, built = BulkyReplies(), list[str]()

    async def call(peer: str) -> None:
        async def make() -> tuple[ApplicationReport, ...]:
            built.append(peer)
            return FEW

        async with bulky.one_of(peer):
            await bulky.build(ApplicationClientProtocol.get_applications, make)

    async with asyncio.TaskGroup() as tasks:
        for peer in ("greedy", "greedy", "greedy", "greedy", "modest"):
            tasks.create_task(call(peer))
    assert built.index("modest") == 1
    assert not bulky._connections, "nothing is kept of connections without calls"


async def test_after_a_reply_built_at_one_go_others_have_the_loop_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, slept_s = 0.0, list[float]()
    monkeypatch.setattr(bulky_replies.time, "monotonic", lambda: now_s)

    async def sleep(delay_s: float) -> None:
        slept_s.append(delay_s)

    monkeypatch.setattr(bulky_replies.asyncio, "sleep", sleep)

    async def make() -> Any:
        nonlocal now_s
        now_s += 3.0
        return random_value(random.Random(1), record_types(InspectionProtocol.explain)[1])

    bulky = BulkyReplies()
    for _ in range(2):
        await bulky.build(InspectionProtocol.explain, make)
    assert slept_s == [0.0, 3.0]


BULKY_LISTS = [
    (rpc, hint)
    for rpc in ApplicationClientProtocol.rpcs
    if rpc.bulky and typing.get_origin(hint := record_types(rpc)[1]) is tuple
]


@pytest.mark.parametrize(("rpc", "hint"), BULKY_LISTS, ids=lambda value: getattr(value, "name", ""))
async def test_a_list_encoded_in_parts_is_the_list(rpc: Rpc[Any, Any], hint: Any) -> None:
    rng = random.Random(5)
    records: list[Any] = []
    while len(records) <= 2 * PART_RECORDS:
        records += random_value(rng, hint)
    for length in (0, 1, PART_RECORDS, PART_RECORDS + 1, len(records)):
        wanted = tuple(records[:length])

        async def make(wanted: tuple[Any, ...] = wanted) -> Any:
            return wanted

        assert await BulkyReplies().build(rpc, make) == (wanted, rpc.reply.encode(wanted))


def test_replies_that_grow_with_the_cluster_are_bulky() -> None:
    assert {rpc.name for rpc in (*ApplicationClientProtocol.rpcs, *InspectionProtocol.rpcs) if rpc.bulky} == {
        "getApplications",
        "getApplicationAttempts",
        "getContainers",
        "getClusterNodes",
        "getQueueInfo",
        "getQueueUserAcls",
        "getNodeToLabels",
        "getLabelsToNodes",
        "explain",
        "getNodeGroups",
    }
