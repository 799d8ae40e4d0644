"""Errors as data: Hadoop's SerializedExceptionProto, alone or beside a container's id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from protos import yarn_protos_pb2 as pb
from protos import yarn_service_protos_pb2 as service_pb
from wire.codec.fields import required, text
from wire.codec.ids import read_container_id, write_container_id
from yarn.errors import RemoteError, YarnException, class_of
from yarn.ids import ContainerId

MESSAGE_LENGTH_MAX = 16 * 1024
"""Characters of an error's message; an error's place on the wire is the metadata, which has room for little."""


def write_exception(error: YarnException, out: pb.SerializedExceptionProto) -> None:
    out.class_name = error.java_class
    out.message = shortened(error.message)


def read_exception(proto: pb.SerializedExceptionProto) -> YarnException:
    """The error under its own class; one of a class unknown here is a RemoteError that names it."""
    java_class, message = text(proto, "class_name"), text(proto, "message")
    kind = class_of(java_class)
    if kind is RemoteError and java_class != RemoteError.java_class:
        message = f"{java_class}: {message}"
    return kind(message or kind.__name__)


def shortened(message: str) -> str:
    """`message`, its middle left out if it is longer than MESSAGE_LENGTH_MAX."""
    if len(message) <= MESSAGE_LENGTH_MAX:
        return message
    half = MESSAGE_LENGTH_MAX // 2
    return f"{message[:half]}\n... {len(message) - 2 * half} characters left out ...\n{message[-half:]}"


def write_failed(failed: Mapping[ContainerId, YarnException], out: Any) -> None:
    """`out`: the repeated ContainerExceptionMapProto of a batch call's reply."""
    for container_id, error in failed.items():
        entry = out.add()
        write_container_id(container_id, entry.container_id)
        write_exception(error, entry.exception)


def read_failed(entries: Iterable[service_pb.ContainerExceptionMapProto]) -> dict[ContainerId, YarnException]:
    return {
        read_container_id(required(entry, "container_id")): read_exception(required(entry, "exception"))
        for entry in entries
    }
