"""Waiting for what has no event: processes, files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest


async def until(condition: Callable[[], object], what: str) -> None:
    """Return as soon as it is true; fail after a minute with what was waited for."""
    try:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"still not so: {what}")
