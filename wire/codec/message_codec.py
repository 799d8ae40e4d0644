"""Codecs, which turn a record into a message and back, and the codecs of messages with a single field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from wire.codec.fields import refuse_too_many, required, text, texts
from yarn.errors import InvalidArgumentException

T = TypeVar("T")


class MessageCodec(Struct, Generic[T], frozen=True):
    """Turns a record into a message and back: `write` fills a new `proto`, `read` creates the record."""

    proto: type[Message]
    write: Callable[[T, Any], None]
    read: Callable[[Any], T]

    def encode(self, record: T) -> bytes:
        """The message's bytes. Raises ValueError if a number does not fit its field."""
        proto = self.proto()
        self.write(record, proto)
        return proto.SerializeToString()

    def size(self, record: T) -> int:
        """The number of bytes that the message has; 0 if the record cannot be encoded."""
        proto = self.proto()
        try:
            self.write(record, proto)
        except ValueError:
            return 0
        return proto.ByteSize()

    def decode(self, data: bytes) -> T:
        """Decode a record. Raises InvalidArgumentException, naming the field, if `data` is not a valid message."""
        # The type is Any because the type stubs lack FindInitializationErrors.
        proto: Any = self.proto()
        try:
            proto.ParseFromString(data)
        except DecodeError:
            raise InvalidArgumentException(
                f"{len(data)} bytes cannot be read as {self.proto.DESCRIPTOR.name}"
            ) from None
        if not proto.IsInitialized():
            raise InvalidArgumentException(
                f"{self.proto.DESCRIPTOR.name} lacks {', '.join(proto.FindInitializationErrors()[:5])}"
            )
        return self.read(proto)


def empty(proto: type[Message]) -> MessageCodec[None]:
    """The codec of a message without fields."""
    return MessageCodec(proto, lambda record, out: None, lambda message: None)


def holding(
    proto: type[Message], field: str, write: Callable[[T, Any], None], read: Callable[[Any], T]
) -> MessageCodec[T]:
    """The codec of a message whose one field is a submessage that must be there."""
    return MessageCodec(
        proto,
        lambda record, out: write(record, getattr(out, field)),
        lambda message: read(required(message, field)),
    )


def listing(
    proto: type[Message],
    field: str,
    write: Callable[[T, Any], None],
    read: Callable[[Any], T],
    *,
    limit: int | None = None,
) -> MessageCodec[tuple[T, ...]]:
    """The codec of a message whose one field is repeated submessages; more than `limit` of them are refused."""

    def write_all(records: tuple[T, ...], out: Any) -> None:
        entries = getattr(out, field)
        for record in records:
            write(record, entries.add())

    def read_all(message: Any) -> tuple[T, ...]:
        if limit is not None:
            refuse_too_many(message, field, limit)
        return tuple(read(entry) for entry in getattr(message, field))

    return MessageCodec(proto, write_all, read_all)


def holding_text(proto: type[Message], field: str) -> MessageCodec[str]:
    """The codec of a message whose one field is text."""
    return MessageCodec(proto, lambda value, out: setattr(out, field, value), lambda message: text(message, field))


def listing_texts(proto: type[Message], field: str, *, limit: int | None = None) -> MessageCodec[tuple[str, ...]]:
    """The codec of a message whose one field is repeated text; more than `limit` of them are refused."""

    def read_all(message: Any) -> tuple[str, ...]:
        if limit is not None:
            refuse_too_many(message, field, limit)
        return texts(message, field)

    return MessageCodec(proto, lambda values, out: getattr(out, field).extend(values), read_all)
