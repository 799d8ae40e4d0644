"""SASL's DIGEST-MD5 (RFC 2831), the server's side with qop=auth: the client proves that it knows a password.

    we send      realm="default",nonce="...",charset=utf-8,algorithm=md5-sess
    it sends     username, realm, nonce, nc, cnonce, digest-uri, qop and response, a digest of these and the password
    we send      rspauth=..., a digest that proves that we know the password, too

Hadoop's user name is the identifier of a token in base64, the password is the token's in base64. Nothing that follows
is encrypted or signed, as with Hadoop's default hadoop.rpc.protection.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable

from wire.caller import TOKEN_BYTES_MAX
from yarn.containers import Token
from yarn.errors import InvalidToken

MECHANISM = "DIGEST-MD5"
REALM = "default"
DIGEST_URI = "/default"
FIRST_USE = "00000001"
"""A nonce is used once."""
_DIRECTIVE = re.compile(r'[ \t,]*([A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^",\s]+))[ \t]*(?:,|$)', re.DOTALL)
_NEEDED = ("username", "realm", "nonce", "nc", "cnonce", "digest-uri", "response")


class Digest:
    """An authentication. `nonce`: fresh text, unknown to others before."""

    def __init__(self, nonce: str, *, realm: str = REALM, digest_uri: str = DIGEST_URI) -> None:
        self._nonce = nonce
        self._realm = realm
        self._digest_uri = digest_uri

    def challenge(self) -> bytes:
        return f'realm="{self._realm}",nonce="{self._nonce}",charset=utf-8,algorithm=md5-sess'.encode()

    def read(self, response: bytes) -> dict[str, str]:
        """The directives of a response to the challenge. Raises InvalidToken if it is malformed or to another one."""
        given = {"qop": "auth", "charset": "utf-8"} | directives(response)
        missing = [name for name in _NEEDED if name not in given]
        if missing:
            raise _wrong(f"Missing {', '.join(missing)}.")
        expected = {"realm": self._realm, "nonce": self._nonce, "nc": FIRST_USE, "digest-uri": self._digest_uri}
        for name, value in (expected | {"qop": "auth", "charset": "utf-8"}).items():
            if given[name] != value:
                raise _wrong(f"Mismatched {name}.")
        return given

    def check(self, given: dict[str, str], password: str) -> bytes:
        """The proof for the client, `rspauth=...`. Raises InvalidToken unless the client knows the password."""
        secret = _session_secret(given, password)
        # Bytes: compare_digest refuses text beyond ASCII.
        if not hmac.compare_digest(_proof(given, secret, "AUTHENTICATE").encode(), given["response"].encode()):
            raise _wrong("Mismatched response.")
        return f"rspauth={_proof(given, secret, '')}".encode()


def check_token(digest: Digest, response: bytes, token_of: Callable[[bytes], Token]) -> tuple[Token, bytes]:
    """The token that the response proves, and the proof for the client. Raises InvalidToken."""
    given = digest.read(response)
    token = token_of(_identifier(given["username"]))
    return token, digest.check(given, base64.b64encode(token.password).decode())


def directives(response: bytes) -> dict[str, str]:
    """The directives of a response: name=value or name="value", separated by commas. Raises InvalidToken."""
    try:
        text = response.decode("utf-8")
    except UnicodeDecodeError:
        raise _wrong("The response is not UTF-8.") from None
    given: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _DIRECTIVE.match(text, position)
        if match is None:
            raise _wrong("The response cannot be read.")
        name, quoted, plain = match.groups()
        if name in given:
            raise _wrong(f"Duplicate {name}.")
        given[name] = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
        position = match.end()
    return given


def _identifier(username: str) -> bytes:
    """The identifier of a token that is the user name in base64. Raises InvalidToken."""
    if len(username) > TOKEN_BYTES_MAX * 4 // 3 + 4:
        raise _wrong(f"A user name of {len(username)} characters.")
    try:
        return base64.b64decode(username, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong("The user name is not base64.") from None


def _session_secret(given: dict[str, str], password: str) -> str:
    """H(A1) of RFC 2831, which contains the password."""
    user = hashlib.md5(f"{given['username']}:{given['realm']}:{password}".encode()).digest()
    a1 = user + f":{given['nonce']}:{given['cnonce']}".encode()
    if "authzid" in given:
        a1 += f":{given['authzid']}".encode()
    return hashlib.md5(a1).hexdigest()


def _proof(given: dict[str, str], session_secret: str, method: str) -> str:
    """The digest that either side sends: `method` is AUTHENTICATE for the client's, empty for ours."""
    a2 = _hex(f"{method}:{given['digest-uri']}")
    return _hex(f"{session_secret}:{given['nonce']}:{given['nc']}:{given['cnonce']}:{given['qop']}:{a2}")


def _hex(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def _wrong(reason: str) -> InvalidToken:
    """The refusal, worded as by the DIGEST-MD5 server of Java."""
    return InvalidToken(f"DIGEST-MD5: digest response format violation. {reason}")
