"""Who may call the web services."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from tests.wire.web.asgi import CALLER, Reply, ask
from wire import local_peer
from wire.local_peer import Peer
from wire.web import access
from wire.web.access import AccessCheck
from wire.web.application import Answer, WebApplication, WebRoute
from wire.web.document import Document, Element
from wire.web.request import WebRequest
from yarn.configuration import Configuration

OPEN = {"yarn.yarnling.open-to-local-users": "true"}
SOMEBODY = 54_321


async def answer(request: WebRequest) -> Answer:
    return Answer(Document("ok", Element({"user": request.user})))


def application(settings: dict[str, str] | None = None) -> WebApplication:
    check = AccessCheck(Configuration.of(settings or {}), ["node7"])
    return WebApplication([WebRoute("GET", "/x", answer), WebRoute("POST", "/x", answer)], check)


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The user id that the kernel reports for the caller; a test may replace it."""
    found: list[int | None] = [os.getuid()]
    monkeypatch.setattr(local_peer, "user_id_of_peer", lambda connection: found[0])
    return found


@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8088", "127.0.0.2:1", "[::1]:8088", "node7:8042", "LOCALHOST"]
)
async def test_names_of_this_machine_are_accepted(host: str) -> None:
    assert (await ask(application(), "/x", headers={"host": host})).status == 200


@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize("host", ["evil.example", "evil.example:8088", "", "10.0.0.1", "localhost.evil.example"])
async def test_other_names_are_refused_since_a_web_page_may_have_resolved_its_own_to_this_machine(host: str) -> None:
    refused = await ask(application(), "/x", headers={"host": host})
    assert refused.status == 403
    assert refused.headers["connection"] == "close", "it holds no connection"


async def test_another_users_process_is_refused_also_for_reading(owner: list[int | None]) -> None:
    owner[0] = SOMEBODY
    reply = await ask(application(), "/x")
    assert reply.status == 403
    assert "yarn.yarnling.open-to-local-users" in reply.text
    owner[0] = 0
    assert (await ask(application(), "/x")).status == 200


async def test_a_socket_that_is_not_found_belongs_to_nobody(owner: list[int | None]) -> None:
    owner[0] = None
    assert (await ask(application(), "/x")).status == 403


async def test_an_open_cluster_admits_every_local_user(owner: list[int | None]) -> None:
    owner[0] = SOMEBODY
    assert (await ask(application(OPEN), "/x")).status == 200


async def test_an_open_cluster_admits_no_other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.wire.web.asgi.CALLER", ("192.0.2.1", CALLER[1]))
    assert (await ask(application(OPEN), "/x")).status == 403


async def post(body: bytes = b"", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await ask(application(), "/x", method="POST", body=body, headers=named)


@pytest.mark.usefixtures("owner")
async def test_a_change_needs_a_body_that_no_form_can_send() -> None:
    assert (await post()).status == 200
    assert (await post(b"{}", content_type="application/json; charset=utf-8")).status == 200
    assert (await post(b"<a/>", content_type="application/xml")).status == 200
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"):
        assert (await post(b"{}", content_type=kind)).status == 415
    assert (await post(b"{}")).status == 415


@pytest.mark.usefixtures("owner")
async def test_a_change_does_not_come_from_a_page_of_another_origin() -> None:
    assert (await post(origin="http://localhost:8088")).status == 200
    for origin in ("http://evil.example", "null", "https://localhost:8088", "http://localhost:9999"):
        assert (await post(origin=origin)).status == 403


@pytest.mark.usefixtures("owner")
async def test_no_answer_allows_another_origin_to_read_it() -> None:
    reply = await ask(application(), "/x", headers={"origin": "http://evil.example"})
    assert not any(name.startswith("access-control") for name in reply.headers)


@pytest.mark.usefixtures("owner")
async def test_a_body_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "BODY_BYTES_MAX", 10)
    assert (await post(b" " * 11, content_type="application/json")).status == 413


@pytest.mark.usefixtures("owner")
async def test_who_names_no_user_is_the_static_one() -> None:
    assert (await ask(application(), "/x")).json == {"ok": {"user": "dr.who"}}
    assert (await ask(application(), "/x?user.name=ann")).json == {"ok": {"user": "ann"}}


async def test_the_user_is_looked_up_once_per_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of sockets is long on a busy machine, and a connection does not change hands."""
    calls: list[object] = []

    def looked_up(connection: object) -> int:
        calls.append(connection)
        return os.getuid()

    monkeypatch.setattr(local_peer, "user_id_of_peer", looked_up)
    with socket.socket() as connection:
        peer = Peer(connection)
        assert list(await asyncio.gather(peer.is_owner_or_root(), peer.is_owner_or_root())) == [True] * 2
    assert calls == [connection]
