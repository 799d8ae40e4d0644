"""AMRMClient: an AM's side of ApplicationMasterProtocol, as an async iterator of events.

    async with AMRMClient.connect(AMEnvironment.read()) as rm:
        await rm.register()
        rm.add_request(ContainerRequest(Resource(512, 1), priority=1))
        async for event in rm.events():
            ...
        await rm.unregister(FinalApplicationStatus.SUCCEEDED)

Heartbeats are sent at a fixed interval from `register` to `unregister`, whatever the application does meanwhile: the
first one as soon as something is requested, or after an interval. AMRMClientState decides what they contain, and
AMRMClientCore when they are sent; this module adds the clock and the network.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import assert_never

from am.client.environment import AMEnvironment
from am.core.am_rm_client_core import (
    AMRMClientCore,
    CallAnswered,
    CallFailed,
    ClientEffect,
    ClientEvent,
    ContainersRequested,
    Deliver,
    Register,
    RegisterFailed,
    SendCall,
    Unregister,
    Unregistered,
    UnregisterFailed,
    UseToken,
)
from am.core.am_rm_client_state import AMRMClientState
from am.core.client_invariants import CheckedAMRMClientCore
from am.core.events import AllocateFailed, Event, Registered, ShutdownOrdered
from am.core.invariants import CheckedAMRMClientState
from am.core.requests import ContainerRequest, RackOf, default_rack_of
from wire.files.topology import Topology
from wire.protocols.master import ApplicationMasterProtocol
from wire.retry import RetryPolicy
from yarn.containers import ContainerStatus, Token, UpdateContainerRequest
from yarn.errors import YarnException
from yarn.ids import ContainerId, NodeId
from yarn.machine import Tick, Warn
from yarn.protocols.master import (
    AllocateRequest,
    FinishApplicationMasterRequest,
    RegisterApplicationMasterRequest,
)
from yarn.settings.high_availability import reply_timeout_s
from yarn.settings.resourcemanager import AM_HEARTBEAT_INTERVAL, CONNECT_MAX_WAIT
from yarn.states import FinalApplicationStatus

EVENTS_MAX = 10_000
"""The limit on unread events. When it is reached, heartbeats wait: the RM should expire an AM that reads no events."""

_logger = logging.getLogger(f"yarnling.{__name__}")


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
        self._state = (CheckedAMRMClientState if check_invariants else AMRMClientState)(rack_of)
        self._core = (CheckedAMRMClientCore if check_invariants else AMRMClientCore)(
            self._state,
            heartbeat_interval_ms=heartbeat_interval_ms,
            silence_max_ms=silence_max_ms,
            progress=lambda: self.progress(),  # noqa: PLW0108  the application sets it later
        )
        self._registered: asyncio.Future[Registered]
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
            environment.scheduler_target,
            token=environment.amrm_token,
            retry=RetryPolicy.read(conf),
            timeout_s=reply_timeout_s(conf),
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
        self._registered = asyncio.get_running_loop().create_future()
        request = RegisterApplicationMasterRequest(host, rpc_port, tracking_url)
        self._heartbeats = self._tasks.create_task(self._drive(Register(request)), name="am-heartbeats")
        try:
            return await self._registered
        except BaseException:
            await self._stop_heartbeats()
            raise

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
        await self._drive(Unregister(FinishApplicationMasterRequest(final_status, diagnostics, tracking_url)))

    async def _drive(self, event: ClientEvent) -> None:
        """Pass an event to the core, and everything that follows from it, until nothing is left to do.

        Reading no events delays the next heartbeat: `_carry_out` waits for room in the queue.
        """
        while True:
            call = None
            for effect in self._core.handle(event, _now_ms()):
                if isinstance(effect, SendCall):
                    call = effect
                else:
                    await self._carry_out(effect)
            if call is not None:
                event = await self._answer_to(call)
            elif (deadline_ms := self._core.next_deadline_ms()) is not None:
                event = await self._deadline(deadline_ms)
            else:
                return

    async def _carry_out(self, effect: ClientEffect) -> None:
        match effect:
            case Deliver(event):
                await self._events.put(event)
                if isinstance(event, Registered) and not self._registered.done():
                    self._registered.set_result(event)
            case UseToken(token):
                self._proxy.use_token(token)
            case RegisterFailed(error):
                self._registered.set_exception(error)
            case UnregisterFailed(error):
                raise error
            case Warn(text):
                _logger.warning("%s", text)
            case Unregistered():
                pass
            case SendCall():
                raise AssertionError("sent once the other effects of its step are carried out")
            case _:
                assert_never(effect)

    async def _answer_to(self, call: SendCall) -> ClientEvent:
        try:
            match call.request:
                case RegisterApplicationMasterRequest() as request:
                    return CallAnswered(call.call, await self._proxy.register_application_master(request))
                case AllocateRequest() as request:
                    return CallAnswered(call.call, await self._proxy.allocate(request))
                case FinishApplicationMasterRequest() as request:
                    return CallAnswered(call.call, await self._proxy.finish_application_master(request))
                case _:
                    assert_never(call.request)
        except YarnException as error:
            return CallFailed(call.call, error)

    async def _deadline(self, deadline_ms: int) -> ClientEvent:
        """Wait for a deadline of the core; the application's first request ends the wait for the first heartbeat."""
        if not self._core.awaits_requests:
            await _sleep_until(deadline_ms)
            return Tick()
        try:
            async with asyncio.timeout_at(deadline_ms / 1000):
                await self._requested.wait()
        except TimeoutError:
            return Tick()
        return ContainersRequested()

    async def _stop_heartbeats(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.wait([self._heartbeats])
            self._heartbeats = None


def _now_ms() -> int:
    """The loop's clock, rounded to ms, so that a deadline is reached when its timer fires."""
    return round(asyncio.get_running_loop().time() * 1000)


async def _sleep_until(deadline_ms: int) -> None:
    await asyncio.sleep(max(0.0, deadline_ms / 1000 - asyncio.get_running_loop().time()))
