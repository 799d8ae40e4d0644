"""Hadoop's TFile: a file of keys and values, as far as aggregated logs need it: not sorted, not compressed.

    magic   data block*   TFile.meta   TFile.index   BCFile.index   index of those three   offset of it   version magic

A data block has records: the key after its length, then the value in chunks, each after its length; the length of a
chunk that is not the last one is negated. The indexes have where each block is, its last key and how many records it
has. Numbers are of variable length, in another encoding than that of Writables.

(TFile, BCFile, Chunk.ChunkEncoder, Utils.) What is written here equals Hadoop's file byte for byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import IO

from msgspec import Struct

from yarn.errors import InvalidArgumentException

MAGIC = bytes.fromhex("d111d36891b5d7b639df414092bae150")
BLOCK_BYTES_MIN = 256 << 10
"""A block ends with the first record after which it has so many bytes (AggregatedLogFormat.LogWriter)."""
CHUNK_BYTES = 1 << 20
"""tfile.io.chunk.size: what a writer holds in memory."""
KEY_BYTES_MAX = 64 << 10
NOT_COMPRESSED = "none"

_VERSION = struct.pack(">hh", 1, 0)
_LONG = struct.Struct(">q")
_META, _INDEX, _BLOCKS = "TFile.meta", "TFile.index", "BCFile.index"
_TAIL_BYTES = _LONG.size + len(_VERSION) + len(MAGIC)


class Region(Struct, frozen=True):
    """The position and size of a block."""

    offset: int
    length: int

    def to_bytes(self) -> bytes:
        return vlong(self.offset) + vlong(self.length) + vlong(self.length)


class TFileWriter:
    """Writes a TFile to `file`, which is empty. Without `close` the file cannot be read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._position = 0
        self._block_start = 0
        self._block_records = 0
        self._records = 0
        self._first_key: bytes | None = None
        self._last_key = b""
        self._blocks: list[Region] = []
        self._block_keys: list[bytes] = []
        self._write(MAGIC)
        self._block_start = self._position

    def append(self, key: bytes, value: Iterable[bytes]) -> None:
        """Write a record; `value` are parts of its value. Memory is bounded by CHUNK_BYTES and the largest part."""
        self._write(_sized(key))
        self._first_key = self._first_key or key
        self._last_key = key
        buffered = bytearray()
        for part in value:
            if len(buffered) + len(part) < CHUNK_BYTES:
                buffered += part
                continue
            self._write(vlong(-len(buffered) - len(part)))
            self._write(bytes(buffered))
            self._write(part)
            buffered.clear()
        self._write(_sized(bytes(buffered)))
        self._block_records += 1
        self._records += 1
        if self._position - self._block_start >= BLOCK_BYTES_MIN:
            self._end_block()

    def close(self) -> None:
        """Write the indexes; the file itself stays open."""
        if self._block_records:
            self._end_block()
        regions = {
            _META: self._write(_VERSION + vlong(self._records) + _text("")),
            _INDEX: self._write(self._index()),
            _BLOCKS: self._write(
                _text(NOT_COMPRESSED) + vlong(len(self._blocks)) + b"".join(block.to_bytes() for block in self._blocks)
            ),
        }
        start = self._position
        entries = (_text(f"data:{name}") + _text(NOT_COMPRESSED) + regions[name].to_bytes() for name in sorted(regions))
        self._write(vlong(len(regions)) + b"".join(entries))
        self._write(_LONG.pack(start) + _VERSION + MAGIC)

    def _write(self, data: bytes) -> Region:
        self._file.write(data)
        region = Region(self._position, len(data))
        self._position += len(data)
        return region

    def _end_block(self) -> None:
        self._blocks.append(Region(self._block_start, self._position - self._block_start))
        self._block_keys.append(_sized(self._last_key) + vlong(self._block_records))
        self._block_start, self._block_records = self._position, 0

    def _index(self) -> bytes:
        if self._first_key is None:
            return vlong(0)
        return b"".join(_sized(entry) for entry in (_sized(self._first_key), *self._block_keys))


class TFileReader:
    """Reads the records of a TFile in their order. Raises InvalidArgumentException if `file` is not one."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._blocks = self._read_blocks()

    def records(self) -> Iterator[tuple[bytes, TFileValue]]:
        """(key, value) of each record. A value can be read later, too, as long as the file is open."""
        for block in self._blocks:
            position, end = block.offset, block.offset + block.length
            while position < end:
                self._file.seek(position)
                key = _take(self._file, self._number(), KEY_BYTES_MAX)
                value = TFileValue(self._file, BlockPlace(self._file.tell(), 0, is_last=False))
                yield key, value.copy()
                position = value.end()

    def _read_blocks(self) -> list[Region]:
        size = self._file.seek(0, 2)
        self._file.seek(max(0, size - _TAIL_BYTES))
        tail = self._file.read(_TAIL_BYTES)
        if len(tail) < _TAIL_BYTES or tail[-len(MAGIC) :] != MAGIC:
            raise _damaged("its end is not that of a TFile")
        self._seek(_LONG.unpack_from(tail)[0], size)
        for _ in range(self._number()):
            name, compression, offset, _, _ = (
                self._text(),
                self._text(),
                self._number(),
                self._number(),
                self._number(),
            )
            if name == f"data:{_BLOCKS}":
                break
        else:
            raise _damaged("it has no block index")
        _check_compression(compression)
        self._seek(offset, size)
        _check_compression(self._text())
        regions = []
        for _ in range(self._number()):
            offset, length, _ = self._number(), self._number(), self._number()
            if not 0 <= offset <= offset + length <= size:
                raise _damaged("a block extends beyond its end")
            regions.append(Region(offset, length))
        return regions

    def _seek(self, offset: int, size: int) -> None:
        if not 0 <= offset <= size:
            raise _damaged("an index starts beyond its end")
        self._file.seek(offset)

    def _text(self) -> str:
        return _take(self._file, self._number(), KEY_BYTES_MAX).decode(errors="replace")

    def _number(self) -> int:
        return read_vlong(self._file)


class BlockPlace(Struct, frozen=True):
    """A place in a value: the position in the file, and the bytes that are left there of a chunk."""

    position: int
    left: int
    is_last: bool


class TFileValue:
    """Reads the value of a record from a place in it. Others may read the same file."""

    def __init__(self, file: IO[bytes], place: BlockPlace) -> None:
        self._file = file
        self.place = place

    def copy(self) -> TFileValue:
        """Another reader at the same place."""
        return TFileValue(self._file, self.place)

    def read(self, most: int) -> bytes:
        """The next bytes, at most `most` and CHUNK_BYTES of them; b"" at the end."""
        if not self._has_more():
            return b""
        place = self.place
        self._file.seek(place.position)
        data = self._file.read(min(most, place.left, CHUNK_BYTES))
        if not data:
            raise _damaged("it ends within a value")
        self.place = BlockPlace(place.position + len(data), place.left - len(data), place.is_last)
        return data

    def skip(self, count: int) -> int:
        """Skip up to `count` bytes without reading them; returns how many were skipped."""
        left = count
        while left and self._has_more():
            place, step = self.place, min(left, self.place.left)
            self.place = BlockPlace(place.position + step, place.left - step, place.is_last)
            left -= step
        return count - left

    def end(self) -> int:
        """Skip to the end; returns its position in the file."""
        while self._has_more():
            self.skip(self.place.left)
        return self.place.position

    def _has_more(self) -> bool:
        """True if bytes are left; enters the next chunk if this one has been read."""
        while not self.place.left and not self.place.is_last:
            self._file.seek(self.place.position)
            length = read_vlong(self._file)
            self.place = BlockPlace(self._file.tell(), abs(length), length >= 0)
        return self.place.left > 0


def read_vlong(file: IO[bytes]) -> int:
    """Utils.readVLong. Raises InvalidArgumentException if the file ends."""
    first = int.from_bytes(_take(file, 1, 1), "big", signed=True)
    if first >= -32:
        return first
    for least, base, further in ((-72, 52, 1), (-104, 88, 2), (-120, 112, 3)):
        if first >= least:
            return (first + base) << 8 * further | int.from_bytes(_take(file, further, further), "big")
    length = first + 129
    return int.from_bytes(_take(file, length, length), "big", signed=True)


def vlong(number: int) -> bytes:
    """Utils.writeVLong: small numbers in one to four bytes with a tag in the first, others after their length."""
    if -32 <= number < 128:
        return number.to_bytes(1, "big", signed=True)
    for base, further, bound in ((52, 1, 20), (88, 2, 16), (112, 3, 8)):
        first = number >> 8 * further
        if -bound <= first < bound:
            low = number & (1 << 8 * further) - 1
            return (first - base).to_bytes(1, "big", signed=True) + low.to_bytes(further, "big")
    length = max(4, (~number if number < 0 else number).bit_length() // 8 + 1)
    return (length - 129).to_bytes(1, "big", signed=True) + number.to_bytes(length, "big", signed=True)


def _take(file: IO[bytes], length: int, most: int) -> bytes:
    if not 0 <= length <= most:
        raise _damaged(f"invalid length {length} (must be 0 to {most} bytes)")
    data = file.read(length)
    if len(data) < length:
        raise _damaged("it ends too early")
    return data


def _sized(data: bytes) -> bytes:
    return vlong(len(data)) + data


def _text(text: str) -> bytes:
    return _sized(text.encode())


def _check_compression(name: str) -> None:
    if name != NOT_COMPRESSED:
        raise InvalidArgumentException(
            f"the aggregated logs are compressed ({name}); only uncompressed ones can be read "
            "(set yarn.nodemanager.log-aggregation.compression-type to none)"
        )


def _damaged(problem: str) -> InvalidArgumentException:
    return InvalidArgumentException(f"not a TFile: {problem}")
