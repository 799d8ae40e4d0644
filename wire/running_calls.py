"""The tasks of a server's connections that run now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

_logger = logging.getLogger(f"yarnling.{__name__}")


class RunningCalls:
    """Tasks that answer calls or connect.

    Not a TaskGroup, which would live as long as one `async with`: a server has a start and a stop.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(call)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def stop(self, grace_s: float) -> None:
        """Wait for `grace_s` until all have ended, then cancel the rest."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.error("a call was left without a reply, or a connection", exc_info=error)
