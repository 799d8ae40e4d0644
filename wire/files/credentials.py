"""Credentials: the file with tokens that $HADOOP_TOKEN_FILE_LOCATION of a container names.

The format is Hadoop's `container_tokens` in the writable format, version 0:

    "HDTS" 0   count (alias identifier password kind service)*   count (alias secret)*

Counts and lengths are Hadoop's variable-length integers; texts are UTF-8, preceded by their length in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from wire.files.writables import WritableReader, put_block, put_token, put_vint
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
        put_vint(out, len(self.tokens))
        for alias, token in self.tokens.items():
            put_block(out, alias.encode())
            put_token(out, token)
        put_vint(out, len(self.secrets))
        for alias, secret in self.secrets.items():
            put_block(out, alias.encode())
            put_block(out, secret)
        return bytes(out)

    @staticmethod
    def from_bytes(data: bytes) -> Credentials:
        """Read a file's content; b"" (an unset field) means no entries.

        Raises InvalidArgumentException if it is not valid.
        """
        if not data:
            return Credentials()
        reader = WritableReader(data, "credentials")
        if reader.take(len(MAGIC)) != MAGIC:
            raise InvalidArgumentException(f"credentials start with {data[:4]!r}, must be {MAGIC!r}")
        version = reader.take(1)[0]
        if version != VERSION:
            raise InvalidArgumentException(f"credentials have format version {version}, only {VERSION} is supported")
        tokens = {}
        for _ in range(_count(reader)):
            alias = reader.text()
            tokens[alias] = reader.token()
        secrets = {}
        for _ in range(_count(reader)):
            alias = reader.text()
            secrets[alias] = reader.block()
        return Credentials(tokens, secrets)

    def token_of_kind(self, kind: str) -> Token | None:
        """The first token of that kind, for example an AM's AMRM token; None if there is none."""
        return next((token for token in self.tokens.values() if token.kind == kind), None)

    def with_token(self, alias: str, token: Token) -> Credentials:
        return Credentials({**self.tokens, alias: token}, self.secrets)


def _count(reader: WritableReader) -> int:
    count = reader.vint()
    if not 0 <= count <= ENTRIES_MAX:
        raise InvalidArgumentException(f"credentials claim {count} entries, at most {ENTRIES_MAX} are accepted")
    return count
