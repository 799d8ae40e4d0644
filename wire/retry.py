"""Repeats calls: the one place that decides whether a call is sent again.

A call is sent again only if it surely had no effect (the server was not reached, or refused it before reading it), or
if it only reads. Whether to repeat any other call is up to the caller: a heartbeat is sent again with the same response
id, a submission with the same application id.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.errors import ServerUnavailable
from yarn.settings import high_availability, resourcemanager
from yarn.settings.kinds import TimeSetting

FOR_EVER = -1

T = TypeVar("T")


class RetryPolicy(Struct, frozen=True):
    """The time to try to reach a server (-1: forever), and the time between two attempts.

    A maximum wait that is shorter than the interval means a single attempt, as in RMProxy.
    """

    max_wait_ms: int = 0
    interval_ms: int = 1000

    @staticmethod
    def read(
        conf: Configuration,
        max_wait: TimeSetting = resourcemanager.CONNECT_MAX_WAIT,
        interval: TimeSetting = resourcemanager.CONNECT_RETRY_INTERVAL,
    ) -> RetryPolicy:
        """The policy in two settings; by default those of clients and AMs that call the RM.

        With several RMs the interval is that between two rounds of calls to all of them (RMProxy.createRetryPolicy).
        """
        if high_availability.HA_ENABLED.of(conf) and high_availability.FAILOVER_SLEEP_BASE.key in conf:
            interval = high_availability.FAILOVER_SLEEP_BASE
        return RetryPolicy(max_wait.of(conf), interval.of(conf))

    def pause_ms(self, error: ServerUnavailable, waited_ms: float, draw: float, *, reads: bool) -> float | None:
        """The pause before the call is sent again, None if it is not. `draw`: a random number from 0 to 1.

        Half to one interval, so that many callers of one lost server do not return in step.
        """
        if not (error.definite or reads):
            return None
        pause_ms = self.interval_ms * (0.5 + draw / 2)
        return None if self._is_over(waited_ms + pause_ms) else pause_ms

    def may_wait(self, waited_ms: float) -> bool:
        """True if a caller that has waited for so long may wait on."""
        return self.max_wait_ms == FOR_EVER or waited_ms <= self.max_wait_ms

    def _is_over(self, waited_ms: float) -> bool:
        is_single = self.max_wait_ms != FOR_EVER and self.max_wait_ms < self.interval_ms
        return is_single or not self.may_wait(waited_ms)


NO_RETRY = RetryPolicy()


async def retried(policy: RetryPolicy, attempt: Callable[[], Awaitable[T]], *, reads: bool) -> T:
    """The result of `attempt`, repeated until it succeeds, is refused, or the policy's time is over.

    `reads`: the call changes nothing, so it may be repeated whatever happened to it.
    """
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    while True:
        try:
            return await attempt()
        except ServerUnavailable as error:
            waited_ms = (loop.time() - started_s) * 1000
            pause_ms = policy.pause_ms(error, waited_ms, random.random(), reads=reads)
            if pause_ms is None:
                raise
            await asyncio.sleep(pause_ms / 1000)
