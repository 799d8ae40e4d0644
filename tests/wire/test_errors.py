"""The error that a failed call becomes, and which failures surely had no effect."""

from __future__ import annotations

import asyncio

import grpc
import grpc.aio
import pytest

from tests.wire.serving import NODE, Recorder, serving, target
from wire.caller import Caller
from wire.errors import CONCURRENCY_TEXT, ERROR_KEY, error_metadata, error_of, status_of, status_text
from wire.generated.yarnling_pb2 import ErrorDetail
from wire.protocols.tracker import ResourceTracker
from yarn.errors import (
    AccessControlException,
    ApplicationNotFoundException,
    CallOutcomeUnknown,
    InvalidArgumentException,
    InvalidIdException,
    InvalidResourceRequestException,
    InvalidToken,
    RemoteError,
    ServerUnavailable,
    YarnException,
    YARNFeatureNotEnabledException,
)
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse
from yarn.states import NodeAction

Code = grpc.StatusCode


def failure(code: grpc.StatusCode, text: str = "", detail: bytes | None = None) -> grpc.aio.AioRpcError:
    metadata = grpc.aio.Metadata(*([] if detail is None else [(ERROR_KEY, detail)]))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), metadata, text)


@pytest.mark.parametrize(
    ("code", "text", "kind", "definite"),
    [
        (Code.UNIMPLEMENTED, "", YARNFeatureNotEnabledException, True),
        (Code.RESOURCE_EXHAUSTED, CONCURRENCY_TEXT, ServerUnavailable, True),
        (Code.RESOURCE_EXHAUSTED, "message larger than max", InvalidArgumentException, True),
        (Code.DEADLINE_EXCEEDED, "", CallOutcomeUnknown, False),
        (Code.UNAVAILABLE, "Socket closed", CallOutcomeUnknown, False),
        (Code.CANCELLED, "", CallOutcomeUnknown, False),
        (Code.UNKNOWN, "odd", RemoteError, False),
    ],
)
def test_an_error_is_derived_from_a_status_alone(
    code: grpc.StatusCode, text: str, kind: type[YarnException], definite: bool
) -> None:
    error = error_of(failure(code, text), target="h:1", method="m")
    assert type(error) is kind
    assert error.definite is definite
    assert error.message.startswith("m at h:1: ")


@pytest.mark.parametrize(
    "error",
    [
        InvalidToken("bad"),
        AccessControlException("no"),
        ApplicationNotFoundException("none"),
        InvalidResourceRequestException("much"),
        RemoteError("bug"),
        YarnException("plain"),
    ],
)
def test_a_sent_error_is_the_same_again(error: YarnException) -> None:
    ((key, detail),) = error_metadata(error)
    assert key == ERROR_KEY
    again = error_of(failure(status_of(error), status_text(error), detail), target="t", method="m")
    assert (type(again), again.message, again.definite) == (type(error), error.message, error.definite)


def test_a_server_that_does_not_say_is_believed_to_have_done_something() -> None:
    detail = ErrorDetail()
    detail.exception.class_name = InvalidToken.java_class
    again = error_of(failure(Code.UNKNOWN, detail=detail.SerializeToString()), target="t", method="m")
    assert type(again) is InvalidToken
    assert not again.definite


def test_an_error_that_cannot_be_read_is_a_remote_error() -> None:
    assert type(error_of(failure(Code.UNKNOWN, detail=b"\xff"), target="t", method="m")) is RemoteError


def test_java_names_that_several_have_are_the_general_ones() -> None:
    ((_, detail),) = error_metadata(InvalidIdException("x"))
    assert type(error_of(failure(Code.UNKNOWN, detail=detail), target="t", method="m")) is InvalidArgumentException


async def test_a_server_with_too_much_to_do_refuses_definitely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wire.server.CONCURRENT_MAX", 1)
    entered, leave = asyncio.Event(), asyncio.Event()

    class Busy(Recorder):
        async def node_heartbeat(self, caller: Caller[None], request: NodeHeartbeatRequest) -> NodeHeartbeatResponse:
            entered.set()
            await leave.wait()
            return NodeHeartbeatResponse(1, NodeAction.NORMAL)

    async with (
        serving(ResourceTracker.rpcs, Busy({})) as server,
        ResourceTracker(target(server)) as proxy,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(proxy.node_heartbeat(NodeHeartbeatRequest(NODE, 0)))
        async with asyncio.timeout(60):
            await entered.wait()
        try:
            with pytest.raises(ServerUnavailable, match="too many concurrent calls") as caught:
                await proxy.node_heartbeat(NodeHeartbeatRequest(NODE, 0))
        finally:
            leave.set()
    assert caught.value.definite
