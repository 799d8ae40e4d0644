"""Waits for processes and files, which send no events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest


async def until(condition: Callable[[], object], what: str) -> None:
    """Return as soon as the condition holds. Fails after a minute and names what was awaited."""
    try:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"still not so: {what}")
