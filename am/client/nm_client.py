"""NMClient: an AM's side of ContainerManagementProtocol, for all NMs on which the AM has containers.

If the outcome of a start is unknown, the client asks the NM whether it has the container. So a container is started
once or not at all, and the caller learns which.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, assert_never

from am.client.environment import AMEnvironment
from am.core.container_starts import (
    ContainerFound,
    ContainerStarts,
    FindContainer,
    FindFailed,
    SendStarts,
    StartAbandoned,
    StartEvent,
    StartsAnswered,
    StartSettled,
    StartsFailed,
    StartWanted,
)
from wire.channel import Channels
from wire.protocols.container_management import ContainerManagementProtocol
from wire.retry import NO_RETRY, RetryPolicy
from yarn.containers import Container, ContainerLaunchContext, ContainerStatus, Token
from yarn.errors import CallOutcomeUnknown, InvalidToken, YarnException
from yarn.ids import ContainerId, NodeId
from yarn.machine import Tick
from yarn.protocols.container_management import (
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
)
from yarn.settings.resourcemanager import NM_CLIENT_CONNECT_MAX_WAIT, NM_CLIENT_CONNECT_RETRY_INTERVAL
from yarn.states import SignalContainerCommand


class NMClient:
    """Starts, stops and queries containers. `tokens` may grow while the client is used (AMRMClient.nm_tokens).

    `channels` given: shared, and not closed here.

    Methods raise InvalidToken if there is no token for the NM, and CallOutcomeUnknown if it does not answer in time.
    """

    def __init__(self, tokens: Mapping[NodeId, Token], retry: RetryPolicy, *, channels: Channels | None = None) -> None:
        self._tokens = tokens
        self._retry = retry
        self._channels = channels or Channels()
        self._owns_channels = channels is None
        self._proxies: dict[NodeId, ContainerManagementProtocol] = {}
        self._starts: dict[NodeId, NodeStarts] = {}
        self._tasks = asyncio.TaskGroup()

    @classmethod
    def connect(cls, environment: AMEnvironment, tokens: Mapping[NodeId, Token]) -> NMClient:
        """Make a client that waits for unreachable NMs as long as the configuration says.

        The call sends nothing yet.
        """
        conf = environment.configuration
        return cls(tokens, RetryPolicy.read(conf, NM_CLIENT_CONNECT_MAX_WAIT, NM_CLIENT_CONNECT_RETRY_INTERVAL))

    async def __aenter__(self) -> NMClient:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for starts in self._starts.values():
            starts.close()
        try:
            await self._tasks.__aexit__(kind, error, traceback)
        finally:
            if self._owns_channels:
                await self._channels.close()

    async def start(self, container: Container, launch_context: ContainerLaunchContext) -> None:
        """Start a container. Raises YarnException if it was definitely not started, or if its NM does not answer.

        Concurrent starts on one NM share a call, so start many containers in concurrent tasks.
        """
        if container.token is None:
            raise InvalidToken(
                f"{container.id} has no container token: only a container from `allocate` can be started"
            )
        starts = self._starts_on(container.node_id)
        error = await starts.start(container.id, StartContainerRequest(launch_context, container.token))
        if error is not None:
            raise error

    async def update(self, container: Container) -> None:
        """Apply a container's new size from ContainersUpdated on its NM; if this is not done, the RM reverts an
        increase.

        Raises YarnException if the NM definitely did not apply the size, or does not answer.
        """
        if container.token is None:
            raise InvalidToken(f"{container.id} has no container token: only one from ContainersUpdated can be updated")
        started_s = asyncio.get_running_loop().time()
        while True:
            try:
                response = await self._proxy(container.node_id).update_container((container.token,))
            except CallOutcomeUnknown:
                status = await self.status(container.id, container.node_id)
                if (status.capability, status.execution_type) == (container.resource, container.execution_type):
                    return
                if not self._retry.may_wait((asyncio.get_running_loop().time() - started_s) * 1000):
                    raise
                await asyncio.sleep(self._retry.interval_ms / 1000)
                continue
            if container.id in response.succeeded:
                return
            raise response.failed.get(container.id) or YarnException(
                f"{container.node_id} did not report the outcome for {container.id}"
            )

    async def stop(self, container_id: ContainerId, node_id: NodeId) -> None:
        """Stop a container; its exit status is then -105.

        Raises YarnException if the NM does not have the container.
        """
        response = await self._proxy(node_id).stop_containers((container_id,))
        if container_id in response.failed:
            raise response.failed[container_id]

    async def status(self, container_id: ContainerId, node_id: NodeId) -> ContainerStatus:
        """The status of a container.

        Raises YarnException if the NM does not have the container, or no longer has it.
        """
        response = await self._proxy(node_id).get_container_statuses((container_id,))
        for status in response.statuses:
            if status.container_id == container_id:
                return status
        raise response.failed.get(container_id) or YarnException(
            f"{node_id} did not report the outcome for {container_id}"
        )

    async def statuses(self, container_ids: tuple[ContainerId, ...], node_id: NodeId) -> tuple[ContainerStatus, ...]:
        """The statuses of those containers that the NM has. Raises YarnException if the NM cannot be reached."""
        return (await self._proxy(node_id).get_container_statuses(container_ids)).statuses

    async def signal(self, container_id: ContainerId, node_id: NodeId, command: SignalContainerCommand) -> None:
        """Send a signal to a container's processes."""
        await self._proxy(node_id).signal_to_container(SignalContainerRequest(container_id, command))

    def _starts_on(self, node_id: NodeId) -> NodeStarts:
        proxy = self._proxy(node_id)
        starts = self._starts.get(node_id)
        if starts is None:
            starts = NodeStarts(
                proxy.start_containers,
                lambda container_id: self._has(container_id, node_id),
                self._tasks,
                self._retry,
            )
            self._starts[node_id] = starts
        return starts

    async def _has(self, container_id: ContainerId, node_id: NodeId) -> bool:
        """True if the NM has the container. Raises YarnException if the NM cannot be reached."""
        return any(status.container_id == container_id for status in await self.statuses((container_id,), node_id))

    def _proxy(self, node_id: NodeId) -> ContainerManagementProtocol:
        token = self._tokens.get(node_id)
        if token is None:
            raise InvalidToken(
                f"No token available for {node_id}: the ResourceManager sends it with the first container on that node"
            )
        proxy = self._proxies.get(node_id)
        if proxy is None:
            proxy = ContainerManagementProtocol(str(node_id), retry=self._retry, channels=self._channels)
            self._proxies[node_id] = proxy
        proxy.use_token(token)
        return proxy


_Send = Callable[[tuple[StartContainerRequest, ...]], Awaitable[StartContainersResponse]]
_Has = Callable[[ContainerId], Awaitable[bool]]


class NodeStarts:
    """The shell of ContainerStarts: the starts on one NM.

    `send` is the NM's startContainers, `has` asks it whether it has a container.
    """

    def __init__(self, send: _Send, has: _Has, tasks: asyncio.TaskGroup, retry: RetryPolicy = NO_RETRY) -> None:
        self._send = send
        self._has = has
        self._tasks = tasks
        self._core = ContainerStarts(retry.max_wait_ms, retry.interval_ms)
        self._outcomes: dict[int, asyncio.Future[YarnException | None]] = {}
        self._numbers = 0
        self._calls: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def start(self, container_id: ContainerId, request: StartContainerRequest) -> YarnException | None:
        """Start a container; returns None or the error, which is CallOutcomeUnknown if it may have been started."""
        self._numbers += 1
        number = self._numbers
        outcome: asyncio.Future[YarnException | None] = asyncio.get_running_loop().create_future()
        self._outcomes[number] = outcome
        try:
            self._handle(StartWanted(number, container_id, request))
            return await outcome
        finally:
            if self._outcomes.pop(number, None) is not None:
                self._handle(StartAbandoned(number))

    def close(self) -> None:
        """Start nothing more; cancel the starts that wait."""
        for call in self._calls:
            call.cancel()
        for outcome in self._outcomes.values():
            outcome.cancel()
        self._outcomes.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _handle(self, event: StartEvent) -> None:
        for effect in self._core.handle(event, _now_ms()):
            match effect:
                case SendStarts(requests):
                    self._call(self._send_starts(requests))
                case FindContainer(number, container_id):
                    self._call(self._find(number, container_id))
                case StartSettled(number, error):
                    outcome = self._outcomes.pop(number, None)
                    if outcome is not None and not outcome.done():
                        outcome.set_result(error)
                case _:
                    assert_never(effect)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadline_ms = self._core.next_deadline_ms()
        loop = asyncio.get_running_loop()
        self._timer = None if deadline_ms is None else loop.call_at(deadline_ms / 1000, self._deadline_reached)

    def _deadline_reached(self) -> None:
        self._handle(Tick())

    def _call(self, call: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.create_task(self._unless_failed(call), name="am-starts")
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _unless_failed(self, call: Coroutine[Any, Any, None]) -> None:
        try:
            await call
        except BaseException:
            # Cancellation included: otherwise the callers would wait forever.
            self.close()
            raise

    async def _send_starts(self, requests: tuple[StartContainerRequest, ...]) -> None:
        try:
            response = await self._send(requests)
        except YarnException as error:
            self._handle(StartsFailed(error))
        else:
            self._handle(StartsAnswered(response))

    async def _find(self, number: int, container_id: ContainerId) -> None:
        try:
            is_there = await self._has(container_id)
        except YarnException as error:
            self._handle(FindFailed(number, error))
        else:
            self._handle(ContainerFound(number, is_there))


def _now_ms() -> int:
    """The loop's clock, rounded to ms, so that a deadline is reached when its timer fires."""
    return round(asyncio.get_running_loop().time() * 1000)
