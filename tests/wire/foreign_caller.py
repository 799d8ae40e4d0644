"""A process of another user that holds connections; only root can start one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

NOBODY = 65534
HANGS_S = 60
only_as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")

_CALLER = """
import json, os, socket, sys
port, count, uid = map(int, sys.argv[1:4])
said = bytes.fromhex(sys.argv[4])
socket.socket().close()
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
def read(connection):
    try:
        return connection.recv(100).decode("latin-1")
    except ConnectionError:
        return ""
held = []
for _ in range(count):
    held.append(socket.socket())
    held[-1].connect(("127.0.0.1", port))
    try:
        held[-1].sendall(said)
    except ConnectionError:
        pass
print(json.dumps([read(connection) for connection in held]), flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def held_by_nobody(port: int, count: int, said: bytes = b"") -> AsyncIterator[list[str]]:
    """Connections of another user, held while the context lasts; yields the first bytes that they get.

    "": closed by the server. `said` is what each connection sends first.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _CALLER,
        *map(str, (port, count, NOBODY)),
        said.hex(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(HANGS_S):
            answers: list[str] = json.loads(await process.stdout.readline())
        yield answers
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def answers_to_nobody(port: int, count: int) -> list[str]:
    """Return the first bytes that silent connections of another user get; "" if they are closed."""
    async with held_by_nobody(port, count) as answers:
        return answers
