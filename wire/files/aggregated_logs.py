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

from wire.files.tfile import BlockPlace, TFileReader, TFileValue, TFileWriter
from yarn.errors import InvalidArgumentException, InvalidIdException
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.states import ApplicationAccessType

_VERSION, _OWNER, _ACL = "VERSION", "APPLICATION_OWNER", "APPLICATION_ACL"
_LENGTH = struct.Struct(">H")
_VERSION_1 = struct.pack(">i", 1)
TEMPORARY = ".tmp"
"""Ends the name of a file that is not complete (LogAggregationUtils.TMP_FILE_SUFFIX)."""
BUCKETS = 10_000
"""LogAggregationUtils: the directory of an application is in the bucket of its number modulo this."""


class LogPart(Struct, frozen=True):
    """A log file to be written: `content` yields exactly `length` bytes in all."""

    name: str
    length: int
    content: Iterable[bytes]


class AggregatedLog(Struct, frozen=True):
    """A log file in an aggregated log; its content is at `place`."""

    container_id: ContainerId
    name: str
    length: int
    place: BlockPlace


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
    """The log files in their order, without their contents.

    Raises InvalidArgumentException if `file` is not an aggregated log.
    """
    for key, value in TFileReader(file).records():
        name = _utf_text(key[_LENGTH.size :])
        if name in (_VERSION, _OWNER, _ACL):
            continue
        container_id = _container_id(name)
        while first := value.read(1):
            length_bytes = first + _read(value, 1)
            log_name = _utf_text(_read(value, _LENGTH.unpack(length_bytes)[0]))
            length = _length(_read_utf(value))
            yield AggregatedLog(container_id, log_name, length, value.place)
            if value.skip(length) < length:
                raise InvalidArgumentException(f"not an aggregated log: {log_name[:100]!r} is not complete")


def read_content(file: IO[bytes], log: AggregatedLog, start: int = 0) -> Iterator[bytes]:
    """The content of a log file in parts, from byte `start` on."""
    value = TFileValue(file, log.place)
    value.skip(start)
    left = log.length - start
    while left > 0 and (part := value.read(left)):
        left -= len(part)
        yield part


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


def _read_utf(value: TFileValue) -> str:
    """DataInput.readUTF."""
    (length,) = _LENGTH.unpack(_read(value, _LENGTH.size))
    return _utf_text(_read(value, length))


def _read(value: TFileValue, length: int) -> bytes:
    parts = []
    while length:
        part = value.read(length)
        if not part:
            raise InvalidArgumentException(f"not an aggregated log: it ends {length} bytes too early")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _utf_text(data: bytes) -> str:
    """The text of DataOutput.writeUTF, without its length; other bytes than UTF-8 are taken as Latin-1."""
    try:
        halves = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        halves = data.decode("latin-1")
    return halves.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
