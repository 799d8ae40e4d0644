"""The byte format of Hadoop's RPC, version 9.

connection   "hrpc", 9, service class, 0 (no authentication first) or 0xDF (SASL); then frames both ways
frame        length (4 bytes, big-endian), then messages, each after its length as a varint
to us        RpcRequestHeaderProto, then by its callId: a call (RequestHeaderProto and the request), or a part of
             the connection's own protocol
from us      RpcResponseHeaderProto, and after SUCCESS the reply
"""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from wire.generated.hadoop_rpc_pb2 import RpcRequestHeaderProto, RpcResponseHeaderProto

MAGIC = b"hrpc"
VERSION = 9
PREAMBLE_BYTES = 7
AUTH_NONE, AUTH_SASL = 0, 0xDF
"""The last byte of the preamble: whether the client authenticates before it sends its context."""
LENGTH_BYTES = 4
FRAME_BYTES_MAX = 16 * 1024 * 1024
"""Hadoop's ipc.maximum.data.length is 64 MiB, for NodeManagers that register; none registers over this protocol."""
HANDSHAKE_FRAME_BYTES_MAX = 64 * 1024
"""Until a connection has sent its context: a token's identifier and its digest have less than a kilobyte."""
VARINT_BYTES_MAX = 5

CALL_ID_CONTEXT = -3
CALL_ID_PING = -4
CALL_ID_SASL = -33

M = TypeVar("M", bound=Message)


class MalformedFrame(Exception):
    """The bytes are not Hadoop's RPC; the connection cannot be used further."""


class FrameReader:
    """Cuts a stream of bytes into frames. `limit`: the longest frame that is accepted now, in bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._unread = bytearray()

    @property
    def unread_bytes(self) -> int:
        return len(self._unread)

    def feed(self, data: bytes) -> None:
        self._unread += data

    def take(self, count: int) -> bytes | None:
        """The next bytes as they are; None until there are so many."""
        if len(self._unread) < count:
            return None
        taken = bytes(self._unread[:count])
        del self._unread[:count]
        return taken

    def next_frame(self) -> bytes | None:
        """The next whole frame; None until there is one. Raises MalformedFrame if it is longer than `limit`."""
        if len(self._unread) < LENGTH_BYTES:
            return None
        length = int.from_bytes(self._unread[:LENGTH_BYTES], "big", signed=True)
        if not 0 < length <= self.limit:
            raise MalformedFrame(f"a frame of {length} bytes, at most {self.limit} are accepted")
        end = LENGTH_BYTES + length
        if len(self._unread) < end:
            return None
        frame = bytes(self._unread[LENGTH_BYTES:end])
        del self._unread[:end]
        return frame


class MessageReader:
    """Reads the messages of one frame in turn."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._position = 0

    def next(self, kind: type[M]) -> M:
        """The next message. Raises MalformedFrame."""
        return read_message(kind, self.next_bytes())

    def next_bytes(self) -> bytes:
        """The bytes of the next message. Raises MalformedFrame."""
        length = self._next_varint()
        end = self._position + length
        if end > len(self._frame):
            raise MalformedFrame(f"a message of {length} bytes in a frame of {len(self._frame)}")
        data = self._frame[self._position : end]
        self._position = end
        return data

    def _next_varint(self) -> int:
        value = 0
        for number, byte in enumerate(self._frame[self._position : self._position + VARINT_BYTES_MAX]):
            value |= (byte & 0x7F) << (7 * number)
            if byte < 0x80:
                self._position += number + 1
                return value
        raise MalformedFrame("a length that is not a varint")


def read_message(kind: type[M], data: bytes) -> M:
    """Raises MalformedFrame if `data` is not such a message."""
    # Any: the type stubs lack IsInitialized.
    message: Any = kind()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise MalformedFrame(f"{len(data)} bytes cannot be read as {kind.DESCRIPTOR.name}") from None
    if not message.IsInitialized():
        raise MalformedFrame(f"{kind.DESCRIPTOR.name} lacks {', '.join(message.FindInitializationErrors()[:5])}")
    read: M = message
    return read


def success(request: RpcRequestHeaderProto, reply: bytes) -> bytes:
    """The frame that answers a call."""
    header = _header(request, RpcResponseHeaderProto.SUCCESS).SerializeToString()
    head, tail = _varint(len(header)) + header, _varint(len(reply))
    return b"".join(((len(head) + len(tail) + len(reply)).to_bytes(LENGTH_BYTES, "big"), head, tail, reply))


def failure(
    request: RpcRequestHeaderProto,
    java_class: str,
    message: str,
    detail: RpcResponseHeaderProto.RpcErrorCodeProto.ValueType,
) -> bytes:
    """The frame that refuses a call, or with a FATAL_ detail the connection."""
    is_fatal = detail >= RpcResponseHeaderProto.FATAL_UNKNOWN
    header = _header(request, RpcResponseHeaderProto.FATAL if is_fatal else RpcResponseHeaderProto.ERROR)
    header.exceptionClassName, header.errorMsg, header.errorDetail = java_class, message, detail
    data = header.SerializeToString()
    content = _varint(len(data)) + data
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def _header(
    request: RpcRequestHeaderProto, status: RpcResponseHeaderProto.RpcStatusProto.ValueType
) -> RpcResponseHeaderProto:
    return RpcResponseHeaderProto(
        callId=request.callId & 0xFFFFFFFF,
        status=status,
        serverIpcVersionNum=VERSION,
        clientId=request.clientId,
        retryCount=request.retryCount,
    )


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
