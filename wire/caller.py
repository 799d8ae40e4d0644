"""The caller of an RPC: the metadata sent with a call, and what the server derives from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from google.protobuf.message import DecodeError
from msgspec import Struct

from wire.codec.containers import read_token, write_token
from wire.generated.security_pb2 import TokenProto
from yarn.containers import Token
from yarn.errors import InvalidArgumentException, InvalidToken

USER_KEY = "yarn-user"
"""The metadata key of the user's name, which the server does not check, as in Hadoop's simple authentication."""
TOKEN_KEY = "yarn-token-bin"
"""The metadata key of a serialised TokenProto."""
USER_LENGTH_MAX = 256
RM_CALLER = "ResourceManager"
"""The user name that the RM sends when it calls an NM with an attempt's token, to start its AM. It proves nothing."""
TOKEN_BYTES_MAX = 16 * 1024
"""The maximum size of a token. A token has some 200 bytes; longer values are refused before they are parsed."""

Metadata = Iterable[tuple[str, str | bytes]]

Verified = TypeVar("Verified")


class Caller(Struct, Generic[Verified], frozen=True):
    """A caller as its server knows it. `user` is the name that it claims, `verified` is what its token proves.

    `verified` is an AMRMTokenIdentifier (AMs at the RM), an NMTokenIdentifier (AMs at an NM), a NodeId (NMs), a Pack
    (NMs that share a process) or None (clients, whose token does not identify them). `peer` is gRPC's name of the other
    end, for logs.
    """

    user: str
    token: Token | None
    peer: str
    verified: Verified


def caller_metadata(user: str = "", token: Token | None = None) -> tuple[tuple[str, str | bytes], ...]:
    """The metadata that identifies a caller to a server.

    Raises InvalidArgumentException for a user name that gRPC cannot send; the server checks whether the name is valid.
    """
    if not (user.isascii() and user.isprintable() and len(user) <= USER_LENGTH_MAX):
        raise InvalidArgumentException(
            f"invalid user name {user[:40]!r}: use at most {USER_LENGTH_MAX} printable ASCII characters"
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
    """The caller as the metadata describes it, not yet verified. Raises InvalidToken for a malformed token."""
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
        raise InvalidToken(
            f"the token in metadata {TOKEN_KEY} has {len(data)} bytes, at most {TOKEN_BYTES_MAX} are accepted"
        )
    try:
        return read_token(TokenProto.FromString(data))
    except DecodeError:
        raise InvalidToken(f"malformed token in metadata {TOKEN_KEY} ({len(data)} bytes)") from None
