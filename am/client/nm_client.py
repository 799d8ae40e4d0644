"""NMClient: an AM's side of ContainerManagementProtocol, for all NMs on which the AM has containers.

If the outcome of a start is unknown, the client asks the NM whether it has the container. So a container is started
once or not at all, and the caller learns which.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

from am.client.environment import AMEnvironment
from wire.channel import Channels
from wire.protocols.container_management import ContainerManagementProtocol
from wire.retry import FOR_EVER, RetryPolicy
from yarn.containers import Container, ContainerLaunchContext, ContainerStatus, Token
from yarn.errors import (
    CallOutcomeUnknown,
    InvalidArgumentException,
    InvalidToken,
    NMNotYetReadyException,
    YarnException,
)
from yarn.ids import ContainerId, NodeId
from yarn.protocols.container_management import (
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
)
from yarn.settings.resourcemanager import NM_CLIENT_CONNECT_MAX_WAIT, NM_CLIENT_CONNECT_RETRY_INTERVAL
from yarn.states import SignalContainerCommand

STARTS_PER_CALL_MAX = 100
"""The limit on starts in one call. A larger call saves hardly anything, and its callers wait longer."""


class NMClient:
    """Starts, stops and queries containers. `tokens` may grow while the client is used (AMRMClient.nm_tokens).

    Methods raise InvalidToken if there is no token for the NM, and CallOutcomeUnknown if the NM does not answer in
    time.
    """

    def __init__(self, tokens: Mapping[NodeId, Token], retry: RetryPolicy) -> None:
        self._tokens = tokens
        self._retry = retry
        self._channels = Channels()
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
            await self._channels.close()

    async def start(self, container: Container, launch_context: ContainerLaunchContext) -> None:
        """Start a container. Raises YarnException if it was definitely not started, or if its NM does not answer.

        Concurrent starts on one NM share a call, so start many containers in concurrent tasks.
        """
        if container.token is None:
            raise InvalidToken(
                f"{container.id} has no container token: only a container from `allocate` can be started"
            )
        request = StartContainerRequest(launch_context, container.token)
        deadline_s = time.monotonic() + self._retry.max_wait_ms / 1000
        was_unknown = False
        while True:
            error = await self._start_once(container, request)
            if error is None:
                return
            if isinstance(error, CallOutcomeUnknown) or was_unknown:
                was_unknown = True
                if await self._has(container.id, container.node_id):
                    return
            if not isinstance(error, CallOutcomeUnknown | NMNotYetReadyException):
                raise error
            if self._retry.max_wait_ms != FOR_EVER and time.monotonic() > deadline_s:
                raise error
            await asyncio.sleep(self._retry.interval_ms / 1000)

    async def update(self, container: Container) -> None:
        """Apply a container's new size from ContainersUpdated on its NM; if this is not done, the RM reverts an
        increase.

        Raises YarnException if the NM definitely did not apply the size, or does not answer.
        """
        if container.token is None:
            raise InvalidToken(f"{container.id} has no container token: only one from ContainersUpdated can be updated")
        deadline_s = time.monotonic() + self._retry.max_wait_ms / 1000
        while True:
            try:
                response = await self._proxy(container.node_id).update_container((container.token,))
            except CallOutcomeUnknown:
                status = await self.status(container.id, container.node_id)
                if (status.capability, status.execution_type) == (container.resource, container.execution_type):
                    return
                if self._retry.max_wait_ms != FOR_EVER and time.monotonic() > deadline_s:
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

    async def _start_once(self, container: Container, request: StartContainerRequest) -> YarnException | None:
        try:
            starts = self._starts_on(container.node_id)
        except InvalidToken as error:
            return error
        return await starts.start(container.id, request)

    def _starts_on(self, node_id: NodeId) -> NodeStarts:
        proxy = self._proxy(node_id)
        starts = self._starts.get(node_id)
        if starts is None:
            starts = NodeStarts(
                proxy.start_containers, lambda container_id: self._has(container_id, node_id), self._tasks
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


@dataclass(slots=True, eq=False)
class _Start:
    """A start that waits for its call. `outcome` becomes None if the container is started, else the error."""

    container_id: ContainerId
    request: StartContainerRequest
    outcome: asyncio.Future[YarnException | None]


class NodeStarts:
    """Combines concurrent starts on one NM: one startContainers call for many containers costs less than many calls.

    Starts that are requested in one turn of the event loop make one call. Starts that are requested while this call is
    in progress make the next call. `send` is the NM's startContainers; `has` asks the NM whether it has a container.
    """

    def __init__(self, send: _Send, has: _Has, tasks: asyncio.TaskGroup) -> None:
        self._send = send
        self._has = has
        self._tasks = tasks
        self._waiting: deque[_Start] = deque()
        self._sender: asyncio.Task[None] | None = None

    async def start(self, container_id: ContainerId, request: StartContainerRequest) -> YarnException | None:
        """Start a container.

        Returns None once it is started, else the error; CallOutcomeUnknown if it may have been started.
        """
        outcome: asyncio.Future[YarnException | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Start(container_id, request, outcome))
        if self._sender is None:
            self._sender = self._tasks.create_task(self._send_waiting(), name="am-starts")
        return await outcome

    def close(self) -> None:
        """Cancel the starts that wait, and accept no more."""
        if self._sender is not None:
            self._sender.cancel()

    async def _send_waiting(self) -> None:
        starts: list[_Start] = []
        try:
            while self._waiting:
                starts = [self._waiting.popleft() for _ in range(min(STARTS_PER_CALL_MAX, len(self._waiting)))]
                for start, error in zip(starts, await self._send_together(starts), strict=True):
                    _settle(start, error)
        except BaseException:
            # Cancellation is included, because otherwise the callers would wait forever.
            for start in (*starts, *self._waiting):
                start.outcome.cancel()
            raise
        finally:
            self._sender = None

    async def _send_together(self, starts: list[_Start]) -> list[YarnException | None]:
        try:
            response = await self._send(tuple(start.request for start in starts))
        except (InvalidToken, InvalidArgumentException) as error:
            # One of the starts made the NM refuse the whole call (a forged token, or a call that is too large): find
            # out which.
            return [error] if len(starts) == 1 else [await self._send_after(error, start) for start in starts]
        except YarnException as error:
            return [error] * len(starts)
        return [_outcome(start.container_id, response) for start in starts]

    async def _send_after(self, error: YarnException, start: _Start) -> YarnException | None:
        """Send one start by itself, after the shared call was refused.

        The NM has carried out the starts before a forged token.
        """
        try:
            if await self._has(start.container_id):
                return None
        except YarnException:
            return error
        return (await self._send_together([start]))[0]


def _settle(start: _Start, error: YarnException | None) -> None:
    """Set the outcome of a start, unless its caller was cancelled."""
    if not start.outcome.done():
        start.outcome.set_result(error)


def _outcome(container_id: ContainerId, response: StartContainersResponse) -> YarnException | None:
    if container_id in response.succeeded:
        return None
    return response.failed.get(container_id) or YarnException(
        f"the NodeManager did not report the outcome for {container_id}"
    )
