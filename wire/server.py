"""A gRPC server for services that work on records; wire.dispatch answers its calls.

A listener of ours accepts the connections, and gRPC listens behind it on a Unix socket (wire.listener). The same port
can answer clients of Hadoop's own RPC (`answer_hadoop`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import grpc
import grpc.aio
from msgspec.structs import replace

from wire.address import Address, resolve
from wire.caller import Caller, read_caller
from wire.channel import MESSAGE_BYTES_MAX, METADATA_BYTES_MAX, NO_PROBES
from wire.connection_limits import ConnectionLimits
from wire.dispatch import Authenticate, CallDispatcher, Gate, RpcObserver, ServedProtocol, ServedRpc
from wire.errors import error_metadata, status_of, status_text
from wire.listener import HadoopAnswers, Listener
from wire.rpc import Rpc
from yarn.errors import YarnException

PENDING_MAX = 20_000
"""The maximum of calls that wait to be accepted. With gRPC's default, 133 of a burst of 2,000 calls were refused."""
UNREAD_BYTES_MAX = 16 * 1024
"""Bytes of a request that are received before the caller is authenticated (gRPC's default is 64 KiB): all pending calls
together can make a server buffer 320 MB. The rest of a longer request costs it another round trip."""
CONCURRENT_MAX = 20_000
"""The maximum of concurrent calls. gRPC refuses further calls before this server sees them."""
STREAMS_MAX = 256
"""The maximum of calls of one connection that are unanswered, or whose reply has not been read yet.

gRPC's clients queue further calls.
"""
TRIES = 10
"""Number of ports to try on several addresses: a port that is free on the first address may be in use on another."""
STOP_GRACE_S = 1.0
"""The time running calls may take to finish when the server stops."""

_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.max_concurrent_streams", STREAMS_MAX),
    ("grpc.http2.lookahead_bytes", UNREAD_BYTES_MAX),
    ("grpc.server.max_pending_requests", PENDING_MAX),
    ("grpc.server.max_pending_requests_hard_limit", PENDING_MAX),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    NO_PROBES,
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
)

Context = grpc.aio.ServicerContext[bytes, bytes]
MakeHadoopAnswers: TypeAlias = Callable[[CallDispatcher, Sequence[ServedProtocol], ConnectionLimits], HadoopAnswers]


class RpcServer:
    """Serves one or more protocols on one address. No gRPC object is created before `start`.

    `socket_dir`: a directory for the Unix socket of the gRPC server, created if needed with mode 0700. `further_hosts`:
    more loopback addresses on which it listens on the same port. `admits_all_users`: connections of other users of
    this machine are not closed. `gate`: see CallDispatcher.
    """

    def __init__(
        self,
        address: Address,
        socket_dir: Path,
        *,
        further_hosts: Sequence[str] = (),
        observers: Sequence[RpcObserver] = (),
        beyond_loopback: bool = False,
        limits: ConnectionLimits | None = None,
        admits_all_users: bool = False,
        gate: Gate | None = None,
    ) -> None:
        self.address = address
        self.port = 0
        self._socket_dir = socket_dir
        self._further_hosts = further_hosts
        self._beyond_loopback = beyond_loopback
        self._limits = limits or ConnectionLimits()
        self._admits_all_users = admits_all_users
        self._dispatcher = CallDispatcher(observers, gate)
        self._protocols: list[ServedProtocol] = []
        self._server: grpc.aio.Server | None = None
        self._make_hadoop: MakeHadoopAnswers | None = None
        self._listener: Listener | None = None

    def add(self, rpcs: tuple[Rpc[Any, Any], ...], handler: object, authenticate: Authenticate[Any]) -> None:
        """Serve one protocol. Call this method before `start`.

        `rpcs` are the Rpc objects that a class of wire.protocols declares. For each of them `handler` has a method,
        which wire.rpc.handles marks and which has the name of the class's attribute. `authenticate` returns what the
        caller's token proves (Caller.verified) or raises InvalidToken.
        """
        self._protocols.append(ServedProtocol(rpcs, handler, authenticate))

    def answer_hadoop(self, make: MakeHadoopAnswers) -> None:
        """Answer clients of Hadoop's RPC on the same port, too; call it before `start`.

        `make` is wire.hadoop_rpc.server.HadoopServer with its authentication; a process without Hadoop's clients does
        not import it.
        """
        self._make_hadoop = make

    async def start(self) -> int:
        """Listen; returns the port. Raises YarnException if the address is not available."""
        hosts = (await resolve(self.address, beyond_loopback=self._beyond_loopback), *self._further_hosts)
        make = self._make_hadoop
        hadoop = None if make is None else make(self._dispatcher, self._protocols, self._limits)
        listener = Listener(self._limits, hadoop, admits_all_users=self._admits_all_users)
        if not listener.bind(hosts, self.address.port, tries=TRIES):
            raise self._not_available()
        server = self._made(replace(self._limits, count=self._limits.count * len(hosts)), listener.peer_of)
        try:
            with listener.grpc_socket(self._socket_dir) as target:
                server.add_insecure_port(target)
            await server.start()
            await listener.start()
        except (OSError, RuntimeError) as error:
            await listener.stop(0)
            await server.stop(None)
            raise YarnException(
                f"cannot listen on a Unix socket in {self._socket_dir}: {error} (make it a directory of your own)"
            ) from None
        self._server, self._listener, self.port = server, listener, listener.port
        return self.port

    def _made(self, limits: ConnectionLimits, peer_of: Callable[[str], str]) -> grpc.aio.Server:
        server = grpc.aio.server(options=(*_OPTIONS, *limits.options()), maximum_concurrent_rpcs=CONCURRENT_MAX)
        for protocol in self._protocols:
            server.add_generic_rpc_handlers((self._bind(protocol, peer_of),))
        return server

    def _not_available(self) -> YarnException:
        further = f" and {len(self._further_hosts)} more addresses" if self._further_hosts else ""
        return YarnException(
            f"cannot listen on {self.address.said}{further}: the port is in use or not permitted "
            f"(stop the process that uses it, or set another port; 0 takes a free one)"
        )

    async def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """Accept no more calls, let running ones finish for `grace_s`, then cancel them."""
        server, self._server = self._server, None
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        if server is not None:
            await server.stop(grace_s)
        if listener is not None:
            await listener.stop(grace_s)

    def _bind(self, protocol: ServedProtocol, peer_of: Callable[[str], str]) -> grpc.GenericRpcHandler:
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {}
        for served in protocol.served():
            rpc = served.rpc
            # Callers see no difference. But only a method with a stream of requests decides when its request is
            # received, and only one with a stream of replies learns when its reply has been read.
            kind = grpc.stream_stream_rpc_method_handler if rpc.bulky else grpc.stream_unary_rpc_method_handler
            methods[rpc.name] = kind(self._serve(served, peer_of))
        return grpc.method_handlers_generic_handler(protocol.rpcs[0].service, methods)

    def _serve(self, served: ServedRpc, peer_of: Callable[[str], str]) -> Any:
        answer = self._dispatcher.answer

        async def serve(requests: object, context: Context) -> bytes | None:
            try:
                return await answer(served, _GrpcCall(peer_of(context.peer()), context))
            except YarnException as refusal:
                return await _refuse(context, refusal)

        return serve


class _GrpcCall:
    """A call that gRPC brought (wire.dispatch.IncomingCall)."""

    __slots__ = ("_context", "peer")

    def __init__(self, peer: str, context: Context) -> None:
        self.peer = peer
        self._context = context

    def identify(self) -> Caller[None]:
        return read_caller(self._context.invocation_metadata() or (), self.peer)

    async def receive(self) -> bytes:
        request: Any = await self._context.read()
        if not isinstance(request, bytes):
            # EOF: the call ended without a request.
            raise asyncio.CancelledError
        return request

    async def deliver(self, data: bytes) -> None:
        """Send the only message of a stream; returns when all but the last 64 KB of it have been read.

        Raises CancelledError, which ends the call without a reply, if the caller has closed the connection. There is
        no timeout: gRPC for Python cannot reset a single stream, so the reply would stay in memory beside the next one.
        """
        try:
            await self._context.write(data)
        except grpc.aio.InternalError:
            raise asyncio.CancelledError from None


async def _refuse(context: Context, error: YarnException) -> bytes:
    """End the call with `error`. Never returns: `abort` raises."""
    await context.abort(status_of(error), status_text(error), error_metadata(error))
    raise AssertionError("abort raises")
