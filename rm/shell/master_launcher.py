"""Starts and stops the containers of ApplicationMasters (Hadoop's AMLauncher and ApplicationMasterLauncher).

The core names the attempt and the container. This module adds to the launch context the AMRM token and the environment
variables that every AM gets, and calls the container's NM to start it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from rm.core.effects import CleanUpAM, LaunchAM
from rm.core.events import AMLaunched, AMLaunchFailed
from rm.shell.master_keys import MasterKeys
from rm.shell.response_signer import ResponseSigner
from wire.caller import RM_CALLER
from wire.channel import Channels
from wire.credentials import Credentials
from wire.protocols.container_management import ContainerManagementProtocol
from wire.retry import RetryPolicy
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext, Token
from yarn.errors import InvalidContainerException, YarnException
from yarn.ids import ApplicationAttemptId, NodeId
from yarn.protocols.container_management import StartContainerRequest
from yarn.settings import resourcemanager

WEB_PROXY_BASE = "APPLICATION_WEB_PROXY_BASE"
SUBMIT_TIME = "APP_SUBMIT_TIME_ENV"
CONNECT_INTERVAL_MS = 1000
"""Time between two attempts to reach an NM (ipc.client.connect.retry.interval)."""
CALL_TIMEOUT_S = 20.0
"""How long an NM may take to reply; the reply does not wait for the container's files to be localized."""

_logger = logging.getLogger(__name__)

Report = Callable[[AMLaunched | AMLaunchFailed], None]


class MasterLauncher:
    """Carries out LaunchAM and CleanUpAM, several at a time. `report` receives the outcome of each launch."""

    def __init__(
        self,
        conf: Configuration,
        *,
        keys: MasterKeys,
        signer: ResponseSigner,
        channels: Channels,
        tasks: asyncio.TaskGroup,
        report: Report,
    ) -> None:
        self._keys = keys
        self._signer = signer
        self._channels = channels
        self._tasks = tasks
        self._report = report
        self._slots = asyncio.Semaphore(resourcemanager.AM_LAUNCHER_THREAD_COUNT.of(conf))
        retries = resourcemanager.NODEMANAGER_CONNECT_RETRIES.of(conf)
        self._retry = RetryPolicy(retries * CONNECT_INTERVAL_MS, CONNECT_INTERVAL_MS)
        self._launching: dict[ApplicationAttemptId, asyncio.Task[None]] = {}
        self._running: set[asyncio.Task[None]] = set()

    def cancel(self) -> None:
        """Cancel all launches and clean-ups, because the RM stops."""
        for task in tuple(self._running):
            task.cancel()

    def launch(self, effect: LaunchAM) -> None:
        """Start the AM; an event reports the outcome."""
        self._launching[effect.attempt_id] = self._start_task(self._launch(effect))

    def clean_up(self, effect: CleanUpAM) -> None:
        """Stop the AM's container, after a launch that is still running.

        If this fails, the node's next heartbeat stops it.
        """
        self._start_task(self._clean_up(effect))

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _launch(self, effect: LaunchAM) -> None:
        attempt_id = effect.attempt_id
        try:
            async with self._slots:
                await self._start_container(effect)
        except YarnException as error:
            _logger.warning("launch failed attempt=%s node=%s %s", attempt_id, effect.container.node_id, error.message)
            text = f"Error launching {attempt_id}. Got exception: {error.java_class}: {error.message}"
            self._report(AMLaunchFailed(attempt_id, text))
        except Exception as bug:
            _logger.exception("launch failed attempt=%s", attempt_id)
            self._report(AMLaunchFailed(attempt_id, f"Error launching {attempt_id}. Got exception: {bug!r}"))
        else:
            _logger.info("launched attempt=%s container=%s", attempt_id, effect.container.id)
            self._report(AMLaunched(attempt_id))
        finally:
            self._launching.pop(attempt_id, None)

    async def _start_container(self, effect: LaunchAM) -> None:
        container = effect.container
        token = self._signer.master_token(effect.attempt_id)
        request = StartContainerRequest(
            _launch_context(effect, token), self._signer.master_container_token(container, effect.user)
        )
        async with self._proxy(effect.attempt_id, container.node_id, effect.user, self._retry) as node:
            reply = await node.start_containers((request,))
        error = reply.failed.get(container.id)
        if error is not None:
            raise error
        if container.id not in reply.succeeded:
            raise InvalidContainerException(f"{container.node_id} did not report {container.id} as started")

    async def _clean_up(self, effect: CleanUpAM) -> None:
        launching = self._launching.get(effect.attempt_id)
        if launching is not None:
            await asyncio.wait((launching,))
        try:
            async with self._slots, self._proxy(effect.attempt_id, effect.node_id, "", RetryPolicy()) as node:
                await node.stop_containers((effect.container_id,))
        except YarnException as error:
            _logger.info(
                "clean-up failed, the node's heartbeat will stop it container=%s %s", effect.container_id, error.message
            )
        except Exception:
            _logger.exception("clean-up failed container=%s", effect.container_id)

    def _proxy(
        self, attempt_id: ApplicationAttemptId, node_id: NodeId, user: str, retry: RetryPolicy
    ) -> ContainerManagementProtocol:
        token = self._keys.nodes.create(attempt_id, node_id, user)
        return ContainerManagementProtocol(
            str(node_id), user=RM_CALLER, token=token, retry=retry, timeout_s=CALL_TIMEOUT_S, channels=self._channels
        )


def _launch_context(effect: LaunchAM, token: Token) -> ContainerLaunchContext:
    """The client's context with the AMRM token and the RM's variables (AMLauncher.setupTokens)."""
    context = effect.context.am_container
    credentials = Credentials.from_bytes(context.tokens).with_token(token.service, token)
    environment = {
        **context.environment,
        WEB_PROXY_BASE: f"/proxy/{effect.attempt_id.application_id}",
        SUBMIT_TIME: str(effect.submit_time_ms),
    }
    return replace(context, environment=environment, tokens=credentials.to_bytes())
