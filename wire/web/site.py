"""The part of every daemon's web server besides its REST API: the index page, /jmx and /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape

from wire.web.application import HTML, HTML_UTF8, JSON, TEXT, XML, TextAnswer, WebRoute
from wire.web.jmx import Bean, jmx_answer
from wire.web.request import WebRequest

ANYTHING = (HTML, JSON, XML, TEXT, "application/openmetrics-text")
"""Media types of pages whose content does not depend on the Accept header."""


def site_rows(
    title: str, home: str, index_page: str, rest: Iterable[WebRoute], beans: Callable[[], Iterable[Bean]]
) -> Iterator[WebRoute]:
    """The routes; / leads to `home`; the page at `index_page` lists the routes `rest`."""
    text = _index(title, [f"{row.method} {row.path}" for row in rest if row.path.startswith("/ws/")])

    async def redirect(request: WebRequest) -> TextAnswer:
        return TextAnswer("", status=302, location=f"{request.url.rstrip('/')}{home}")

    async def index(request: WebRequest) -> TextAnswer:
        return TextAnswer(text, HTML_UTF8)

    async def jmx(request: WebRequest) -> TextAnswer:
        return await jmx_answer(request, beans)

    async def metrics(request: WebRequest) -> TextAnswer:
        # Imported here: most daemons are never scraped, and it takes 30 ms and a megabyte.
        from wire.web.prometheus import prometheus_answer

        return await prometheus_answer(beans)

    yield WebRoute("GET", "/", redirect, ANYTHING)
    yield WebRoute("GET", index_page, index, ANYTHING)
    yield WebRoute("GET", "/jmx", jmx, ANYTHING)
    yield WebRoute("GET", "/metrics", metrics, ANYTHING)
    yield WebRoute("GET", "/prom", metrics, ANYTHING)


def _index(title: str, routes: Iterable[str]) -> str:
    items = "".join(f"<li><code>{escape(route)}</code></li>\n" for route in (*routes, "GET /jmx", "GET /metrics"))
    return (
        f"<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title></head>\n"
        f"<body><h1>{escape(title)}</h1>\n<p>These paths are served:</p>\n<ul>\n{items}</ul></body></html>\n"
    )
