"""The web services of a daemon as an ASGI application: routes, the choice of JSON or XML, answers and refusals.

A row names a method, a path and a handler. The handler gets a WebRequest and returns an answer or raises; how that is
written depends on the caller's Accept header alone, with Hadoop's defaults and Hadoop's statuses.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from wire.web.access import AccessCheck, AccessRefused, read_body
from wire.web.document import (
    XML_DECLARATION,
    Document,
    Element,
    Style,
    json_text,
    natural_text,
    xml_element,
    xml_text,
)
from wire.web.errors import PlainRefusal, WebException, of_yarn, web_application_exception
from wire.web.pacing import collected, in_slices
from wire.web.request import WebRequest, read_query
from yarn.errors import YarnException

JSON, XML, TEXT, HTML = "application/json", "application/xml", "text/plain", "text/html"
JSON_UTF8, XML_UTF8 = "application/json;charset=utf-8", "application/xml; charset=utf-8"
"""With and without a blank, as Hadoop writes them."""
TEXT_UTF8, HTML_UTF8 = "text/plain;charset=utf-8", "text/html;charset=utf-8"

STATIC_USER = "dr.who"
"""The user of a caller that names none (hadoop.http.staticuser.user)."""
NO_CACHE = {"cache-control": "no-cache", "x-content-type-options": "nosniff"}
RANGES_MAX = 32
"""Media types in an Accept header that are looked at."""
ANSWER_TIMEOUT_S = 60.0
"""The time an answer may take, and its reader may take to read it."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class Answer(Struct, frozen=True):
    """An answer with a document as its body, or with an empty body (None)."""

    document: Document | None
    status: int = 200
    location: str | None = None


class BulkyAnswer(Struct, frozen=True):
    """A document that grows with the cluster: made in steps, and written in a thread."""

    steps: Generator[None, None, Document]


class TextAnswer(Struct, frozen=True):
    """A body that is not a document."""

    text: str | bytes
    content_type: str = TEXT_UTF8
    status: int = 200
    location: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


def json_answer(value: object) -> TextAnswer:
    """The answer with a value as JSON, of yarnling's own REST API."""
    return TextAnswer(json.dumps(value), JSON_UTF8)


class ListAnswer(Struct, frozen=True):
    """A list that grows with the cluster: natural JSON of `items`, which are made and written in parts."""

    root: str
    item: str
    items: Iterable[Element]


class StreamAnswer(Struct, frozen=True):
    """A body that is read while it is sent; its length is known. `close` is called at the end in any case."""

    parts: AsyncIterator[bytes]
    length: int
    content_type: str
    close: Callable[[], None]


class EventStream(Struct, frozen=True):
    """Server-sent events; at its end, or when a connection breaks, a browser asks again by itself."""

    events: AsyncIterator[bytes]


AnyAnswer = Answer | BulkyAnswer | TextAnswer | ListAnswer | StreamAnswer | EventStream
Handler = Callable[[WebRequest], Awaitable[AnyAnswer]]


class WebRoute(Struct, frozen=True):
    """A route. `produces`: the media types of its answers, the default first."""

    method: str
    path: str
    handler: Handler
    produces: tuple[str, ...] = (JSON, XML)


class WebApplication:
    """An ASGI application of rows, behind the check of its callers."""

    def __init__(self, rows: Iterable[WebRoute], check: AccessCheck) -> None:
        self._check = check
        self._building = asyncio.Lock()
        by_path: dict[str, dict[str, WebRoute]] = {}
        for row in rows:
            by_path.setdefault(row.path, {})[row.method] = row
        # The first that matches is taken: /apps/new-application before /apps/{appid}.
        ordered = sorted(by_path, key=lambda path: [part.startswith("{") for part in path.split("/")])
        routes: list[BaseRoute] = [Route(path, _Endpoint(by_path[path], self._answer)) for path in ordered]
        self._router: ASGIApp = Router(routes, redirect_slashes=False, default=_not_found)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        if len(path) > 1 and path.endswith("/"):
            scope["path"] = path.rstrip("/") or "/"
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self._check.check(scope)
                await self._router(scope, receive, send)
        except AccessRefused as refusal:
            await _text(refusal.text, TEXT_UTF8, refusal.status, more=(("connection", "close"),))(scope, receive, send)
        except TimeoutError:
            _logger.warning("an HTTP answer took more than %g s path=%s", ANSWER_TIMEOUT_S, path[:200])

    async def _answer(self, request: Request, row: WebRoute | None) -> Response:
        produces = (JSON, XML) if row is None else row.produces
        accepted = _accepted(request.headers.get("accept"), produces)
        try:
            if row is None or (accepted is None and _accepted(request.headers.get("accept"), (JSON, XML))):
                raise web_application_exception()
            if accepted is None:
                return _text("HTTP ERROR 500 Server Error", TEXT_UTF8, 500)
            answer = await row.handler(await _read(request, is_xml=accepted == XML))
            return await self._written(answer, accepted)
        except YarnException as error:
            return _refusal(of_yarn(error), accepted)
        except WebException as error:
            return _refusal(error, accepted)
        except PlainRefusal as refusal:
            kinds = {XML: XML_UTF8, TEXT: TEXT_UTF8}
            return _text(refusal.text, kinds.get(accepted or JSON, JSON_UTF8), refusal.status)
        except (AccessRefused, TimeoutError):
            raise
        except Exception:
            _logger.exception("a web request failed method=%s path=%s", request.method, request.url.path[:200])
            return _refusal(WebException(500, "java.lang.RuntimeException", "internal error"), accepted)

    async def _written(self, answer: AnyAnswer, accepted: str) -> Response:
        if isinstance(answer, TextAnswer):
            return _text(answer.text, answer.content_type, answer.status, answer.location, answer.headers)
        if isinstance(answer, StreamAnswer):
            return _Stream(answer)
        if isinstance(answer, EventStream):
            # Starlette notices a reader that has gone, and closes the iterator.
            return StreamingResponse(answer.events, headers=NO_CACHE, media_type="text/event-stream")
        if isinstance(answer, ListAnswer):
            async with self._building:
                return await _written_in_parts(answer, accepted)
        content_type = XML_UTF8 if accepted == XML else JSON_UTF8
        if isinstance(answer, BulkyAnswer):
            async with self._building:
                document = await in_slices(answer.steps)
                return _text(await asyncio.to_thread(_document_text, document, accepted), content_type)
        text = "" if answer.document is None else _document_text(answer.document, accepted)
        return _text(text, content_type, answer.status, answer.location)


class _Endpoint:
    """The rows of one path. Starlette passes requests of every method to an endpoint that is not a function."""

    def __init__(
        self, by_method: dict[str, WebRoute], answer: Callable[[Request, WebRoute | None], Awaitable[Response]]
    ) -> None:
        self._by_method = by_method
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method == "OPTIONS":
            await self._options()(scope, receive, send)
            return
        row = self._by_method.get("GET" if request.method == "HEAD" else request.method)
        response = await self._answer(request, row)
        await response(scope, receive, send)

    def _options(self) -> Response:
        """The methods of the path. Hadoop's commands ask for them first, to log in (KerberosAuthenticator)."""
        reads = ["HEAD"] if "GET" in self._by_method else []
        allowed = ",".join(["OPTIONS", *reads, *sorted(self._by_method)])
        return Response(headers={"allow": allowed, "x-content-type-options": "nosniff"})


class _Stream(Response):
    """Sends a StreamAnswer; flow control is uvicorn's."""

    def __init__(self, answer: StreamAnswer) -> None:
        super().__init__(headers={"content-type": answer.content_type, "content-length": str(answer.length)})
        self._parts, self._close = answer.parts, answer.close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                async for part in self._parts:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._close()


async def _read(request: Request, *, is_xml: bool) -> WebRequest:
    query = read_query(request.scope["query_string"])
    client = request.scope["client"]
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return WebRequest(
        method=request.method,
        url=str(request.url.replace(query="")),
        path=request.path_params,
        query=query,
        user=next(iter(query.get("user.name", ())), "") or STATIC_USER,
        peer=(client[0], client[1]),
        is_xml=is_xml,
        is_cross_site=request.headers.get("sec-fetch-site", "") == "cross-site",
        content_type=content_type,
        data=await read_body(request),
    )


def _accepted(header: str | None, produces: tuple[str, ...]) -> str | None:
    """The media type to write: the caller's best, among equals the one named first; None if there is none."""
    best, best_quality = None, 0.0
    for text in (header or "*/*").split(",")[:RANGES_MAX]:
        name, *parameters = [part.strip().lower() for part in text.split(";")]
        found = next((kind for kind in produces if _matches(name, kind)), None)
        quality = _quality(parameters)
        if found is not None and quality > best_quality:
            best, best_quality = found, quality
    return best


def _matches(media_range: str, kind: str) -> bool:
    return media_range in ("*/*", "*", kind, kind.partition("/")[0] + "/*")


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(1.0, float(value))
            except ValueError:
                return 0.0
    return 1.0


def _document_text(document: Document, accepted: str) -> str:
    return xml_text(document) if accepted == XML else json_text(document)


async def _written_in_parts(answer: ListAnswer, accepted: str) -> Response:
    if accepted == XML:
        texts = await in_slices(collected(xml_element(answer.item, item) for item in answer.items))
        body = f"<{answer.root}>{''.join(texts)}</{answer.root}>" if texts else f"<{answer.root}/>"
        return _text(XML_DECLARATION + body, XML_UTF8)
    texts = await in_slices(collected(natural_text(item) for item in answer.items))
    inner = f'"{answer.item}":[{",".join(texts)}]' if texts else ""
    return _text(f'{{"{answer.root}":{{{inner}}}}}', JSON_UTF8)


def _refusal(error: WebException, accepted: str | None) -> Response:
    """A RemoteException; a 404 in XML comes out as an empty 500, as in Hadoop."""
    if accepted == XML and error.status == 404:
        return Response(status_code=500)
    fields = {
        "exception": error.java_class.rpartition(".")[2].rpartition("$")[2],
        "message": error.message,
        "javaClassName": error.java_class,
    }
    document = Document("RemoteException", Element({**fields}), Style.NATURAL)
    if accepted == XML:
        return _text(xml_text(document), XML_UTF8, error.status)
    return _text(json_text(document), JSON_UTF8, error.status)


def _text(
    text: str | bytes,
    content_type: str,
    status: int = 200,
    location: str | None = None,
    more: tuple[tuple[str, str], ...] = (),
) -> Response:
    headers = {"content-type": content_type, "x-content-type-options": "nosniff", **dict(more)}
    if location is not None:
        headers["location"] = location
    return Response(text.encode("utf-8", "replace") if isinstance(text, str) else text, status, headers)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    page = "<!DOCTYPE html>\n<html><head><title>Sorry, got error 404</title></head><body><h1>Sorry, got error 404</h1>"
    await _text(f"{page}</body></html>\n", HTML_UTF8, 404)(scope, receive, send)
