"""A process of another user that connects and waits; only root can start one."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import pytest

NOBODY = 65534
HANGS_S = 60
only_as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")

_CALLER = """
import json, os, socket, sys
port, count, uid = map(int, sys.argv[1:])
socket.socket().close()
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
def read(connection):
    try:
        return connection.recv(100).decode()
    except ConnectionError:
        return ""
held = []
for _ in range(count):
    held.append(socket.socket())
    held[-1].connect(("127.0.0.1", port))
print(json.dumps([read(connection) for connection in held]))
"""


async def answers_to_nobody(port: int, count: int) -> list[str]:
    """Return the first bytes that silent connections of another user get; "" if they are closed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CALLER, str(port), str(count), str(NOBODY), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(HANGS_S):
        output, _ = await process.communicate()
    answers: list[str] = json.loads(output)
    return answers
