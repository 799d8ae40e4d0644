"""Processes that tests start: none of them outlives its block, however that is left.

One that did would fail a test that has nothing to do with it, whenever Python comes to collect it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from typing import Any

HEARING = ("env", "--default-signal=INT,HUP,TERM")
"""Before a command that a signal is to end: who runs the tests in the background has some of them ignored."""


@contextlib.contextmanager
def running(*command: str | os.PathLike[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process; if it still runs at the end of the block it is killed, with its group if that is its own."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                _kill(process.pid)


@contextlib.asynccontextmanager
async def running_in_loop(*command: str | os.PathLike[str], **options: Any) -> AsyncIterator[Process]:
    """The same for who awaits its end or reads what it says."""
    process = await asyncio.create_subprocess_exec(*command, **options)
    try:
        yield process
    finally:
        if process.returncode is None:
            _kill(process.pid)
        await process.communicate()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
