"""When a call is sent again: the one place that decides it.

Only a call that surely had no effect is sent again: one whose server was not reached or refused to look at it, or one
that only reads. What may have had its effect is the caller's to sort out (a heartbeat is sent again under the same
response id, a submission under the same application id).
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
    """For how long an unreachable server is tried (-1: for ever), and the time between tries.

    A wait shorter than the interval is a single try, as in RMProxy.
    """

    max_wait_ms: int = 0
    interval_ms: int = 1000

    @staticmethod
    def read(
        conf: Configuration,
        max_wait: TimeSetting = resourcemanager.CONNECT_MAX_WAIT,
        interval: TimeSetting = resourcemanager.CONNECT_RETRY_INTERVAL,
    ) -> RetryPolicy:
        """The policy under two settings: by default that of a client or an AM towards the RM."""
        return RetryPolicy(max_wait.of(conf), interval.of(conf))


NO_RETRY = RetryPolicy()


async def retried(policy: RetryPolicy, attempt: Callable[[], Awaitable[T]], *, reads: bool) -> T:
    """The result of `attempt`, tried until it is told, refused, or the policy's time is over.

    `reads`: the call changes nothing, so that it counts as definite whatever became of it.
    """
    started = time.monotonic()
    while True:
        try:
            return await attempt()
        except ServerUnavailable as error:
            if not (error.definite or reads):
                raise
            # Half to one interval: many callers that lost one server should not come back in step.
            pause_s = policy.interval_ms * random.uniform(0.5, 1.0) / 1000
            waited_ms = (time.monotonic() - started + pause_s) * 1000
            if _is_over(policy, waited_ms):
                raise
            await asyncio.sleep(pause_s)


def _is_over(policy: RetryPolicy, waited_ms: float) -> bool:
    if policy.max_wait_ms == FOR_EVER:
        return False
    return policy.max_wait_ms < policy.interval_ms or waited_ms > policy.max_wait_ms
