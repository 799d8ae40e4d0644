"""A connection of Hadoop's RPC as bytes: frames however they are cut, the handshake, and each refusal."""

from __future__ import annotations

import contextlib
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.hadoop_rpc.hadoop_client import (
    CLIENT_ID,
    CLIENT_PROTOCOL,
    PING_ID,
    PREAMBLE_SASL,
    PREAMBLE_SIMPLE,
    SASL_ID,
    SASL_ID_UNSIGNED,
    call_frame,
    context_frame,
    delimited,
    digest_of_token,
    frame,
    initiate,
    sasl_frame,
)
from wire.generated.hadoop_rpc_pb2 import RpcRequestHeaderProto, RpcResponseHeaderProto, RpcSaslProto
from wire.hadoop_authentication import ByToken, ByUser, HadoopAuthentication
from wire.hadoop_rpc.framing import (
    FRAME_BYTES_MAX,
    HANDSHAKE_FRAME_BYTES_MAX,
    FrameReader,
    MalformedFrame,
    MessageReader,
    failure,
    success,
)
from wire.hadoop_rpc.session import CallRefused, Closed, HadoopCall, HadoopSession, Send
from yarn.containers import AMRM_KIND, CLIENT_KIND, Token
from yarn.errors import InvalidToken

TOKEN = Token(b"attempt 1", b"its password", AMRM_KIND, "")
INVALID_TOKEN = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
BY_USER = ByUser(Token(b"", b"", CLIENT_KIND, ""))


def token_of(identifier: bytes) -> Token:
    if identifier != TOKEN.identifier:
        raise InvalidToken("no such attempt")
    return TOKEN


BY_TOKEN = ByToken(token_of)


def session(authentication: HadoopAuthentication = BY_USER) -> HadoopSession:
    return HadoopSession(authentication, "nonce")


def events(of: HadoopSession, data: bytes) -> list[HadoopCall | Send]:
    of.feed(data)
    found = []
    while (event := of.next_event()) is not None:
        found.append(event)
    return found


def refusal(of: HadoopSession, data: bytes) -> CallRefused:
    with pytest.raises(CallRefused) as caught:
        events(of, data)
    return caught.value


def reply(data: bytes) -> tuple[RpcResponseHeaderProto, bytes]:
    (header, body) = read_frame(data)
    return RpcResponseHeaderProto.FromString(header), body


def read_frame(data: bytes) -> tuple[bytes, bytes]:
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    reader = MessageReader(data[4:])
    header = reader.next_bytes()
    try:
        return header, reader.next_bytes()
    except MalformedFrame:
        return header, b""


def sasl_reply(event: HadoopCall | Send) -> RpcSaslProto:
    assert isinstance(event, Send)
    header, body = reply(event.data)
    assert (header.callId, header.status) == (SASL_ID_UNSIGNED, RpcResponseHeaderProto.SUCCESS)
    return RpcSaslProto.FromString(body)


NEGOTIATE = sasl_frame(RpcSaslProto(state=RpcSaslProto.NEGOTIATE))
SIMPLE_TALK = (
    PREAMBLE_SIMPLE
    + context_frame("ann")
    + call_frame(0, CLIENT_PROTOCOL, "getClusterMetrics", b"")
    + frame(PING_ID)
    + call_frame(1, CLIENT_PROTOCOL, "getApplications", b"x" * 300)
)


def test_a_client_without_tokens_sends_its_context_and_calls() -> None:
    one = session()
    first, second = events(one, SIMPLE_TALK)
    assert one.is_open
    assert (one.user, one.token) == ("ann", None)
    assert isinstance(first, HadoopCall)
    assert isinstance(second, HadoopCall)
    assert (first.header.callId, first.method, first.protocol, first.request) == (
        0,
        "getClusterMetrics",
        CLIENT_PROTOCOL,
        b"",
    )
    assert (second.header.clientId, second.method, second.request) == (CLIENT_ID, "getApplications", b"x" * 300)


def test_bytes_may_be_cut_anywhere() -> None:
    expected = events(session(), SIMPLE_TALK)
    for cut in range(len(SIMPLE_TALK)):
        one = session()
        assert events(one, SIMPLE_TALK[:cut]) + events(one, SIMPLE_TALK[cut:]) == expected


def test_bytes_may_come_one_by_one() -> None:
    one = session()
    found = [event for byte in SIMPLE_TALK for event in events(one, bytes([byte]))]
    assert found == events(session(), SIMPLE_TALK)


def test_a_client_with_tokens_is_sent_on_to_simple_where_none_is_needed() -> None:
    one = session()
    (event,) = events(one, PREAMBLE_SASL + NEGOTIATE)
    assert sasl_reply(event) == RpcSaslProto(state=RpcSaslProto.SUCCESS)
    assert not one.is_open
    assert events(one, context_frame("bob")) == []
    assert (one.is_open, one.user) == (True, "bob")


def challenged(of: HadoopSession) -> RpcSaslProto.SaslAuth:
    (event,) = events(of, PREAMBLE_SASL + NEGOTIATE)
    offered = sasl_reply(event)
    assert offered.state == RpcSaslProto.NEGOTIATE
    (auth,) = offered.auths
    return auth


def test_a_token_is_proved() -> None:
    one = session(BY_TOKEN)
    auth = challenged(one)
    assert (auth.method, auth.mechanism, auth.protocol, auth.serverId) == ("TOKEN", "DIGEST-MD5", "", "default")
    assert auth.challenge == b'realm="default",nonce="nonce",charset=utf-8,algorithm=md5-sess'
    (event,) = events(one, sasl_frame(initiate(auth, digest_of_token(auth.challenge, TOKEN))))
    done = sasl_reply(event)
    assert done.state == RpcSaslProto.SUCCESS
    assert done.token.startswith(b"rspauth=")
    assert events(one, context_frame("")) == []
    assert (one.is_open, one.user, one.token) == (True, "", TOKEN)


# Refusals


def test_another_version_is_refused() -> None:
    assert str(refusal(session(), b"hrpc\x08\x00\x00")) == "version 8 of Hadoop's RPC, must be 9"


def test_an_unknown_authentication_is_refused() -> None:
    assert refusal(session(), b"hrpc\x09\x00\x01").farewell == b""


def test_simple_at_a_port_for_tokens() -> None:
    farewell = refusal(session(BY_TOKEN), PREAMBLE_SIMPLE).farewell
    header, body = reply(farewell)
    assert body == b""
    assert header.callId == SASL_ID_UNSIGNED
    assert header.status == RpcResponseHeaderProto.FATAL
    assert header.exceptionClassName == "org.apache.hadoop.security.AccessControlException"
    assert header.errorMsg == "SIMPLE authentication is not enabled.  Available:[TOKEN]"
    assert header.errorDetail == RpcResponseHeaderProto.FATAL_UNAUTHORIZED


def test_simple_proposed_in_sasl_at_a_port_for_tokens() -> None:
    one = session(BY_TOKEN)
    challenged(one)
    simple = RpcSaslProto.SaslAuth(method="SIMPLE", mechanism="")
    header, _ = reply(refusal(one, sasl_frame(initiate(simple, b""))).farewell)
    assert header.errorMsg == "SIMPLE authentication is not enabled.  Available:[TOKEN]"


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (Token(TOKEN.identifier, b"another", AMRM_KIND, ""), "Mismatched response."),
        (Token(b"attempt 2", TOKEN.password, AMRM_KIND, ""), "no such attempt"),
    ],
)
def test_a_token_that_is_not_valid(token: Token, text: str) -> None:
    one = session(BY_TOKEN)
    auth = challenged(one)
    header, _ = reply(refusal(one, sasl_frame(initiate(auth, digest_of_token(auth.challenge, token)))).farewell)
    assert (header.callId, header.status) == (SASL_ID_UNSIGNED, RpcResponseHeaderProto.FATAL)
    assert header.exceptionClassName == INVALID_TOKEN
    assert header.errorDetail == RpcResponseHeaderProto.FATAL_UNAUTHORIZED
    assert header.errorMsg.endswith(text)
    assert one.token is None


def test_a_digest_is_not_accepted_before_the_challenge() -> None:
    auth = challenged(session(BY_TOKEN))
    known = digest_of_token(auth.challenge, TOKEN)
    header, _ = reply(refusal(session(BY_TOKEN), PREAMBLE_SASL + sasl_frame(initiate(auth, known))).farewell)
    assert header.errorMsg == "unexpected SASL state INITIATE"


def test_a_second_negotiation_is_refused() -> None:
    one = session(BY_TOKEN)
    challenged(one)
    header, _ = reply(refusal(one, NEGOTIATE).farewell)
    assert header.errorMsg == "unexpected SASL state NEGOTIATE"


@pytest.mark.parametrize("authentication", [BY_USER, BY_TOKEN])
def test_no_call_and_no_context_before_its_time(authentication: HadoopAuthentication) -> None:
    for early in (call_frame(0, CLIENT_PROTOCOL, "getClusterMetrics", b""), context_frame("ann")):
        assert "before or after its time" in str(refusal(session(authentication), PREAMBLE_SASL + early))
    early_call = PREAMBLE_SIMPLE + call_frame(0, CLIENT_PROTOCOL, "getClusterMetrics", b"")
    assert refusal(session(authentication), early_call)


def test_the_handshake_is_not_repeated() -> None:
    for late in (context_frame("bob"), NEGOTIATE, frame(-7)):
        one = session()
        events(one, SIMPLE_TALK)
        assert "before or after its time" in str(refusal(one, late))
        assert one.user == "ann"


def test_frames_have_a_limit() -> None:
    one = session()
    events(one, SIMPLE_TALK)
    assert events(one, FRAME_BYTES_MAX.to_bytes(4, "big")) == []
    for length in (FRAME_BYTES_MAX + 1, 0, -1):
        two = session()
        events(two, SIMPLE_TALK)
        assert f"a frame of {length} bytes" in str(refusal(two, length.to_bytes(4, "big", signed=True)))


def test_frames_of_the_handshake_have_a_smaller_limit() -> None:
    for preamble in (PREAMBLE_SASL, PREAMBLE_SIMPLE):
        longer = (HANDSHAKE_FRAME_BYTES_MAX + 1).to_bytes(4, "big")
        assert "a frame of 65537 bytes" in str(refusal(session(), preamble + longer))


@pytest.mark.parametrize(
    "content",
    [
        b"\x00",
        b"\x05abc",
        b"\x80\x80\x80\x80\x80\x80",
        b"\xff\xff\xff\xff\x7f",
        delimited(b"not a header"),
        delimited(RpcRequestHeaderProto(callId=1, clientId=b"").SerializeToString()),
        delimited(RpcRequestHeaderProto(callId=1, clientId=b"", rpcKind=2).SerializeToString()),  # type: ignore[arg-type]
        delimited(RpcRequestHeaderProto(callId=1, clientId=b"", rpcKind=2).SerializeToString(), b""),  # type: ignore[arg-type]
        delimited(RpcRequestHeaderProto(callId=1, clientId=b"", rpcKind=1).SerializeToString(), b"", b""),  # type: ignore[arg-type]
    ],
)
def test_what_is_not_a_frame_is_refused(content: bytes) -> None:
    one = session()
    events(one, SIMPLE_TALK)
    assert refusal(one, len(content).to_bytes(4, "big") + content).farewell == b""


def test_a_client_may_end_the_connection() -> None:
    one = session()
    events(one, SIMPLE_TALK)
    with pytest.raises(Closed):
        events(one, frame(5, operation=RpcRequestHeaderProto.RPC_CLOSE_CONNECTION))


@given(st.binary(max_size=40), st.integers(0, 400), st.integers(0, 400), st.sampled_from([BY_USER, BY_TOKEN]))
def test_whatever_arrives_is_read_or_refused(noise: bytes, start: int, end: int, how: HadoopAuthentication) -> None:
    for talk in (SIMPLE_TALK, PREAMBLE_SASL + NEGOTIATE + SIMPLE_TALK[7:]):
        with contextlib.suppress(CallRefused, Closed):
            events(session(how), talk[:start] + noise + talk[end:])


# Replies


def test_a_reply_names_its_call() -> None:
    request = RpcRequestHeaderProto(callId=7, clientId=CLIENT_ID, retryCount=2)
    header, body = reply(success(request, b"y" * 200))
    assert body == b"y" * 200
    assert (header.callId, header.clientId, header.retryCount) == (7, CLIENT_ID, 2)
    assert (header.status, header.serverIpcVersionNum) == (RpcResponseHeaderProto.SUCCESS, 9)
    data = failure(request, "java.io.IOException", "broken", RpcResponseHeaderProto.ERROR_APPLICATION)
    header, body = reply(data)
    assert (header.status, header.exceptionClassName, header.errorMsg) == (1, "java.io.IOException", "broken")
    assert body == b""


def test_the_id_of_a_sasl_reply_is_a_two_s_complement() -> None:
    header, _ = reply(success(RpcRequestHeaderProto(callId=SASL_ID, clientId=b""), b""))
    assert header.callId == SASL_ID_UNSIGNED


def test_a_frame_is_not_kept_twice() -> None:
    """A frame that has been read leaves nothing behind."""
    frames = FrameReader(100)
    for _ in range(1000):
        frames.feed(b"\0\0\0\x02ab\0\0")
        assert frames.next_frame() == b"ab"
        assert frames.next_frame() is None
        frames.feed(b"\0\x01x")
        assert frames.next_frame() == b"x"
    assert frames.take(1) is None


def test_no_secret_is_in_a_refusal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    one = session(BY_TOKEN)
    auth = challenged(one)
    refused = refusal(one, sasl_frame(initiate(auth, digest_of_token(auth.challenge, Token(b"a", b"b", "", "")))))
    assert "password" not in str(refused)
    assert caplog.text == ""
