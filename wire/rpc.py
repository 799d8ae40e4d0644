"""An RPC is declared once, as a row in the class of its protocol (wire.protocols):

    class ApplicationMasterProtocol(Proxy):
        service = "hadoop.yarn.ApplicationMasterProtocolService"
        allocate: Rpc[AllocateRequest, AllocateResponse] = Rpc("allocate", request codec, reply codec)

`ApplicationMasterProtocol.allocate` is the row, which a server serves. An object of the class is a proxy to one server,
and `proxy.allocate` is the method that sends the call. A service has a method of the row's name, marked with
`@handles(ApplicationMasterProtocol.allocate)`, so that type checkers compare it with the row.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Generic, TypeVar, overload

import grpc.aio

from wire.caller import Caller, caller_metadata
from wire.channel import MESSAGE_BYTES_MAX, Channels
from wire.codec.message_codec import MessageCodec
from wire.errors import error_of
from wire.failover import Failover
from wire.retry import NO_RETRY, RetryPolicy, retried
from yarn.containers import Token
from yarn.errors import (
    CallOutcomeUnknown,
    InvalidArgumentException,
    RemoteError,
    ServerUnavailable,
    StandbyException,
)

Request = TypeVar("Request")
Reply = TypeVar("Reply")
Service = TypeVar("Service")
Verified = TypeVar("Verified")
P = TypeVar("P", bound="Proxy")

DEFAULT_TIMEOUT_S = 20.0
"""The time a caller waits for a reply: longer than any healthy server takes, shorter than liveness intervals."""


class Rpc(Generic[Request, Reply]):
    """An RPC: its name on the wire and the codecs of its two messages.

    `reads`: the RPC changes nothing, so it may be sent again after any failure. `idempotent`: of several servers the
    next one may be called after any failure (Hadoop's annotation @Idempotent). `bulky`: its reply grows with the
    cluster, and servers queue such calls (wire.bulky_replies); the message of a bulky tuple has only repeated fields.
    `method`: the name of the row in its protocol, and of the service's method.
    """

    service: str
    method: str

    def __init__(
        self,
        name: str,
        request: MessageCodec[Request],
        reply: MessageCodec[Reply],
        *,
        reads: bool = False,
        idempotent: bool = False,
        bulky: bool = False,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        self.name = name
        self.request = request
        self.reply = reply
        self.reads = reads
        self.idempotent = idempotent
        self.bulky = bulky
        self.timeout_s = timeout_s

    def __set_name__(self, protocol: type[Proxy], method: str) -> None:
        self.service, self.method = protocol.service, method

    @property
    def path(self) -> str:
        """The path of the method in gRPC."""
        return f"/{self.service}/{self.name}"

    @overload
    def __get__(self, proxy: None, protocol: type[Proxy]) -> Rpc[Request, Reply]: ...
    @overload
    def __get__(self, proxy: Proxy, protocol: type[Proxy]) -> ProxyMethod[Request, Reply]: ...
    def __get__(self, proxy: Proxy | None, protocol: type[Proxy]) -> Rpc[Request, Reply] | ProxyMethod[Request, Reply]:
        return self if proxy is None else ProxyMethod(self, proxy)


class ProxyMethod(Generic[Request, Reply]):
    """An RPC to one server: `await proxy.allocate(request)`.

    If the request has no fields, the method takes no argument.
    """

    __slots__ = ("_proxy", "_rpc")

    def __init__(self, rpc: Rpc[Request, Reply], proxy: Proxy) -> None:
        self._rpc = rpc
        self._proxy = proxy

    @overload
    def __call__(self: ProxyMethod[None, Reply]) -> Coroutine[Any, Any, Reply]: ...
    @overload
    def __call__(self, request: Request) -> Coroutine[Any, Any, Reply]: ...
    def __call__(self, request: Any = None) -> Coroutine[Any, Any, Reply]:
        return self._proxy.call(self._rpc, request)


class Proxy:
    """A caller's connection to one server ("host:port"), or to the active one of several (Failover).

    Subclasses declare the RPCs of a protocol.

    A call raises the exception that the server raised, with the same class; ServerUnavailable if the server was not
    reached within the retry policy; CallOutcomeUnknown if no reply came. Close the proxy, or use it as a context
    manager. `channels`: if given, they are shared and not closed by the proxy. `timeout_s` overrides the timeout of
    each RPC, and includes connecting.
    """

    service: ClassVar[str]
    rpcs: ClassVar[tuple[Rpc[Any, Any], ...]]

    def __init_subclass__(cls) -> None:
        cls.rpcs = tuple(row for row in vars(cls).values() if isinstance(row, Rpc))

    def __init__(
        self,
        target: str | Failover,
        *,
        user: str = "",
        token: Token | None = None,
        retry: RetryPolicy = NO_RETRY,
        timeout_s: float | None = None,
        channels: Channels | None = None,
    ) -> None:
        self._failover = Failover.of(target)
        self._user = user
        self._metadata = caller_metadata(user, token)
        self._retry = retry
        self._timeout_s = timeout_s
        self._channels = channels or Channels()
        self._owns_channels = channels is None

    @property
    def target(self) -> str:
        """The address that is called."""
        return self._failover.current

    def use_token(self, token: Token) -> None:
        """Send this token from the next call on (an AM's token is renewed while it runs)."""
        self._metadata = caller_metadata(self._user, token)

    async def close(self) -> None:
        if self._owns_channels:
            await self._channels.close()

    async def __aenter__(self: P) -> P:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def call(self, rpc: Rpc[Request, Reply], request: Request) -> Reply:
        """Send `request`; returns the reply's record."""
        data = _encoded(rpc, request)
        if len(self._failover) == 1:
            reply = await retried(self._retry, lambda: self._send(rpc, data), reads=rpc.reads)
        else:
            again = rpc.reads or rpc.idempotent
            reply = await retried(self._retry, lambda: self._send_to_any(rpc, data, again=again), reads=again)
        try:
            return rpc.reply.decode(reply)
        except InvalidArgumentException as error:
            raise RemoteError(f"{rpc.name} at {self.target}: the reply cannot be read: {error.message}") from None

    async def _send_to_any(self, rpc: Rpc[Any, Any], data: bytes, *, again: bool) -> bytes:
        """Send the call to the server that answered last, then to each other one as long as it surely had no effect.

        `again`: also after an unknown outcome. Otherwise the next call goes to the next server then, and whether this
        one is sent again is up to the caller. Raises ServerUnavailable if none is active.
        """
        refusals, unknown = [], False
        for _ in range(len(self._failover)):
            target = self._failover.current
            try:
                return await self._send(rpc, data)
            except (ServerUnavailable, StandbyException) as error:
                self._failover.leave(target)
                if not error.definite and not again:
                    raise CallOutcomeUnknown(error.message) from None
                unknown = unknown or not error.definite
                refusals.append(f"{target}: {error.message}")
        text = f"no ResourceManager is active: {'; '.join(refusals)}"
        raise CallOutcomeUnknown(text) if unknown else ServerUnavailable(text)

    async def _send(self, rpc: Rpc[Any, Any], data: bytes) -> bytes:
        timeout_s = rpc.timeout_s if self._timeout_s is None else self._timeout_s
        target = self._failover.current
        channel = self._channels.get(target)
        try:
            return await channel.send(rpc.path, data, metadata=self._metadata, timeout_s=timeout_s)
        except grpc.aio.AioRpcError as failure:
            raise error_of(failure, target=target, method=rpc.name) from None


HandlerMethod = Callable[[Service, Caller[Verified], Request], Coroutine[Any, Any, Reply]]
"""The type of a service's method: it returns the reply's record, or raises YarnException to refuse the call."""


def handles(
    rpc: Rpc[Request, Reply],
) -> Callable[[HandlerMethod[Service, Verified, Request, Reply]], HandlerMethod[Service, Verified, Request, Reply]]:
    """Marks the method of a service that answers `rpc`. Type checkers compare its request and reply with the row's."""

    def check(
        method: HandlerMethod[Service, Verified, Request, Reply],
    ) -> HandlerMethod[Service, Verified, Request, Reply]:
        name = getattr(method, "__name__", "")
        assert name == rpc.method, f"{name} handles {rpc.method}: the method must have the row's name"
        return method

    return check


def _encoded(rpc: Rpc[Request, Any], request: Request) -> bytes:
    try:
        data = rpc.request.encode(request)
    except ValueError as error:
        raise InvalidArgumentException(f"{rpc.name}: {error}") from None
    if len(data) > MESSAGE_BYTES_MAX:
        raise InvalidArgumentException(
            f"{rpc.name}: the request has {len(data)} bytes, at most {MESSAGE_BYTES_MAX} can be sent "
            f"(split it into several calls)"
        )
    return data
