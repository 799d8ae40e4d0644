"""Which heartbeats of a pack go in one call, and when.

A call costs the RM as much as the heartbeats of some twenty nodes. So nodes that were answered together are *company*:
their next heartbeats are due within some milliseconds, and go when the last of them is there. A node that has come out
of step (a container of it ended, its call was lost) is loose until it goes along with a company, and is one of it then.
It waits for one longer than companies do for their last: else it went alone again and again, with a call a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from yarn.protocols.tracker import NodeHeartbeatRequest

NODES_A_CALL = 100
"""What is registered at once, and what beats together while all is quiet."""
WAITS_AN_INTERVAL = 20
"""A company waits for those of it that are missing for a part of the interval at most."""
LOOSE_WAITS_AN_INTERVAL = 4
"""A loose node waits so long for a company, if there is one; of a pack of five hundred one goes in that time."""
AT_ONCE_S = 0.005
"""Those that somebody waits for are gathered for less."""

Beats = dict[int, NodeHeartbeatRequest]


class _Company:
    """Nodes that were answered together: the next heartbeat of some is `missing` yet, the others' `beats` are there."""

    def __init__(self, numbers: set[int]) -> None:
        self.missing = numbers
        self.beats: Beats = {}
        self.timer: asyncio.TimerHandle | None = None


class Gathering:
    """The heartbeats of a pack that wait; `send` is what takes those that go."""

    def __init__(self, interval_s: float, send: Callable[[Beats], None]) -> None:
        self._wait_s = interval_s / WAITS_AN_INTERVAL
        self._loose_wait_s = interval_s / LOOSE_WAITS_AN_INTERVAL
        self._send = send
        self._companies: dict[int, _Company] = {}
        self._loose: Beats = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last_s = 0.0
        self._is_over = False

    def expect(self, numbers: Iterable[int], nodes: int) -> None:
        """These, of so many nodes, have been answered in one call. They are loose if they are few."""
        company = _Company(set(numbers))
        if len(company.missing) >= min(nodes, NODES_A_CALL) // 2:
            self._companies |= dict.fromkeys(company.missing, company)

    def put(self, number: int, request: NodeHeartbeatRequest, *, at_once: bool = False) -> None:
        """Have it sent, with others if they are soon due too."""
        if self._is_over:
            return
        company = self._companies.pop(number, None)
        if company is not None:
            company.missing.discard(number)
        if company is None or at_once:
            self._put_loose(number, request, at_once=at_once)
        else:
            company.beats[number] = request
        if company is not None and company.beats:
            self._wait_for(company)

    def cancel(self) -> None:
        """Send nothing more."""
        self._is_over = True
        for timer in (self._timer, *(company.timer for company in self._companies.values())):
            if timer is not None:
                timer.cancel()

    def _wait_for(self, company: _Company) -> None:
        if not company.missing:
            self._send_company(company)
        elif company.timer is None:
            company.timer = asyncio.get_running_loop().call_later(self._wait_s, self._send_company, company)

    def _put_loose(self, number: int, request: NodeHeartbeatRequest, *, at_once: bool) -> None:
        self._loose[number] = request
        loop = asyncio.get_running_loop()
        if at_once:
            when_s = max(loop.time(), self._last_s + AT_ONCE_S)
        else:
            when_s = loop.time() + (self._loose_wait_s if self._companies else self._wait_s)
        if self._timer is None or self._timer.when() > when_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(when_s, self._send_loose)

    def _send_company(self, company: _Company) -> None:
        """What is there of it, and all that is loose. Who comes later is loose."""
        if company.timer is not None:
            company.timer.cancel()
        for number in company.missing:
            del self._companies[number]
        loose = self._take_loose()
        self._go(company.beats | loose)

    def _send_loose(self) -> None:
        self._go(self._take_loose())

    def _take_loose(self) -> Beats:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loose, self._loose = self._loose, {}
        return loose

    def _go(self, beats: Beats) -> None:
        self._last_s = asyncio.get_running_loop().time()
        self._send(beats)
