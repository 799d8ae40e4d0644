"""Repeats calls: the one place that decides whether a call is sent again.

A call is sent again only if it surely had no effect (the server was not reached, or refused it before reading it), or
if it only reads. Whether to repeat any other call is up to the caller: a heartbeat is sent again with the same response
id, a submission with the same application id.
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
    """How long to try to reach a server (-1: forever), and the time between two attempts.

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
        """The policy in two settings; by default those of clients and AMs that call the RM."""
        return RetryPolicy(max_wait.of(conf), interval.of(conf))


NO_RETRY = RetryPolicy()


async def retried(policy: RetryPolicy, attempt: Callable[[], Awaitable[T]], *, reads: bool) -> T:
    """The result of `attempt`, which is repeated until it succeeds, is refused, or the policy's time has passed.

    `reads`: the call changes nothing, so it may be repeated after any failure.
    """
    started = time.monotonic()
    while True:
        try:
            return await attempt()
        except ServerUnavailable as error:
            if not (error.definite or reads):
                raise
            # Wait half to one interval, so that many callers of one lost server do not all return at the same time.
            pause_s = policy.interval_ms * random.uniform(0.5, 1.0) / 1000
            waited_ms = (time.monotonic() - started + pause_s) * 1000
            if _time_is_over(policy, waited_ms):
                raise
            await asyncio.sleep(pause_s)


def _time_is_over(policy: RetryPolicy, waited_ms: float) -> bool:
    if policy.max_wait_ms == FOR_EVER:
        return False
    return policy.max_wait_ms < policy.interval_ms or waited_ms > policy.max_wait_ms
