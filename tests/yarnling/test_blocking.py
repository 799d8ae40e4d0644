"""Calls from a thread without an event loop, and from another event loop than the cluster's."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

from yarn.errors import YarnException
from yarnling.cluster.blocking import Awaited, BlockingClient, BlockingCluster, Portal, Remote, View
from yarnling.cluster.client import Client
from yarnling.cluster.running_cluster import RunningCluster


class Adder:
    """An object in the event loop of a portal."""

    def __init__(self) -> None:
        self.cleaned_up = threading.Event()

    async def add(self, first: int, *, second: int = 0) -> int:
        await asyncio.sleep(0)
        return first + second

    async def fail(self) -> None:
        raise KeyError("mine")

    async def hang(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            self.cleaned_up.set()


class AwaitedAdder(Awaited[Adder]):
    add = Remote(Adder.add)
    fail = Remote(Adder.fail)
    hang = Remote(Adder.hang)


def call_and_close() -> None:
    adder, portal = Adder(), Portal()
    try:
        assert portal.call(adder.add, 40, second=2) == 42
        with pytest.raises(KeyError, match="mine"):
            portal.call(adder.fail)
    finally:
        portal.close()
    with pytest.raises(YarnException, match="the cluster has ended"):
        portal.call(adder.add, 1)


def test_calls_without_an_event_loop() -> None:
    call_and_close()


async def test_calls_beside_a_running_event_loop() -> None:
    """The caller's thread runs an event loop, as the cells of a notebook do."""
    call_and_close()
    assert asyncio.get_running_loop().is_running()


async def test_calls_from_another_event_loop() -> None:
    adder, portal = Adder(), Portal()
    try:
        view = AwaitedAdder(adder, portal)
        assert await view.add(40, second=2) == 42
        with pytest.raises(KeyError, match="mine"):
            await view.fail()
    finally:
        portal.close()


async def test_a_cancelled_call_can_clean_up() -> None:
    """For example, a node that is being decommissioned stays if the call is interrupted. That takes another call."""
    adder, portal = Adder(), Portal()
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await AwaitedAdder(adder, portal).hang()
        assert await asyncio.to_thread(adder.cleaned_up.wait, 60)
    finally:
        portal.close()


NOT_IN_VIEWS = {"close", "until"}
"""The cluster closes its clients; each view has an `until` of its own."""


@pytest.mark.parametrize(("original", "view"), [(Client, BlockingClient), (RunningCluster, BlockingCluster)])
def test_views_have_every_method_that_can_be_awaited(original: type, view: type[View[object]]) -> None:
    names = {name for name, member in vars(original).items() if inspect.iscoroutinefunction(member)}
    public = {name for name in names if not name.startswith("_")} - NOT_IN_VIEWS
    assert len(public) > 5
    for name in sorted(public):
        assert getattr(view, name) is getattr(original, name), name
