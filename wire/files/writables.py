"""Hadoop's Writables: variable-length integers, blocks of bytes and texts after their length, tokens.

Readers take from the front of a byte string, and raise InvalidArgumentException where it ends too early.
"""

from __future__ import annotations

from yarn.containers import Token
from yarn.errors import InvalidArgumentException


class WritableReader:
    """Reads values from the front of `data`. Errors name the data by `what`."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._what = what
        self._at = 0

    @property
    def position(self) -> int:
        """The number of bytes read."""
        return self._at

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        part = self._data[self._at : self._at + size]
        if size < 0 or len(part) < size:
            raise InvalidArgumentException(
                f"{self._what} end after {len(self._data)} bytes where {size} more should follow byte {self._at}"
            )
        self._at += size
        return part

    def vint(self) -> int:
        """WritableUtils.readVLong: -112..127 are one byte; otherwise the first byte gives sign and length."""
        first = int.from_bytes(self.take(1), "big", signed=True)
        if first >= -112:
            return first
        negative = first < -120
        value = int.from_bytes(self.take(-120 - first if negative else -112 - first), "big")
        return ~value if negative else value

    def block(self) -> bytes:
        """Bytes after their length."""
        return self.take(self.vint())

    def text(self) -> str:
        """A Text: UTF-8 after its length in bytes."""
        try:
            return self.block().decode()
        except UnicodeDecodeError:
            raise InvalidArgumentException(f"a text in the {self._what} is not UTF-8") from None

    def token(self) -> Token:
        """A Token: identifier, password, kind and service."""
        identifier, password = self.block(), self.block()
        return Token(identifier, password, self.text(), self.text())


def put_vint(out: bytearray, value: int) -> None:
    """WritableUtils.writeVLong."""
    if -112 <= value <= 127:
        out += value.to_bytes(1, "big", signed=True)
        return
    magnitude = value if value >= 0 else ~value
    data = magnitude.to_bytes((magnitude.bit_length() + 7) // 8, "big")
    out.append(256 - (112 if value >= 0 else 120) - len(data))
    out += data


def put_block(out: bytearray, data: bytes) -> None:
    """Bytes after their length."""
    put_vint(out, len(data))
    out += data


def put_token(out: bytearray, token: Token) -> None:
    """Token.write."""
    for part in (token.identifier, token.password, token.kind.encode(), token.service.encode()):
        put_block(out, part)
