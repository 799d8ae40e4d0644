"""The web services of a ResourceManager that may be standby (RMWebAppFilter).

While it is active it answers everything. A standby answers only for itself, and redirects the rest to the active one:

    GET /ws/v1/cluster/info                         haState STANDBY
    GET /ws/v1/cluster/apps?limit=1                 307, Location: http://ACTIVE/ws/v1/cluster/apps?limit=1
    the same while none is active                   307, Refresh: 5;url=http://SELF/ws/v1/cluster/apps?...
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from random import Random
from urllib.parse import quote

from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from rm.shell.ha.candidate import HACandidate
from rm.shell.web.cluster import standby_info
from wire.web.access import AccessCheck, AccessRefused
from wire.web.application import HTML_UTF8, TEXT_UTF8, Answer, TextAnswer, WebApplication, WebRoute
from wire.web.request import WebRequest, read_query
from wire.web.site import ANYTHING
from yarn.configuration import Configuration
from yarn.errors import StandbyException

INFO, ABOUT, IS_ACTIVE = "/ws/v1/cluster/info", "/cluster/cluster", "/isActive"
NOT_REDIRECTED = frozenset({INFO, ABOUT, IS_ACTIVE, "/conf", "/stacks", "/logLevel", "/logs", "/jmx", "/prom"})
"""Paths that a standby answers itself, or that do not exist; also those below /proxy."""
PROXY = "/proxy"
NEXT_REFRESH = "next_fresh_interval"
"""The parameter that counts how often a caller has come back (YarnWebParams)."""
FIRST_REFRESH_S = 5
REFRESH_S_MAX = 300
_COUNT = re.compile(rf"{NEXT_REFRESH}=[^&]+")


class _Deposed(Exception):
    """This ResourceManager may not answer any more."""


class StandbyWeb:
    """An ASGI application. `addresses` {id: host:port of its web services}."""

    def __init__(
        self, conf: Configuration, candidate: HACandidate, addresses: Mapping[str, str], random: Random
    ) -> None:
        self._candidate = candidate
        self._addresses = addresses
        self._own = addresses[candidate.rm_id]
        self._random = random
        self._check = AccessCheck(conf, [self._own.rpartition(":")[0]])
        rows = [
            WebRoute("GET", INFO, self._info),
            WebRoute("GET", ABOUT, self._about, ANYTHING),
            WebRoute("GET", IS_ACTIVE, _is_not_active, ANYTHING),
        ]
        self._standby = WebApplication(rows, self._check)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            active = self._candidate.serving()
        except StandbyException:
            await self._answer_as_standby(scope, receive, send)
            return
        try:
            await active.web(scope, receive, self._unless_deposed(send))
        except _Deposed:
            await self._answer_as_standby(scope, receive, send)

    def _unless_deposed(self, send: Send) -> Send:
        """`send`, which raises _Deposed for an answer that must not be given, because another leads meanwhile."""

        async def checked(message: Message) -> None:
            if message["type"] == "http.response.start":
                try:
                    self._candidate.gate()
                except StandbyException:
                    raise _Deposed from None
            await send(message)

        return checked

    async def _answer_as_standby(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].rstrip("/")
        if path in NOT_REDIRECTED or path.startswith(PROXY):
            await self._standby(scope, receive, send)
            return
        try:
            await self._check.check(scope)
        except AccessRefused as refusal:
            await PlainTextResponse(refusal.text, refusal.status)(scope, receive, send)
            return
        response = await self._redirected(scope)
        await response(scope, receive, send)

    async def _redirected(self, scope: Scope) -> Response:
        query = scope["query_string"].decode("latin-1")
        uri = quote(scope["path"]) + (f"?{query}" if query else "")
        active = self._addresses.get(await self._candidate.leader(), self._own)
        if active != self._own:
            text = f"This is standby RM. The redirect url is: {escape(uri)}\n"
            return Response(text, 307, {"location": f"http://{active}{uri}"}, TEXT_UTF8)
        return self._come_back(uri, _times_come_back(scope["query_string"]))

    def _come_back(self, uri: str, times: int | None) -> Response:
        """The answer while none is active: come back after a while, which doubles each time."""
        wait_s = int(FIRST_REFRESH_S * 2 ** (times or 0) * (self._random.random() + 0.5))
        state = f"\nHA Zookeeper Connection State: {self._candidate.elector_description}\n"
        if times is None or wait_s > REFRESH_S_MAX:
            return Response(f"There is no active RM right now.{state}", 200, None, TEXT_UTF8)
        count = f"{NEXT_REFRESH}={times + 1}"
        again = _COUNT.sub(count, uri) if f"{NEXT_REFRESH}=" in uri else f"{uri}{'&' if '?' in uri else '?'}{count}"
        text = f"Can not find any active RM. Will retry in next {wait_s} seconds.{state}"
        return Response(text, 307, {"refresh": f"{wait_s};url=http://{self._own}{again}"}, TEXT_UTF8)

    async def _info(self, request: WebRequest) -> Answer:
        return Answer(standby_info(self._candidate.state, self._candidate.elector_description))

    async def _about(self, request: WebRequest) -> TextAnswer:
        active = await self._candidate.leader()
        return TextAnswer(_page(self._candidate.rm_id, active, self._addresses.get(active, "")), HTML_UTF8)


async def _is_not_active(request: WebRequest) -> TextAnswer:
    return TextAnswer("I am not Active!", status=405)


def _page(rm_id: str, active: str, address: str) -> str:
    """The page of a standby, which names the active ResourceManager."""
    leads = (
        f'<a href="http://{escape(address)}/cluster">{escape(active)}</a> is active' if address else "none is active"
    )
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>Standby ResourceManager</title></head>\n"
        f"<body><h1>ResourceManager {escape(rm_id)} is standby</h1>\n<p>{leads}.</p></body></html>\n"
    )


def _times_come_back(query: bytes) -> int | None:
    """The number of times that the caller has come back; None if it sends something else than a small number."""
    words = tuple(read_query(query).get(NEXT_REFRESH, ()))
    text = words[0].strip() if words else "0"
    return int(text) if text.isascii() and text.isdigit() and len(text) < len(str(REFRESH_S_MAX)) else None
