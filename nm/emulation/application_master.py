"""Emulated ApplicationMasters: they make the calls of an AM to the ResourceManager, but have no process.

    register -> allocate at each heartbeat, while the stages last -> unregister as SUCCEEDED

An emulated AM requests no containers: the stages of its own container stand for the application's work. If they end
with an exit code other than 0, the AM ends like a process that crashes, without unregistering. All emulated AMs of a
NodeManager process share one channel to the ResourceManager. Each AM is a task that sleeps between heartbeats.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from wire.channel import Channels
from wire.failover import Failover
from wire.files.credentials import Credentials
from wire.protocols.master import ApplicationMasterProtocol
from wire.retry import RetryPolicy
from yarn.configuration import Configuration
from yarn.containers import AMRM_KIND, Token
from yarn.errors import (
    ApplicationMasterNotRegisteredException,
    CallOutcomeUnknown,
    InvalidApplicationMasterRequestException,
    InvalidToken,
    YarnException,
)
from yarn.ids import ContainerId
from yarn.protocols.master import AllocateRequest, FinishApplicationMasterRequest, RegisterApplicationMasterRequest
from yarn.settings.high_availability import targets
from yarn.settings.resourcemanager import AM_HEARTBEAT_INTERVAL, SCHEDULER_ADDRESS
from yarn.states import FinalApplicationStatus

UNREGISTER_PAUSE_S = 0.1
"""The pause between two finishApplicationMaster calls, repeated until the ResourceManager has stored the AM's end
(AMRMClientImpl)."""
AM_FAILED = 1
"""The exit code of an AM that the ResourceManager refused, or that could not reach the ResourceManager."""

_logger = logging.getLogger(f"yarnling.{__name__}")

T = TypeVar("T")

Ended = Callable[[int], None]
"""A function that is called with the exit code of an AM that ended without being killed."""


class EmulatedApplicationMasters:
    """Starts the emulated AMs of one process. `close` cancels those that still run."""

    def __init__(self, conf: Configuration, channels: Channels, tasks: asyncio.TaskGroup) -> None:
        self._target = Failover(targets(conf, SCHEDULER_ADDRESS))
        self._retry = RetryPolicy.read(conf)
        self._interval_s = AM_HEARTBEAT_INTERVAL.of(conf) / 1000
        self._channels = channels
        self._tasks = tasks
        self._running: set[asyncio.Task[None]] = set()

    def start(self, container_id: ContainerId, tokens: bytes, ended: Ended) -> EmulatedApplicationMaster:
        """Start an AM with the tokens of its launch context.

        When the AM ends, `ended` is called in a later turn of the event loop; it is not called if the AM is killed.
        """
        master = EmulatedApplicationMaster(container_id, self._interval_s)
        task = self._tasks.create_task(self._run(master, tokens, ended), name=f"emulated-master-{container_id}")
        master.task = task
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return master

    def close(self) -> None:
        for task in tuple(self._running):
            task.cancel()

    async def _run(self, master: EmulatedApplicationMaster, tokens: bytes, ended: Ended) -> None:
        try:
            token = _amrm_token(tokens)
            await master.run(
                ApplicationMasterProtocol(self._target, token=token, retry=self._retry, channels=self._channels)
            )
        except YarnException as error:
            _logger.warning("emulated ApplicationMaster failed container=%s: %s", master.container_id, error.message)
            ended(AM_FAILED)
        else:
            ended(0)


class EmulatedApplicationMaster:
    """An emulated AM. `finish` lets it unregister and end; `kill` ends it at once, as SIGKILL ends a process."""

    def __init__(self, container_id: ContainerId, interval_s: float) -> None:
        self.container_id = container_id
        self.task: asyncio.Task[None] | None = None
        self._interval_s = interval_s
        self._finishing = asyncio.Event()

    def finish(self) -> None:
        self._finishing.set()

    def kill(self) -> None:
        assert self.task is not None, "it was started"
        self.task.cancel()

    async def run(self, rm: ApplicationMasterProtocol) -> None:
        """Run the AM until it has unregistered. Raises YarnException if the ResourceManager refuses a call."""
        await self._register(rm)
        response_id = 0
        while not self._finishing.is_set():
            response_id = await self._heartbeat(rm, response_id)
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._finishing.wait()
            except TimeoutError:
                continue
        while not await self._unregister(rm):  # noqa: ASYNC110  only the ResourceManager knows
            await asyncio.sleep(UNREGISTER_PAUSE_S)

    async def _register(self, rm: ApplicationMasterProtocol) -> None:
        """Register the AM.

        The call is also refused if an earlier call registered the AM and its reply was lost. So the method ignores a
        refusal: if the AM is not registered, its first allocate call fails.
        """
        request = RegisterApplicationMasterRequest()
        with suppress(InvalidApplicationMasterRequestException):
            await self._until_known(lambda: rm.register_application_master(request))

    async def _heartbeat(self, rm: ApplicationMasterProtocol, response_id: int) -> int:
        """Send one allocate call and return the id of its reply.

        If the ResourceManager has restarted, register again.
        """
        try:
            response = await self._until_known(lambda: rm.allocate(AllocateRequest(response_id)))
        except ApplicationMasterNotRegisteredException:
            await self._register(rm)
            return 0
        if response.am_rm_token is not None:
            rm.use_token(response.am_rm_token)
        return response.response_id

    async def _unregister(self, rm: ApplicationMasterProtocol) -> bool:
        request = FinishApplicationMasterRequest(FinalApplicationStatus.SUCCEEDED)
        try:
            reply = await self._until_known(lambda: rm.finish_application_master(request))
        except ApplicationMasterNotRegisteredException:
            await self._register(rm)
            return False
        return reply.is_unregistered

    async def _until_known(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call, unchanged, until a reply arrives; return that reply."""
        while True:
            try:
                return await call()
            except CallOutcomeUnknown as error:
                _logger.info(
                    "no reply from the ResourceManager, repeating the call container=%s: %s",
                    self.container_id,
                    error.message,
                )
                await asyncio.sleep(self._interval_s)


def _amrm_token(tokens: bytes) -> Token:
    token = Credentials.from_bytes(tokens).token_of_kind(AMRM_KIND)
    if token is None:
        raise InvalidToken(f"the launch context of the ApplicationMaster has no token of kind {AMRM_KIND}")
    return token
