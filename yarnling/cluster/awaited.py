"""A cluster and its clients for callers with an event loop of their own, whichever that is and however long it lives.

A LocalCluster belongs to the loop that started it. Tests mostly have a loop each, so a cluster that they share runs in
a thread's loop, and what they await is done there.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, cast

from yarnling.cluster import conditions
from yarnling.cluster.unmanaged_master import NAME, UnmanagedMaster, unmanaged_master

if TYPE_CHECKING:
    from yarnling.cluster.blocking import LoopThread
    from yarnling.cluster.client import Client
    from yarnling.cluster.local_cluster import LocalCluster


class Awaited:
    """Stands before an object of the thread's loop: its coroutine functions run there, all else is as it is."""

    def __init__(self, original: object, loop: LoopThread) -> None:
        self._original = original
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._original, name)
        if not inspect.iscoroutinefunction(value):
            return value

        @functools.wraps(value)
        def call(*args: Any, **kwargs: Any) -> asyncio.Future[Any]:
            return asyncio.wrap_future(self._loop.submit(value(*args, **kwargs)))

        return call


class AwaitedCluster(Awaited):
    """A LocalCluster, whose clients are to be awaited like itself; conditions are looked at by the caller's loop."""

    until = staticmethod(conditions.until)

    @property
    def client(self) -> Client:
        return self.client_of("")

    def client_of(self, user: str) -> Client:
        return cast("Client", Awaited(self._original.client_of(user), self._loop))  # type: ignore[attr-defined]

    def unmanaged_master(
        self, queue: str = "default", *, name: str = NAME, user: str = ""
    ) -> AbstractAsyncContextManager[UnmanagedMaster]:
        """The master's own calls are made by the caller's loop."""
        cluster = cast("LocalCluster", self._original)
        client = self.client_of(user)
        return unmanaged_master(client, cluster.addresses, cluster.configuration, queue=queue, name=name)


def awaited(cluster: LocalCluster, loop: LoopThread) -> LocalCluster:
    """`cluster`, which runs in `loop`, to be awaited in any other."""
    return cast("LocalCluster", AwaitedCluster(cluster, loop))
