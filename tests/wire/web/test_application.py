"""The choice of JSON or XML, statuses of what goes wrong, lists in parts."""

from __future__ import annotations

import asyncio

import pytest

from tests.wire.web.asgi import NoCheck, ask
from wire.web import pacing
from wire.web.application import Answer, ListAnswer, TextAnswer, WebApplication, WebRoute
from wire.web.document import Document, Element
from wire.web.errors import WebException
from wire.web.request import ELEMENTS_MAX, WebRequest
from yarn.errors import AccessControlException, InvalidArgumentException, YarnException

DOCUMENT = Document("info", Element({"id": 1}))
RAISED: list[Exception] = []


async def info(request: WebRequest) -> Answer:
    return Answer(DOCUMENT)


async def fail(request: WebRequest) -> Answer:
    raise RAISED[-1]


async def items(request: WebRequest) -> ListAnswer:
    return ListAnswer("apps", "app", (Element({"id": number}) for number in range(int(request.first("count") or 0))))


async def body(request: WebRequest) -> TextAnswer:
    return TextAnswer(repr(request.body()))


async def plain(request: WebRequest) -> TextAnswer:
    return TextAnswer("text")


def application() -> WebApplication:
    rows = [
        WebRoute("GET", "/info", info),
        WebRoute("GET", "/fail", fail),
        WebRoute("GET", "/items", items),
        WebRoute("GET", "/items/{id}", info),
        WebRoute("POST", "/items/new", plain),
        WebRoute("PUT", "/body", body),
        WebRoute("GET", "/plain", plain, ("text/plain",)),
    ]
    return WebApplication(rows, NoCheck())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "status", "allowed"),
    [("/info", 200, "OPTIONS,HEAD,GET"), ("/body", 200, "OPTIONS,PUT"), ("/nosuch", 404, None)],
)
async def test_options_are_the_methods_of_a_path(path: str, status: int, allowed: str | None) -> None:
    """`yarn top` and `yarn schedulerconf` go on only after an answer with status 200 (AuthenticatedURL)."""
    reply = await ask(application(), path, method="OPTIONS")
    assert (reply.status, reply.headers.get("allow")) == (status, allowed)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/json;charset=utf-8"),
        ("application/json", "application/json;charset=utf-8"),
        ("application/xml", "application/xml; charset=utf-8"),
        ("application/xml, application/json", "application/xml; charset=utf-8"),
        ("application/json, application/xml", "application/json;charset=utf-8"),
        ("application/json;q=0.5, application/xml", "application/xml; charset=utf-8"),
        ("text/html, application/xml;q=0.9, */*;q=0.1", "application/xml; charset=utf-8"),
    ],
)
async def test_the_best_media_type_is_written_and_json_by_default(accept: str, kind: str) -> None:
    reply = await ask(application(), "/info", headers={"accept": accept})
    assert (reply.status, reply.headers["content-type"]) == (200, kind)
    assert (await ask(application(), "/info")).json == {"info": {"id": 1}}


async def test_what_hadoop_does_not_serve_has_its_statuses() -> None:
    assert (await ask(application(), "/info", headers={"accept": "text/html"})).status == 500
    wrong_method = await ask(application(), "/info", method="DELETE")
    assert (wrong_method.status, wrong_method.json["RemoteException"]["exception"]) == (503, "WebApplicationException")
    wrong_kind = await ask(application(), "/plain", headers={"accept": "application/json"})
    assert (wrong_kind.status, wrong_kind.json["RemoteException"]["exception"]) == (503, "WebApplicationException")
    assert (await ask(application(), "/nosuch")).headers["content-type"] == "text/html;charset=utf-8"


async def test_a_fixed_path_wins_over_one_with_a_variable_and_a_last_slash_does_not_count() -> None:
    assert (await ask(application(), "/items/new", method="POST")).text == "text"
    assert (await ask(application(), "/items/7/")).status == 200


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AccessControlException("no"), 401),
        (InvalidArgumentException("bad"), 400),
        (YarnException("other"), 503),
        (ZeroDivisionError("a bug"), 500),
    ],
)
async def test_an_error_is_a_remote_exception_with_hadoops_status(
    error: Exception, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    RAISED.append(error)
    reply = await ask(application(), "/fail")
    assert reply.status == status
    assert reply.json["RemoteException"].keys() == {"exception", "message", "javaClassName"}
    assert ("a bug" in caplog.text) == isinstance(error, ZeroDivisionError)
    assert "a bug" not in reply.text


async def test_a_list_is_written_in_parts_between_which_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "SLICE_S", 0.0)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        counting = tasks.create_task(count())
        reply = await ask(application(), "/items?count=1000")
        counting.cancel()
    assert [app["id"] for app in reply.json["apps"]["app"]] == list(range(1000))
    assert turns > 100
    empty = await ask(application(), "/items")
    assert empty.text == '{"apps":{}}'
    xml = await ask(application(), "/items?count=2", headers={"accept": "application/xml"})
    assert xml.text.endswith("<apps><app><id>0</id></app><app><id>1</id></app></apps>")


def test_an_xml_body_has_a_limit_of_elements() -> None:
    """Bodies are parsed on the daemon's event loop: four megabytes can take two seconds."""
    data = b"<app>" + b"<a/>" * ELEMENTS_MAX + b"</app>"
    request = WebRequest("POST", "", {}, {}, "ann", ("", 0), content_type="application/xml", data=data)
    with pytest.raises(WebException, match=f"more than {ELEMENTS_MAX} elements"):
        request.body()


@pytest.mark.parametrize(
    ("kind", "sent", "read"),
    [
        ("application/json", b'{"a":{"b":[1,"x"]}}', "{'a': {'b': [1, 'x']}}"),
        ("application/xml", b"<r><a><b>1</b><b>x</b></a></r>", "{'a': {'b': ['1', 'x']}}"),
    ],
)
async def test_a_body_is_read_the_same_from_json_and_xml(kind: str, sent: bytes, read: str) -> None:
    reply = await ask(application(), "/body", method="PUT", body=sent, headers={"content-type": kind})
    assert reply.text == read


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("application/json", b"{not json"),
        ("application/json", b"[1]"),
        ("application/json", b'{"a":NaN}'),
        ("application/json", b'{"a":' * 100_000),
        ("application/json", b"\xff"),
        ("application/xml", b"<a>"),
        ("application/xml", b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>'),
        ("application/xml", b"<a>" * 40 + b"</a>" * 40),
    ],
)
async def test_a_body_that_cannot_be_read_is_a_bad_request(kind: str, sent: bytes) -> None:
    reply = await ask(application(), "/body", method="PUT", body=sent, headers={"content-type": kind})
    assert reply.status == 400


async def test_a_query_has_a_limit() -> None:
    assert (await ask(application(), "/info?" + "&".join(["a=1"] * 200))).status == 400
    assert (await ask(application(), "/info?a=%ff")).status == 400
