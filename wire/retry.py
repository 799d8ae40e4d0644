"""Retries: the one place that decides whether a call is sent again.

Only a call that surely had no effect is sent again: the server was not reached or refused it unseen, or the call only
reads. Whether to repeat any other call is up to the caller (a heartbeat is sent again with the same response id, a
submission with the same application id).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.errors import ServerUnavailable
from yarn.settings import resourcemanager
from yarn.settings.kinds import TimeSetting

FOR_EVER = -1

T = TypeVar("T")


class RetryPolicy(Struct, frozen=True):
    """How long to try to reach a server (-1: forever), and the time between attempts.

    A wait shorter than the interval means a single attempt, as in RMProxy.
    """

    max_wait_ms: int = 0
    interval_ms: int = 1000

    @staticmethod
    def read(
        conf: Configuration,
        max_wait: TimeSetting = resourcemanager.CONNECT_MAX_WAIT,
        interval: TimeSetting = resourcemanager.CONNECT_RETRY_INTERVAL,
    ) -> RetryPolicy:
        """The policy from two settings; the defaults are those for clients and AMs that call the RM."""
        return RetryPolicy(max_wait.of(conf), interval.of(conf))


NO_RETRY = RetryPolicy()


async def retried(policy: RetryPolicy, attempt: Callable[[], Awaitable[T]], *, reads: bool) -> T:
    """The result of `attempt`, repeated until it succeeds, is refused, or the policy's time is over.

    `reads`: the call changes nothing, so it may be repeated whatever happened to it.
    """
    started = time.monotonic()
    while True:
        try:
            return await attempt()
        except ServerUnavailable as error:
            if not (error.definite or reads):
                raise
            # Half to one interval, so that many callers of one lost server do not return in step.
            pause_s = policy.interval_ms * random.uniform(0.5, 1.0) / 1000
            waited_ms = (time.monotonic() - started + pause_s) * 1000
            if _time_is_over(policy, waited_ms):
                raise
            await asyncio.sleep(pause_s)


def _time_is_over(policy: RetryPolicy, waited_ms: float) -> bool:
    if policy.max_wait_ms == FOR_EVER:
        return False
    return policy.max_wait_ms < policy.interval_ms or waited_ms > policy.max_wait_ms
