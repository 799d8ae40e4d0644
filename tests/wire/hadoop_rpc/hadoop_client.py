"""A client of Hadoop's RPC for tests, written from Hadoop's Client and SaslRpcClient and from RFC 2831."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from wire.generated.hadoop_rpc_pb2 import (
    IpcConnectionContextProto,
    RequestHeaderProto,
    RpcRequestHeaderProto,
    RpcResponseHeaderProto,
    RpcSaslProto,
)
from wire.rpc import Rpc
from yarn.containers import Token

CLIENT_PROTOCOL = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"
MASTER_PROTOCOL = "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB"
NM_PROTOCOL = "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB"
ADMIN_PROTOCOL = "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
CLIENT_ID = bytes(range(16))
SASL_ID, CONTEXT_ID, PING_ID = -33, -3, -4
SASL_ID_UNSIGNED = 0xFFFFFFDF
PREAMBLE_SIMPLE, PREAMBLE_SASL = b"hrpc\x09\x00\x00", b"hrpc\x09\x00\xdf"


class HadoopError(Exception):
    """The error that the server sent instead of a reply."""

    def __init__(self, header: RpcResponseHeaderProto) -> None:
        super().__init__(header.exceptionClassName, header.errorMsg)
        self.header = header
        self.seen = header.status, header.exceptionClassName, header.errorMsg, header.errorDetail


def delimited(*messages: bytes) -> bytes:
    out = bytearray()
    for message in messages:
        length = len(message)
        while length > 127:
            out.append(length & 127 | 128)
            length >>= 7
        out.append(length)
        out += message
    return bytes(out)


def frame(call_id: int, *messages: bytes, retry: int = -1, operation: int = 0) -> bytes:
    header = RpcRequestHeaderProto(rpcKind=2, rpcOp=operation, callId=call_id, clientId=CLIENT_ID, retryCount=retry)  # type: ignore[arg-type]
    content = delimited(header.SerializeToString(), *messages)
    return len(content).to_bytes(4, "big") + content


def call_frame(call_id: int, protocol: str, method: str, request: bytes) -> bytes:
    names = RequestHeaderProto(methodName=method, declaringClassProtocolName=protocol, clientProtocolVersion=1)
    return frame(call_id, names.SerializeToString(), request, retry=0)


def context_frame(user: str, protocol: str = CLIENT_PROTOCOL) -> bytes:
    context = IpcConnectionContextProto(protocol=protocol)
    if user:
        context.userInfo.effectiveUser = user
    return frame(CONTEXT_ID, context.SerializeToString())


def sasl_frame(message: RpcSaslProto) -> bytes:
    return frame(SASL_ID, message.SerializeToString())


def digest_response(
    challenge: bytes, username: str, password: str, uri: str = "/default", cnonce: str = "abc"
) -> bytes:
    """RFC 2831's answer of a client to a challenge."""
    uri, cnonce = "/default", "abc"
    given = dict(re.findall(r'(\w+)="([^"]*)"', challenge.decode()))

    def digest(data: bytes) -> bytes:
        return hashlib.md5(data).digest()

    a1 = digest(f"{username}:{given['realm']}:{password}".encode()) + f":{given['nonce']}:{cnonce}".encode()
    a2 = digest(f"AUTHENTICATE:{uri}".encode()).hex()
    proof = digest(f"{digest(a1).hex()}:{given['nonce']}:00000001:{cnonce}:auth:{a2}".encode()).hex()
    return (
        f'charset=utf-8,username="{username}",realm="{given["realm"]}",nonce="{given["nonce"]}",nc=00000001,'
        f'cnonce="{cnonce}",digest-uri="{uri}",maxbuf=65536,response={proof},qop=auth'
    ).encode()


def digest_of_token(challenge: bytes, token: Token) -> bytes:
    username, password = (base64.b64encode(data).decode() for data in (token.identifier, token.password))
    return digest_response(challenge, username, password)


class FrameSource:
    """Reads the server's frames."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def next(self) -> tuple[RpcResponseHeaderProto, bytes]:
        """A header and the bytes of the message after it. Raises IncompleteReadError at the end."""
        content = await self._reader.readexactly(int.from_bytes(await self._reader.readexactly(4), "big"))
        header, rest = self._cut(content)
        body, left = self._cut(rest) if rest else (b"", b"")
        assert left == b""
        return RpcResponseHeaderProto.FromString(header), body

    @staticmethod
    def _cut(data: bytes) -> tuple[bytes, bytes]:
        length = shift = at = 0
        while True:
            length |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return data[at : at + length], data[at + length :]


class HadoopClient:
    """A connection; make it with `connected`. Calls may be concurrent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, protocol: str) -> None:
        self.frames = FrameSource(reader)
        self.writer = writer
        self._protocol = protocol
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._next_id = 0

    async def authenticate(self, user: str, token: Token | None, *, sasl: bool) -> None:
        self.writer.write(PREAMBLE_SASL if sasl or token else PREAMBLE_SIMPLE)
        if sasl or token:
            offered = await self.sasl(RpcSaslProto(state=RpcSaslProto.NEGOTIATE))
            if offered.state == RpcSaslProto.NEGOTIATE:
                assert token is not None, "the server wants a token"
                (auth,) = offered.auths
                reply = await self.sasl(initiate(auth, digest_of_token(auth.challenge, token)))
                assert reply.state == RpcSaslProto.SUCCESS
                assert reply.token.startswith(b"rspauth=")
        self.writer.write(context_frame(user, self._protocol))

    async def sasl(self, message: RpcSaslProto) -> RpcSaslProto:
        self.writer.write(sasl_frame(message))
        header, body = await self.frames.next()
        if header.status != RpcResponseHeaderProto.SUCCESS:
            raise HadoopError(header)
        assert header.callId == SASL_ID_UNSIGNED
        return RpcSaslProto.FromString(body)

    async def read_replies(self) -> None:
        try:
            while True:
                header, body = await self.frames.next()
                assert header.clientId == CLIENT_ID
                assert header.serverIpcVersionNum == 9
                waiting = self._waiting.pop(header.callId)
                if header.status == RpcResponseHeaderProto.SUCCESS:
                    waiting.set_result(body)
                else:
                    waiting.set_exception(HadoopError(header))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            for waiting in self._waiting.values():
                waiting.set_exception(ConnectionError(str(error)))

    async def send(self, method: str, request: bytes, protocol: str = "") -> bytes:
        """The reply's bytes. Raises HadoopError."""
        number, self._next_id = self._next_id, self._next_id + 1
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        self.writer.write(call_frame(number, protocol or self._protocol, method, request))
        return await waiting

    async def call(self, rpc: Rpc[Any, Any], request: object = None) -> Any:
        return rpc.reply.decode(await self.send(rpc.name, rpc.request.encode(request)))


def initiate(auth: RpcSaslProto.SaslAuth, response: bytes) -> RpcSaslProto:
    chosen = RpcSaslProto.SaslAuth(method=auth.method, mechanism=auth.mechanism, protocol="", serverId=auth.serverId)
    return RpcSaslProto(state=RpcSaslProto.INITIATE, token=response, auths=[chosen])


@asynccontextmanager
async def connected(
    target: str,
    protocol: str = CLIENT_PROTOCOL,
    *,
    user: str = "ann",
    token: Token | None = None,
    sasl: bool = False,
) -> AsyncIterator[HadoopClient]:
    """A client of the server at "host:port", authenticated. `sasl`: begin with SASL although there is no token."""
    host, port = target.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    client = HadoopClient(reader, writer, protocol)
    try:
        await client.authenticate("" if token else user, token, sasl=sasl)
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(client.read_replies())
            yield client
            reading.cancel()
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
