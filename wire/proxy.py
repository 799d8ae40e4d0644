"""What the proxies of all protocols have in common (wire.proxies).

A proxy raises what its server raised, under the same class; ServerUnavailable if it was not reached within its retry
policy, CallOutcomeUnknown if an answer did not come.
"""

from __future__ import annotations

from typing import Any, TypeVar

import grpc.aio

from wire.caller import caller_metadata
from wire.channel import MESSAGE_BYTES_MAX, Channels
from wire.errors import error_of
from wire.retry import NO_RETRY, RetryPolicy, retried
from wire.rpc import Rpc
from yarn.containers import Token
from yarn.errors import InvalidArgumentException, RemoteError

Request = TypeVar("Request")
Reply = TypeVar("Reply")
P = TypeVar("P", bound="Proxy")


class Proxy:
    """One caller's way to one server ("host:port"). Close it, or use it as a context manager.

    `channels` given: shared, and not closed here. `timeout_s` overrides each call's own deadline; connecting counts.
    """

    def __init__(
        self,
        target: str,
        *,
        user: str = "",
        token: Token | None = None,
        retry: RetryPolicy = NO_RETRY,
        timeout_s: float | None = None,
        channels: Channels | None = None,
    ) -> None:
        self.target = target
        self._user = user
        self._metadata = caller_metadata(user, token)
        self._retry = retry
        self._timeout_s = timeout_s
        self._channels = channels or Channels()
        self._owns_channels = channels is None

    def use_token(self, token: Token) -> None:
        """Show this token from the next call on (an AM's token is renewed while it runs)."""
        self._metadata = caller_metadata(self._user, token)

    async def close(self) -> None:
        if self._owns_channels:
            await self._channels.close()

    async def __aenter__(self: P) -> P:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def call(self, rpc: Rpc[Request, Reply], request: Request) -> Reply:
        """Send `request`; the reply's record."""
        data = _encoded(rpc, request)
        reply = await retried(self._retry, lambda: self._send(rpc, data), reads=rpc.reads)
        try:
            return rpc.reply.decode(reply)
        except InvalidArgumentException as error:
            raise RemoteError(f"{rpc.name} at {self.target}: the reply cannot be read: {error.message}") from None

    async def _send(self, rpc: Rpc[Any, Any], data: bytes) -> bytes:
        timeout_s = rpc.timeout_s if self._timeout_s is None else self._timeout_s
        channel = self._channels.get(self.target)
        try:
            return await channel.send(rpc.path, data, metadata=self._metadata, timeout_s=timeout_s)
        except grpc.aio.AioRpcError as failure:
            raise error_of(failure, target=self.target, method=rpc.name) from None


def _encoded(rpc: Rpc[Request, Any], request: Request) -> bytes:
    try:
        data = rpc.request.encode(request)
    except ValueError as error:
        raise InvalidArgumentException(f"{rpc.name}: {error}") from None
    if len(data) > MESSAGE_BYTES_MAX:
        raise InvalidArgumentException(
            f"{rpc.name}: the request has {len(data)} bytes, at most {MESSAGE_BYTES_MAX} can be sent "
            f"(send less at once)"
        )
    return data
