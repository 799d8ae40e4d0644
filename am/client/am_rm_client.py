"""AMRMClient: an AM's side of ApplicationMasterProtocol, as an async iterator of events.

    async with AMRMClient.connect(AMEnvironment.read()) as rm:
        await rm.register()
        rm.add_request(ContainerRequest(Resource(512, 1), priority=1))
        async for event in rm.events():
            ...
        await rm.unregister(FinalApplicationStatus.SUCCEEDED)

The client sends heartbeats at a fixed interval from `register` to `unregister`, even while the application is busy. The
first heartbeat is sent as soon as something is requested, or after one interval. AMRMClientState decides what
heartbeats contain; this module adds the clock, the network and the handling of errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType

from am.client.environment import AMEnvironment
from am.core.am_rm_client_state import AMRMClientState
from am.core.events import AllocateFailed, Event, Registered, Resynced, ShutdownOrdered
from am.core.invariants import CheckedAMRMClientState
from am.core.requests import ContainerRequest, RackOf, default_rack_of
from wire.protocols.master import ApplicationMasterProtocol
from wire.retry import RetryPolicy
from wire.topology import Topology
from yarn.containers import ContainerStatus, Token, UpdateContainerRequest
from yarn.errors import (
    ApplicationAttemptNotFoundException,
    ApplicationMasterNotRegisteredException,
    CallOutcomeUnknown,
    InvalidApplicationMasterRequestException,
    InvalidToken,
    YarnException,
)
from yarn.ids import ContainerId, NodeId
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    RegisterApplicationMasterRequest,
)
from yarn.settings.resourcemanager import AM_HEARTBEAT_INTERVAL, CONNECT_MAX_WAIT
from yarn.states import FinalApplicationStatus

UNREGISTER_PAUSES_S = (0.005, 0.01, 0.02, 0.04, 0.08, 0.1)
"""The pauses in seconds between calls of finishApplicationMaster until it returns true; the last one repeats.

The last pause is that of AMRMClientImpl. The RM's first answer is always false, and mostly the RM has stored the end of
the attempt soon after it.
"""

EVENTS_MAX = 10_000
"""The limit on unread events. When it is reached, heartbeats wait: the RM should expire an AM that reads no events."""

_logger = logging.getLogger(__name__)


class AMRMClient:
    """The connection of one application attempt to the RM. Use it as a context manager, in one task.

    `progress` is called for every heartbeat. `silence_max_ms` is how long unanswered heartbeats are repeated. If
    `check_invariants`, am.core.invariants are checked after each step, and InternalError is raised if one does not
    hold.
    """

    def __init__(
        self,
        proxy: ApplicationMasterProtocol,
        *,
        heartbeat_interval_ms: int = 1000,
        silence_max_ms: int = 900_000,
        progress: Callable[[], float] = lambda: 0.0,
        rack_of: RackOf = default_rack_of,
        check_invariants: bool = False,
    ) -> None:
        self.progress = progress
        self._proxy = proxy
        self._interval_s = heartbeat_interval_ms / 1000
        self._silence_max_s = silence_max_ms / 1000
        self._state = (CheckedAMRMClientState if check_invariants else AMRMClientState)(rack_of)
        self._address = RegisterApplicationMasterRequest()
        self._events: asyncio.Queue[Event] = asyncio.Queue(EVENTS_MAX)
        self._tasks = asyncio.TaskGroup()
        self._heartbeats: asyncio.Task[None] | None = None
        self._requested = asyncio.Event()

    @classmethod
    def connect(cls, environment: AMEnvironment, rack_of: RackOf | None = None) -> AMRMClient:
        """Make a client of the RM that the environment names. The call sends nothing to the RM yet.

        `rack_of` gives the racks of hosts; if it is None, the cluster's topology table does. Raises YarnException if
        the table cannot be read.
        """
        conf = environment.configuration
        proxy = ApplicationMasterProtocol(
            environment.scheduler_target, token=environment.amrm_token, retry=RetryPolicy.read(conf)
        )
        silence_max_ms = CONNECT_MAX_WAIT.of(conf)
        return cls(
            proxy,
            heartbeat_interval_ms=AM_HEARTBEAT_INTERVAL.of(conf),
            silence_max_ms=silence_max_ms if silence_max_ms >= 0 else 1 << 53,
            rack_of=rack_of or Topology.read(conf).rack_of,
            check_invariants=environment.check_invariants,
        )

    async def __aenter__(self) -> AMRMClient:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stop_heartbeats()
        try:
            await self._tasks.__aexit__(kind, error, traceback)
        finally:
            await self._proxy.close()

    # What the application wants

    @property
    def nm_tokens(self) -> Mapping[NodeId, Token]:
        """The tokens for NMs received so far. The mapping is updated with each reply that contains tokens."""
        return self._state.nm_tokens

    def add_request(self, request: ContainerRequest) -> None:
        """Request one more container with the next heartbeat. Raises InvalidResourceRequestException."""
        self._state.add_request(request)
        self._requested.set()

    def remove_request(self, request: ContainerRequest) -> bool:
        """Withdraw one request equal to `request`. Returns False if none is outstanding."""
        return self._state.remove_request(request)

    def release(self, container_id: ContainerId) -> None:
        """Release a container. Its end is reported like that of any other container."""
        self._state.release(container_id)

    def update(self, request: UpdateContainerRequest) -> None:
        """Request a change of a running container; ContainersUpdated reports the outcome."""
        self._state.update(request)

    def change_blacklist(self, additions: Iterable[str] = (), removals: Iterable[str] = ()) -> None:
        """Get no more containers on some hosts or racks, or allow them again."""
        self._state.change_blacklist(additions, removals)

    def mark_lost(self, statuses: tuple[ContainerStatus, ...], *, release: bool) -> list[Event]:
        """Report containers as ended, because the RM may never do so (AMRMClientState.mark_lost).

        Returns events for those whose end was not known.
        """
        return self._state.mark_lost(statuses, release=release)

    async def register(self, host: str = "", rpc_port: int = -1, tracking_url: str = "") -> Registered:
        """Register this attempt and start to send heartbeats. The returned event is also the first of `events`.

        Raises YarnException if the RM refuses the attempt, or has not answered for `silence_max_ms`.
        """
        self._address = RegisterApplicationMasterRequest(host, rpc_port, tracking_url)
        events = await self._register()
        for event in events:
            await self._events.put(event)
        self._heartbeats = self._tasks.create_task(self._send_heartbeats(), name="am-heartbeats")
        registered = events[0]
        assert isinstance(registered, Registered)
        return registered

    async def events(self) -> AsyncIterator[Event]:
        """Yield all events in order. Ends after ShutdownOrdered or AllocateFailed."""
        while True:
            event = await self._events.get()
            yield event
            if isinstance(event, ShutdownOrdered | AllocateFailed):
                return

    async def unregister(
        self, final_status: FinalApplicationStatus, diagnostics: str = "", tracking_url: str = ""
    ) -> None:
        """Stop the heartbeats and report the outcome, repeatedly until the RM has stored it."""
        await self._stop_heartbeats()
        request = FinishApplicationMasterRequest(final_status, diagnostics, tracking_url)
        pauses_s = iter(UNREGISTER_PAUSES_S)
        while not await self._finish(request):  # noqa: ASYNC110  the RM has to be polled
            await asyncio.sleep(next(pauses_s, UNREGISTER_PAUSES_S[-1]))

    # The exchange with the RM

    async def _register(self) -> list[Event]:
        """Register, and repeat the call while its outcome is unknown (RMProxy): a killed RM may not have stored it."""
        deadline_s = time.monotonic() + self._silence_max_s
        while True:
            try:
                response = await self._proxy.register_application_master(self._address)
            except CallOutcomeUnknown as error:
                if time.monotonic() > deadline_s:
                    raise
                _logger.warning("no answer to registerApplicationMaster, repeating the call: %s", error)
                await asyncio.sleep(self._interval_s)
            else:
                return self._state.handle_registered(response)

    async def _finish(self, request: FinishApplicationMasterRequest) -> bool:
        try:
            return (await self._proxy.finish_application_master(request)).is_unregistered
        except ApplicationMasterNotRegisteredException:
            # The RM has restarted since the attempt registered. AMRMClientImpl registers again only to unregister.
            with contextlib.suppress(InvalidApplicationMasterRequestException):
                await self._register()
            return False
        except CallOutcomeUnknown:
            return False

    async def _send_heartbeats(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._interval_s):
                await self._requested.wait()
        while True:
            started_s = time.monotonic()
            events = await self._exchange()
            for event in events:
                await self._events.put(event)
            if events and isinstance(events[-1], ShutdownOrdered | AllocateFailed):
                return
            if events:
                await asyncio.sleep(max(0.0, started_s + self._interval_s - time.monotonic()))

    async def _exchange(self) -> list[Event]:
        """Send one heartbeat and return its events. Returns no events if another heartbeat must follow at once."""
        request = self._state.next_request(self.progress())
        try:
            response = await self._allocate_until_answered(request)
        except ApplicationMasterNotRegisteredException as error:
            _logger.info("resync: the ResourceManager asks to register again: %s", error.message)
            return await self._resync()
        except (ApplicationAttemptNotFoundException, InvalidToken) as error:
            return [ShutdownOrdered(error.message)]
        except YarnException as error:
            self._state.handle_refused()
            return [AllocateFailed(error)]
        if response.am_rm_token is not None:
            self._proxy.use_token(response.am_rm_token)
        return self._state.handle_reply(response)

    async def _resync(self) -> list[Event]:
        """Register again with a restarted RM.

        The answer contains NM tokens. The containers of earlier attempts in the answer are known already.
        """
        self._state.handle_not_registered()
        try:
            await self._register()
        except InvalidApplicationMasterRequestException as error:
            # An earlier call may have registered the attempt, with its answer lost. If it did not, the next heartbeat
            # fails.
            _logger.warning("the ResourceManager says that this attempt is registered already: %s", error.message)
            await asyncio.sleep(self._interval_s)
        except YarnException as error:
            return [AllocateFailed(error)]
        await self._events.put(Resynced())
        return []

    async def _allocate_until_answered(self, request: AllocateRequest) -> AllocateResponse:
        """Repeat the same request while its outcome is unknown.

        The RM recognizes a repeated request by its response id.
        """
        deadline_s = time.monotonic() + self._silence_max_s
        while True:
            try:
                return await self._proxy.allocate(request)
            except CallOutcomeUnknown as error:
                if time.monotonic() > deadline_s:
                    raise
                _logger.warning(
                    "no answer to allocate, repeating the call response_id=%d: %s", request.response_id, error
                )
                await asyncio.sleep(self._interval_s)

    async def _stop_heartbeats(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.wait([self._heartbeats])
            self._heartbeats = None
