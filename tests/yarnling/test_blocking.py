"""Calls from where no event loop runs, and from where one does."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from yarn.errors import YarnException
from yarnling.cluster.blocking import BlockingClient, BlockingCluster, LoopThread
from yarnling.cluster.client import Client
from yarnling.cluster.local_cluster import LocalCluster


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


OTHERWISE = {"close", "stop"}
"""What the context managers do."""


@pytest.mark.parametrize(("original", "twin"), [(Client, BlockingClient), (LocalCluster, BlockingCluster)])
def test_whatever_can_be_awaited_can_be_waited_for(original: type, twin: type) -> None:
    names = {name for name, member in vars(original).items() if inspect.iscoroutinefunction(member)}
    public = {name for name in names if not name.startswith("_")} - OTHERWISE
    assert len(public) > 5
    for name in sorted(public):
        assert parameters(getattr(original, name)) == parameters(getattr(twin, name)), name


def parameters(function: object) -> list[tuple[str, object, object]]:
    """Names, kinds and defaults; `tell` of start() is for the command line."""
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [(p.name, p.kind, p.default) for p in found if p.name != "tell"]
