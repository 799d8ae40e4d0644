"""A connection of Hadoop's RPC: reads calls, has them answered concurrently, and sends each reply when it is there.

It does not read on while the client does not read its replies, or has UNANSWERED_MAX calls without one.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping

from msgspec import Struct

from wire.caller import Caller
from wire.connection_limits import ConnectionLimits
from wire.dispatch import CallDispatcher, ServedRpc
from wire.errors import shortened
from wire.generated.hadoop_rpc_pb2 import RpcResponseHeaderProto
from wire.hadoop_authentication import ByUser, HadoopAuthentication
from wire.hadoop_rpc.framing import failure, success
from wire.hadoop_rpc.session import CallRefused, Closed, HadoopCall, HadoopSession, Send
from wire.local_peer import Peer
from wire.running_calls import RunningCalls
from yarn.containers import Token
from yarn.errors import RemoteError, YarnException

UNANSWERED_MAX = 10_000
"""Calls of one connection that may wait for their replies."""
FAREWELL_S = 2.0
"""The time a refused client may take to read why. Closing at once, with bytes of it unread, would take the reason
away from it."""
NONCE_BYTES = 30
NAME_LENGTH_MAX = 256
"""Characters of a method's or a protocol's name in an error."""
IO_EXCEPTION = "java.io.IOException"
NO_SUCH_METHOD = "org.apache.hadoop.ipc.RpcNoSuchMethodException"
NO_SUCH_PROTOCOL = "org.apache.hadoop.ipc.RpcNoSuchProtocolException"
_APPLICATION = RpcResponseHeaderProto.ERROR_APPLICATION
_METHOD = RpcResponseHeaderProto.ERROR_NO_SUCH_METHOD
_PROTOCOL = RpcResponseHeaderProto.ERROR_NO_SUCH_PROTOCOL

_logger = logging.getLogger(f"yarnling.{__name__}")


UNREAD_BYTES_MAX = 128 * 1024 * 1024
"""Bytes of frames that are not complete, of all connections to one server. What would exceed it is refused."""


class UnreadBytes:
    """The bytes that the connections to one server hold for frames that are not complete."""

    def __init__(self) -> None:
        self.total = 0


class Service(Struct, frozen=True):
    """The common part of the connections to one server. `protocols` {Java's name: {method: the RPC}}."""

    dispatcher: CallDispatcher
    protocols: Mapping[str, Mapping[str, ServedRpc]]
    authentication: HadoopAuthentication
    limits: ConnectionLimits
    calls: RunningCalls
    unread: UnreadBytes


class HadoopConnection(asyncio.Protocol):
    """A connection, taken over from the listener. `left` is called once, when it is closed."""

    def __init__(
        self, service: Service, transport: asyncio.Transport, peer: str, left: Callable[[HadoopConnection], None]
    ) -> None:
        self.peer = peer
        self._service = service
        self._transport = transport
        self._left = left
        self._session = HadoopSession(service.authentication, secrets.token_urlsafe(NONCE_BYTES))
        self._loop = asyncio.get_running_loop()
        self._process = Peer(transport.get_extra_info("socket"))
        self._unanswered = 0
        self._unread = 0
        self._is_over = False
        self._readers_turn: asyncio.Future[None] | None = None
        self._last_read_s = self._loop.time()
        self._timer = self._loop.call_later(service.limits.handshake_ms / 1000, self._handshake_is_late)

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        self._last_read_s = self._loop.time()
        self._session.feed(data)
        self._go_on()
        self._count_unread()
        if self._service.unread.total > UNREAD_BYTES_MAX and not self._is_over:
            self._refuse(CallRefused(f"all connections together have more than {UNREAD_BYTES_MAX} unread bytes"))

    def eof_received(self) -> bool:
        """Return False, so that asyncio closes our side too: the client has closed its own."""
        return False

    def pause_writing(self) -> None:
        self._readers_turn = self._loop.create_future()

    def resume_writing(self) -> None:
        self._wake_writers()
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._timer.cancel()
        self._wake_writers()
        self._service.unread.total -= self._unread
        self._unread = 0
        self._left(self)

    def close(self) -> None:
        """Read no further calls; replies are still sent."""
        self._is_over = True

    def abort(self) -> None:
        self._transport.abort()

    def _go_on(self) -> None:
        """Take what has arrived as far as the limits allow."""
        was_open = self._session.is_open
        try:
            while not self._is_over and not self._must_wait():
                event = self._session.next_event()
                if event is None:
                    break
                if isinstance(event, Send):
                    self._transport.write(event.data)
                else:
                    self._unanswered += 1
                    self._service.calls.start(self._answer(event))
        except Closed:
            self._is_over = True
            self._transport.close()
        except CallRefused as refusal:
            self._refuse(refusal)
        if self._session.is_open and not was_open:
            self._opened()
        if self._must_wait():
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _count_unread(self) -> None:
        unread = self._session.unread_bytes
        self._service.unread.total += unread - self._unread
        self._unread = unread

    def _must_wait(self) -> bool:
        return self._readers_turn is not None or self._unanswered >= UNANSWERED_MAX

    async def _answer(self, call: HadoopCall) -> None:
        try:
            data = await self._reply(call)
        except YarnException as error:
            data = failure(call.header, java_class_of(error), shortened(error.message), _APPLICATION)
        finally:
            self._unanswered -= 1
        if data is not None and not self._transport.is_closing():
            self._transport.write(data)
        if not self._is_over:
            self._go_on()
            self._count_unread()

    async def _reply(self, call: HadoopCall) -> bytes | None:
        """The frame of the reply; None if it has been sent. Raises YarnException for a refused call."""
        methods = self._service.protocols.get(call.protocol)
        if methods is None:
            text = f"Unknown protocol: {call.protocol[:NAME_LENGTH_MAX]}"
            return failure(call.header, NO_SUCH_PROTOCOL, text, _PROTOCOL)
        served = methods.get(call.method)
        if served is None:
            text = f"Unknown method {call.method[:NAME_LENGTH_MAX]} called on {call.protocol} protocol."
            return failure(call.header, NO_SUCH_METHOD, text, _METHOD)
        caller = Caller(self._session.user, await self._token(), self.peer, None)
        await self._until_read()
        reply = await self._service.dispatcher.answer(served, _HadoopCall(caller, call, self))
        return None if reply is None else success(call.header, reply)

    async def _token(self) -> Token | None:
        """The token that the connection has proved to have, or that it needs no proof for."""
        authentication = self._service.authentication
        if not isinstance(authentication, ByUser):
            return self._session.token
        return authentication.own_token if await self._process.is_owner_or_root() else None

    async def deliver(self, data: bytes) -> None:
        """Send bytes; returns when the client has read all but the last of them.

        Raises CancelledError if it closes the connection instead.
        """
        if not self._transport.is_closing():
            self._transport.write(data)
        await self._until_read()

    async def _until_read(self) -> None:
        """Wait until the client has read enough of its replies. Raises CancelledError if it closes the connection."""
        while self._readers_turn is not None:
            await asyncio.shield(self._readers_turn)
        if self._transport.is_closing():
            raise asyncio.CancelledError

    def _wake_writers(self) -> None:
        turn, self._readers_turn = self._readers_turn, None
        if turn is not None:
            turn.set_result(None)

    def _opened(self) -> None:
        """Start to watch for idleness, because the handshake is complete."""
        self._timer.cancel()
        self._watch_idle()

    def _watch_idle(self) -> None:
        idle_s = self._service.limits.idle_ms / 1000
        left_s = self._last_read_s + idle_s - self._loop.time()
        if left_s <= 0:
            self._transport.abort()
        else:
            self._timer = self._loop.call_later(left_s, self._watch_idle)

    def _handshake_is_late(self) -> None:
        _logger.debug("closed a connection of Hadoop's RPC that was not authenticated in time peer=%s", self.peer)
        self._transport.abort()

    def _refuse(self, refusal: CallRefused) -> None:
        _logger.warning("closed a connection of Hadoop's RPC peer=%s: %s", self.peer, refusal)
        self._is_over = True
        self._timer.cancel()
        if not refusal.farewell:
            self._transport.abort()
            return
        self._transport.write(refusal.farewell)
        self._transport.write_eof()
        self._timer = self._loop.call_later(FAREWELL_S, self._transport.abort)


class _HadoopCall:
    """A call that Hadoop's RPC brought (wire.dispatch.IncomingCall)."""

    __slots__ = ("_call", "_caller", "_connection", "peer")

    def __init__(self, caller: Caller[None], call: HadoopCall, connection: HadoopConnection) -> None:
        self.peer = caller.peer
        self._caller = caller
        self._call = call
        self._connection = connection

    def identify(self) -> Caller[None]:
        return self._caller

    async def receive(self) -> bytes:
        return self._call.request

    async def deliver(self, data: bytes) -> None:
        await self._connection.deliver(success(self._call.header, data))


def java_class_of(error: YarnException) -> str:
    """The Java exception to send. Errors without a counterpart in Hadoop become IOException."""
    return IO_EXCEPTION if isinstance(error, RemoteError) else error.java_class
