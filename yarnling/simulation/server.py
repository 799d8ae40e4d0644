"""The services of a daemon in a simulation: the real services, behind the real codecs and the real checks of tokens.

It does what wire.server does: authenticates the caller, decodes the request, calls the service, encodes the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from wire.caller import Caller, Metadata, read_caller
from wire.errors import error_metadata, sent_error
from wire.rpc import Rpc
from yarn.containers import Token
from yarn.errors import YarnException
from yarnling.simulation.process import PendingAnswer, run

PEER = "ipv4:127.0.0.1:0"
"""The name of the other end, as gRPC would have it."""

Authenticate = Callable[[Caller[None]], Any]


class Envelope:
    """A request, or a reply, on its way: `payload` is its bytes, or its record if nothing is encoded.

    `is_unsent`: no connection for it has been found yet. `error`: a reply that is an error.
    """

    __slots__ = ("error", "is_unsent", "metadata", "payload", "rpc", "token", "user")

    def __init__(
        self,
        rpc: Rpc[Any, Any],
        payload: object,
        metadata: Metadata = (),
        user: str = "",
        token: Token | None = None,
        error: object = None,
    ) -> None:
        self.rpc = rpc
        self.payload = payload
        self.metadata = metadata
        self.user = user
        self.token = token
        self.error = error
        self.is_unsent = True

    def repeated(self) -> Envelope:
        """A copy of the request, for another attempt."""
        return Envelope(self.rpc, self.payload, self.metadata, self.user, self.token)

    @property
    def size(self) -> int:
        """Bytes; 0 for a record."""
        return len(self.payload) if isinstance(self.payload, bytes) else 0

    def content(self, encoded: bool) -> Any:
        """The record of a reply, or its error."""
        if self.error is not None:
            return sent_error(self.error) if isinstance(self.error, bytes) else self.error
        return self.rpc.reply.decode(self.payload) if encoded and isinstance(self.payload, bytes) else self.payload


class Server:
    """The services of one start of a process."""

    def __init__(self, *, encode: bool) -> None:
        self._encode = encode
        self._methods: dict[str, tuple[Callable[..., Coroutine[PendingAnswer, None, object]], Authenticate]] = {}
        self._known: dict[tuple[str, Token | None], Any] = {}

    def add(self, rpcs: tuple[Rpc[Any, Any], ...], service: object, authenticate: Authenticate) -> None:
        """Serve `rpcs` by the service's methods of their names."""
        for rpc in rpcs:
            self._methods[rpc.path] = (getattr(service, rpc.method), authenticate)

    def answer(self, message: Envelope, done: Callable[[Envelope], None]) -> None:
        """Serve a call; `done` gets the reply, perhaps in a later step of the core."""
        rpc = message.rpc
        method, authenticate = self._methods[rpc.path]

        def answered(outcome: object) -> None:
            done(self._reply(rpc, outcome))

        try:
            caller = self._caller(message, authenticate)
            request = rpc.request.decode(message.payload) if isinstance(message.payload, bytes) else message.payload
        except YarnException as error:
            answered(error)
        else:
            run(method(caller, request), answered)

    def _caller(self, message: Envelope, authenticate: Authenticate) -> Caller[Any]:
        if self._encode:
            known = read_caller(message.metadata, PEER)
            return Caller(known.user, known.token, known.peer, authenticate(known))
        # Without bytes a token cannot be another one: it is checked once.
        key = (message.rpc.service, message.token)
        if key not in self._known:
            self._known[key] = authenticate(Caller(message.user, message.token, PEER, None))
        return Caller(message.user, message.token, PEER, self._known[key])

    def _reply(self, rpc: Rpc[Any, Any], outcome: object) -> Envelope:
        if isinstance(outcome, YarnException):
            if not self._encode:
                return Envelope(rpc, None, error=outcome)
            ((_, data),) = error_metadata(outcome)
            return Envelope(rpc, b"", error=data)
        return Envelope(rpc, rpc.reply.encode(outcome) if self._encode else outcome)
