"""Starts and stops the containers of ApplicationMasters (Hadoop's AMLauncher and ApplicationMasterLauncher).

AMLauncher decides which calls are made now and what they lead to. This module adds to the launch context the AMRM token
and the environment variables that every AM gets, and calls the container's NM.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, assert_never

from msgspec.structs import replace

from rm.core.am_launcher import (
    AMLauncher,
    AMStartAnswered,
    AMStartFailed,
    AMStopped,
    LauncherEvent,
    StartAMContainer,
    StopAMContainer,
    shown,
)
from rm.core.effects import CleanUpAM, LaunchAM
from rm.core.events import AMLaunched, AMLaunchFailed
from rm.shell.master_keys import MasterKeys
from rm.shell.response_signer import ResponseSigner
from wire.caller import RM_CALLER
from wire.channel import Channels
from wire.files.credentials import Credentials
from wire.protocols.container_management import ContainerManagementProtocol
from wire.retry import RetryPolicy
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext, Token
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, NodeId
from yarn.protocols.container_management import StartContainerRequest, StartContainersResponse
from yarn.settings import resourcemanager

WEB_PROXY_BASE = "APPLICATION_WEB_PROXY_BASE"
SUBMIT_TIME = "APP_SUBMIT_TIME_ENV"
CONNECT_INTERVAL_MS = 1000
"""Time between two attempts to reach an NM (ipc.client.connect.retry.interval)."""
CALL_TIMEOUT_S = 20.0
"""The time an NM may take to reply; the reply does not wait for the container's files to be localized."""

_logger = logging.getLogger(f"yarnling.{__name__}")

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
        self._core = AMLauncher(resourcemanager.AM_LAUNCHER_THREAD_COUNT.of(conf))
        self._retry = launch_retry(conf)
        self._running: set[asyncio.Task[None]] = set()

    def cancel(self) -> None:
        """Cancel all launches and clean-ups, because the RM stops."""
        for task in tuple(self._running):
            task.cancel()

    def launch(self, effect: LaunchAM) -> None:
        """Start the AM; the outcome is reported as an event."""
        self._handle(effect)

    def clean_up(self, effect: CleanUpAM) -> None:
        """Stop the AM's container, after a running launch. If this fails, the node's next heartbeat stops it."""
        self._handle(effect)

    def _handle(self, event: LauncherEvent) -> None:
        for effect in self._core.handle(event):
            match effect:
                case StartAMContainer(launch):
                    self._start_task(self._start(launch))
                case StopAMContainer(clean_up):
                    self._start_task(self._stop(clean_up))
                case AMLaunched(attempt_id):
                    _logger.info("launched attempt=%s", attempt_id)
                    self._report(effect)
                case AMLaunchFailed(attempt_id, diagnostics):
                    _logger.warning("launch failed attempt=%s %s", attempt_id, diagnostics)
                    self._report(effect)
                case _:
                    assert_never(effect)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _start(self, effect: LaunchAM) -> None:
        try:
            response = await self._start_container(effect)
        except YarnException as error:
            self._handle(AMStartFailed(effect.attempt_id, shown(error)))
        except Exception as bug:
            _logger.exception("launch failed attempt=%s", effect.attempt_id)
            self._handle(AMStartFailed(effect.attempt_id, repr(bug)))
        else:
            self._handle(AMStartAnswered(effect.attempt_id, response))

    async def _start_container(self, effect: LaunchAM) -> StartContainersResponse:
        request = start_request(effect, self._signer)
        async with self._proxy(effect.attempt_id, effect.container.node_id, effect.user, self._retry) as node:
            return await node.start_containers((request,))

    async def _stop(self, effect: CleanUpAM) -> None:
        try:
            async with self._proxy(effect.attempt_id, effect.node_id, "", RetryPolicy()) as node:
                await node.stop_containers((effect.container_id,))
        except YarnException as error:
            _logger.info(
                "clean-up failed, the node's heartbeat will stop it container=%s %s", effect.container_id, error.message
            )
        except Exception:
            _logger.exception("clean-up failed container=%s", effect.container_id)
        self._handle(AMStopped())

    def _proxy(
        self, attempt_id: ApplicationAttemptId, node_id: NodeId, user: str, retry: RetryPolicy
    ) -> ContainerManagementProtocol:
        token = self._keys.nodes.create(attempt_id, node_id, user)
        return ContainerManagementProtocol(
            str(node_id), user=RM_CALLER, token=token, retry=retry, timeout_s=CALL_TIMEOUT_S, channels=self._channels
        )


def launch_retry(conf: Configuration) -> RetryPolicy:
    """The time the RM tries to reach an NM to start an AM."""
    retries = resourcemanager.NODEMANAGER_CONNECT_RETRIES.of(conf)
    return RetryPolicy(retries * CONNECT_INTERVAL_MS, CONNECT_INTERVAL_MS)


def start_request(effect: LaunchAM, signer: ResponseSigner) -> StartContainerRequest:
    """The request that starts the container of an AM, with its tokens."""
    context = _launch_context(effect, signer.master_token(effect.attempt_id))
    return StartContainerRequest(context, signer.master_container_token(effect.container, effect.user))


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
