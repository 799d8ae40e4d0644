"""The two sides of mapreduce_shuffle share this: hashes, headers, the index of a map's output, the service's data.

A reduce fetches its partition of maps' output by HTTP from the node that they ran on:

    GET /mapOutput?job=job_1_0001&reduce=0&map=attempt_1_0001_m_000000_0    UrlHash: base64(HMAC-SHA1(secret, ...))
    200                                                                     ReplyHash: HMAC of that UrlHash
    for each map: header (attempt, lengths, reduce), then its bytes

(SecureShuffleUtils, ShuffleHeader, SpillRecord, ShuffleHandler.)
"""

from __future__ import annotations

import base64
import binascii
import hmac
import struct
import zlib
from collections.abc import Iterable, Mapping

from msgspec import Struct

from wire.files.writables import WritableReader, put_block, put_token, put_vint
from yarn.containers import Token
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationId
from yarn.settings.nodemanager import MAPREDUCE_SHUFFLE

SERVICE = MAPREDUCE_SHUFFLE
VERSION_HEADERS = {"name": "mapreduce", "version": "1.0.0"}
"""HTTP headers of every request and reply, which must be equal (ShuffleHeader)."""
URL_HASH = "UrlHash"
REPLY_HASH = "ReplyHash"
PATH = "/mapOutput"
OUTPUT = "file.out"
INDEX = "file.out.index"
JOB_TOKEN_KIND = "mapreduce.job"
VARIABLE_PREFIX = "NM_AUX_SERVICE_"
"""With a service's name: the variable of a container that has the service's data (AuxiliaryServiceHelper)."""

_RECORD = struct.Struct(">qqq")
_CHECKSUM = struct.Struct(">q")
_PORT = struct.Struct(">i")
INDEX_BYTES_MAX = 24 << 20
"""The index of a map for a million reduces."""


def job_id(application_id: ApplicationId) -> str:
    """The map-reduce job of an application."""
    return f"job_{application_id.cluster_timestamp}_{application_id.id:04d}"


def url_hash(secret: bytes, port: int, target: str) -> str:
    """The hash with which a reduce proves that it knows the job's secret; `target` is the URL's path and query."""
    path, _, query = target.partition("?")
    return _hash(secret, f"{port}{path}?{query}".encode())


def is_url_hash(value: str, secret: bytes, port: int, target: str) -> bool:
    """True if `value` is the hash of the URL."""
    return hmac.compare_digest(value.encode(errors="replace"), url_hash(secret, port, target).encode())


def reply_hash(secret: bytes, value: str) -> str:
    """The hash with which the node proves the same: that of the request's UrlHash."""
    return _hash(secret, value.encode())


def _hash(secret: bytes, message: bytes) -> str:
    return base64.b64encode(hmac.digest(secret, message, "sha1")).decode()


class IndexRecord(Struct, frozen=True):
    """The place of a reduce's partition in a map's output: `part_length` bytes, `raw_length` uncompressed."""

    start: int
    raw_length: int
    part_length: int


def index_bytes(records: Iterable[IndexRecord]) -> bytes:
    """The content of an index: a record for each reduce, then their CRC-32 (SpillRecord.writeToFile)."""
    data = b"".join(_RECORD.pack(record.start, record.raw_length, record.part_length) for record in records)
    return data + _CHECKSUM.pack(zlib.crc32(data))


def index_record(data: bytes, reduce: int, attempt: str) -> IndexRecord:
    """The record of a reduce. Raises InvalidArgumentException if the index is damaged or has no such record."""
    end = len(data) - _CHECKSUM.size
    if end < 0 or end % _RECORD.size or zlib.crc32(data[:end]) != _CHECKSUM.unpack_from(data, end)[0]:
        raise InvalidArgumentException("Error Reading IndexFile")
    count = end // _RECORD.size
    if not 0 <= reduce < count:
        raise InvalidArgumentException(
            f"Invalid request  Map Id = {attempt} Reducer = {reduce} Index Info Length = {count}"
        )
    return IndexRecord(*_RECORD.unpack_from(data, reduce * _RECORD.size))


class ShuffleHeader(Struct, frozen=True):
    """The header before the bytes of one map in a reply."""

    attempt: str
    part_length: int
    raw_length: int
    reduce: int

    def to_bytes(self) -> bytes:
        out = bytearray()
        put_block(out, self.attempt.encode())
        for number in (self.part_length, self.raw_length, self.reduce):
            put_vint(out, number)
        return bytes(out)

    @staticmethod
    def read(reader: WritableReader) -> ShuffleHeader:
        """Raises InvalidArgumentException if the header is incomplete."""
        return ShuffleHeader(reader.text(), reader.vint(), reader.vint(), reader.vint())


def port_bytes(port: int) -> bytes:
    """The service's metadata in the reply of startContainers (ShuffleHandler.serializeMetaData)."""
    return _PORT.pack(port)


def port_in(environ: Mapping[str, str]) -> int:
    """The port of the service on the node of a container with these variables; 0 if the node does not have it."""
    try:
        return int(_PORT.unpack(base64.b64decode(environ.get(VARIABLE_PREFIX + SERVICE, ""), validate=True))[0])
    except (binascii.Error, struct.error):
        return 0


def service_data(application_id: ApplicationId, secret: bytes) -> bytes:
    """The data that an AM passes to the service: the job's token (ShuffleHandler.serializeServiceData)."""
    identifier = bytearray()
    put_block(identifier, job_id(application_id).encode())
    out = bytearray()
    put_token(out, Token(bytes(identifier), secret, JOB_TOKEN_KIND, ""))
    return bytes(out)


def token_in(data: bytes) -> Token:
    """The job's token in service data. Raises InvalidArgumentException if it is not one."""
    return WritableReader(data, "service data of mapreduce_shuffle").token()
