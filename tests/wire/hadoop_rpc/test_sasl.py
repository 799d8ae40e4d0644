"""DIGEST-MD5 as RFC 2831 has it, and with tokens as Hadoop has it."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.hadoop_rpc.hadoop_client import digest_of_token, digest_response
from wire.caller import TOKEN_BYTES_MAX
from wire.hadoop_rpc.sasl import Digest, check_token, directives
from yarn.containers import AMRM_KIND, Token
from yarn.errors import InvalidToken

IMAP = (
    b'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",nc=00000001,'
    b'cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",'
    b"response=d388dad90d4bbd760a152321f2143af7,qop=auth"
)
ACAP = (
    b'username="chris",realm="elwood.innosoft.com",nonce="OA9BSXrbuRhWay",nc=00000001,'
    b'cnonce="OA9BSuZWMSpW8m",digest-uri="acap/elwood.innosoft.com",'
    b"response=6084c6db3fede7352c551284490fd0fc,qop=auth"
)


@pytest.mark.parametrize(
    ("response", "nonce", "service", "proof"),
    [
        (IMAP, "OA6MG9tEQGm2hh", "imap", b"rspauth=ea40f60335c427b5527b84dbabcdfffd"),
        (ACAP, "OA9BSXrbuRhWay", "acap", b"rspauth=2f0b3d7c3c2e486600ef710726aa2eae"),
    ],
)
def test_the_examples_of_rfc_2831_section_4(response: bytes, nonce: str, service: str, proof: bytes) -> None:
    digest = Digest(nonce, realm="elwood.innosoft.com", digest_uri=f"{service}/elwood.innosoft.com")
    given = digest.read(response)
    assert given["username"] == "chris"
    assert digest.check(given, "secret") == proof
    with pytest.raises(InvalidToken, match="Mismatched response"):
        digest.check(given, "Secret")


TOKENS = st.builds(
    lambda identifier, password: Token(identifier, password, AMRM_KIND, ""), st.binary(max_size=300), st.binary()
)


@given(TOKENS, st.text("abcXYZ0189+/=-_", min_size=1, max_size=60))
def test_a_holder_of_a_token_is_recognised(token: Token, nonce: str) -> None:
    digest = Digest(nonce)
    response = digest_of_token(digest.challenge(), token)

    def token_of(identifier: bytes) -> Token:
        assert identifier == token.identifier
        return token

    proven, proof = check_token(digest, response, token_of)
    assert proven is token
    assert proof.startswith(b"rspauth=")


@given(TOKENS, st.binary())
def test_another_password_is_refused(token: Token, other: bytes) -> None:
    digest = Digest("n")
    response = digest_of_token(
        digest.challenge(), Token(token.identifier, token.password + b"x" + other, AMRM_KIND, "")
    )
    with pytest.raises(InvalidToken, match="Mismatched response"):
        check_token(digest, response, lambda identifier: token)


GOOD = digest_response(Digest("n").challenge(), base64.b64encode(b"id").decode(), base64.b64encode(b"pw").decode())


def known(identifier: bytes) -> Token:
    return Token(identifier, b"pw", AMRM_KIND, "")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b'nonce="n"', b'nonce="m"', "Mismatched nonce"),
        (b'realm="default"', b'realm="other"', "Mismatched realm"),
        (b"nc=00000001", b"nc=00000002", "Mismatched nc"),
        (b'"/default"', b'"/other"', "Mismatched digest-uri"),
        (b"qop=auth", b"qop=auth-conf", "Mismatched qop"),
        (b"charset=utf-8", b"charset=latin-1", "Mismatched charset"),
        (b"username=", b"user=", "Missing username"),
        (b"response=", b"maxbuf=1,response=", "Duplicate maxbuf"),
        (b",qop=auth", b",qop=auth,qop=auth", "Duplicate qop"),
        (b'username="', b'username="*', "not base64"),
        (b'cnonce="abc"', b'cnonce="abd"', "Mismatched response"),
        (b'cnonce="abc"', b'cnonce="\xc3\xa9"', "Mismatched response"),
        (b"response=", "response=é".encode(), "Mismatched response"),
        (b"response=", b"response=\xff", "not UTF-8"),
        (b'realm="default"', b'realm="default', "cannot be read"),
        (b"nc=00000001", b"nc", "cannot be read"),
    ],
)
def test_a_response_that_is_not_right_in_every_part_is_refused(old: bytes, new: bytes, text: str) -> None:
    assert old in GOOD
    check_token(Digest("n"), GOOD, known)
    with pytest.raises(InvalidToken, match=text):
        check_token(Digest("n"), GOOD.replace(old, new), known)


@pytest.mark.parametrize("response", [b"", b"x", b",", b'a="b', b"=", b'"' * 50_000, b"a=b," * 10_000 + b"x"])
def test_what_is_not_a_response_is_refused(response: bytes) -> None:
    with pytest.raises(InvalidToken):
        check_token(Digest("n"), response, known)


def test_an_identifier_has_a_limit() -> None:
    digest = Digest("n")
    token = Token(b"x" * (TOKEN_BYTES_MAX + 10), b"pw", AMRM_KIND, "")
    with pytest.raises(InvalidToken, match="A user name of"):
        check_token(digest, digest_of_token(digest.challenge(), token), known)


def test_quotes_in_a_value_are_escaped() -> None:
    assert directives(rb'a="x\"y\\z", b=1 ,c=""') == {"a": 'x"y\\z', "b": "1", "c": ""}


def test_the_refusal_of_an_unknown_token_is_its_managers() -> None:
    def unknown(identifier: bytes) -> Token:
        raise InvalidToken(f"no token {identifier!r}")

    with pytest.raises(InvalidToken, match="no token b'id'"):
        check_token(Digest("n"), GOOD, unknown)
