"""The signals that end a daemon."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def ended_by_signal(stopping: asyncio.Event, *, use_signals: bool) -> AsyncIterator[None]:
    """SIGTERM and SIGINT set `stopping` while the context is open."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT) if use_signals else ()
    for number in numbers:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
