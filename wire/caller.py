"""Who calls: the metadata that travels beside a call, and what the server made of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from google.protobuf.message import DecodeError
from msgspec import Struct

from protos.security_pb2 import TokenProto
from wire.codec.containers import read_token, write_token
from yarn.containers import Token
from yarn.errors import InvalidArgumentException, InvalidToken

USER_KEY = "yarn-user"
"""Metadata: the user's name, which the server believes, as in Hadoop's simple authentication."""
TOKEN_KEY = "yarn-token-bin"
"""Metadata: a serialised TokenProto."""
USER_LENGTH_MAX = 256
RM_CALLER = "ResourceManager"
"""What the RM says it is where it calls with an attempt's token, to start its master; it proves nothing."""
TOKEN_BYTES_MAX = 16 * 1024
"""A token is some 200 bytes; the bound keeps rubbish away from the parser."""

Metadata = Iterable[tuple[str, str | bytes]]

Verified = TypeVar("Verified")


class Caller(Struct, Generic[Verified], frozen=True):
    """A caller as its server knows it: `user` is what it says, `verified` what its token proves.

    `verified` is an AMRMTokenIdentifier (masters), an NMTokenIdentifier (at an NM), a NodeId (nodes) or None
    (clients, whose token says nothing about who they are). `peer` is gRPC's name of the other end, for logs.
    """

    user: str
    token: Token | None
    peer: str
    verified: Verified


def caller_metadata(user: str = "", token: Token | None = None) -> tuple[tuple[str, str | bytes], ...]:
    """The metadata that tells a server who calls.

    Raises InvalidArgumentException for a name that gRPC cannot carry; which names are users' is the server's to say.
    """
    if not (user.isascii() and user.isprintable() and len(user) <= USER_LENGTH_MAX):
        raise InvalidArgumentException(
            f"{user[:40]!r} is no name of a user (at most {USER_LENGTH_MAX} printable ASCII characters)"
        )
    metadata: list[tuple[str, str | bytes]] = []
    if user:
        metadata.append((USER_KEY, user))
    if token is not None:
        proto = TokenProto()
        write_token(token, proto)
        metadata.append((TOKEN_KEY, proto.SerializeToString()))
    return tuple(metadata)


def read_caller(metadata: Metadata, peer: str) -> Caller[None]:
    """Who says that it calls, not yet verified. Raises InvalidToken for a token that is none."""
    user = ""
    token = None
    for key, value in metadata:
        if key == USER_KEY:
            user = str(value)[:USER_LENGTH_MAX]
        elif key == TOKEN_KEY:
            token = _parse_token(value if isinstance(value, bytes) else value.encode())
    return Caller(user, token, peer, None)


def _parse_token(data: bytes) -> Token:
    if len(data) > TOKEN_BYTES_MAX:
        raise InvalidToken(f"a token of {len(data)} bytes, at most {TOKEN_BYTES_MAX} are taken")
    try:
        return read_token(TokenProto.FromString(data))
    except DecodeError:
        raise InvalidToken(f"{len(data)} bytes in {TOKEN_KEY} are no token") from None
