"""The experience of callers: deadlines, size limits, servers that stop, start or cannot be reached."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
import pytest

from tests.wire.serving import LOOPBACK, NODE, Recorder, anybody, serving, socket_dir, target
from wire.address import Address
from wire.caller import Caller
from wire.channel import MESSAGE_BYTES_MAX, Channels
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.tracker import ResourceTracker
from wire.retry import RetryPolicy
from wire.server import RpcServer
from yarn.applications import ApplicationFilter
from yarn.errors import (
    CallOutcomeUnknown,
    InvalidArgumentException,
    ServerUnavailable,
)
from yarn.protocols.master import AllocateRequest, AllocateResponse
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse
from yarn.resource import Resource
from yarn.states import NodeAction

# Time and size


class Sleeper:
    """Never answers; counts calls and cancellations."""

    def __init__(self) -> None:
        self.asked = 0
        self.cancelled = asyncio.Event()
        self.entered = asyncio.Event()

    async def node_heartbeat(self, caller: Caller[Any], request: NodeHeartbeatRequest) -> NodeHeartbeatResponse:
        self.asked += 1
        self.entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        raise AssertionError("never")

    register_node_manager = unregister_node_manager = node_heartbeat


async def test_a_call_has_a_deadline_and_its_outcome_is_then_unknown() -> None:
    sleeper = Sleeper()
    async with (
        serving(ResourceTracker.rpcs, sleeper) as server,
        ResourceTracker(target(server), timeout_s=0.5, retry=RetryPolicy(5000, 10)) as proxy,
    ):
        with pytest.raises(CallOutcomeUnknown, match=r"nodeHeartbeat at .*: no reply in time") as caught:
            await proxy.node_heartbeat(NodeHeartbeatRequest(NODE, 0))
        await _soon(sleeper.cancelled)
    assert not caught.value.definite
    assert sleeper.asked == 1, "a call that may have had its effect is not sent again"


async def test_a_call_that_only_reads_is_sent_again() -> None:
    class Slow(Recorder):
        async def get_applications(self, caller: Caller[Any], request: object) -> tuple[()]:
            self.calls.append(("get_applications", caller, request))
            if len(self.calls) == 1:
                await asyncio.Event().wait()
            return ()

    handler = Slow({})
    async with (
        serving(ApplicationClientProtocol.rpcs, handler) as server,
        ApplicationClientProtocol(target(server), timeout_s=0.5, retry=RetryPolicy(5000, 10)) as proxy,
    ):
        assert await proxy.get_applications(ApplicationFilter()) == ()
    assert len(handler.calls) == 2


async def test_cancelling_a_call_cancels_it_at_the_server() -> None:
    sleeper = Sleeper()
    async with (
        serving(ResourceTracker.rpcs, sleeper) as server,
        ResourceTracker(target(server)) as proxy,
    ):
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(proxy.node_heartbeat(NodeHeartbeatRequest(NODE, 0)))
            await _soon(sleeper.entered)
            task.cancel()
        assert task.cancelled()
        await _soon(sleeper.cancelled)


async def test_a_server_that_stops_ends_the_calls_that_run() -> None:
    sleeper = Sleeper()
    async with (
        serving(ResourceTracker.rpcs, sleeper) as server,
        ResourceTracker(target(server)) as proxy,
    ):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_expect_unknown_outcome(proxy))
            await _soon(sleeper.entered)
            await server.stop(0)
        # The first call may still be sent on a connection whose end has not been noticed: then nobody knows.
        async with asyncio.timeout(60):
            while not await _is_refused_definitely(proxy):
                continue


async def _expect_unknown_outcome(proxy: ResourceTracker) -> None:
    with pytest.raises(CallOutcomeUnknown):
        await proxy.node_heartbeat(NodeHeartbeatRequest(NODE, 0))


async def _is_refused_definitely(proxy: ResourceTracker) -> bool:
    with pytest.raises(ServerUnavailable) as caught:
        await proxy.node_heartbeat(NodeHeartbeatRequest(NODE, 0))
    return caught.value.definite


async def _soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(60):
        await event.wait()


@pytest.mark.slow
async def test_messages_are_bounded_on_both_sides() -> None:
    huge = AllocateRequest(0, blacklist_additions=("x" * 1_000_000,) * 70)
    async with (
        serving(ApplicationMasterProtocol.rpcs, Recorder({})) as server,
        ApplicationMasterProtocol(target(server)) as proxy,
    ):
        with pytest.raises(InvalidArgumentException, match=f"at most {MESSAGE_BYTES_MAX} can be sent"):
            await proxy.allocate(huge)
        async with grpc.aio.insecure_channel(target(server), options=[("grpc.max_send_message_length", -1)]) as channel:
            call: Any = channel.unary_unary(ApplicationMasterProtocol.allocate.path)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(b"x" * (MESSAGE_BYTES_MAX + 1))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_more_than_four_megabytes_arrive() -> None:
    """gRPC's own bound of 4 MiB is raised on both sides."""
    reply = AllocateResponse(1, Resource(0, 0), 0)
    recorder = Recorder({"allocate": reply})
    request = AllocateRequest(0, blacklist_additions=tuple(f"{n:0100000}" for n in range(60)))
    async with (
        serving(ApplicationMasterProtocol.rpcs, recorder) as server,
        ApplicationMasterProtocol(target(server)) as proxy,
    ):
        await proxy.allocate(request)
    assert recorder.calls[0][2] == request


@pytest.mark.slow
async def test_a_burst_of_two_thousand_calls_is_answered() -> None:
    """gRPC's defaults cancel some of them."""
    recorder = Recorder({"node_heartbeat": NodeHeartbeatResponse(1, NodeAction.NORMAL)})
    async with (
        serving(ResourceTracker.rpcs, recorder) as server,
        ResourceTracker(target(server)) as proxy,
    ):
        beats = (proxy.node_heartbeat(NodeHeartbeatRequest(NODE, number)) for number in range(2000))
        replies = await asyncio.gather(*beats)
    assert len(replies) == len(recorder.calls) == 2000


# Reaching and not reaching


async def test_an_unreachable_server_fails_at_once_and_definitely(unused_tcp_port: int) -> None:
    async with ResourceManagerAdministrationProtocol(f"127.0.0.1:{unused_tcp_port}") as proxy:
        with pytest.raises(ServerUnavailable, match="cannot be reached") as caught:
            await proxy.refresh_queues()
    assert caught.value.definite


@pytest.fixture
async def unused_tcp_port() -> int:
    """A port without a listener: a server has just released it."""
    server = RpcServer(LOOPBACK, socket_dir())
    port = await server.start()
    await server.stop(0)
    return port


async def test_a_call_waits_for_its_server_within_its_policy(
    unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server starts while the caller waits between two tries."""
    recorder = Recorder({})
    server = RpcServer(Address("127.0.0.1", unused_tcp_port), socket_dir())
    server.add(ResourceManagerAdministrationProtocol.rpcs, recorder, anybody)

    async def start_meanwhile(seconds: float) -> None:
        assert 0.01 <= seconds <= 0.02, "half to one interval"
        await server.start()

    async with ResourceManagerAdministrationProtocol(
        f"127.0.0.1:{unused_tcp_port}", retry=RetryPolicy(10_000, 20)
    ) as proxy:
        with monkeypatch.context() as patch:
            patch.setattr("wire.retry.asyncio.sleep", start_meanwhile)
            await proxy.refresh_queues()
    await server.stop(0)
    assert len(recorder.calls) == 1


async def test_channels_are_shared_by_target() -> None:
    async with serving(ResourceManagerAdministrationProtocol.rpcs, Recorder({})) as server, Channels() as channels:
        one, two = (ResourceManagerAdministrationProtocol(target(server), channels=channels) for _ in range(2))
        await one.refresh_queues()
        await one.close()
        await two.refresh_queues()
        assert channels.get(target(server)) is channels.get(target(server))
