"""Asks an ASGI application without a server: the application cannot tell the difference."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from wire.local_peer import Peer
from wire.web.access import PEER

CALLER = ("127.0.0.1", 50_000)
SERVER = ("127.0.0.1", 8088)


@dataclass
class Reply:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    application: Any, path: str, *, method: str = "GET", body: bytes = b"", headers: dict[str, str] | None = None
) -> Reply:
    """The answer to one request; `headers` are added to those that every client sends."""
    bare, _, query = path.partition("?")
    sent = {"host": "localhost:8088", **(headers or {})}
    if body:
        sent.setdefault("content-length", str(len(body)))
    end = socket.socket()  # of no connection
    scope = {
        "type": "http",
        "method": method,
        "path": unquote(bare),
        "raw_path": bare.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
        "client": CALLER,
        "server": SERVER,
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
        "state": {PEER: Peer(end)},
    }
    requests = [{"type": "http.request", "body": body, "more_body": False}]
    reply = Reply(0, {}, b"")

    async def receive() -> dict[str, Any]:
        return requests.pop() if requests else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            reply.body += message.get("body", b"")

    with end:
        await application(scope, receive, send)
    return reply


class NoCheck:
    """Admits every caller."""

    async def check(self, scope: Any) -> None:
        pass
