"""The steps of a server for each call, whichever protocol brought it: authenticate the caller, decode the request, call
the service, encode the reply, and report call and outcome to the observers.

A caller is authenticated before its message is received, so that one without a token cannot fill the daemon's memory.
An unexpected exception of a service is logged with its traceback and raised as RemoteError; the daemon goes on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from wire.bulky_replies import BulkyReplies
from wire.caller import Caller
from wire.channel import MESSAGE_BYTES_MAX
from wire.rpc import Rpc
from yarn.errors import RemoteError, YarnException

LOG_LINE_MAX = 4000
"""Characters of a message in the log; the rest is left out."""

_logger = logging.getLogger(f"yarnling.{__name__}")

Verified = TypeVar("Verified")
Authenticate = Callable[[Caller[None]], Verified]
Gate = Callable[[], None]
"""Raises an error while this server must not answer calls, because another server does."""
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


class ServedRpc:
    """An RPC, the service's method for it, and the check of its callers."""

    __slots__ = ("authenticate", "method", "rpc")

    def __init__(self, rpc: Rpc[Any, Any], method: Method, authenticate: Authenticate[Any]) -> None:
        self.rpc = rpc
        self.method = method
        self.authenticate = authenticate


class ServedProtocol(Struct, frozen=True):
    """The rows of a protocol, the service that answers them, and the check of its callers."""

    rpcs: tuple[Rpc[Any, Any], ...]
    handler: object
    authenticate: Authenticate[Any]

    def served(self) -> tuple[ServedRpc, ...]:
        return tuple(ServedRpc(rpc, getattr(self.handler, rpc.method), self.authenticate) for rpc in self.rpcs)


class IncomingCall(Protocol):
    """A call as its protocol brought it. `peer` is the other end as gRPC writes it."""

    @property
    def peer(self) -> str: ...

    def identify(self) -> Caller[None]:
        """The caller as it names itself, not yet verified. Raises InvalidToken for a malformed token."""
        ...

    async def receive(self) -> bytes:
        """The request's bytes. Raises CancelledError if the caller takes the call back instead."""
        ...

    async def deliver(self, data: bytes) -> None:
        """Send a bulky reply; returns when the caller has read all but the last part of it."""
        ...


class CallDispatcher:
    """Answers the calls of one server. `gate` is asked before a call is handled, and again before its reply is sent."""

    def __init__(self, observers: Sequence[RpcObserver], gate: Gate | None = None) -> None:
        self._gate = gate
        self._observers: tuple[RpcObserver, ...] = (WireLog(), *observers)
        self._bulky = BulkyReplies()

    async def answer(self, served: ServedRpc, call: IncomingCall) -> bytes | None:
        """The reply's bytes; None if it is bulky and has been delivered. Raises YarnException for a refused call."""
        started = time.perf_counter()
        rpc = served.rpc
        caller: Caller[Any] = Caller("", None, call.peer, None)
        record: Any = None
        error: YarnException
        try:
            if self._gate is not None:
                self._gate()
            known = call.identify()
            caller = Caller(known.user, known.token, known.peer, served.authenticate(known))
            record = rpc.request.decode(await call.receive())
            for observer in self._observers:
                observer.received(caller, rpc, record)
            if not rpc.bulky:
                reply = await served.method(caller, record)
                if self._gate is not None:
                    _check_reply(self._gate)
                data = _checked(rpc, rpc.reply.encode(reply))
                self._observe(caller, rpc, record, reply, started)
                return data
            async with self._bulky.one_of(caller.peer):
                reply, data = await self._bulky.build(rpc, lambda: served.method(caller, record))
                _checked(rpc, data)
                if self._gate is not None:
                    _check_reply(self._gate)
                self._observe(caller, rpc, record, reply, started)
                await call.deliver(data)
            return None
        except YarnException as refusal:
            error = refusal
        except Exception as bug:
            _logger.exception("call failed rpc=%s peer=%s", rpc.name, caller.peer)
            error = RemoteError(f"{type(bug).__name__} in {rpc.name}; the server's log has the traceback")
        self._observe(caller, rpc, record, error, started)
        raise error

    def _observe(
        self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object, outcome: object, started: float
    ) -> None:
        elapsed_ms = (time.perf_counter() - started) * 1000
        for observer in self._observers:
            observer.answered(caller, rpc, request, outcome, elapsed_ms)


def _check_reply(gate: Gate) -> None:
    """Raises the gate's error, not definite: the call has been handled, and may or may not have had its effect."""
    try:
        gate()
    except YarnException as error:
        error.definite = False
        raise


def _checked(rpc: Rpc[Any, Any], data: bytes) -> bytes:
    if len(data) > MESSAGE_BYTES_MAX:
        raise RemoteError(f"the reply to {rpc.name} has {len(data)} bytes, at most {MESSAGE_BYTES_MAX} can be sent")
    return data
