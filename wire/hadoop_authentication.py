"""The authentication of clients of Hadoop's RPC at a server (wire.hadoop_rpc)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from yarn.containers import Token


class ByToken(Struct, frozen=True):
    """Clients prove with DIGEST-MD5 that they have a token.

    `token_of` returns the token with an identifier, or raises InvalidToken if none
    with it would be accepted.
    """

    token_of: Callable[[bytes], Token]


class ByUser(Struct, frozen=True):
    """Clients show nothing (SIMPLE): what counts is the user of their process.

    `own_token`: a call of the server's own user, or of root, is treated as if it carried this token. Calls of other
    users carry none.
    """

    own_token: Token


HadoopAuthentication: TypeAlias = ByToken | ByUser
