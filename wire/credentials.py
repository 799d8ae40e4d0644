"""Credentials: the file with tokens that $HADOOP_TOKEN_FILE_LOCATION of a container names.

The format is Hadoop's `container_tokens` in the writable format, version 0:

    "HDTS" 0   count (alias identifier password kind service)*   count (alias secret)*

Counts and lengths are Hadoop's variable-length integers; texts are UTF-8, preceded by their length in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from yarn.containers import Token
from yarn.errors import InvalidArgumentException
from yarn.records import SecretRecord

MAGIC = b"HDTS"
VERSION = 0
ENTRIES_MAX = 10_000
"""The maximum of tokens, or of secrets, in one file; Hadoop's jobs have a handful."""


class Credentials(SecretRecord, frozen=True):
    """Tokens and secrets by alias: `tokens` {alias: token}, `secrets` {alias: bytes}."""

    secret_fields: ClassVar = ("secrets",)

    tokens: Mapping[str, Token] = field(default_factory=dict)
    secrets: Mapping[str, bytes] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The file's content; 7 bytes if there are no entries."""
        out = bytearray(MAGIC)
        out.append(VERSION)
        _put_vint(out, len(self.tokens))
        for alias, token in self.tokens.items():
            for part in (alias.encode(), token.identifier, token.password, token.kind.encode(), token.service.encode()):
                _put_bytes(out, part)
        _put_vint(out, len(self.secrets))
        for alias, secret in self.secrets.items():
            _put_bytes(out, alias.encode())
            _put_bytes(out, secret)
        return bytes(out)

    @staticmethod
    def from_bytes(data: bytes) -> Credentials:
        """Read a file's content; b"" (an unset field) means no entries.

        Raises InvalidArgumentException if it is not valid.
        """
        if not data:
            return Credentials()
        reader = _Reader(data)
        if reader.take(len(MAGIC)) != MAGIC:
            raise InvalidArgumentException(f"credentials start with {data[:4]!r}, must be {MAGIC!r}")
        version = reader.take(1)[0]
        if version != VERSION:
            raise InvalidArgumentException(f"credentials have format version {version}, only {VERSION} is supported")
        tokens = {}
        for _ in range(reader.count()):
            alias, identifier, password = reader.text(), reader.block(), reader.block()
            tokens[alias] = Token(identifier, password, reader.text(), reader.text())
        secrets = {}
        for _ in range(reader.count()):
            alias = reader.text()
            secrets[alias] = reader.block()
        return Credentials(tokens, secrets)

    def token_of_kind(self, kind: str) -> Token | None:
        """The first token of that kind, for example an AM's AMRM token; None if there is none."""
        return next((token for token in self.tokens.values() if token.kind == kind), None)

    def with_token(self, alias: str, token: Token) -> Credentials:
        return Credentials({**self.tokens, alias: token}, self.secrets)


class _Reader:
    """Reads bytes from front to back; each read checks that enough bytes are left."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        if size < 0 or len(part) < size:
            raise InvalidArgumentException(
                f"credentials end after {len(self._data)} bytes where {size} more should follow byte {self._at}"
            )
        self._at += size
        return part

    def vint(self) -> int:
        """A variable-length integer (WritableUtils.readVLong).

        -112..127 are one byte; for other numbers the first byte gives sign and length.
        """
        first = int.from_bytes(self.take(1), "big", signed=True)
        if first >= -112:
            return first
        negative = first < -120
        value = int.from_bytes(self.take(-120 - first if negative else -112 - first), "big")
        return ~value if negative else value

    def count(self) -> int:
        count = self.vint()
        if not 0 <= count <= ENTRIES_MAX:
            raise InvalidArgumentException(f"credentials claim {count} entries, at most {ENTRIES_MAX} are accepted")
        return count

    def block(self) -> bytes:
        return self.take(self.vint())

    def text(self) -> str:
        try:
            return self.block().decode()
        except UnicodeDecodeError:
            raise InvalidArgumentException("the credentials contain a text that is not UTF-8") from None


def _put_vint(out: bytearray, value: int) -> None:
    """Append a number that is not negative (WritableUtils.writeVLong)."""
    if value <= 127:
        out.append(value)
        return
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    out.append(256 - 112 - len(data))
    out += data


def _put_bytes(out: bytearray, data: bytes) -> None:
    _put_vint(out, len(data))
    out += data
