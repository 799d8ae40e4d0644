"""NMClient: an AM's side of ContainerManagementProtocol, for all the NMs that it has containers on.

A start whose outcome is unknown is settled by asking the NM whether it has the container: a container is started once
or not at all, and the caller is told which.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from am.client.environment import AMEnvironment
from am.client.node_starts import NodeStarts
from wire.channel import Channels
from wire.protocols.container_management import ContainerManagementProtocol
from wire.retry import FOR_EVER, RetryPolicy
from yarn.containers import Container, ContainerLaunchContext, ContainerStatus, Token
from yarn.errors import CallOutcomeUnknown, InvalidToken, NMNotYetReadyException, YarnException
from yarn.ids import ContainerId, NodeId
from yarn.protocols.container_management import SignalContainerRequest, StartContainerRequest
from yarn.settings.resourcemanager import NM_CLIENT_CONNECT_MAX_WAIT, NM_CLIENT_CONNECT_RETRY_INTERVAL
from yarn.states import SignalContainerCommand


class NMClient:
    """Starts, stops and asks after containers. `tokens` may grow while it is used (AMRMClient.nm_tokens)."""

    def __init__(self, tokens: Mapping[NodeId, Token], retry: RetryPolicy) -> None:
        self._tokens = tokens
        self._retry = retry
        self._channels = Channels()
        self._proxies: dict[NodeId, ContainerManagementProtocol] = {}
        self._starts: dict[NodeId, NodeStarts] = {}
        self._tasks = asyncio.TaskGroup()

    @classmethod
    def connect(cls, environment: AMEnvironment, tokens: Mapping[NodeId, Token]) -> NMClient:
        """With the waits that the configuration sets for unreachable NMs; nothing is sent yet."""
        conf = environment.configuration
        return cls(tokens, RetryPolicy.read(conf, NM_CLIENT_CONNECT_MAX_WAIT, NM_CLIENT_CONNECT_RETRY_INTERVAL))

    async def __aenter__(self) -> NMClient:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        for starts in self._starts.values():
            starts.close()
        try:
            await self._tasks.__aexit__(*exc)  # type: ignore[arg-type]  # the three that we were given
        finally:
            await self._channels.close()

    async def start(self, container: Container, launch_context: ContainerLaunchContext) -> None:
        """Start a container. Raises YarnException if it surely was not started, or if its NM stays silent.

        Who starts many has them go together, by starting them side by side (in tasks) instead of one after the other.
        """
        if container.token is None:
            raise InvalidToken(
                f"{container.id} has no container token: only a container from `allocate` can be started"
            )
        request = StartContainerRequest(launch_context, container.token)
        given_up_s = time.monotonic() + self._retry.max_wait_ms / 1000
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
            if self._retry.max_wait_ms != FOR_EVER and time.monotonic() > given_up_s:
                raise error
            await asyncio.sleep(self._retry.interval_ms / 1000)

    async def update(self, container: Container) -> None:
        """Bring a container its new size, as ContainersUpdated gave it; who does not loses what it grew by.

        Raises YarnException if its NM surely did not take it, or stays silent.
        """
        if container.token is None:
            raise InvalidToken(f"{container.id} has no container token: only one from ContainersUpdated can be updated")
        given_up_s = time.monotonic() + self._retry.max_wait_ms / 1000
        while True:
            try:
                response = await self._proxy(container.node_id).update_container((container.token,))
            except CallOutcomeUnknown:
                status = await self.status(container.id, container.node_id)
                if (status.capability, status.execution_type) == (container.resource, container.execution_type):
                    return
                if self._retry.max_wait_ms != FOR_EVER and time.monotonic() > given_up_s:
                    raise
                await asyncio.sleep(self._retry.interval_ms / 1000)
                continue
            if container.id in response.succeeded:
                return
            raise response.failed.get(container.id) or YarnException(
                f"{container.node_id} says nothing of {container.id}"
            )

    async def stop(self, container_id: ContainerId, node_id: NodeId) -> None:
        """Have the NM stop a container (exit status -105). Raises YarnException if it does not handle it."""
        response = await self._proxy(node_id).stop_containers((container_id,))
        if container_id in response.failed:
            raise response.failed[container_id]

    async def status(self, container_id: ContainerId, node_id: NodeId) -> ContainerStatus:
        """How a container does. Raises YarnException if the NM does not handle it (any more)."""
        response = await self._proxy(node_id).get_container_statuses((container_id,))
        for status in response.statuses:
            if status.container_id == container_id:
                return status
        raise response.failed.get(container_id) or YarnException(f"{node_id} says nothing of {container_id}")

    async def statuses(self, container_ids: tuple[ContainerId, ...], node_id: NodeId) -> tuple[ContainerStatus, ...]:
        """How those of the containers do that the NM has. Raises YarnException if it cannot be asked."""
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
        """True if the NM has the container. Raises YarnException if it cannot be asked."""
        return any(status.container_id == container_id for status in await self.statuses((container_id,), node_id))

    def _proxy(self, node_id: NodeId) -> ContainerManagementProtocol:
        token = self._tokens.get(node_id)
        if token is None:
            raise InvalidToken(
                f"No token available for {node_id}: the ResourceManager gives it with the first container"
            )
        proxy = self._proxies.get(node_id)
        if proxy is None:
            proxy = ContainerManagementProtocol(str(node_id), retry=self._retry, channels=self._channels)
            self._proxies[node_id] = proxy
        proxy.use_token(token)
        return proxy
