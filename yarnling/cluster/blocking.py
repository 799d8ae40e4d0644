"""Clusters and clients for callers without an event loop, and for callers that have their own event loop.

A cluster belongs to the event loop that started it. `Portal` runs such a loop in a thread. A *view* represents an
object of that loop: the methods of a `Blocking` view return when the call is done; the methods of an `Awaited` view are
coroutine functions for any event loop. Both kinds of views get their methods from one list of `Remote(...)` entries,
which have the types of the original methods.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.ids import ApplicationId
from yarnling.cluster import conditions
from yarnling.cluster.client import Client
from yarnling.cluster.conditions import WAIT_S, until_blocking
from yarnling.cluster.containers import ContainerLog
from yarnling.cluster.directory import ClusterDirectory
from yarnling.cluster.launcher import Daemon
from yarnling.cluster.nodes import Node
from yarnling.cluster.running_cluster import RunningCluster
from yarnling.cluster.unmanaged_am import NAME, UnmanagedAM, unmanaged_am

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class Portal:
    """An event loop in a thread, for callers in other threads.

    anyio's blocking portal is not used, because it repeats a cancellation at every await, so that an interrupted call
    could not clean up (docs/design/libraries.md).
    """

    def __init__(self) -> None:
        loop: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=_run_loop, args=(loop,), name="yarnling", daemon=True)
        self._thread.start()
        self._loop = loop.result()

    def start(self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `function` in the loop and return a future for its result.

        Raises YarnException if the portal is closed.
        """
        if self._loop.is_closed():
            raise YarnException("the cluster has ended (call it while its context is open)")
        return asyncio.run_coroutine_threadsafe(function(*args, **kwargs), self._loop)

    def call(self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` in the loop and return its result. An interrupt (Ctrl-C) cancels the call."""
        future = self.start(function, *args, **kwargs)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel all calls in the loop and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def _run_loop(made: Future[asyncio.AbstractEventLoop]) -> None:
    """Make, run and close an event loop in a new thread, because the caller's thread may have one, as in a notebook."""
    with asyncio.Runner() as runner:
        made.set_result(runner.get_loop())
        runner.get_loop().run_forever()


class View(Generic[S]):
    """Represents an object that belongs to the event loop of a portal."""

    def __init__(self, original: S, portal: Portal) -> None:
        self.original = original
        self.portal = portal

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.original!r}>"


class Blocking(View[S]):
    """A view whose methods return when the call is done."""


class Awaited(View[S]):
    """A view whose methods are coroutine functions for any event loop."""


class Remote(Generic[S, P, T]):
    """A method of a view.

    It calls `method`, a coroutine function of the original object, in that object's event loop.
    """

    def __init__(self, method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> None:
        self._method = method

    @overload
    def __get__(self, view: None, owner: type) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, view: Blocking[S], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, view: Awaited[S], owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, view: View[S] | None, owner: type) -> Callable[..., Any]:
        if view is None:
            return self._method
        method, original, portal = self._method, view.original, view.portal

        def blocking(*args: P.args, **kwargs: P.kwargs) -> T:
            return portal.call(method, original, *args, **kwargs)

        async def awaited(*args: P.args, **kwargs: P.kwargs) -> T:
            return await asyncio.wrap_future(portal.start(method, original, *args, **kwargs))

        return blocking if isinstance(view, Blocking) else awaited


class _ClientMethods:
    """The methods of both views of a client; see `Client`."""

    new_application = Remote(Client.new_application)
    submit = Remote(Client.submit)
    start = Remote(Client.start)
    report = Remote(Client.report)
    applications = Remote(Client.applications)
    wait = Remote(Client.wait)
    kill = Remote(Client.kill)
    move = Remote(Client.move)
    update_priority = Remote(Client.update_priority)
    update_lifetime = Remote(Client.update_lifetime)
    fail_attempt = Remote(Client.fail_attempt)
    explain = Remote(Client.explain)
    explain_past = Remote(Client.explain_past)
    explain_container = Remote(Client.explain_container)
    attempts = Remote(Client.attempts)
    attempt = Remote(Client.attempt)
    container = Remote(Client.container)
    signal_container = Remote(Client.signal_container)
    containers = Remote(Client.containers)
    metrics = Remote(Client.metrics)
    node_groups = Remote(Client.node_groups)
    nodes = Remote(Client.nodes)
    node_labels = Remote(Client.node_labels)
    queue = Remote(Client.queue)
    refresh_queues = Remote(Client.refresh_queues)
    refresh_nodes = Remote(Client.refresh_nodes)


class _ClientView(_ClientMethods, View[Client]):
    def logs(self, app_id: ApplicationId | str) -> list[ContainerLog]:
        return self.original.logs(app_id)


class BlockingClient(_ClientView, Blocking[Client]):
    """A `Client` whose methods return when the call is done."""


class AwaitedClient(_ClientView, Awaited[Client]):
    """A `Client` whose methods can be awaited in any event loop."""


class _ClusterMethods:
    """The methods of both views of a cluster that make calls; see `RunningCluster`."""

    run = Remote(RunningCluster.run)
    submit = Remote(RunningCluster.submit)
    explain = Remote(RunningCluster.explain)
    explain_container = Remote(RunningCluster.explain_container)
    html = Remote(RunningCluster.html)
    add_nodes = Remote(RunningCluster.add_nodes)
    remove_node = Remote(RunningCluster.remove_node)
    decommission_node = Remote(RunningCluster.decommission_node)
    kill_node = Remote(RunningCluster.kill_node)
    kill_pack = Remote(RunningCluster.kill_pack)
    partition_node = Remote(RunningCluster.partition_node)
    slow_node = Remote(RunningCluster.slow_node)
    heal_node = Remote(RunningCluster.heal_node)
    restart_node = Remote(RunningCluster.restart_node)
    kill_rm = Remote(RunningCluster.kill_rm)
    restart_rm = Remote(RunningCluster.restart_rm)
    active_rm = Remote(RunningCluster.active_rm)
    pause_rm = Remote(RunningCluster.pause_rm)
    resume_rm = Remote(RunningCluster.resume_rm)
    kill_container = Remote(RunningCluster.kill_container)
    kill_master = Remote(RunningCluster.kill_master)
    wait_nodes = Remote(RunningCluster.wait_nodes)
    wait_node = Remote(RunningCluster.wait_node)
    wait_containers = Remote(RunningCluster.wait_containers)
    wait_broken = Remote(RunningCluster.wait_broken)


class _ClusterView(_ClusterMethods, View[RunningCluster]):
    """Properties that both views of a cluster provide without a call, and the cluster in a notebook."""

    def _repr_html_(self) -> str:
        try:
            return self.portal.call(RunningCluster.html, self.original)
        except YarnException:  # The cluster has ended.
            return self.original.processes_html()

    @property
    def nodes(self) -> list[Node]:
        return self.original.nodes

    @property
    def rm(self) -> Daemon:
        return self.original.rm

    @property
    def directory(self) -> ClusterDirectory:
        return self.original.directory

    @property
    def configuration(self) -> Configuration:
        return self.original.configuration

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.original.warnings

    @property
    def addresses(self) -> dict[str, str]:
        return self.original.addresses

    @property
    def hadoop_environment(self) -> dict[str, str]:
        return self.original.hadoop_environment

    def node(self, number: int) -> Node:
        return self.original.node(number)

    def pack_of(self, number: int) -> list[Node]:
        return self.original.pack_of(number)

    def log_dirs_of(self, node: Node) -> list[Path]:
        return self.original.log_dirs_of(node)

    def pause_node(self, number: int) -> None:
        self.original.pause_node(number)

    def resume_node(self, number: int) -> None:
        self.original.resume_node(number)

    def has_network_fault(self, number: int) -> bool:
        return self.original.has_network_fault(number)

    def _client_of(self, user: str) -> Client:
        return self.portal.call(_client_of, self.original, user)


class BlockingCluster(_ClusterView, Blocking[RunningCluster]):
    """A cluster whose methods return when the call is done. Made by `with LocalCluster()`."""

    @property
    def client(self) -> BlockingClient:
        """A client that acts as the user who runs this process."""
        return self.client_of("")

    def client_of(self, user: str) -> BlockingClient:
        return BlockingClient(self._client_of(user), self.portal)

    def awaited(self) -> AwaitedCluster:
        """An awaitable view of the same cluster, for callers with an event loop."""
        return AwaitedCluster(self.original, self.portal)

    def until(self, condition: Callable[[], T], timeout_s: float = WAIT_S) -> T:
        """Call `condition` in this thread until it returns a true value, and return that value. Raises WaitTimeout."""
        return until_blocking(condition, timeout_s)


class AwaitedCluster(_ClusterView, Awaited[RunningCluster]):
    """A cluster whose methods can be awaited in any event loop. Made by `BlockingCluster.awaited`."""

    until = staticmethod(conditions.until)

    @property
    def client(self) -> AwaitedClient:
        """A client that acts as the user who runs this process."""
        return self.client_of("")

    def client_of(self, user: str) -> AwaitedClient:
        return AwaitedClient(self._client_of(user), self.portal)

    def unmanaged_am(
        self, queue: str = "default", *, name: str = NAME, user: str = ""
    ) -> AbstractAsyncContextManager[UnmanagedAM]:
        """An ApplicationMaster in the caller's event loop, to be used as `async with cluster.unmanaged_am() as am`."""
        return unmanaged_am(self.addresses, self.configuration, queue=queue, name=name, user=user)


async def _client_of(cluster: RunningCluster, user: str) -> Client:
    """Make a client in the cluster's event loop, to which the client's channels will belong."""
    return cluster.client_of(user)
