"""Asks a ResourceManager's web services, and bounds what an answer may cost.

A ResourceManager, a gateway before it or an impostor may answer slowly, without end, or with something else than JSON.
So an answer has a deadline and a size, and everything but an object in JSON is an `Unanswered`.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec
from msgspec import Struct

from yarn.errors import YarnException

ANSWER_BYTES_MAX = 256 << 20
"""100,000 applications without their requests are 150 MB."""
ANSWER_S = 60.0
CONNECT_S = 10.0
REDIRECTS_MAX = 3
"""A standby ResourceManager redirects to the active one."""
TEXT_SHOWN_MAX = 120

_BARE = re.compile(rb'("(?:[^"\\]|\\.)*")|(-?(?:Infinity|INF|NaN))\b')


class Unanswered(YarnException):
    """No usable answer. `status`: the HTTP status, 0 without an answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Access(Struct, frozen=True, kw_only=True):
    """The way to a ResourceManager. `addresses`: of it and of its standby, http://host:port.

    `authorization`: the value of that header, for example of a gateway; "": none. `proxy`: a URL; None: the one that
    the environment names. `ca_file`: certificates of authorities to trust instead of the usual ones. `user`: the
    parameter user.name, Hadoop's simple authentication.
    """

    addresses: tuple[str, ...]
    authorization: str = ""
    proxy: str | None = None
    ca_file: Path | None = None
    user: str = ""


class RestClient:
    """A client for the web services of one cluster. Use it as an asynchronous context.

    After a failure it asks the next address. `requests` and `received`: counts of requests and bytes so far.
    `transport`: for tests.
    """

    def __init__(self, access: Access, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._addresses: Sequence[str] = [address.rstrip("/") for address in access.addresses]
        self._turn = 0
        self._parameters = {"user.name": access.user} if access.user else {}
        self.requests = self.received = 0
        headers = {"Accept": "application/json", "User-Agent": "yarnling-record"}
        if access.authorization:
            headers["Authorization"] = access.authorization
        verify = ssl.create_default_context(cafile=str(access.ca_file)) if access.ca_file else True
        self._http = httpx.AsyncClient(
            headers=headers,
            proxy=access.proxy,
            verify=verify,
            follow_redirects=True,
            max_redirects=REDIRECTS_MAX,
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            transport=transport,
        )

    async def __aenter__(self) -> RestClient:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> None:
        await self._http.__aexit__(*reason)

    @property
    def address(self) -> str:
        """The address that is asked now."""
        return self._addresses[self._turn % len(self._addresses)]

    @property
    def has_others(self) -> bool:
        """True if there is more than one address."""
        return len(self._addresses) > 1

    def ask_the_next(self) -> None:
        """Ask the next address from now on: this one does not answer as the active ResourceManager does."""
        self._turn += 1

    async def get(self, path: str, parameters: Mapping[str, str | int] | None = None) -> dict[str, Any]:
        """The answer to a GET, an object. Raises Unanswered."""
        self.requests += 1
        try:
            async with asyncio.timeout(ANSWER_S):
                body = await self._body(path, {**self._parameters, **(parameters or {})})
        except TimeoutError:
            raise Unanswered(f"{self.address}{path}: no answer within {ANSWER_S:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unanswered(f"{self.address}{path}: {_words(error)}") from None
        return self._document(path, body)

    async def _body(self, path: str, parameters: Mapping[str, str | int]) -> bytes:
        async with self._http.stream("GET", f"{self.address}{path}", params=parameters) as response:
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                self.received += len(part)
                if len(body) > ANSWER_BYTES_MAX:
                    raise Unanswered(f"{self.address}{path}: the answer is larger than {ANSWER_BYTES_MAX >> 20} MiB")
            if response.status_code != httpx.codes.OK:
                remedy = " (give a header with --authorization-file)" if response.status_code in (401, 403) else ""
                message = f"{self.address}{path}: HTTP {response.status_code}{remedy}"
                raise Unanswered(message, response.status_code)
            return bytes(body)

    def _document(self, path: str, body: bytes) -> dict[str, Any]:
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pass
        try:
            # Jersey writes percentages that are not finite as bare INF and NaN.
            return msgspec.json.decode(_BARE.sub(_quoted, body), type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            head = body[:TEXT_SHOWN_MAX].decode("utf-8", "replace").strip()
            raise Unanswered(f"{self.address}{path}: the answer is not JSON: {head!r}") from None


def _quoted(found: re.Match[bytes]) -> bytes:
    return found[1] or b'"' + found[2] + b'"'


def _words(error: Exception) -> str:
    """An error in words; some of httpx's have none."""
    return str(error) or type(error).__name__
