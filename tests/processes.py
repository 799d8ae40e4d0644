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

import pytest

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


def output_at_end(process: subprocess.Popen[str], timeout_s: float) -> tuple[str, str]:
    """The output of the process until it ends. If it hangs, the test fails with where it is.

    For a Python process that leads its own process group, with PYTHONFAULTHANDLER set and pipes.
    """
    try:
        return process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGABRT)
        pytest.fail(f"it has not ended: {process.communicate()}")


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
