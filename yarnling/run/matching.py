"""Finds which arrival in one log belongs to which sending in another one, where several look alike.

A heartbeat that is sent again has the same node and the same response id as before, and so do the heartbeats of a
NodeManager that was restarted. Sendings are matched from the last one: an arrival belongs to the latest sending before
it. For example, of two sendings at 10 and 60 with one arrival at 62, the first was lost; with arrivals at 90 and 91,
both were held back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yarnling.run.records import Call

LATE_LOG_MS = 20
"""The time by which a sending may be logged later than its arrival: each process logs by its own event loop."""


def matched(sent: Sequence[Call], arrived: Sequence[Call]) -> Iterator[tuple[Call | None, Call | None]]:
    """Pairs of (sending, arrival), each call once; None in place of what is not in a log."""
    sendings = sorted(sent, key=lambda call: call.sent_ms)
    for arrival in sorted(arrived, key=lambda call: -call.sent_ms):
        while sendings and sendings[-1].sent_ms > arrival.sent_ms + LATE_LOG_MS:
            yield sendings.pop(), None
        yield (sendings.pop() if sendings else None), arrival
    for sending in sendings:
        yield sending, None
