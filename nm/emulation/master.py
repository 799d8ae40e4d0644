"""Emulated ApplicationMasters: what the ResourceManager sees of a master, without a process.

    register -> allocate at each heartbeat, while the stages last -> unregister as SUCCEEDED

It asks for no containers: its stages are the application's work. One whose stages end with another exit code than 0
ends like a process that crashes: the ResourceManager learns it from the node. All masters of a process share its
channel to the ResourceManager; a master costs a task that sleeps between two heartbeats.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from wire.channel import Channels
from wire.credentials import Credentials
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
from yarn.settings.applicationmaster import AM_HEARTBEAT_INTERVAL
from yarn.settings.resourcemanager import SCHEDULER_ADDRESS
from yarn.states import FinalApplicationStatus

UNREGISTER_PAUSE_S = 0.1
"""Between two questions whether the ResourceManager has stored the end (AMRMClientImpl)."""
MASTER_FAILED = 1
"""The exit code of a master that the ResourceManager sent away, or could not reach."""

_logger = logging.getLogger(__name__)

T = TypeVar("T")

Ended = Callable[[int], None]
"""Takes the exit code of a master that has ended by itself."""


class EmulatedMasters:
    """Starts the emulated masters of one process; `close` ends those that are left."""

    def __init__(self, conf: Configuration, channels: Channels, tasks: asyncio.TaskGroup) -> None:
        host, port = SCHEDULER_ADDRESS.of(conf)
        self._target = f"{host}:{port}"
        self._retry = RetryPolicy.read(conf)
        self._interval_s = AM_HEARTBEAT_INTERVAL.of(conf) / 1000
        self._channels = channels
        self._tasks = tasks
        self._running: set[asyncio.Task[None]] = set()

    def start(self, container_id: ContainerId, tokens: bytes, ended: Ended) -> EmulatedMaster:
        """A master with the tokens of its launch context; `ended` is called in a later turn, unless it is killed."""
        master = EmulatedMaster(container_id, self._interval_s)
        task = self._tasks.create_task(self._run(master, tokens, ended), name=f"emulated-master-{container_id}")
        master.task = task
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return master

    def close(self) -> None:
        for task in tuple(self._running):
            task.cancel()

    async def _run(self, master: EmulatedMaster, tokens: bytes, ended: Ended) -> None:
        try:
            token = _amrm_token(tokens)
            await master.run(
                ApplicationMasterProtocol(self._target, token=token, retry=self._retry, channels=self._channels)
            )
        except YarnException as error:
            _logger.warning("emulated master failed container=%s %s", master.container_id, error.message)
            ended(MASTER_FAILED)
        else:
            ended(0)


class EmulatedMaster:
    """One master. `finish` has it unregister; `kill` ends it without a word, as KILL ends a process."""

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
        """Returns once it is unregistered. Raises YarnException if the ResourceManager does not want it."""
        await self._register(rm)
        response_id = 0
        while not self._finishing.is_set():
            response_id = await self._heartbeat(rm, response_id)
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._finishing.wait()
            except TimeoutError:
                continue
        while not await self._unregister(rm):  # noqa: ASYNC110  the ResourceManager has to be asked
            await asyncio.sleep(UNREGISTER_PAUSE_S)

    async def _register(self, rm: ApplicationMasterProtocol) -> None:
        """Refused if an earlier call whose reply was lost has registered it; the next heartbeat shows what is so."""
        request = RegisterApplicationMasterRequest()
        with suppress(InvalidApplicationMasterRequestException):
            await self._until_known(lambda: rm.register_application_master(request))

    async def _heartbeat(self, rm: ApplicationMasterProtocol, response_id: int) -> int:
        """The id of the reply. A ResourceManager that was started again has it register again."""
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
        """The reply of a call that may be repeated unchanged, repeated until one arrives."""
        while True:
            try:
                return await call()
            except CallOutcomeUnknown as error:
                _logger.info("no reply, repeating the call container=%s %s", self.container_id, error.message)
                await asyncio.sleep(self._interval_s)


def _amrm_token(tokens: bytes) -> Token:
    token = Credentials.from_bytes(tokens).token_of_kind(AMRM_KIND)
    if token is None:
        raise InvalidToken(f"its launch context has no token of kind {AMRM_KIND}")
    return token
