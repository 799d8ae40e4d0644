"""A gRPC server for services that work on records: it authenticates the caller, decodes the request, calls the service,
encodes the reply, and turns errors into statuses.

A caller is authenticated before a byte of its message is parsed. An unexpected exception of a service is logged with
its traceback and sent as RemoteError; the daemon goes on.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

import grpc
import grpc.aio
from msgspec import Struct
from msgspec.structs import replace

from wire.address import Address, resolve
from wire.bulky_replies import BulkyReplies
from wire.caller import Caller, read_caller
from wire.channel import MESSAGE_BYTES_MAX, METADATA_BYTES_MAX, NO_PROBES
from wire.errors import error_metadata, status_of, status_text
from wire.rpc import Rpc
from yarn.errors import RemoteError, YarnException

PENDING_MAX = 100_000
"""Calls waiting to be accepted. gRPC's default refuses 133 of a burst of 2,000 (measured)."""
CONCURRENT_MAX = 20_000
"""Concurrent calls; further ones are refused unseen."""
STREAMS_MAX = 256
"""Calls of one connection that are not answered or whose reply is not read. gRPC's clients queue further ones."""
DESCRIPTORS_KEPT = 256
"""File descriptors that connections leave to the process's own files, pipes and calls."""
TRIES = 10
"""Ports to try for several addresses: a port that is free on the first one may be used on another."""
LOG_LINE_MAX = 4000
"""Characters of a message in the log; the rest is left out."""
STOP_GRACE_S = 1.0
"""How long running calls may take to finish when the server stops."""

_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.max_concurrent_streams", STREAMS_MAX),
    ("grpc.server.max_pending_requests", PENDING_MAX),
    ("grpc.server.max_pending_requests_hard_limit", PENDING_MAX),
    # With it two servers on one port would share its calls instead of failing.
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    NO_PROBES,
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
)

_logger = logging.getLogger(__name__)

Verified = TypeVar("Verified")
Authenticate = Callable[[Caller[None]], Verified]
Context = grpc.aio.ServicerContext[bytes, bytes]
Method = Callable[[Caller[Any], Any], Awaitable[Any]]


class RpcObserver(Protocol):
    """Called for each call that a server accepted and for its reply; must not block or raise."""

    def received(self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object) -> None: ...

    def answered(
        self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object, outcome: object, elapsed_ms: float
    ) -> None:
        """`request`: None if it was not read; `outcome`: the reply's record, or the YarnException that refused it."""


class WireLog:
    """Logs calls at DEBUG, `<` for requests, `>` for replies. Secrets have no repr."""

    def received(self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object) -> None:
        if _logger.isEnabledFor(logging.DEBUG):
            _logger.debug("< %s peer=%s user=%s %s", rpc.name, caller.peer, caller.user or "-", _cut(request))

    def answered(
        self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object, outcome: object, elapsed_ms: float
    ) -> None:
        if _logger.isEnabledFor(logging.DEBUG):
            _logger.debug("> %s peer=%s ms=%.1f %s", rpc.name, caller.peer, elapsed_ms, _cut(outcome))


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LOG_LINE_MAX else f"{text[:LOG_LINE_MAX]}... ({len(text)} characters)"


class ConnectionLimits(Struct, frozen=True):
    """Limits for the connections to one address of a server.

    `count`: further connections are closed; each ApplicationMaster, NodeManager or command has one. `handshake_ms`: the
    time for the HTTP/2 handshake (gRPC's default is two minutes). `idle_ms`: a connection without calls for so long is
    closed; its caller connects again with its next call.
    """

    count: int = 4_000
    handshake_ms: int = 20_000
    idle_ms: int = 1_800_000

    @staticmethod
    def for_addresses(count: int) -> ConnectionLimits:
        """The limits for a process with so many addresses: all connections together leave DESCRIPTORS_KEPT descriptors.

        Raises the process's limit of open files as far as needed and allowed.
        """
        most = ConnectionLimits()
        needed = count * most.count + DESCRIPTORS_KEPT
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < needed:
            soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft == resource.RLIM_INFINITY:
            return most
        return replace(most, count=max(1, min(most.count, (soft - DESCRIPTORS_KEPT) // count)))

    def options(self) -> tuple[tuple[str, int], ...]:
        """The limits as gRPC options."""
        return (
            ("grpc.max_allowed_incoming_connections", self.count),
            ("grpc.server_handshake_timeout_ms", self.handshake_ms),
            ("grpc.max_connection_idle_ms", self.idle_ms),
        )


class RpcServer:
    """Serves one or more protocols on one address. No gRPC object is created before `start`.

    `further_hosts`: more loopback addresses on which it listens on the same port.
    """

    def __init__(
        self,
        address: Address,
        *,
        further_hosts: Sequence[str] = (),
        observers: Sequence[RpcObserver] = (),
        beyond_loopback: bool = False,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self.address = address
        self.port = 0
        self._further_hosts = further_hosts
        self._beyond_loopback = beyond_loopback
        self._limits = limits or ConnectionLimits()
        self._observers: tuple[RpcObserver, ...] = (WireLog(), *observers)
        self._services: list[tuple[tuple[Rpc[Any, Any], ...], object, Authenticate[Any]]] = []
        self._server: grpc.aio.Server | None = None
        self._bulky = BulkyReplies()

    def add(self, rpcs: tuple[Rpc[Any, Any], ...], handler: object, authenticate: Authenticate[Any]) -> None:
        """Serve `rpcs` (the rows of a class in wire.protocols); call it before `start`.

        `handler` has a method of each row's name (wire.rpc.handles). `authenticate` returns what the caller's token
        proves (Caller.verified) or raises InvalidToken.
        """
        self._services.append((rpcs, handler, authenticate))

    async def start(self) -> int:
        """Listen; returns the port. Raises YarnException if the address is not available."""
        ip = await resolve(self.address, beyond_loopback=self._beyond_loopback)
        for _ in range(TRIES if self._further_hosts and not self.address.port else 1):
            server = self._made()
            port = self._listen(server, ip)
            if port:
                await server.start()
                self._server, self.port = server, port
                return port
            await server.stop(None)
        raise YarnException(
            f"cannot listen on {self.address.said}{self._said_further()}: the port is in use or not permitted "
            f"(stop the process that uses it, or set another port; 0 takes a free one)"
        )

    def _made(self) -> grpc.aio.Server:
        server = grpc.aio.server(options=(*_OPTIONS, *self._limits.options()), maximum_concurrent_rpcs=CONCURRENT_MAX)
        for rpcs, handler, authenticate in self._services:
            server.add_generic_rpc_handlers((self._bind(rpcs, handler, authenticate),))
        return server

    def _listen(self, server: grpc.aio.Server, ip: str) -> int:
        """The port on every host; 0 if one of the hosts does not have it free."""
        try:
            port = server.add_insecure_port(f"[{ip}]:{self.address.port}" if ":" in ip else f"{ip}:{self.address.port}")
            for host in self._further_hosts:
                if port:
                    port = server.add_insecure_port(f"{host}:{port}")
        except RuntimeError:
            return 0
        return port

    def _said_further(self) -> str:
        return f" and {len(self._further_hosts)} more addresses" if self._further_hosts else ""

    async def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """Accept no more calls, let running ones finish for `grace_s`, then cancel them."""
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop(grace_s)

    def _bind(
        self, rpcs: tuple[Rpc[Any, Any], ...], handler: object, authenticate: Authenticate[Any]
    ) -> grpc.GenericRpcHandler:
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {}
        for rpc in rpcs:
            # The same for callers; only a streaming server learns when its reply has been read.
            kind = grpc.unary_stream_rpc_method_handler if rpc.bulky else grpc.unary_unary_rpc_method_handler
            methods[rpc.name] = kind(self._serve(rpc, getattr(handler, rpc.method), authenticate))
        return grpc.method_handlers_generic_handler(rpcs[0].service, methods)

    def _serve(self, rpc: Rpc[Any, Any], method: Method, authenticate: Authenticate[Any]) -> Any:
        async def serve(request: bytes, context: Context) -> bytes | None:
            started = time.perf_counter()
            caller: Caller[Any] = Caller("", None, context.peer(), None)
            record: Any = None
            error: YarnException
            try:
                known = read_caller(context.invocation_metadata() or (), context.peer())
                caller = Caller(known.user, known.token, known.peer, authenticate(known))
                record = rpc.request.decode(request)
                for observer in self._observers:
                    observer.received(caller, rpc, record)
                if not rpc.bulky:
                    reply = await method(caller, record)
                    data = _checked(rpc, rpc.reply.encode(reply))
                    self._observe(caller, rpc, record, reply, started)
                    return data
                async with self._bulky.one_of(caller.peer):
                    reply, data = await self._bulky.build(rpc, lambda: method(caller, record))
                    _checked(rpc, data)
                    self._observe(caller, rpc, record, reply, started)
                    await _written(context, data)
                return None
            except YarnException as refusal:
                error = refusal
            except Exception as bug:
                _logger.exception("call failed rpc=%s peer=%s", rpc.name, caller.peer)
                error = RemoteError(f"{type(bug).__name__} in {rpc.name}; the server's log has the traceback")
            self._observe(caller, rpc, record, error, started)
            return await _refuse(context, error)

        return serve

    def _observe(
        self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object, outcome: object, started: float
    ) -> None:
        elapsed_ms = (time.perf_counter() - started) * 1000
        for observer in self._observers:
            observer.answered(caller, rpc, request, outcome, elapsed_ms)


def _checked(rpc: Rpc[Any, Any], data: bytes) -> bytes:
    if len(data) > MESSAGE_BYTES_MAX:
        raise RemoteError(f"the reply to {rpc.name} has {len(data)} bytes, at most {MESSAGE_BYTES_MAX} can be sent")
    return data


async def _written(context: Context, data: bytes) -> None:
    """Send the only message of a stream; returns when all but the last 64 KB of it have been read.

    Raises CancelledError, which ends the call without a reply, if the caller has closed the connection. There is no
    timeout: gRPC for Python cannot reset a single stream, so the reply would stay in memory beside the next one.
    """
    try:
        await context.write(data)
    except grpc.aio.InternalError:
        raise asyncio.CancelledError from None


async def _refuse(context: Context, error: YarnException) -> bytes:
    """End the call with `error`. Never returns: `abort` raises."""
    await context.abort(status_of(error), status_text(error), error_metadata(error))
    raise AssertionError("abort raises")
