"""Decides which heartbeats of a pack are sent in one call, and when.

A call costs the RM as much as the heartbeats of about twenty nodes, so calls should carry many heartbeats. Nodes that
were answered in one call form a *batch*: their next heartbeats become due within some milliseconds of one another, and
are sent together when the last one is due. A node that left this rhythm (one of its containers ended, or its call was
lost) is *unbatched*: its heartbeat waits until a batch is sent and goes with it, and the node then belongs to that
batch. An unbatched heartbeat waits for a batch longer than a batch waits for its last node. Otherwise the node would be
sent alone again and again, with one call a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from yarn.protocols.tracker import NodeHeartbeatRequest

NODES_PER_CALL = 100
"""The number of nodes that register in one call, and send heartbeats in one call while nothing happens."""
BATCH_WAITS_PER_INTERVAL = 20
"""A batch waits for its missing heartbeats at most 1/20 of the heartbeat interval."""
UNBATCHED_WAITS_PER_INTERVAL = 4
"""An unbatched heartbeat waits at most 1/4 of the heartbeat interval for a batch. In a pack of five hundred nodes a
batch is sent within that time."""
URGENT_GAP_S = 0.005
"""The shortest time between two calls with urgent heartbeats. Heartbeats that become urgent within it share a call."""

Heartbeats = dict[int, NodeHeartbeatRequest]
"""{number of the node in its pack: its heartbeat}."""


class HeartbeatBatch:
    """Nodes that were answered in one call.

    The next heartbeats in `heartbeats` are due; those of `missing` nodes are not yet.
    """

    def __init__(self, numbers: set[int]) -> None:
        self.missing = numbers
        self.heartbeats: Heartbeats = {}
        self.timer: asyncio.TimerHandle | None = None


class HeartbeatBatcher:
    """The heartbeats of a pack that are due but not sent yet. `send` sends several of them in one call."""

    def __init__(self, interval_s: float, send: Callable[[Heartbeats], None]) -> None:
        self._batch_wait_s = interval_s / BATCH_WAITS_PER_INTERVAL
        self._unbatched_wait_s = interval_s / UNBATCHED_WAITS_PER_INTERVAL
        self._send = send
        self._batches: dict[int, HeartbeatBatch] = {}
        self._unbatched: Heartbeats = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last_sent_s = 0.0
        self._is_cancelled = False

    def expect(self, numbers: Iterable[int], nodes: int) -> None:
        """Expect the next heartbeats of nodes that were answered in one call.

        `nodes` is the size of the pack. A small number of nodes forms no batch.
        """
        batch = HeartbeatBatch(set(numbers))
        if len(batch.missing) >= min(nodes, NODES_PER_CALL) // 2:
            self._batches |= dict.fromkeys(batch.missing, batch)

    def put(self, number: int, request: NodeHeartbeatRequest, *, at_once: bool = False) -> None:
        """Send a heartbeat together with others that are due soon; `at_once` means that it is urgent."""
        if self._is_cancelled:
            return
        batch = self._batches.pop(number, None)
        if batch is not None:
            batch.missing.discard(number)
        if batch is None or at_once:
            self._put_unbatched(number, request, at_once=at_once)
        else:
            batch.heartbeats[number] = request
        if batch is not None and batch.heartbeats:
            self._send_or_wait(batch)

    def cancel(self) -> None:
        """Drop all waiting heartbeats and send no more calls."""
        self._is_cancelled = True
        for timer in (self._timer, *(batch.timer for batch in self._batches.values())):
            if timer is not None:
                timer.cancel()

    def _send_or_wait(self, batch: HeartbeatBatch) -> None:
        if not batch.missing:
            self._send_batch(batch)
        elif batch.timer is None:
            batch.timer = asyncio.get_running_loop().call_later(self._batch_wait_s, self._send_batch, batch)

    def _put_unbatched(self, number: int, request: NodeHeartbeatRequest, *, at_once: bool) -> None:
        self._unbatched[number] = request
        loop = asyncio.get_running_loop()
        if at_once:
            when_s = max(loop.time(), self._last_sent_s + URGENT_GAP_S)
        else:
            when_s = loop.time() + (self._unbatched_wait_s if self._batches else self._batch_wait_s)
        if self._timer is None or self._timer.when() > when_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(when_s, self._send_unbatched)

    def _send_batch(self, batch: HeartbeatBatch) -> None:
        """Send a batch and all unbatched heartbeats. Nodes of the batch that are still missing become unbatched."""
        if batch.timer is not None:
            batch.timer.cancel()
        for number in batch.missing:
            del self._batches[number]
        self._send_now(batch.heartbeats | self._take_unbatched())

    def _send_unbatched(self) -> None:
        self._send_now(self._take_unbatched())

    def _take_unbatched(self) -> Heartbeats:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        unbatched, self._unbatched = self._unbatched, {}
        return unbatched

    def _send_now(self, heartbeats: Heartbeats) -> None:
        self._last_sent_s = asyncio.get_running_loop().time()
        self._send(heartbeats)
