"""Samples the history of the cluster, and keeps the time that this takes to a small share of the process's."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from rm.core.history.cluster_history import FINE, ClusterHistory

SHARE = 0.005
"""The share of the ResourceManager's time that samples may take: after a long one the next one comes later."""
VERDICTS_S = 0.015
"""The CPU time after which no further application is explained in the same sample; the next sample goes on."""
_logger = logging.getLogger(f"yarnling.{__name__}")


class HistorySampler:
    """Samples `history` at times of `clock` (ms). `timer`: the CPU time of this thread, in seconds."""

    def __init__(
        self, history: ClusterHistory, clock: Callable[[], int], timer: Callable[[], float] = time.thread_time
    ) -> None:
        self._history = history
        self._clock = clock
        self._timer = timer

    def sample(self) -> float:
        """Take one sample; returns the time to wait until the next one, in seconds."""
        started_s, now_ms = self._timer(), self._clock()
        self._history.sample(now_ms)
        for _ in self._history.explain_waiting(now_ms):
            if self._timer() - started_s >= VERDICTS_S:
                break
        return max(FINE.step_ms / 1000, (self._timer() - started_s) / SHARE)

    async def run_forever(self) -> None:
        """Take samples until the task is cancelled. An error, which is our bug, is logged and ends the history."""
        try:
            while True:  # noqa: ASYNC110 - there is nothing to wait for but the time
                await asyncio.sleep(self.sample())
        except Exception:
            _logger.exception("continuing without samples of the history")
