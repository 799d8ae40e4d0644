"""Carries out what Reconciliation wants: asks NodeManagers after containers while a program runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from am.client.am_rm_client import AMRMClient
from am.client.nm_client import NMClient
from am.core.events import Event
from am.core.reconciliation import (
    AskNode,
    Effect,
    News,
    NodeAnswered,
    NodeSilent,
    Reconciliation,
    StopStray,
    TakeAsEnded,
    Tick,
)
from yarn.errors import YarnException

ANSWER_EXPIRIES = 0.5
"""How long a NM has for an answer, in NM expiries: two that are missed make one."""

_logger = logging.getLogger(__name__)


class Reconciler:
    """`tell` takes the ends that are found. `note` takes all that the program is told from elsewhere."""

    def __init__(self, rm: AMRMClient, nms: NMClient, expiry_ms: int, tell: Callable[[Event], None]) -> None:
        self._rm = rm
        self._nms = nms
        self._tell = tell
        self._core = Reconciliation(expiry_ms)
        self._answer_s = expiry_ms * ANSWER_EXPIRIES / 1000
        self._news: asyncio.Queue[News] = asyncio.Queue()

    def note(self, event: Event) -> None:
        """Something happened: what it means is seen to by `run`."""
        self._news.put_nowait(event)

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                news = await self._next_news()
                for effect in self._core.handle(news, _now_ms()):
                    self._carry_out(effect, tasks)

    async def _next_news(self) -> News:
        deadline_ms = self._core.next_deadline_ms()
        wait_s = None if deadline_ms is None else max(0.0, (deadline_ms - _now_ms()) / 1000)
        try:
            async with asyncio.timeout(wait_s):
                return await self._news.get()
        except TimeoutError:
            return Tick()

    def _carry_out(self, effect: Effect, tasks: asyncio.TaskGroup) -> None:
        match effect:
            case AskNode():
                tasks.create_task(self._ask(effect))
            case StopStray():
                tasks.create_task(self._stop(effect))
            case TakeAsEnded(statuses, give_back):
                for status in statuses:
                    _logger.warning("taken as ended container=%s: %s", status.container_id, status.diagnostics)
                for event in self._rm.take_as_ended(statuses, give_back=give_back):
                    self._tell(event)

    async def _ask(self, ask: AskNode) -> None:
        try:
            async with asyncio.timeout(self._answer_s):
                statuses = await self._nms.statuses(ask.container_ids, ask.node_id)
        except (YarnException, TimeoutError) as error:
            _logger.info("no answer after containers node=%s: %s", ask.node_id, error)
            self._news.put_nowait(NodeSilent(ask.node_id))
        else:
            self._news.put_nowait(NodeAnswered(ask.node_id, ask.container_ids, statuses))

    async def _stop(self, stray: StopStray) -> None:
        _logger.warning("stopping one that was taken as ended container=%s", stray.container_id)
        try:
            async with asyncio.timeout(self._answer_s):
                await self._nms.stop(stray.container_id, stray.node_id)
        except (YarnException, TimeoutError) as error:
            # It is asked after again, and stopped if it still runs.
            _logger.info("stop failed container=%s: %s", stray.container_id, error)


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
