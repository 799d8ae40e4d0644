"""Processes that are paused and killed, alarms, and coroutines without an event loop."""

from __future__ import annotations

from functools import partial

from yarn.errors import YarnException
from yarnling.simulation.engine import START_MS, Engine, Rank
from yarnling.simulation.process import Alarm, PendingAnswer, Process, run


def started() -> tuple[Engine, Process]:
    engine = Engine(1)
    process = Process(engine, "one", 1)
    process.boot()
    return engine, process


def test_what_reaches_a_paused_process_waits_in_order() -> None:
    engine, process = started()
    happened: list[str] = []
    process.after(1, Rank.TIMER, partial(happened.append, "timer"))
    process.after(2, Rank.MESSAGE, partial(happened.append, "message"))
    process.pause()
    engine.run(START_MS + 10)
    assert happened == []
    process.resume()
    assert happened == ["timer", "message"]


def test_what_is_for_an_earlier_start_is_dropped() -> None:
    engine, process = started()
    happened: list[str] = []
    process.after(1, Rank.TIMER, partial(happened.append, "of the first start"))
    process.exit()
    process.boot()
    process.after(1, Rank.TIMER, partial(happened.append, "of the second start"))
    engine.run(START_MS + 10)
    assert happened == ["of the second start"]


def test_a_process_killed_while_it_is_paused_loses_what_waits() -> None:
    engine, process = started()
    happened: list[str] = []
    process.pause()
    process.deliver(process.starts, partial(happened.append, "message"))
    process.exit()
    process.boot()
    process.resume()
    engine.run(START_MS + 10)
    assert happened == []


def test_an_alarm_rings_at_the_deadline_also_when_it_has_moved() -> None:
    engine, process = started()
    rung: list[int] = []
    deadline_ms: int | None = START_MS + 5

    def ring() -> None:
        nonlocal deadline_ms
        rung.append(engine.now_ms - START_MS)
        deadline_ms = None

    alarm = Alarm(process, lambda: deadline_ms, ring)
    alarm.set()
    deadline_ms = START_MS + 20
    alarm.set()
    engine.run(START_MS + 30)
    assert rung == [20]
    deadline_ms = engine.now_ms + 7
    alarm.set()
    deadline_ms = engine.now_ms + 3
    alarm.set()
    engine.run(engine.now_ms + 30)
    assert rung == [20, 33]


def test_an_alarm_between_near_deadlines_keeps_one_event_for_the_far_one() -> None:
    engine, process = started()
    far_ms = START_MS + 1000
    deadline_ms, rung = far_ms, list[int]()

    def ring() -> None:
        nonlocal deadline_ms
        rung.append(engine.now_ms - START_MS)
        deadline_ms = far_ms + (engine.now_ms == far_ms)

    alarm = Alarm(process, lambda: deadline_ms, ring)
    for near_ms in range(START_MS + 1, START_MS + 4):
        alarm.set()
        deadline_ms = near_ms
        alarm.set()
        engine.run(near_ms)
    alarm.set()
    engine.run(far_ms)
    assert rung == [1, 2, 3, 1000]
    assert engine.events == 4


def test_a_coroutine_goes_on_when_its_answer_is_given() -> None:
    first, second = PendingAnswer(), PendingAnswer()
    results: list[object] = []

    async def service() -> list[object]:
        return [await first, await second]

    first.give(1)
    run(service(), results.append)
    assert results == []
    second.give(2)
    assert results == [[1, 2]]


def test_a_refused_answer_is_the_result_of_the_coroutine() -> None:
    answer = PendingAnswer()
    results: list[object] = []

    async def service() -> object:
        return await answer

    run(service(), results.append)
    refusal = YarnException("no")
    answer.refuse(refusal)
    assert results == [refusal]
