"""A connection of Hadoop's RPC as a state machine: bytes in, calls and bytes out. It does no I/O.

    preamble -> SASL, if the client wants it or the port needs it -> context -> calls

A client that has any token begins with SASL even where none is needed: at a port without tokens the answer to its
NEGOTIATE is SUCCESS, which means "go on without" (Hadoop: switch to simple).
"""

from __future__ import annotations

from enum import Enum, auto

from google.protobuf.message import Message
from msgspec import Struct

from wire.caller import USER_LENGTH_MAX
from wire.generated.hadoop_rpc_pb2 import (
    IpcConnectionContextProto,
    RequestHeaderProto,
    RpcKindProto,
    RpcRequestHeaderProto,
    RpcResponseHeaderProto,
    RpcSaslProto,
)
from wire.hadoop_authentication import ByToken, HadoopAuthentication
from wire.hadoop_rpc.framing import (
    AUTH_NONE,
    AUTH_SASL,
    CALL_ID_CONTEXT,
    CALL_ID_PING,
    CALL_ID_SASL,
    FRAME_BYTES_MAX,
    HANDSHAKE_FRAME_BYTES_MAX,
    MAGIC,
    PREAMBLE_BYTES,
    VERSION,
    FrameReader,
    MalformedFrame,
    MessageReader,
    failure,
    success,
)
from wire.hadoop_rpc.sasl import MECHANISM, REALM, Digest, check_token
from yarn.containers import Token
from yarn.errors import AccessControlException, InvalidToken, YarnException

SIMPLE_REFUSED = "SIMPLE authentication is not enabled.  Available:[TOKEN]"
_SASL_HEADER = RpcRequestHeaderProto(callId=CALL_ID_SASL, clientId=b"")


class HadoopCall(Struct, frozen=True):
    """A call that arrived: its header, to which the answer refers, its method's Java names, and its request."""

    header: RpcRequestHeaderProto
    method: str
    protocol: str
    request: bytes


class Send(Struct, frozen=True):
    """Bytes for the client."""

    data: bytes


class CallRefused(Exception):
    """The connection is refused: send `farewell`, if there is any, and close it."""

    def __init__(self, reason: str, farewell: bytes = b"") -> None:
        super().__init__(reason)
        self.farewell = farewell


class Closed(Exception):
    """The client has ended the connection."""


class _SessionStage(Enum):
    PREAMBLE = auto()
    SASL = auto()
    CONTEXT = auto()
    CALLS = auto()


class HadoopSession:
    """A connection. `user`: the name that the client claims; `token`: the token that it has proved to have."""

    def __init__(self, authentication: HadoopAuthentication, nonce: str) -> None:
        self.user = ""
        self.token: Token | None = None
        self._authentication = authentication
        self._digest = Digest(nonce)
        self._was_challenged = False
        self._stage = _SessionStage.PREAMBLE
        self._frames = FrameReader(HANDSHAKE_FRAME_BYTES_MAX)

    @property
    def is_open(self) -> bool:
        """True if the client is authenticated and has sent its context."""
        return self._stage is _SessionStage.CALLS

    @property
    def unread_bytes(self) -> int:
        """Bytes of a frame that is not complete, or of frames that `next_event` has not returned yet."""
        return self._frames.unread_bytes

    def feed(self, data: bytes) -> None:
        """Add bytes received from the client; then call `next_event` until it returns None."""
        self._frames.feed(data)

    def next_event(self) -> HadoopCall | Send | None:
        """The next message in the bytes so far; None if more are needed. Raises CallRefused or Closed at the end."""
        try:
            if self._stage is _SessionStage.PREAMBLE and not self._read_preamble():
                return None
            while (frame := self._frames.next_frame()) is not None:
                event = self._read_frame(MessageReader(frame))
                if event is not None:
                    return event
        except MalformedFrame as error:
            raise CallRefused(str(error)) from None
        return None

    def _read_preamble(self) -> bool:
        preamble = self._frames.take(PREAMBLE_BYTES)
        if preamble is None:
            return False
        version, authentication = preamble[4], preamble[6]
        if not preamble.startswith(MAGIC) or version != VERSION:
            raise CallRefused(f"version {version} of Hadoop's RPC, must be {VERSION}")
        if authentication == AUTH_NONE and isinstance(self._authentication, ByToken):
            raise _fatal(AccessControlException(SIMPLE_REFUSED))
        if authentication not in (AUTH_NONE, AUTH_SASL):
            raise CallRefused(f"unknown authentication {authentication} in the preamble")
        self._stage = _SessionStage.CONTEXT if authentication == AUTH_NONE else _SessionStage.SASL
        return True

    def _read_frame(self, messages: MessageReader) -> HadoopCall | Send | None:
        header = messages.next(RpcRequestHeaderProto)
        if header.rpcOp == RpcRequestHeaderProto.RPC_CLOSE_CONNECTION:
            raise Closed
        if header.callId == CALL_ID_PING:
            return None
        if self._stage is _SessionStage.SASL and header.callId == CALL_ID_SASL:
            return self._read_sasl(messages.next(RpcSaslProto))
        if self._stage is _SessionStage.CONTEXT and header.callId == CALL_ID_CONTEXT:
            self._read_context(messages.next(IpcConnectionContextProto))
            return None
        if self._stage is not _SessionStage.CALLS or header.callId < 0:
            raise CallRefused(f"a frame with callId {header.callId} before or after its time ({self._stage.name})")
        if header.rpcKind != RpcKindProto.RPC_PROTOCOL_BUFFER:
            raise CallRefused(f"a call of kind {header.rpcKind}, must be RPC_PROTOCOL_BUFFER")
        names = messages.next(RequestHeaderProto)
        return HadoopCall(header, names.methodName, names.declaringClassProtocolName, messages.next_bytes())

    def _read_sasl(self, message: RpcSaslProto) -> Send:
        if not isinstance(self._authentication, ByToken):
            # Also for a client that proposes SIMPLE itself.
            self._stage = _SessionStage.CONTEXT
            return _sasl_reply(RpcSaslProto(state=RpcSaslProto.SUCCESS))
        if message.state == RpcSaslProto.NEGOTIATE and not self._was_challenged:
            self._was_challenged = True
            offer = RpcSaslProto.SaslAuth(
                method="TOKEN", mechanism=MECHANISM, protocol="", serverId=REALM, challenge=self._digest.challenge()
            )
            return _sasl_reply(RpcSaslProto(state=RpcSaslProto.NEGOTIATE, auths=[offer]))
        if message.state != RpcSaslProto.INITIATE or not self._was_challenged:
            raise _fatal(InvalidToken(f"unexpected SASL state {RpcSaslProto.SaslState.Name(message.state)}"))
        if [auth.method for auth in message.auths] != ["TOKEN"]:
            raise _fatal(AccessControlException(SIMPLE_REFUSED))
        try:
            self.token, proof = check_token(self._digest, message.token, self._authentication.token_of)
        except InvalidToken as refusal:
            raise _fatal(refusal) from None
        self._stage = _SessionStage.CONTEXT
        return _sasl_reply(RpcSaslProto(state=RpcSaslProto.SUCCESS, token=proof))

    def _read_context(self, context: IpcConnectionContextProto) -> None:
        self.user = context.userInfo.effectiveUser[:USER_LENGTH_MAX]
        self._frames.limit = FRAME_BYTES_MAX
        self._stage = _SessionStage.CALLS


def _sasl_reply(message: Message) -> Send:
    return Send(success(_SASL_HEADER, message.SerializeToString()))


def _fatal(error: YarnException) -> CallRefused:
    """Refuse the connection with an error that the client reports."""
    detail = RpcResponseHeaderProto.FATAL_UNAUTHORIZED
    return CallRefused(error.message, failure(_SASL_HEADER, error.java_class, error.message, detail))
