"""Sends errors between processes: turns an exception into a gRPC status, and back.

The call's trailing metadata contains the error as YARN does, by class name and message; the status code is only for
generic gRPC clients. Errors inside messages (Hadoop's SerializedExceptionProto) are written and read here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from wire.codec.basic import read_container_id, write_container_id
from wire.codec.fields import required, text
from wire.generated import yarn_protos_pb2 as pb
from wire.generated import yarn_service_protos_pb2 as service_pb
from wire.generated.yarnling_pb2 import ErrorDetail
from yarn.errors import (
    AccessControlException,
    ApplicationAttemptNotFoundException,
    ApplicationNotFoundException,
    CallOutcomeUnknown,
    ContainerNotFoundException,
    InvalidArgumentException,
    InvalidResourceRequestException,
    InvalidToken,
    RemoteError,
    ServerUnavailable,
    StandbyException,
    YarnException,
    YARNFeatureNotEnabledException,
    class_of,
)
from yarn.ids import ContainerId

ERROR_KEY = "yarn-error-bin"
"""The key of the trailing metadata that contains a serialised ErrorDetail."""
STATUS_TEXT_MAX = 200
"""The maximum of characters in the status message, for generic gRPC tools; the ErrorDetail has the whole message."""
_STATUS: tuple[tuple[type[YarnException], grpc.StatusCode], ...] = (
    (InvalidToken, grpc.StatusCode.UNAUTHENTICATED),
    (AccessControlException, grpc.StatusCode.PERMISSION_DENIED),
    (ApplicationNotFoundException, grpc.StatusCode.NOT_FOUND),
    (ApplicationAttemptNotFoundException, grpc.StatusCode.NOT_FOUND),
    (ContainerNotFoundException, grpc.StatusCode.NOT_FOUND),
    (InvalidArgumentException, grpc.StatusCode.INVALID_ARGUMENT),
    (InvalidResourceRequestException, grpc.StatusCode.INVALID_ARGUMENT),
    (StandbyException, grpc.StatusCode.UNAVAILABLE),
    (RemoteError, grpc.StatusCode.INTERNAL),
)
CONCURRENCY_TEXT = "Concurrent RPC limit exceeded"
"""grpc.aio's text for a call that a server refused before reading it, because of its limit of concurrent calls."""
REFUSED_STREAM_TEXT = "RST_STREAM with error code 7"
"""gRPC's text for a call that HTTP/2 refused: REFUSED_STREAM promises that the server did nothing (RFC 9113, 8.7). With
another text in another release, the outcome counts as unknown, and the call is not sent again."""
MESSAGE_LENGTH_MAX = 16 * 1024
"""The maximum of characters in an error's message, which must fit into gRPC metadata."""


def status_of(error: YarnException) -> grpc.StatusCode:
    """The gRPC status for an error; FAILED_PRECONDITION if none fits better."""
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return grpc.StatusCode.FAILED_PRECONDITION


def status_text(error: YarnException) -> str:
    """The status's message: the error's first line."""
    return error.message.partition("\n")[0][:STATUS_TEXT_MAX]


def error_metadata(error: YarnException) -> tuple[tuple[str, bytes], ...]:
    """The trailing metadata that carries `error`."""
    detail = ErrorDetail(definite=error.definite)
    write_exception(error, detail.exception)
    return ((ERROR_KEY, detail.SerializeToString()),)


def error_of(failure: grpc.aio.AioRpcError, *, target: str, method: str) -> YarnException:
    """The exception for a failed call: the one that the server sent, otherwise one derived from the status."""
    for key, value in failure.trailing_metadata() or ():
        if key == ERROR_KEY and isinstance(value, bytes):
            return sent_error(value)
    code, text = failure.code(), failure.details() or ""
    where = f"{method} at {target}"
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return YARNFeatureNotEnabledException(f"{where}: the server does not support this call")
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        if CONCURRENCY_TEXT in text:
            return ServerUnavailable(f"{where}: the server has too many concurrent calls")
        return InvalidArgumentException(f"{where}: {text}")
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return CallOutcomeUnknown(f"{where}: no reply in time")
    if code is grpc.StatusCode.UNAVAILABLE and REFUSED_STREAM_TEXT in text:
        return ServerUnavailable(f"{where}: the connection has too many concurrent calls")
    if code is grpc.StatusCode.UNAVAILABLE or code is grpc.StatusCode.CANCELLED:
        return CallOutcomeUnknown(f"{where}: the connection was lost after the call was sent ({text})")
    return RemoteError(f"{where}: {code.name}: {text}")


def sent_error(data: bytes) -> YarnException:
    try:
        detail = ErrorDetail.FromString(data)
        error = read_exception(detail.exception)
    except (DecodeError, InvalidArgumentException):
        return RemoteError("the server sent an error that cannot be read")
    # A missing `definite` is read as False: the call may have had an effect.
    error.definite = detail.definite
    return error


def write_exception(error: YarnException, out: pb.SerializedExceptionProto) -> None:
    out.class_name = error.java_class
    out.message = shortened(error.message)


def read_exception(proto: pb.SerializedExceptionProto) -> YarnException:
    """The error, with its own class; if there is no such class in Python, a RemoteError that names the Java class."""
    java_class, message = text(proto, "class_name"), text(proto, "message")
    kind = class_of(java_class)
    if kind is RemoteError and java_class != RemoteError.java_class:
        message = f"{java_class}: {message}"
    return kind(message or kind.__name__)


def shortened(message: str) -> str:
    """`message`, without its middle if it is longer than MESSAGE_LENGTH_MAX."""
    if len(message) <= MESSAGE_LENGTH_MAX:
        return message
    half = MESSAGE_LENGTH_MAX // 2
    return f"{message[:half]}\n... {len(message) - 2 * half} characters left out ...\n{message[-half:]}"


def write_failed(failed: Mapping[ContainerId, YarnException], out: Any) -> None:
    """Write the failed containers of a batch call; `out`: the repeated ContainerExceptionMapProto of its reply."""
    for container_id, error in failed.items():
        entry = out.add()
        write_container_id(container_id, entry.container_id)
        write_exception(error, entry.exception)


def read_failed(entries: Iterable[service_pb.ContainerExceptionMapProto]) -> dict[ContainerId, YarnException]:
    return {
        read_container_id(required(entry, "container_id")): read_exception(required(entry, "exception"))
        for entry in entries
    }
