"""Carries the node's calls to the RM, and keeps the keys that come with the answers (they never enter the core)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec.structs import replace

from nm.core.effects import RegisterNode, SendHeartbeat, UnregisterNode
from nm.core.events import (
    Event,
    HeartbeatAnswered,
    HeartbeatFailed,
    NodeRegistered,
    RegistrationFailed,
    UnregisterCompleted,
)
from wire.protocols.tracker import ResourceTracker
from wire.retry import FOR_EVER, RetryPolicy
from wire.tokens import ContainerTokenSecretManager, KeyRing
from yarn.containers import ContainerTokenIdentifier
from yarn.errors import CallOutcomeUnknown, InvalidToken, ServerUnavailable, YarnException
from yarn.ids import NodeId
from yarn.protocols.tracker import (
    MasterKey,
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
)

T = TypeVar("T")

_logger = logging.getLogger(__name__)

UNREGISTER_TIMEOUT_S = 1.0
"""A node that stops does not wait longer for a RM that does not answer."""


class ResourceTrackerCalls:
    """One call at a time, as the core orders them; each but the last is answered with an event."""

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
    ) -> None:
        self._node_id = node_id
        self._proxy = proxy
        self._retry = retry
        self._container_tokens = container_tokens
        self._nm_keys = nm_keys
        self._tasks = tasks
        self._send = send
        self._running: asyncio.Task[None] | None = None

    def call(self, effect: RegisterNode | SendHeartbeat | UnregisterNode) -> None:
        """Send a call in the background. A good-bye takes the place of a call that still waits."""
        if isinstance(effect, UnregisterNode):
            self.cancel()
            self._running = self._tasks.create_task(self._unregister())
        elif isinstance(effect, RegisterNode):
            self._running = self._tasks.create_task(self._register(effect.request))
        else:
            self._running = self._tasks.create_task(self._beat(effect.request))

    def cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    async def join(self) -> None:
        """Wait for the call that is under way, a moment at the most."""
        if self._running is not None:
            await asyncio.wait([self._running], timeout=UNREGISTER_TIMEOUT_S)

    async def _register(self, request: RegisterNodeManagerRequest) -> None:
        try:
            response = await registered_until_answered(lambda: self._proxy.register_node_manager(request), self._retry)
        except YarnException as error:
            self._send(RegistrationFailed(error.message))
        else:
            self._take_keys(response.container_token_key, response.nm_token_key)
            self._send(NodeRegistered(response))

    async def _beat(self, request: NodeHeartbeatRequest) -> None:
        container_key, nm_key = self._container_tokens.keys.current, self._nm_keys.current
        request = replace(
            request,
            container_token_key_id=container_key.key_id if container_key else 0,
            nm_token_key_id=nm_key.key_id if nm_key else 0,
        )
        try:
            response = await self._proxy.node_heartbeat(request)
        except YarnException as error:
            unreachable = isinstance(error, ServerUnavailable) and error.definite
            self._send(HeartbeatFailed(error.message, unreachable))
        else:
            self._take_keys(response.container_token_key, response.nm_token_key)
            updates = updates_of(response, self._container_tokens, self._node_id)
            self._send(HeartbeatAnswered(response, updates))

    async def _unregister(self) -> None:
        await good_bye_over(self._proxy.unregister_node_manager(self._node_id))
        self._send(UnregisterCompleted())

    def _take_keys(self, container_key: MasterKey | None, nm_key: MasterKey | None) -> None:
        if container_key is not None:
            self._container_tokens.keys.accept(container_key)
        if nm_key is not None:
            self._nm_keys.accept(nm_key)


async def good_bye_over(unregistering: Awaitable[None]) -> None:
    """Wait for the answer, a moment at the most. Without one the RM will miss the heartbeats."""
    try:
        async with asyncio.timeout(UNREGISTER_TIMEOUT_S):
            await unregistering
    except (YarnException, TimeoutError) as error:
        _logger.warning("the good-bye was not answered: %s", str(error) or "no time left")


async def registered_until_answered(register: Callable[[], Awaitable[T]], retry: RetryPolicy) -> T:
    """Register until there is an answer: to register twice does no harm, so a lost answer is asked for again."""
    started_s = time.monotonic()
    while True:
        try:
            return await register()
        except CallOutcomeUnknown:
            waited_ms = (time.monotonic() - started_s) * 1000
            if retry.max_wait_ms not in (FOR_EVER,) and waited_ms > retry.max_wait_ms:
                raise
            await asyncio.sleep(retry.interval_ms / 1000)


def updates_of(
    response: NodeHeartbeatResponse, container_tokens: ContainerTokenSecretManager, node_id: NodeId
) -> tuple[ContainerTokenIdentifier, ...]:
    """What the RM orders of containers; an order without its seal is none."""
    updates = []
    for container in response.containers_to_update:
        try:
            updates.append(container_tokens.check_for(container.token, node_id))
        except InvalidToken as error:
            _logger.warning("order to change container=%s not followed problem=%s", container.id, error)
    return tuple(updates)
