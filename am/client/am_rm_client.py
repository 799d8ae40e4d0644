"""AMRMClient: an AM's side of ApplicationMasterProtocol, as an async iterator of events.

    async with AMRMClient.connect(AMEnvironment.read()) as rm:
        await rm.register()
        rm.add_request(ContainerRequest(Resource(512, 1), priority=1))
        async for event in rm.core.events():
            ...
        await rm.unregister(FinalApplicationStatus.SUCCEEDED)

Heartbeats go out at a fixed interval from `register` to `unregister`, whatever the program does meanwhile: the first
one as soon as something is asked for, or after an interval. All bookkeeping is the AskBook's; here are the clock, the
network and the errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from am.client.environment import AMEnvironment
from am.core.ask_book import AskBook
from am.core.events import Event, HeartbeatFailed, Registered, Resynced, ShutdownOrdered
from am.core.requests import ContainerRequest, RackOf, default_rack_of
from wire.protocols.master import ApplicationMasterProtocol
from wire.retry import RetryPolicy
from wire.topology import Topology
from yarn.asks import UpdateContainerRequest
from yarn.containers import ContainerStatus, Token
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
from yarn.settings.applicationmaster import AM_HEARTBEAT_INTERVAL
from yarn.settings.resourcemanager import CONNECT_MAX_WAIT
from yarn.states import FinalApplicationStatus

UNREGISTER_PAUSES_S = (0.005, 0.01, 0.02, 0.04, 0.08, 0.1)
"""The pauses between calls of finishApplicationMaster until it says true; the last for ever, which is AMRMClientImpl's.

The first answer is always false, and most of the time the end is stored right after it.
"""

EVENTS_MAX = 10_000
"""Events that wait to be read. Above it heartbeats wait too: an AM that reads none for so long is better given up."""

_logger = logging.getLogger(__name__)


class AMRMClient:
    """One attempt's connection to the RM. Use it as a context manager, in one task.

    `progress` is asked for with every heartbeat. `silence_max_ms`: how long unanswered heartbeats are repeated.
    """

    def __init__(
        self,
        proxy: ApplicationMasterProtocol,
        *,
        heartbeat_interval_ms: int = 1000,
        silence_max_ms: int = 900_000,
        progress: Callable[[], float] = lambda: 0.0,
        rack_of: RackOf = default_rack_of,
    ) -> None:
        self.progress = progress
        self._proxy = proxy
        self._interval_s = heartbeat_interval_ms / 1000
        self._silence_max_s = silence_max_ms / 1000
        self._book = AskBook(rack_of)
        self._address = RegisterApplicationMasterRequest()
        self._events: asyncio.Queue[Event] = asyncio.Queue(EVENTS_MAX)
        self._tasks = asyncio.TaskGroup()
        self._heartbeats: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()

    @classmethod
    def connect(cls, environment: AMEnvironment, rack_of: RackOf | None = None) -> AMRMClient:
        """A client of the RM that the environment names; nothing is sent yet.

        Racks are those of the cluster's table, unless `rack_of` tells others; YarnException if it cannot be read.
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
        )

    async def __aenter__(self) -> AMRMClient:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stop_heartbeats()
        try:
            await self._tasks.__aexit__(*exc)  # type: ignore[arg-type]  # the three that we were given
        finally:
            await self._proxy.close()

    # What the program says

    @property
    def nm_tokens(self) -> Mapping[NodeId, Token]:
        """The tokens for NMs, as they came in."""
        return self._book.nm_tokens

    def add_request(self, request: ContainerRequest) -> None:
        """Ask for one container more with the next heartbeat. Raises InvalidResourceRequestException."""
        self._book.add_request(request)
        self._asked.set()

    def remove_request(self, request: ContainerRequest) -> bool:
        """Withdraw one such request; False if none is outstanding."""
        return self._book.remove_request(request)

    def release(self, container_id: ContainerId) -> None:
        """Give a container back; its end is told like any other."""
        self._book.release(container_id)

    def update(self, request: UpdateContainerRequest) -> None:
        """Ask for a change of a running container."""
        self._book.update(request)

    def change_blacklist(self, additions: Iterable[str] = (), removals: Iterable[str] = ()) -> None:
        """Keep away from hosts or racks, or come back to them."""
        self._book.change_blacklist(additions, removals)

    def take_as_ended(self, statuses: tuple[ContainerStatus, ...], *, give_back: bool) -> list[Event]:
        """Ends that somebody else has found; as events, but for those that were told already (AskBook)."""
        return self._book.take_as_ended(statuses, give_back=give_back)

    async def register(self, host: str = "", rpc_port: int = -1, tracking_url: str = "") -> Registered:
        """Register this attempt and begin to send heartbeats; the answer is the first event too."""
        self._address = RegisterApplicationMasterRequest(host, rpc_port, tracking_url)
        events = await self._register()
        for event in events:
            await self._events.put(event)
        self._heartbeats = self._tasks.create_task(self._send_heartbeats(), name="am-heartbeats")
        registered = events[0]
        assert isinstance(registered, Registered)
        return registered

    async def events(self) -> AsyncIterator[Event]:
        """What happens, in order. Ends after ShutdownOrdered or HeartbeatFailed."""
        while True:
            event = await self._events.get()
            yield event
            if isinstance(event, ShutdownOrdered | HeartbeatFailed):
                return

    async def unregister(
        self, final_status: FinalApplicationStatus, diagnostics: str = "", tracking_url: str = ""
    ) -> None:
        """End the heartbeats and tell the RM the outcome, until it has stored it."""
        await self._stop_heartbeats()
        request = FinishApplicationMasterRequest(final_status, diagnostics, tracking_url)
        pauses_s = iter(UNREGISTER_PAUSES_S)
        while not await self._finish(request):  # noqa: ASYNC110  the RM has to be asked; nothing here would set an event
            await asyncio.sleep(next(pauses_s, UNREGISTER_PAUSES_S[-1]))

    # The exchange with the RM

    async def _register(self) -> list[Event]:
        """Repeated while its outcome is unknown (RMProxy): an RM that was killed has forgotten it."""
        given_up_s = time.monotonic() + self._silence_max_s
        while True:
            try:
                response = await self._proxy.register_application_master(self._address)
            except CallOutcomeUnknown as error:
                if time.monotonic() > given_up_s:
                    raise
                _logger.warning("no answer to the registration, repeating: %s", error)
                await asyncio.sleep(self._interval_s)
            else:
                return self._book.handle_registered(response)

    async def _finish(self, request: FinishApplicationMasterRequest) -> bool:
        try:
            return (await self._proxy.finish_application_master(request)).is_unregistered
        except ApplicationMasterNotRegisteredException:
            # The RM restarted in between: AMRMClientImpl registers again just to say goodbye.
            with contextlib.suppress(InvalidApplicationMasterRequestException):
                await self._register()
            return False
        except CallOutcomeUnknown:
            return False

    async def _send_heartbeats(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._interval_s):
                await self._asked.wait()
        while True:
            begun_s = time.monotonic()
            events = await self._exchange()
            for event in events:
                await self._events.put(event)
            if events and isinstance(events[-1], ShutdownOrdered | HeartbeatFailed):
                return
            if events:
                await asyncio.sleep(max(0.0, begun_s + self._interval_s - time.monotonic()))

    async def _exchange(self) -> list[Event]:
        """One heartbeat's events; none if it is to be followed by another at once."""
        request = self._book.next_request(self.progress())
        try:
            response = await self._allocate_until_answered(request)
        except ApplicationMasterNotRegisteredException as error:
            _logger.info("resync reason=%s", error.message)
            return await self._resync()
        except (ApplicationAttemptNotFoundException, InvalidToken) as error:
            return [ShutdownOrdered(error.message)]
        except YarnException as error:
            self._book.handle_refused()
            return [HeartbeatFailed(error)]
        if response.am_rm_token is not None:
            self._proxy.use_token(response.am_rm_token)
        return self._book.handle_reply(response)

    async def _resync(self) -> list[Event]:
        """Register again. The containers of earlier attempts are known here; the RM's answer brings NM tokens."""
        self._book.handle_not_registered()
        try:
            await self._register()
        except InvalidApplicationMasterRequestException as error:
            # It was registered by a call whose answer got lost: the next heartbeat tells.
            _logger.warning("registered already: %s", error.message)
            await asyncio.sleep(self._interval_s)
        except YarnException as error:
            return [HeartbeatFailed(error)]
        await self._events.put(Resynced())
        return []

    async def _allocate_until_answered(self, request: AllocateRequest) -> AllocateResponse:
        """Repeat the same request while its outcome is unknown: the RM knows it by its response id."""
        given_up_s = time.monotonic() + self._silence_max_s
        while True:
            try:
                return await self._proxy.allocate(request)
            except CallOutcomeUnknown as error:
                if time.monotonic() > given_up_s:
                    raise
                _logger.warning("no answer to a heartbeat, repeating response_id=%d: %s", request.response_id, error)
                await asyncio.sleep(self._interval_s)

    async def _stop_heartbeats(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.wait([self._heartbeats])
            self._heartbeats = None
