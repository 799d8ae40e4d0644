"""Calls from where no event loop runs, and from where one does."""

from __future__ import annotations

import asyncio

import pytest

from yarn.errors import YarnException
from yarnling.blocking import BlockingClient, LoopThread
from yarnling.client import Client


async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def failed() -> None:
    raise KeyError("mine")


def use() -> None:
    loop = LoopThread()
    try:
        assert loop.call(doubled(21)) == 42
        with pytest.raises(KeyError, match="mine"):
            loop.call(failed())
    finally:
        loop.close()
    with pytest.raises(YarnException, match="the cluster has ended"):
        loop.call(doubled(1))


def test_without_a_loop() -> None:
    use()


async def test_beside_a_loop_that_runs() -> None:
    """A notebook's cells run in one."""
    use()
    assert asyncio.get_running_loop().is_running()


def test_the_blocking_client_lacks_nothing_but_the_operators_side() -> None:
    ours = {name for name, value in vars(Client).items() if callable(value) and not name.startswith("_")}
    blocking = {name for name, value in vars(BlockingClient).items() if callable(value) and not name.startswith("_")}
    assert ours - blocking == {"close"}
