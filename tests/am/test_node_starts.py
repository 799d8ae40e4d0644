"""Starts on one NM go together where they come together, and each has its own outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from am.client import node_starts
from am.client.node_starts import NodeStarts
from tests.am.builders import container_id
from yarn.containers import ContainerLaunchContext, Token
from yarn.errors import CallOutcomeUnknown, InvalidToken, YarnException
from yarn.ids import ContainerId
from yarn.protocols.container_management import StartContainerRequest, StartContainersResponse

IDS = [container_id(number) for number in range(2, 8)]
FORGED = InvalidToken("the seal is wrong")


class PlayedNode:
    """Starts what it is told to but for the `refused`; as an NM does, it starts those before a forged one."""

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
async def starts_on(node: PlayedNode) -> AsyncIterator[NodeStarts]:
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        yield NodeStarts(node.send, node.has, tasks)


def request(number: int) -> tuple[ContainerId, StartContainerRequest]:
    wanted = IDS[number]
    return wanted, StartContainerRequest(ContainerLaunchContext(), Token(str(wanted).encode(), b"", "", ""))


async def test_starts_of_one_turn_make_one_call_and_those_that_come_meanwhile_the_next() -> None:
    node = PlayedNode()
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


async def test_a_call_has_no_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_starts, "TOGETHER_MAX", 2)
    node = PlayedNode()
    async with starts_on(node) as starts:
        assert await asyncio.gather(*(starts.start(*request(number)) for number in range(5))) == [None] * 5
    assert node.calls == [IDS[0:2], IDS[2:4], IDS[4:5]]


async def test_each_start_has_its_own_outcome() -> None:
    node = PlayedNode()
    node.refused = {IDS[1]: YarnException("already is running on this node!!")}
    async with starts_on(node) as starts:
        outcomes = await asyncio.gather(*(starts.start(*request(number)) for number in range(3)))
    assert [error and error.message for error in outcomes] == [None, "already is running on this node!!", None]


async def test_a_call_that_fails_fails_for_all_in_it() -> None:
    node = PlayedNode()
    node.error = CallOutcomeUnknown("lost")
    async with starts_on(node) as starts:
        outcomes = await asyncio.gather(*(starts.start(*request(number)) for number in range(2)))
        assert outcomes == [node.error, node.error]
        assert len(node.calls) == 1


async def test_a_forged_token_spoils_nothing_for_the_others_and_nothing_is_started_twice() -> None:
    """The whole call is refused, though those before the forged one run (ContainerManagerImpl)."""
    node = PlayedNode()
    node.forged = IDS[1]
    async with starts_on(node) as starts:
        outcomes = await asyncio.gather(*(starts.start(*request(number)) for number in range(3)))
    assert outcomes == [None, FORGED, None]
    assert node.started == [IDS[0], IDS[2]]


async def test_who_waits_is_cancelled_when_it_is_closed_and_who_has_gone_is_passed_over() -> None:
    node = PlayedNode()
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


async def test_a_start_whose_caller_has_gone_is_sent_all_the_same() -> None:
    node = PlayedNode()
    node.open.clear()
    async with starts_on(node) as starts, asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(starts.start(*request(0)))
        await node.called.wait()
        gone.cancel()
        node.open.set()
        assert await starts.start(*request(1)) is None
    assert node.started == IDS[:2]


async def test_a_start_after_the_last_call_makes_another() -> None:
    node = PlayedNode()
    async with starts_on(node) as starts:
        for number in range(2):
            assert await starts.start(*request(number)) is None
    assert node.calls == [IDS[:1], IDS[1:2]]
