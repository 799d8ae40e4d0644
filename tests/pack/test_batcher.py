"""Which heartbeats of a pack share a call. Time matters only where a test says so; otherwise an interval is a day."""

from __future__ import annotations

import asyncio

from nm.pack.batcher import NODES_PER_CALL, HeartbeatBatcher
from yarn.ids import NodeId
from yarn.protocols.tracker import NodeHeartbeatRequest

DAY_S = 86_400.0
HEARTBEAT = NodeHeartbeatRequest(NodeId("127.0.0.2", 1), 0)


class Sent:
    """A batcher, and the numbers of the nodes in each call that it sent."""

    def __init__(self, interval_s: float = DAY_S) -> None:
        self.calls: list[list[int]] = []
        self.has_sent = asyncio.Event()
        self.batcher = HeartbeatBatcher(interval_s, self._send)

    def put(self, *numbers: int, at_once: bool = False) -> None:
        for number in numbers:
            self.batcher.put(number, HEARTBEAT, at_once=at_once)

    async def next_call(self) -> list[int]:
        async with asyncio.timeout(60):
            await self.has_sent.wait()
        self.has_sent.clear()
        return self.calls[-1]

    def _send(self, heartbeats: dict[int, NodeHeartbeatRequest]) -> None:
        self.calls.append(list(heartbeats))
        self.has_sent.set()


async def test_a_batch_is_sent_when_its_last_heartbeat_is_due() -> None:
    sent = Sent()
    sent.batcher.expect(range(4), 4)
    sent.put(2, 0, 3)
    assert sent.calls == []
    sent.put(1)
    assert sent.calls == [[2, 0, 3, 1]]


async def test_batches_do_not_wait_for_one_another() -> None:
    sent = Sent()
    sent.batcher.expect(range(2), 4)
    sent.batcher.expect(range(2, 4), 4)
    sent.put(0, 2, 3)
    assert sent.calls == [[2, 3]]
    sent.put(1)
    assert sent.calls == [[2, 3], [0, 1]]


async def test_a_batch_waits_for_a_missing_heartbeat_for_a_fraction_of_the_interval() -> None:
    sent = Sent(interval_s=0.02)
    sent.batcher.expect(range(3), 3)
    sent.put(0, 1)
    assert await sent.next_call() == [0, 1]
    sent.put(2)
    assert await sent.next_call() == [2]


async def test_an_unbatched_node_joins_the_batch_that_it_is_sent_with() -> None:
    sent = Sent()
    sent.batcher.expect(range(3), 4)
    sent.put(3)
    sent.put(0, 1, 2)
    assert sent.calls == [[0, 1, 2, 3]]
    sent.batcher.expect(sent.calls[0], 4)
    sent.put(3, 2, 1)
    assert len(sent.calls) == 1
    sent.put(0)
    assert sent.calls[1:] == [[3, 2, 1, 0]]


async def test_an_unbatched_heartbeat_is_sent_alone_if_no_batch_is_sent_in_time() -> None:
    sent = Sent(interval_s=0.02)
    sent.put(7)
    assert await sent.next_call() == [7]


async def test_an_unbatched_heartbeat_waits_longer_if_there_is_a_batch() -> None:
    alone, beside = Sent(), Sent()
    beside.batcher.expect(range(3), 4)
    alone.put(3)
    beside.put(3)
    now_s = asyncio.get_running_loop().time()
    waits_s = [sent.batcher._timer.when() - now_s for sent in (alone, beside)]  # type: ignore[union-attr]
    assert waits_s[0] < DAY_S / 10 < DAY_S / 5 < waits_s[1]


async def test_few_nodes_that_were_answered_together_form_no_batch() -> None:
    sent = Sent()
    sent.batcher.expect(range(NODES_PER_CALL // 2 - 1), 500)
    sent.put(*range(NODES_PER_CALL // 2 - 1))
    assert sent.calls == []
    sent.batcher.expect(range(100, 100 + NODES_PER_CALL // 2), 500)
    sent.put(*range(100, 100 + NODES_PER_CALL // 2))
    assert len(sent.calls) == 1


async def test_an_urgent_heartbeat_does_not_wait_and_its_batch_does_not_wait_for_it() -> None:
    sent = Sent()
    sent.batcher.expect(range(3), 3)
    sent.put(0)
    sent.put(1, at_once=True)
    assert await sent.next_call() == [1]
    sent.put(2)
    assert sent.calls == [[1], [0, 2]]


async def test_the_last_missing_heartbeat_may_be_urgent() -> None:
    sent = Sent()
    sent.batcher.expect(range(2), 2)
    sent.put(0)
    sent.put(1, at_once=True)
    assert sent.calls == [[0, 1]]


async def test_nothing_is_sent_after_cancel() -> None:
    sent = Sent(interval_s=0.001)
    sent.batcher.expect(range(3), 3)
    sent.put(0, 9)
    sent.batcher.cancel()
    sent.put(1, 2)
    assert sent.calls == []
    loop = asyncio.get_running_loop()
    timers = [handle for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
    assert timers == []
