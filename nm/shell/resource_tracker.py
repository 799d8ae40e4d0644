"""Sends the node's calls to the RM, and stores the keys in the answers, which never enter the core."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from nm.core.events import (
    Event,
    NodeHeartbeatAnswered,
    NodeHeartbeatFailed,
    NodeRegistered,
    RegistrationFailed,
    UnregisterCompleted,
)
from wire.cluster_secret import read_cluster_secret
from wire.failover import Failover
from wire.protocols.tracker import ResourceTracker
from wire.retry import RetryPolicy
from wire.tokens import ContainerTokenSecretManager, KeyRing
from yarn.configuration import Configuration
from yarn.containers import ContainerTokenIdentifier
from yarn.errors import CallOutcomeUnknown, InvalidToken, ServerUnavailable, YarnException
from yarn.ids import NodeId
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.settings import high_availability, nodemanager, resourcemanager

T = TypeVar("T")

_logger = logging.getLogger(f"yarnling.{__name__}")

UNREGISTER_TIMEOUT_S = 1.0
"""The time a stopping node waits for the RM to acknowledge the unregistration; the RM may be down."""


class TrackerCalls(Protocol):
    """The calls of one node to the RM. Each method returns at once; an event with the RM's answer follows."""

    def send_registration(self, request: RegisterNodeManagerRequest) -> None: ...
    def send_heartbeat(self, request: NodeHeartbeatRequest, *, at_once: bool) -> None: ...
    def send_unregistration(self) -> None: ...


class TrackerConnection(Protocol):
    """The connection of a process to the RM. `calls` contains the calls of each node, in the order of the nodes."""

    @property
    def calls(self) -> Sequence[TrackerCalls]: ...
    async def join(self) -> None:
        """Wait until the calls in progress are answered, at most UNREGISTER_TIMEOUT_S."""

    def cancel(self) -> None:
        """Send no more calls, and stop waiting for answers."""


class TrackerAccess(Struct, frozen=True):
    """The addresses of the RMs for NodeManagers, how long to try to reach one, and the secret that all daemons of the
    cluster share. `timeout_s`: that of each call, None for the call's own.
    """

    target: Failover
    retry: RetryPolicy
    cluster_secret: bytes
    timeout_s: float | None

    @staticmethod
    def read(conf: Configuration) -> TrackerAccess:
        """The access that `conf` describes. Raises YarnException if there is no usable secret."""
        target = Failover(high_availability.targets(conf, resourcemanager.RESOURCE_TRACKER_ADDRESS))
        retry = RetryPolicy.read(conf, nodemanager.NM_CONNECT_MAX_WAIT, nodemanager.NM_CONNECT_RETRY_INTERVAL)
        return TrackerAccess(target, retry, read_cluster_secret(conf), high_availability.reply_timeout_s(conf))


class ResourceTrackerCalls:
    """The connection of a single node to the RM. Like the core that uses it, it makes one call at a time.

    `keys_changed` is called when the RM has sent a new key.
    """

    def __init__(
        self,
        node_id: NodeId,
        proxy: ResourceTracker,
        retry: RetryPolicy,
        *,
        container_tokens: ContainerTokenSecretManager,
        nm_keys: KeyRing,
        tasks: asyncio.TaskGroup,
        send: Callable[[Event], None],
        keys_changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._node_id = node_id
        self._proxy = proxy
        self._retry = retry
        self._container_tokens = container_tokens
        self._nm_keys = nm_keys
        self._tasks = tasks
        self._send = send
        self._keys_changed = keys_changed
        self._running: asyncio.Task[None] | None = None

    @property
    def calls(self) -> Sequence[TrackerCalls]:
        return (self,)

    def send_registration(self, request: RegisterNodeManagerRequest) -> None:
        self._running = self._tasks.create_task(self._register(request))

    def send_heartbeat(self, request: NodeHeartbeatRequest, *, at_once: bool) -> None:
        self._running = self._tasks.create_task(self._heartbeat(request))

    def send_unregistration(self) -> None:
        """Unregister. A call that still waits for its answer is cancelled."""
        self.cancel()
        self._running = self._tasks.create_task(self._unregister())

    def cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    async def join(self) -> None:
        if self._running is not None:
            await asyncio.wait([self._running], timeout=UNREGISTER_TIMEOUT_S)

    async def _register(self, request: RegisterNodeManagerRequest) -> None:
        try:
            response = await registered_until_answered(lambda: self._proxy.register_node_manager(request), self._retry)
        except YarnException as error:
            self._send(RegistrationFailed(error.message))
        else:
            self._accept_keys(response)
            self._send(NodeRegistered(response))

    async def _heartbeat(self, request: NodeHeartbeatRequest) -> None:
        try:
            response = await self._proxy.node_heartbeat(
                with_key_ids(request, self._container_tokens.keys, self._nm_keys)
            )
        except YarnException as error:
            self._send(heartbeat_failed(error))
        else:
            self._accept_keys(response)
            updates = verified_updates(response, self._container_tokens, self._node_id)
            self._send(NodeHeartbeatAnswered(response, updates))

    def _accept_keys(self, response: RegisterNodeManagerResponse | NodeHeartbeatResponse) -> None:
        if accept_keys(response, self._container_tokens.keys, self._nm_keys):
            self._keys_changed()

    async def _unregister(self) -> None:
        await unregistered_or_timed_out(self._proxy.unregister_node_manager(self._node_id))
        self._send(UnregisterCompleted())


def with_key_ids(request: NodeHeartbeatRequest, container_keys: KeyRing, nm_keys: KeyRing) -> NodeHeartbeatRequest:
    """The request with the ids of the node's current keys; 0 for a key that it does not have yet."""
    container_key, nm_key = container_keys.current, nm_keys.current
    return replace(
        request,
        container_token_key_id=container_key.key_id if container_key else 0,
        nm_token_key_id=nm_key.key_id if nm_key else 0,
    )


def accept_keys(
    response: RegisterNodeManagerResponse | NodeHeartbeatResponse, container_keys: KeyRing, nm_keys: KeyRing
) -> bool:
    """Add the keys in an answer of the RM to the key rings. Returns True if one of them is new."""
    container_key, nm_key = response.container_token_key, response.nm_token_key
    is_new = container_key is not None and container_keys.accept(container_key)
    return (nm_key is not None and nm_keys.accept(nm_key)) or is_new


def heartbeat_failed(error: YarnException) -> NodeHeartbeatFailed:
    return NodeHeartbeatFailed(error.message, unreachable=isinstance(error, ServerUnavailable) and error.definite)


async def unregistered_or_timed_out(unregistering: Awaitable[None]) -> None:
    """Wait for the RM to acknowledge the unregistration. If it does not, the RM later expires the node."""
    try:
        async with asyncio.timeout(UNREGISTER_TIMEOUT_S):
            await unregistering
    except (YarnException, TimeoutError) as error:
        reason = str(error) or f"no answer in {UNREGISTER_TIMEOUT_S:g} s"
        _logger.warning("the ResourceManager did not acknowledge the unregistration: %s", reason)


async def registered_until_answered(register: Callable[[], Awaitable[T]], retry: RetryPolicy) -> T:
    """Register until there is an answer. After a lost answer the call is repeated: registering twice does no harm."""
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    while True:
        try:
            return await register()
        except CallOutcomeUnknown:
            if not retry.may_wait((loop.time() - started_s) * 1000):
                raise
            await asyncio.sleep(retry.interval_ms / 1000)


def verified_updates(
    response: NodeHeartbeatResponse, container_tokens: ContainerTokenSecretManager, node_id: NodeId
) -> tuple[ContainerTokenIdentifier, ...]:
    """The updates of containers that the RM requests in a heartbeat. Updates with an invalid token are left out."""
    updates = []
    for container in response.containers_to_update:
        try:
            updates.append(container_tokens.check_for(container.token, node_id))
        except InvalidToken as error:
            _logger.warning("ignoring the update of container=%s, its token is invalid: %s", container.id, error)
    return tuple(updates)
