"""Kills, pauses, resumes, restarts and partitions nodes for a page: the cluster's supervisor carries the commands out.

    GET  /ws/yarnling/v1/controls                   {"nodes": [verbs]}; none where a cluster has no supervisor
    POST /ws/yarnling/v1/nodes/{nodeid}/{verb}      {"text": what was done}; 409 with the reason if it was refused

The supervisor of `yarnling up` has a Unix socket that only the cluster's owner may use, and the RM runs as the owner.
So the services exist only if nobody else may call the RM.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rm.core.context import RMContext
from rm.shell.web.live import BASE
from rm.shell.web.nodes import find_node
from wire.address import short_name
from wire.web.application import JSON, TextAnswer, WebRoute, json_answer
from wire.web.errors import PlainRefusal
from wire.web.request import WebRequest
from yarn.configuration import Configuration
from yarn.settings.yarnling import CONTROL_SOCKET, NETWORK_FAULTS, OPEN_TO_LOCAL_USERS

COMMANDS = {"kill": "kill-node", "pause": "pause-node", "resume": "resume-node", "restart": "restart-node"}
NETWORK_COMMANDS = {"partition": "partition-node", "heal": "heal-node"}
"""{verb of a path: command of the supervisor}; the latter need connections through proxies."""
TIMEOUT_S = 30.0
LINE_BYTES_MAX = 64 * 1024


class ControlService:
    """Passes commands to the supervisor whose socket the configuration names."""

    def __init__(self, context: RMContext, conf: Configuration) -> None:
        self._context = context
        path = CONTROL_SOCKET.maybe_of(conf)
        self._socket = Path(path) if path and not OPEN_TO_LOCAL_USERS.of(conf) else None
        self._commands = COMMANDS | NETWORK_COMMANDS if NETWORK_FAULTS.of(conf) else COMMANDS

    def rows(self) -> Iterator[WebRoute]:
        """The routes."""
        yield WebRoute("GET", f"{BASE}/controls", self._controls, (JSON,))
        if self._socket is not None:
            for verb in self._commands:
                yield WebRoute("POST", f"{BASE}/nodes/{{nodeid}}/{verb}", self._command, (JSON,))

    async def _controls(self, request: WebRequest) -> TextAnswer:
        verbs = list(self._commands) if self._socket is not None else []
        return json_answer({"nodes": verbs})

    async def _command(self, request: WebRequest) -> TextAnswer:
        node = find_node(self._context, request.path["nodeid"])
        command = self._commands[request.url.rpartition("/")[2]]
        try:
            async with asyncio.timeout(TIMEOUT_S):
                answer = await self._send({"command": command, "node": str(node.node_id)})
        except (OSError, TimeoutError, ValueError) as error:
            raise PlainRefusal(409, f"the cluster's supervisor does not answer: {error}") from None
        if "error" in answer:
            raise PlainRefusal(409, str(answer["error"]))
        return json_answer({"text": answer.get("text", "")})

    async def _send(self, command: dict[str, str]) -> dict[str, Any]:
        """Send a command to the supervisor and return its answer, without the lines that report progress.

        Raises OSError or ValueError if the supervisor does not answer.
        """
        assert self._socket is not None, "the route exists only if there is a socket"
        with short_name(self._socket) as name:
            reader, writer = await asyncio.open_unix_connection(name, limit=LINE_BYTES_MAX)
        try:
            writer.write(json.dumps(command).encode() + b"\n")
            while line := await reader.readline():
                answer = json.loads(line)
                if "progress" not in answer:
                    return dict(answer)
            raise ConnectionResetError("it closed the connection without an answer")
        finally:
            writer.close()
