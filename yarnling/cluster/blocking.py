"""The cluster and the client without asyncio: each call runs in an event loop that a thread of its own keeps."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from am.client.submission import Submission
from yarn.applications import (
    ApplicationAttemptReport,
    ApplicationFilter,
    ApplicationReport,
    ApplicationSubmissionContext,
    ContainerReport,
)
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.nodes import ClusterMetrics, NodeLabel, NodeReport
from yarn.protocols.client import GetNewApplicationResponse
from yarn.protocols.inspection import Explanation
from yarn.queues import QueueInfo
from yarn.states import (
    FINAL_APPLICATION_STATES,
    DecommissionType,
    NodeState,
    SignalContainerCommand,
    YarnApplicationState,
)
from yarnling.cluster.awaited import awaited
from yarnling.cluster.client import Client
from yarnling.cluster.conditions import WAIT_S, until_blocking
from yarnling.cluster.container_logs import ContainerLog

if TYPE_CHECKING:
    from yarnling.cluster.daemons import Node
    from yarnling.cluster.launcher import Daemon
    from yarnling.cluster.local_cluster import LocalCluster

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread, for callers that have none."""

    def __init__(self) -> None:
        made: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=self._run, args=(made,), name="yarnling", daemon=True)
        self._thread.start()
        self._loop = made.result()

    def _run(self, made: Future[asyncio.AbstractEventLoop]) -> None:
        """Make, run and close the loop in this thread: the caller's may have one that runs, as a notebook's does."""
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            made.set_result(loop)
            loop.run_forever()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. An interrupt (Ctrl-C) cancels it. Raises YarnException once this is closed."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """What will be the result of `work`. Raises YarnException once this is closed."""
        if self._loop.is_closed():
            work.close()
            raise YarnException("the cluster has ended (call it while its context is open)")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class BlockingClient:
    """yarnling.cluster.client.Client, each method waiting for its result."""

    def __init__(self, client: Client, loop: LoopThread) -> None:
        self._client = client
        self._loop = loop

    def __repr__(self) -> str:
        return f"<Blocking{repr(self._client)[1:]}"

    def new_application(self) -> GetNewApplicationResponse:
        return self._loop.call(self._client.new_application())

    def submit(self, context: ApplicationSubmissionContext) -> ApplicationReport:
        return self._loop.call(self._client.submit(context))

    def start(self, submission: Submission) -> ApplicationReport:
        return self._loop.call(self._client.start(submission))

    def report(self, app_id: ApplicationId | str) -> ApplicationReport:
        return self._loop.call(self._client.report(app_id))

    def applications(self, wanted: ApplicationFilter | None = None) -> tuple[ApplicationReport, ...]:
        return self._loop.call(self._client.applications(wanted))

    def wait(
        self,
        app_id: ApplicationId | str,
        *,
        states: frozenset[YarnApplicationState] = FINAL_APPLICATION_STATES,
        timeout_s: float | None = None,
    ) -> ApplicationReport:
        return self._loop.call(self._client.wait(app_id, states=states, timeout_s=timeout_s))

    def kill(self, app_id: ApplicationId | str, diagnostics: str = "") -> None:
        self._loop.call(self._client.kill(app_id, diagnostics))

    def move(self, app_id: ApplicationId | str, queue: str) -> None:
        self._loop.call(self._client.move(app_id, queue))

    def update_priority(self, app_id: ApplicationId | str, priority: int) -> int:
        return self._loop.call(self._client.update_priority(app_id, priority))

    def update_lifetime(self, app_id: ApplicationId | str, ends: str) -> str:
        return self._loop.call(self._client.update_lifetime(app_id, ends))

    def fail_attempt(self, attempt_id: ApplicationAttemptId | str) -> None:
        self._loop.call(self._client.fail_attempt(attempt_id))

    def explain(self, app_id: ApplicationId | str) -> Explanation:
        return self._loop.call(self._client.explain(app_id))

    def attempts(self, app_id: ApplicationId | str) -> tuple[ApplicationAttemptReport, ...]:
        return self._loop.call(self._client.attempts(app_id))

    def attempt(self, attempt_id: ApplicationAttemptId | str) -> ApplicationAttemptReport:
        return self._loop.call(self._client.attempt(attempt_id))

    def container(self, container_id: ContainerId | str) -> ContainerReport:
        return self._loop.call(self._client.container(container_id))

    def signal_container(self, container_id: ContainerId | str, command: SignalContainerCommand) -> None:
        self._loop.call(self._client.signal_container(container_id, command))

    def containers(self, attempt_id: ApplicationAttemptId | str) -> tuple[ContainerReport, ...]:
        return self._loop.call(self._client.containers(attempt_id))

    def metrics(self) -> ClusterMetrics:
        return self._loop.call(self._client.metrics())

    def nodes(self, states: frozenset[NodeState] = frozenset()) -> tuple[NodeReport, ...]:
        return self._loop.call(self._client.nodes(states))

    def node_labels(self) -> tuple[NodeLabel, ...]:
        return self._loop.call(self._client.node_labels())

    def queue(self, name: str, *, applications: bool = False) -> QueueInfo:
        return self._loop.call(self._client.queue(name, applications=applications))

    def refresh_queues(self) -> None:
        self._loop.call(self._client.refresh_queues())

    def refresh_nodes(self, kind: DecommissionType = DecommissionType.NORMAL, timeout_s: int | None = None) -> None:
        self._loop.call(self._client.refresh_nodes(kind, timeout_s))

    def logs(self, app_id: ApplicationId | str) -> list[ContainerLog]:
        return self._client.logs(app_id)


class BlockingCluster:
    """A LocalCluster whose methods wait for their results. Made by `with LocalCluster()`."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._loop = LoopThread()

    def __repr__(self) -> str:
        return f"<Blocking{repr(self._cluster)[len('<Local') :]}"

    def open(self) -> BlockingCluster:
        """Start the cluster; what was started is ended again if that fails."""
        try:
            self._loop.call(self._cluster.__aenter__())
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        try:
            self._loop.call(self._cluster.stop())
        finally:
            self._loop.close()

    @property
    def cluster(self) -> LocalCluster:
        """What this stands before: its directory, its configuration, its addresses."""
        return self._cluster

    def awaited(self) -> LocalCluster:
        """The cluster for callers that have an event loop: what they await is done in the cluster's own."""
        return awaited(self._cluster, self._loop)

    @property
    def nodes(self) -> list[Node]:
        return self._cluster.nodes

    @property
    def client(self) -> BlockingClient:
        """A client of the user who runs this."""
        return self.client_of("")

    def client_of(self, user: str) -> BlockingClient:
        return BlockingClient(self._loop.call(self._client_of(user)), self._loop)

    def kill_node(self, number: int, *, containers: bool = True) -> None:
        self._loop.call(self._cluster.kill_node(number, containers=containers))

    def kill_pack(self, number: int, *, containers: bool = True) -> None:
        self._loop.call(self._cluster.kill_pack(number, containers=containers))

    def restart_node(self, number: int) -> Node:
        return self._loop.call(self._cluster.restart_node(number))

    def kill_rm(self) -> None:
        self._loop.call(self._cluster.kill_rm())

    def restart_rm(self) -> Daemon:
        return self._loop.call(self._cluster.restart_rm())

    def node(self, number: int) -> Node:
        return self._cluster.node(number)

    def wait_broken(self) -> str:
        return self._loop.call(self._cluster.wait_broken())

    def add_nodes(self, count: int = 1, *, memory_mb: int | None = None, vcores: int | None = None) -> list[Node]:
        return self._loop.call(self._cluster.add_nodes(count, memory_mb=memory_mb, vcores=vcores))

    def decommission_node(
        self, number: int, timeout_s: int | None = None, tell: Callable[[str], None] = lambda text: None
    ) -> None:
        self._loop.call(self._cluster.decommission_node(number, timeout_s, tell))

    def remove_node(self, number: int) -> None:
        self._loop.call(self._cluster.remove_node(number))

    def pause_node(self, number: int) -> None:
        self._cluster.pause_node(number)

    def resume_node(self, number: int) -> None:
        self._cluster.resume_node(number)

    def kill_container(self, container_id: ContainerId | str) -> None:
        self._loop.call(self._cluster.kill_container(container_id))

    def kill_master(self, app_id: ApplicationId | str) -> ContainerId:
        return self._loop.call(self._cluster.kill_master(app_id))

    def until(self, condition: Callable[[], T], timeout_s: float = WAIT_S) -> T:
        """What `condition` gives, as soon as that is true. It runs in the thread of its caller, and may call this."""
        return until_blocking(condition, timeout_s)

    def wait_nodes(
        self, count: int, state: NodeState = NodeState.RUNNING, timeout_s: float = WAIT_S
    ) -> tuple[NodeReport, ...]:
        return self._loop.call(self._cluster.wait_nodes(count, state, timeout_s))

    def wait_node(self, number: int, *states: NodeState, timeout_s: float = WAIT_S) -> NodeReport:
        return self._loop.call(self._cluster.wait_node(number, *states, timeout_s=timeout_s))

    def wait_containers(
        self, app_id: ApplicationId | str, count: int, timeout_s: float = WAIT_S, *, exactly: bool = False
    ) -> tuple[ContainerReport, ...]:
        return self._loop.call(self._cluster.wait_containers(app_id, count, timeout_s, exactly=exactly))

    async def _client_of(self, user: str) -> Client:
        return self._cluster.client_of(user)
