"""An aggregated log: the log files of an application's containers on one node, in one TFile (AggregatedLogFormat).

    VERSION             1
    APPLICATION_OWNER   user
    APPLICATION_ACL     (access type, users and groups)*
    container_...       (file name, length as a decimal text, content)*     for each container

Texts are as Java's DataOutput.writeUTF writes them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import IO

from msgspec import Struct

from wire.tfile import TFileReader, TFileWriter
from yarn.errors import InvalidArgumentException, InvalidIdException
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.states import ApplicationAccessType

_VERSION, _OWNER, _ACL = "VERSION", "APPLICATION_OWNER", "APPLICATION_ACL"
_LENGTH = struct.Struct(">H")
_VERSION_1 = struct.pack(">i", 1)
BUCKETS = 10_000
"""LogAggregationUtils: the directory of an application is in the bucket of its number modulo this."""


class LogPart(Struct, frozen=True):
    """A log file to be written: `content` yields exactly `length` bytes in all."""

    name: str
    length: int
    content: Iterable[bytes]


class AggregatedLog(Struct, frozen=True):
    """A log file that is read. `content` must be read before the next file, or is skipped."""

    container_id: ContainerId
    name: str
    length: int
    content: Iterator[bytes]


def application_directory(user: str, application_id: ApplicationId, suffix: str) -> tuple[str, ...]:
    """The directories below the remote one, as names: alice, bucket-logs-tfile, 0004, application_..._0004."""
    return user, f"bucket-{suffix}", f"{application_id.id % BUCKETS:04d}", str(application_id)


def node_file(node_id: NodeId) -> str:
    """The name of a node's file in there (LogAggregationUtils.getNodeString)."""
    return str(node_id).replace(":", "_")


class AggregatedLogWriter:
    """Writes an aggregated log to `file`, which is empty. Call `close`."""

    def __init__(self, file: IO[bytes], owner: str, acls: Mapping[ApplicationAccessType, str]) -> None:
        self._tfile = TFileWriter(file)
        self._tfile.append(_utf(_VERSION), (_VERSION_1,))
        self._tfile.append(_utf(_OWNER), (_utf(owner),))
        texts = (text for access, users in acls.items() for text in (access.name, users))
        self._tfile.append(_utf(_ACL), map(_utf, texts))

    def add(self, container_id: ContainerId, logs: Iterable[LogPart]) -> None:
        """Write the files of a container."""
        self._tfile.append(_utf(str(container_id)), _value(logs))

    def close(self) -> None:
        """Write the index; the file itself stays open."""
        self._tfile.close()


def read_aggregated_logs(file: IO[bytes]) -> Iterator[AggregatedLog]:
    """The log files in their order. Raises InvalidArgumentException if it is not such a file."""
    for key, value in TFileReader(file).records():
        name = _Stream(iter((key,))).utf()
        if name in (_VERSION, _OWNER, _ACL):
            continue
        container_id, stream = _container_id(name), _Stream(value)
        while not stream.is_at_end():
            log_name, length = stream.utf(), _length(stream.utf())
            content = stream.parts(length)
            yield AggregatedLog(container_id, log_name, length, content)
            for _ in content:
                pass


def _value(logs: Iterable[LogPart]) -> Iterator[bytes]:
    for log in logs:
        yield _utf(log.name)
        yield _utf(str(log.length))
        yield from log.content


def _container_id(text: str) -> ContainerId:
    try:
        return ContainerId.parse(text)
    except InvalidIdException as error:
        raise InvalidArgumentException(f"not an aggregated log: {error.message}") from None


def _length(text: str) -> int:
    if not text.isdecimal() or len(text) > 19:
        raise InvalidArgumentException(f"not an aggregated log: {text[:100]!r} is not the length of a file")
    return int(text)


def _utf(text: str) -> bytes:
    """DataOutput.writeUTF: the length in two bytes, then UTF-8, but surrogate pairs for what lies beyond 16 bits."""
    pairs = text.encode("utf-16-be", "surrogatepass")
    units = (pairs[at : at + 2].decode("utf-16-be", "surrogatepass") for at in range(0, len(pairs), 2))
    data = "".join(units).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    return _LENGTH.pack(len(data)) + data


class _Stream:
    """Reads from parts of bytes."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._ahead = b""

    def is_at_end(self) -> bool:
        while not self._ahead:
            part = next(self._parts, None)
            if part is None:
                return True
            self._ahead = part
        return False

    def parts(self, length: int) -> Iterator[bytes]:
        """The next `length` bytes."""
        while length:
            if self.is_at_end():
                raise InvalidArgumentException(f"not an aggregated log: it ends {length} bytes too early")
            part, self._ahead = self._ahead[:length], self._ahead[length:]
            length -= len(part)
            yield part

    def utf(self) -> str:
        """DataInput.readUTF."""
        (length,) = _LENGTH.unpack(b"".join(self.parts(_LENGTH.size)))
        data = b"".join(self.parts(length)).replace(b"\xc0\x80", b"\0")
        halves = data.decode("utf-8", "surrogatepass") if _is_utf(data) else data.decode("latin-1")
        return halves.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


def _is_utf(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True
