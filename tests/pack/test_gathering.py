"""Which heartbeats of a pack go together. Time plays a part only where a test says so: an interval is a day else."""

from __future__ import annotations

import asyncio

from nm.pack.gathering import NODES_A_CALL, Gathering
from yarn.ids import NodeId
from yarn.protocols.tracker import NodeHeartbeatRequest

DAY_S = 86_400.0
BEAT = NodeHeartbeatRequest(NodeId("127.0.0.2", 1), 0)


class Gathered:
    """A gathering, and the numbers of the nodes in each call that went."""

    def __init__(self, interval_s: float = DAY_S) -> None:
        self.calls: list[list[int]] = []
        self.gone = asyncio.Event()
        self.gathering = Gathering(interval_s, self._send)

    def put(self, *numbers: int, at_once: bool = False) -> None:
        for number in numbers:
            self.gathering.put(number, BEAT, at_once=at_once)

    async def next_call(self) -> list[int]:
        async with asyncio.timeout(20):
            await self.gone.wait()
        self.gone.clear()
        return self.calls[-1]

    def _send(self, beats: dict[int, NodeHeartbeatRequest]) -> None:
        self.calls.append(list(beats))
        self.gone.set()


async def test_nodes_that_were_answered_together_go_when_the_last_is_there() -> None:
    gathered = Gathered()
    gathered.gathering.expect(range(4), 4)
    gathered.put(2, 0, 3)
    assert gathered.calls == []
    gathered.put(1)
    assert gathered.calls == [[2, 0, 3, 1]]


async def test_companies_do_not_wait_for_one_another() -> None:
    gathered = Gathered()
    gathered.gathering.expect(range(2), 4)
    gathered.gathering.expect(range(2, 4), 4)
    gathered.put(0, 2, 3)
    assert gathered.calls == [[2, 3]]
    gathered.put(1)
    assert gathered.calls == [[2, 3], [0, 1]]


async def test_a_company_waits_for_the_slow_a_part_of_the_interval() -> None:
    gathered = Gathered(interval_s=0.02)
    gathered.gathering.expect(range(3), 3)
    gathered.put(0, 1)
    assert await gathered.next_call() == [0, 1]
    gathered.put(2)
    assert await gathered.next_call() == [2]


async def test_a_loose_node_goes_along_with_a_company_and_is_one_of_it_then() -> None:
    gathered = Gathered()
    gathered.gathering.expect(range(3), 4)
    gathered.put(3)
    gathered.put(0, 1, 2)
    assert gathered.calls == [[0, 1, 2, 3]]
    gathered.gathering.expect(gathered.calls[0], 4)
    gathered.put(3, 2, 1)
    assert len(gathered.calls) == 1
    gathered.put(0)
    assert gathered.calls[1:] == [[3, 2, 1, 0]]


async def test_a_loose_node_that_nobody_takes_along_goes_by_itself() -> None:
    gathered = Gathered(interval_s=0.02)
    gathered.put(7)
    assert await gathered.next_call() == [7]


async def test_a_loose_node_waits_longer_if_there_is_a_company_to_go_along_with() -> None:
    alone, beside = Gathered(), Gathered()
    beside.gathering.expect(range(3), 4)
    alone.put(3)
    beside.put(3)
    now_s = asyncio.get_running_loop().time()
    waits_s = [gathered.gathering._timer.when() - now_s for gathered in (alone, beside)]  # type: ignore[union-attr]
    assert waits_s[0] < DAY_S / 10 < DAY_S / 5 < waits_s[1]


async def test_few_that_were_answered_together_are_loose() -> None:
    gathered = Gathered()
    gathered.gathering.expect(range(NODES_A_CALL // 2 - 1), 500)
    gathered.put(*range(NODES_A_CALL // 2 - 1))
    assert gathered.calls == []
    gathered.gathering.expect(range(100, 100 + NODES_A_CALL // 2), 500)
    gathered.put(*range(100, 100 + NODES_A_CALL // 2))
    assert len(gathered.calls) == 1


async def test_who_has_urgent_news_does_not_wait_and_is_not_waited_for() -> None:
    gathered = Gathered()
    gathered.gathering.expect(range(3), 3)
    gathered.put(0)
    gathered.put(1, at_once=True)
    assert await gathered.next_call() == [1]
    gathered.put(2)
    assert gathered.calls == [[1], [0, 2]]


async def test_the_last_one_missing_may_have_urgent_news() -> None:
    gathered = Gathered()
    gathered.gathering.expect(range(2), 2)
    gathered.put(0)
    gathered.put(1, at_once=True)
    assert gathered.calls == [[0, 1]]


async def test_after_the_end_nothing_goes() -> None:
    gathered = Gathered(interval_s=0.001)
    gathered.gathering.expect(range(3), 3)
    gathered.put(0, 9)
    gathered.gathering.cancel()
    gathered.put(1, 2)
    assert gathered.calls == []
    loop = asyncio.get_running_loop()
    timers = [handle for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
    assert timers == []
