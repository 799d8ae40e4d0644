"""Plain HTTP requests to a server in this process or another one."""

from __future__ import annotations

import asyncio
import http.client
import json
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 60.0


@dataclass
class Reply:
    """An answer; names of headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    address: str, path: str, *, method: str = "GET", body: object = None, headers: dict[str, str] | None = None
) -> Reply:
    """The answer. A `body` that is not text or bytes is sent as JSON."""
    sent = dict(headers or {})
    data: str | bytes | None = body if isinstance(body, str | bytes | None) else json.dumps(body)
    if data is not None:
        sent.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, data, sent)
        answer = connection.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


async def ask(address: str, path: str, **options: Any) -> Reply:
    """The same, while the event loop goes on."""
    return await asyncio.to_thread(request, address, path, **options)
