"""Commands of pages for nodes: they reach the supervisor's socket, and only if the owner alone may call the RM."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rm.shell.web.control import ControlService
from tests.rm.builders import RM
from tests.wire.web.asgi import NoCheck, Reply, ask
from wire.address import bound
from wire.web.application import WebApplication
from yarn.configuration import Configuration

BASE = "/ws/yarnling/v1"
SOCKET = "yarn.yarnling.control-socket"


@contextlib.asynccontextmanager
async def supervisor(path: Path, *lines: dict[str, Any]) -> AsyncIterator[list[dict[str, Any]]]:
    """A supervisor that answers each command with these lines; the commands that it has got."""
    commands: list[dict[str, Any]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        commands.append(json.loads(await reader.readline()))
        writer.writelines(json.dumps(line).encode() + b"\n" for line in lines)
        writer.close()

    listener = bound(path)
    async with await asyncio.start_unix_server(serve, sock=listener):
        yield commands


def application(**settings: str) -> tuple[WebApplication, str]:
    """The services, and the id of a node."""
    rm = RM({})
    rm.node("n1", 1024)
    (node_id,) = rm.core.context.nodes
    rows = ControlService(rm.core.context, Configuration.of(settings)).rows()
    return WebApplication(rows, NoCheck()), str(node_id)  # type: ignore[arg-type]


async def send(app: WebApplication, path: str) -> Reply:
    return await ask(app, BASE + path, method="POST")


async def test_a_command_reaches_the_supervisor(tmp_path: Path) -> None:
    app, node_id = application(**{SOCKET: str(tmp_path / "s")})
    async with supervisor(tmp_path / "s", {"progress": "..."}, {"facts": {}, "text": "Killed nm-1."}) as commands:
        reply = await send(app, f"/nodes/{node_id}/kill")
    assert (reply.status, reply.json) == (200, {"text": "Killed nm-1."})
    assert commands == [{"command": "kill-node", "node": node_id}]
    assert (await ask(app, f"{BASE}/controls")).json == {"nodes": ["kill", "pause", "resume", "restart"]}


async def test_nodes_can_be_partitioned_where_connections_go_through_proxies(tmp_path: Path) -> None:
    app, node_id = application(**{SOCKET: str(tmp_path / "s"), "yarn.yarnling.network-faults": "true"})
    async with supervisor(tmp_path / "s", {"facts": {}, "text": "done"}) as commands:
        assert (await send(app, f"/nodes/{node_id}/partition")).status == 200
        assert (await send(app, f"/nodes/{node_id}/heal")).status == 200
    assert [one["command"] for one in commands] == ["partition-node", "heal-node"]
    verbs = ["kill", "pause", "resume", "restart", "partition", "heal"]
    assert (await ask(app, f"{BASE}/controls")).json == {"nodes": verbs}


@pytest.mark.parametrize(
    ("lines", "reason"), [(({"error": "nm-1 is paused"},), "nm-1 is paused"), ((), "closed the connection")]
)
async def test_a_refusal_says_why(tmp_path: Path, lines: tuple[dict[str, Any], ...], reason: str) -> None:
    app, node_id = application(**{SOCKET: str(tmp_path / "s")})
    async with supervisor(tmp_path / "s", *lines):
        reply = await send(app, f"/nodes/{node_id}/pause")
    assert reply.status == 409
    assert reason in reply.text


async def test_without_a_supervisor_it_is_refused(tmp_path: Path) -> None:
    app, node_id = application(**{SOCKET: str(tmp_path / "s")})
    assert (await send(app, f"/nodes/{node_id}/kill")).status == 409


async def test_an_unknown_node_or_verb_reaches_nobody(tmp_path: Path) -> None:
    app, node_id = application(**{SOCKET: str(tmp_path / "s")})
    async with supervisor(tmp_path / "s", {"text": "done"}) as commands:
        assert (await send(app, "/nodes/elsewhere:1/kill")).status == 404
        assert (await send(app, f"/nodes/{node_id}/remove")).status == 404
        assert (await send(app, f"/nodes/{node_id}/partition")).status == 404, "its connections are direct"
    assert commands == []


@pytest.mark.parametrize("settings", [{}, {SOCKET: "/tmp/s", "yarn.yarnling.open-to-local-users": "true"}])
async def test_where_others_may_call_there_are_no_controls(settings: dict[str, str]) -> None:
    app, node_id = application(**settings)
    assert (await ask(app, f"{BASE}/controls")).json == {"nodes": []}
    assert (await send(app, f"/nodes/{node_id}/kill")).status == 404
