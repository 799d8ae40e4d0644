"""NMClient over the wire, against a fake NM."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from am.client.nm_client import NMClient
from tests.am.builders import container, container_id
from tests.am.fake_servers import FakeNodeManager, served
from wire.retry import RetryPolicy
from yarn.containers import Container, ContainerLaunchContext, Token
from yarn.errors import (
    CallOutcomeUnknown,
    InvalidContainerException,
    InvalidToken,
    NMNotYetReadyException,
    ServerUnavailable,
    YarnException,
)
from yarn.ids import NodeId
from yarn.protocols.container_management import SignalContainerRequest
from yarn.resource import Resource
from yarn.states import SignalContainerCommand

SLEEP = ContainerLaunchContext(commands=("sleep 1",))
NM_TOKEN = Token(b"i", b"p", "NMToken", "")
QUICK = RetryPolicy(max_wait_ms=300, interval_ms=1)
PATIENT = RetryPolicy(max_wait_ms=10_000, interval_ms=1)


@asynccontextmanager
async def connected(node: FakeNodeManager, retry: RetryPolicy = QUICK) -> AsyncIterator[tuple[NMClient, NodeId]]:
    async with asyncio.timeout(60), served(node) as node_id, NMClient({node_id: NM_TOKEN}, retry) as nms:
        yield nms, node_id


def container_on(node_id: NodeId, number: int = 2) -> Container:
    token = Token(str(container_id(number)).encode(), b"p", "ContainerToken", str(node_id))
    return replace(container(number), node_id=node_id, token=token)


async def test_a_container_is_started_stopped_and_queried_with_the_nodes_token() -> None:
    node = FakeNodeManager()
    async with connected(node) as (nms, node_id):
        await nms.start(container_on(node_id), SLEEP)
        assert (await nms.status(container_id(2), node_id)).container_id == container_id(2)
        await nms.signal(container_id(2), node_id, SignalContainerCommand.GRACEFUL_SHUTDOWN)
        await nms.stop(container_id(2), node_id)
    assert node.started == node.stopped == [container_id(2)]
    assert node.tokens == [NM_TOKEN]
    assert node.signalled == [SignalContainerRequest(container_id(2), SignalContainerCommand.GRACEFUL_SHUTDOWN)]


async def test_a_start_on_an_nm_that_is_not_ready_yet_is_repeated() -> None:
    node = FakeNodeManager(refusals=[NMNotYetReadyException("recovering")] * 2)
    async with connected(node) as (nms, node_id):
        await nms.start(container_on(node_id), SLEEP)
    assert node.started == [container_id(2)]


async def test_a_refusal_is_raised_at_once() -> None:
    node = FakeNodeManager(refusals=[InvalidContainerException("of an earlier RM")])
    async with connected(node) as (nms, node_id):
        with pytest.raises(InvalidContainerException, match="earlier RM"):
            await nms.start(container_on(node_id), SLEEP)
    assert node.started == []


async def test_a_start_whose_answer_is_lost_is_settled_by_a_status_query() -> None:
    """The NM started the container, but the answer was lost: the container is not started again, and
    there is no error.
    """
    node = FakeNodeManager()
    started = node.start_containers

    async def lose_answer(caller: object, requests: object) -> object:
        await started(caller, requests)  # type: ignore[arg-type]
        raise CallOutcomeUnknown("lost")

    node.start_containers = lose_answer  # type: ignore[method-assign,assignment]
    async with connected(node) as (nms, node_id):
        await nms.start(container_on(node_id), SLEEP)
    assert node.started == [container_id(2)]


async def test_a_start_that_was_lost_before_it_had_an_effect_is_repeated() -> None:
    node = FakeNodeManager()
    started = node.start_containers
    calls: list[object] = []

    async def lose_first(caller: object, requests: object) -> object:
        calls.append(requests)
        if len(calls) == 1:
            raise CallOutcomeUnknown("lost")
        return await started(caller, requests)  # type: ignore[arg-type]

    node.start_containers = lose_first  # type: ignore[method-assign,assignment]
    async with connected(node) as (nms, node_id):
        await nms.start(container_on(node_id), SLEEP)
    assert node.started == [container_id(2)]
    assert len(calls) == 2


async def test_a_container_the_nm_does_not_have_is_an_error() -> None:
    async with connected(FakeNodeManager()) as (nms, node_id):
        with pytest.raises(YarnException, match="is not handled by this NodeManager"):
            await nms.stop(container_id(9), node_id)
        with pytest.raises(YarnException, match="is not handled by this NodeManager"):
            await nms.status(container_id(9), node_id)


async def test_without_tokens_nothing_is_sent() -> None:
    nowhere = NodeId("127.0.0.1", 9)
    async with NMClient({}, QUICK) as nms:
        with pytest.raises(InvalidToken, match="No token available"):
            await nms.start(container_on(nowhere), SLEEP)
        with pytest.raises(InvalidToken, match="no container token"):
            await nms.start(replace(container_on(nowhere), token=None), SLEEP)


async def test_an_nm_that_is_gone_is_an_error_after_the_wait() -> None:
    node = FakeNodeManager()
    async with served(node) as node_id:
        pass
    async with asyncio.timeout(60), NMClient({node_id: NM_TOKEN}, QUICK) as nms:
        with pytest.raises(ServerUnavailable):
            await nms.start(container_on(node_id), SLEEP)


def grown_on(node_id: NodeId, memory_mb: int = 512) -> Container:
    """Container 2 after an update, with a token for its new size."""
    token = Token(str(container_id(2)).encode(), str(memory_mb).encode(), "ContainerToken", str(node_id))
    return replace(container(2), node_id=node_id, resource=Resource(memory_mb, 1), version=1, token=token)


async def test_the_new_size_of_a_container_is_sent_to_its_nm() -> None:
    node = FakeNodeManager(started=[container_id(2)])
    async with connected(node) as (nms, node_id):
        await nms.update(grown_on(node_id))
    assert node.sizes == {container_id(2): Resource(512, 1)}


async def test_a_refused_size_or_one_without_a_token_is_an_error() -> None:
    node = FakeNodeManager(started=[container_id(2)], refusals=[YarnException("has update version [1]")])
    async with connected(node) as (nms, node_id):
        with pytest.raises(YarnException, match="update version"):
            await nms.update(grown_on(node_id))
        with pytest.raises(InvalidToken, match="has no container token"):
            await nms.update(replace(grown_on(node_id), token=None))


@pytest.mark.parametrize("taken", [True, False])
async def test_a_new_size_whose_answer_is_lost_is_settled_by_a_status_query(taken: bool) -> None:
    """The NM would refuse a second update, so it is repeated only if the NM does not have the new size."""
    node = FakeNodeManager(started=[container_id(2)])
    update = node.update_container
    calls = 0

    async def lose_first_answer(caller: object, tokens: object) -> object:
        nonlocal calls
        calls += 1
        if calls > 1 or taken:
            response = await update(caller, tokens)  # type: ignore[arg-type]
        if calls == 1:
            raise CallOutcomeUnknown("lost")
        return response

    node.update_container = lose_first_answer  # type: ignore[method-assign, assignment]
    async with connected(node, PATIENT) as (nms, node_id):
        await nms.update(grown_on(node_id))
    assert node.sizes == {container_id(2): Resource(512, 1)}
    assert calls == (1 if taken else 2)


async def test_concurrent_starts_are_one_call() -> None:
    node = FakeNodeManager()
    calls: list[int] = []
    started = node.start_containers

    async def count(caller: object, requests: tuple[object, ...]) -> object:
        calls.append(len(requests))
        return await started(caller, requests)  # type: ignore[arg-type]

    node.start_containers = count  # type: ignore[method-assign,assignment]
    async with connected(node) as (nms, node_id):
        await asyncio.gather(*(nms.start(container_on(node_id, number), SLEEP) for number in (2, 3, 4)))
    assert node.started == [container_id(2), container_id(3), container_id(4)]
    assert calls == [3]
