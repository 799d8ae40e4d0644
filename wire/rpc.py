"""What an RPC is: its name on the wire, its two messages, how long a caller waits for it.

Servers and proxies are made from the same table of these (wire/protocols), so neither can drift from the other, and
the simulator encodes and decodes through it without a socket.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from yarn.errors import InvalidArgumentException

T = TypeVar("T")
Request = TypeVar("Request")
Reply = TypeVar("Reply")

DEFAULT_TIMEOUT_S = 20.0
"""How long a caller waits for an answer: far above any healthy answer, below every liveness interval of Hadoop's."""


class Form(Struct, Generic[T], frozen=True):
    """How a record looks on the wire: `write` fills a new `proto`, `read` makes the record."""

    proto: type[Message]
    write: Callable[[T, Any], None]
    read: Callable[[Any], T]

    def encode(self, record: T) -> bytes:
        """The message's bytes. Raises ValueError if a number does not fit its field: our own bug or a caller's."""
        proto = self.proto()
        self.write(record, proto)
        return proto.SerializeToString()

    def decode(self, data: bytes) -> T:
        """The record. Raises InvalidArgumentException, naming the field, if `data` is no such message."""
        # Any: the type stubs lack FindInitializationErrors.
        proto: Any = self.proto()
        try:
            proto.ParseFromString(data)
        except DecodeError:
            raise InvalidArgumentException(f"{len(data)} bytes are no {self.proto.DESCRIPTOR.name}") from None
        if not proto.IsInitialized():
            raise InvalidArgumentException(
                f"{self.proto.DESCRIPTOR.name} lacks {', '.join(proto.FindInitializationErrors()[:5])}"
            )
        return self.read(proto)


def empty(proto: type[Message]) -> Form[None]:
    """The form of a message that says nothing."""
    return Form(proto, lambda record, out: None, lambda message: None)


class Rpc(Struct, Generic[Request, Reply], frozen=True):
    """One RPC of a protocol. `method` is its name in handlers and proxies.

    `reads`: it changes nothing, so it may be sent again whatever became of it. `bulky`: its reply grows with the
    cluster; servers queue these calls (wire.bulky_replies). The message of a bulky tuple has repeated fields alone.
    """

    service: str
    name: str
    method: str
    request: Form[Request]
    reply: Form[Reply]
    reads: bool = False
    bulky: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S

    @property
    def path(self) -> str:
        """What gRPC calls the method."""
        return f"/{self.service}/{self.name}"
