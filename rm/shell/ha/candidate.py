"""The life of a ResourceManager that has others beside it: a standby, which is active whenever it is elected.

    candidate = HACandidate(rm_id, engines, make=..., automatic=True, patience_ms=10_000)
    async with candidate.running(): ...

The core of the decisions is rm.core.leadership. While it leads, `active` is a whole ResourceManager that was made for
this term and recovered from the store; afterwards nothing of it is left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, assert_never

from rm.core.leadership import (
    Activate,
    Activated,
    ActivationFailed,
    BecomeActive,
    BecomeStandby,
    Campaign,
    CannotServe,
    Deactivate,
    Deactivated,
    Deposed,
    Elected,
    Leadership,
    LeadershipEffect,
    LeadershipEvent,
    Resign,
    RetryDue,
    Started,
    TransitionDone,
    TransitionFailed,
)
from rm.shell.ha.engines import Engines
from rm.shell.ha.lease_elector import monotonic_ms
from yarn.errors import ServiceFailedException, StandbyException, YarnException
from yarn.states import HAServiceState

_logger = logging.getLogger(f"yarnling.{__name__}")


class ActiveResourceManager(Protocol):
    """A ResourceManager for one term (rm.daemon.ResourceManager)."""

    @property
    def admins(self) -> object:
        """The service that answers administrators."""
        ...

    @property
    def web(self) -> Any:
        """The web services as an ASGI application; None without them."""
        ...

    def running(self) -> AbstractAsyncContextManager[None]:
        """Recover and serve while the context is open."""
        ...


class HACandidate:
    """The process's ResourceManager (rm.shell.ha.interfaces.Candidate).

    `make(term)` makes one that serves for a term.
    """

    def __init__(
        self,
        rm_id: str,
        engines: Engines,
        *,
        make: Callable[[int], ActiveResourceManager],
        automatic: bool,
        patience_ms: int,
    ) -> None:
        self.rm_id = rm_id
        self.active: ActiveResourceManager | None = None
        self._elector = engines.elector
        self._make = make
        self._leadership = Leadership(automatic=automatic, patience_ms=patience_ms)
        self._ends = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._calls: dict[int, asyncio.Future[None]] = {}
        self._call = 0
        self._orders: asyncio.Queue[Campaign | Resign] = asyncio.Queue()

    @property
    def state(self) -> HAServiceState:
        """The state; STANDBY also while it leads but may not acknowledge, because it was stalled."""
        state = self._leadership.state
        return HAServiceState.STANDBY if state is HAServiceState.ACTIVE and not self._elector.holds() else state

    @property
    def elector_description(self) -> str:
        return self._elector.description

    async def leader(self) -> str:
        """The id of the ResourceManager that leads; "" if none does."""
        return await self._elector.leader()

    def gate(self) -> None:
        """Raises StandbyException unless this ResourceManager is active and may acknowledge."""
        if self.state is not HAServiceState.ACTIVE:
            raise StandbyException(f"ResourceManager {self.rm_id} is not Active!")

    def serving(self) -> ActiveResourceManager:
        """The active ResourceManager. Raises StandbyException if it is not this one."""
        self.gate()
        assert self.active is not None, "set before the state is ACTIVE"
        return self.active

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take part in elections while the context is open, and serve when elected."""
        await self._elector.open(self)
        ordering = asyncio.get_running_loop().create_task(self._carry_out_orders(), name="elections")
        try:
            self._handle(Started())
            yield
        finally:
            ordering.cancel()
            self._ends.set()
            if self._serving is not None:
                await asyncio.wait([self._serving])
            await self._elector.close()
            if self._timer is not None:
                self._timer.cancel()
            for answer in self._calls.values():
                answer.cancel()

    def elected(self, term: int) -> None:
        self._handle(Elected(term))

    def deposed(self, reason: str) -> None:
        self._handle(Deposed(reason))

    def cannot_serve(self, reason: str) -> None:
        """Become standby, because what is active cannot go on."""
        self._handle(CannotServe(reason))

    async def become_active(self) -> None:
        """Raises ServiceFailedException if it does not succeed."""
        await self._ask(BecomeActive)

    async def become_standby(self) -> None:
        """Returns when the services have ended."""
        await self._ask(BecomeStandby)

    async def _ask(self, event_of: Callable[[int], LeadershipEvent]) -> None:
        self._call += 1
        call = self._call
        answer = self._calls[call] = asyncio.get_running_loop().create_future()
        try:
            self._handle(event_of(call))
            await answer
        finally:
            self._calls.pop(call, None)

    def _handle(self, event: LeadershipEvent) -> None:
        before = self._leadership.phase
        effects = self._leadership.handle(event, monotonic_ms())
        if self._leadership.phase is not before:
            name = type(event).__name__
            _logger.info("id=%s event=%s from=%s to=%s", self.rm_id, name, before.name, self._leadership.phase.name)
        for effect in effects:
            self._carry_out(effect)
        self._set_timer()

    def _carry_out(self, effect: LeadershipEffect) -> None:
        match effect:
            case Campaign() | Resign():
                self._orders.put_nowait(effect)
            case Activate(term):
                self._ends = asyncio.Event()
                self._serving = asyncio.get_running_loop().create_task(self._serve(term), name=f"term-{term}")
            case Deactivate(reason):
                _logger.warning("becoming standby id=%s: %s", self.rm_id, reason)
                self._ends.set()
            case TransitionDone(call):
                self._answer(call, None)
            case TransitionFailed(call, reason):
                self._answer(call, ServiceFailedException(f"Error when transitioning to Active mode: {reason}"))
            case _:
                assert_never(effect)

    def _answer(self, call: int, error: YarnException | None) -> None:
        waiting = self._calls.pop(call, None)
        if waiting is None or waiting.done():
            return
        if error is None:
            waiting.set_result(None)
        else:
            waiting.set_exception(error)

    async def _carry_out_orders(self) -> None:
        """Campaign and resign in the order in which the core decided it."""
        while True:
            order = await self._orders.get()
            await (self._elector.campaign() if isinstance(order, Campaign) else self._elector.resign())

    async def _serve(self, term: int) -> None:
        """Serve for one term. What goes wrong is logged; another ResourceManager leads then."""
        ends, failure = self._ends, ""
        try:
            await self._serve_until(ends, term)
        except YarnException as error:
            failure = error.message
            _logger.critical("cannot be active id=%s term=%d: %s", self.rm_id, term, failure)
        except Exception as bug:
            failure = f"{type(bug).__name__}: {bug}"
            _logger.exception("cannot be active id=%s term=%d", self.rm_id, term)
        self._handle(ActivationFailed(failure) if failure else Deactivated())

    async def _serve_until(self, ends: asyncio.Event, term: int) -> None:
        active = self._make(term)
        async with active.running():
            if ends.is_set():
                return
            self.active = active
            self._handle(Activated())
            _logger.info("active id=%s term=%d", self.rm_id, term)
            try:
                await ends.wait()
            finally:
                self.active = None

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadline_ms = self._leadership.next_deadline_ms()
        if deadline_ms is None:
            self._timer = None
            return
        delay_s = max(1, deadline_ms - monotonic_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._handle, RetryDue())
