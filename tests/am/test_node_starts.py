"""Concurrent starts on one NM share a call, and each has its own outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from am.client.nm_client import NodeStarts
from am.core import container_starts
from tests.am.builders import container_id
from yarn.containers import ContainerLaunchContext, Token
from yarn.errors import CallOutcomeUnknown, InvalidToken, YarnException
from yarn.ids import ContainerId
from yarn.protocols.container_management import StartContainerRequest, StartContainersResponse

IDS = [container_id(number) for number in range(2, 8)]
FORGED = InvalidToken("the seal is wrong")


class FakeNodeManager:
    """Starts all containers except the `refused` ones. Like a real NM, it starts those before a forged one."""

    def __init__(self) -> None:
        self.calls: list[list[ContainerId]] = []
        self.started: list[ContainerId] = []
        self.refused: dict[ContainerId, YarnException] = {}
        self.forged: ContainerId | None = None
        self.error: YarnException | None = None
        self.open = asyncio.Event()
        self.open.set()
        self.called = asyncio.Event()

    async def send(self, requests: tuple[StartContainerRequest, ...]) -> StartContainersResponse:
        ids = [ContainerId.parse(request.token.identifier.decode()) for request in requests]
        self.calls.append(ids)
        self.called.set()
        await self.open.wait()
        if self.error is not None:
            raise self.error
        succeeded = []
        for started in ids:
            if started == self.forged:
                raise FORGED
            if started not in self.refused:
                assert started not in self.started, "started twice"
                self.started.append(started)
                succeeded.append(started)
        return StartContainersResponse(tuple(succeeded), {i: self.refused[i] for i in ids if i in self.refused}, {})

    async def has(self, wanted: ContainerId) -> bool:
        return wanted in self.started


@asynccontextmanager
async def starts_on(node: FakeNodeManager) -> AsyncIterator[NodeStarts]:
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        yield NodeStarts(node.send, node.has, tasks)


def request(number: int) -> tuple[ContainerId, StartContainerRequest]:
    wanted = IDS[number]
    return wanted, StartContainerRequest(ContainerLaunchContext(), Token(str(wanted).encode(), b"", "", ""))


async def test_starts_of_one_turn_share_a_call_and_later_ones_the_next() -> None:
    node = FakeNodeManager()
    node.open.clear()
    async with starts_on(node) as starts, asyncio.TaskGroup() as tasks:
        for number in (0, 1):
            tasks.create_task(starts.start(*request(number)))
        await node.called.wait()
        for number in (2, 3, 4):
            tasks.create_task(starts.start(*request(number)))
        await asyncio.sleep(0)
        node.open.set()
    assert node.calls == [IDS[:2], IDS[2:5]]


async def test_the_starts_of_one_call_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_starts, "STARTS_PER_CALL_MAX", 2)
    node = FakeNodeManager()
    async with starts_on(node) as starts:
        assert await asyncio.gather(*(starts.start(*request(number)) for number in range(5))) == [None] * 5
    assert node.calls == [IDS[0:2], IDS[2:4], IDS[4:5]]


async def test_each_start_has_its_own_outcome() -> None:
    node = FakeNodeManager()
    node.refused = {IDS[1]: YarnException("already is running on this node!!")}
    async with starts_on(node) as starts:
        outcomes = await asyncio.gather(*(starts.start(*request(number)) for number in range(3)))
    assert [error and error.message for error in outcomes] == [None, "already is running on this node!!", None]


async def test_a_failed_call_fails_all_its_starts() -> None:
    node = FakeNodeManager()
    node.error = CallOutcomeUnknown("lost")
    async with starts_on(node) as starts:
        outcomes = await asyncio.gather(*(starts.start(*request(number)) for number in range(2)))
        assert outcomes == [node.error, node.error]
        assert len(node.calls) == 1


async def test_a_forged_token_does_not_affect_other_starts_and_nothing_is_started_twice() -> None:
    """The whole call is refused, although the containers before the forged one run (ContainerManagerImpl)."""
    node = FakeNodeManager()
    node.forged = IDS[1]
    async with starts_on(node) as starts:
        outcomes = await asyncio.gather(*(starts.start(*request(number)) for number in range(3)))
    assert outcomes == [None, FORGED, None]
    assert node.started == [IDS[0], IDS[2]]


async def test_closing_cancels_waiting_starts_and_skips_cancelled_callers() -> None:
    node = FakeNodeManager()
    node.open.clear()
    async with starts_on(node) as starts:
        gone, waiting = (asyncio.ensure_future(starts.start(*request(number))) for number in range(2))  # noqa: TID251
        await node.called.wait()
        gone.cancel()
        late = asyncio.ensure_future(starts.start(*request(2)))  # noqa: TID251
        await asyncio.sleep(0)
        starts.close()
        for task in (gone, waiting, late):
            with pytest.raises(asyncio.CancelledError):
                await task


async def test_a_start_whose_caller_was_cancelled_is_still_sent() -> None:
    node = FakeNodeManager()
    node.open.clear()
    async with starts_on(node) as starts, asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(starts.start(*request(0)))
        await node.called.wait()
        gone.cancel()
        node.open.set()
        assert await starts.start(*request(1)) is None
    assert node.started == IDS[:2]


async def test_a_start_after_the_last_call_makes_another() -> None:
    node = FakeNodeManager()
    async with starts_on(node) as starts:
        for number in range(2):
            assert await starts.start(*request(number)) is None
    assert node.calls == [IDS[:1], IDS[1:2]]
