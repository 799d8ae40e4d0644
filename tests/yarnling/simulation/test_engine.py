"""The order of events: by time, then by rank, then by host, then as planned."""

from __future__ import annotations

from functools import partial

import pytest

from yarn.errors import InternalError
from yarnling.simulation import engine as engine_module
from yarnling.simulation.engine import START_MS, Engine, Rank


def test_events_of_one_millisecond_happen_by_rank_then_host_then_order_of_planning() -> None:
    engine, happened = Engine(1), list[str]()

    def plan(delay_ms: int, rank: Rank, host: int, name: str) -> None:
        engine.at(START_MS + delay_ms, rank, host, partial(happened.append, name))

    plan(5, Rank.CLIENT, 1, "client")
    plan(5, Rank.MESSAGE, 2, "message to 2, first")
    plan(5, Rank.MESSAGE, 2, "message to 2, second")
    plan(5, Rank.MESSAGE, 1, "message to 1")
    plan(5, Rank.FAULT, 9, "fault")
    plan(4, Rank.CLIENT, 9, "earlier")
    engine.run(START_MS + 5)
    assert happened == [
        "earlier",
        "fault",
        "message to 1",
        "message to 2, first",
        "message to 2, second",
        "client",
    ]
    assert (engine.now_ms, engine.events) == (START_MS + 5, 6)


def test_a_run_stops_at_its_time_and_goes_on_later() -> None:
    engine, happened = Engine(1), list[int]()
    for delay_ms in (10, 11):
        engine.at(START_MS + delay_ms, Rank.TIMER, 0, partial(happened.append, delay_ms))
    engine.run(START_MS + 10)
    assert happened == [10]
    engine.run(START_MS + 20)
    assert happened == [10, 11]
    assert engine.elapsed_s == 0.02


def test_streams_of_one_seed_do_not_depend_on_one_another() -> None:
    first, second = Engine(7), Engine(7)
    first.stream("network").random()
    assert first.stream("retries").random() == second.stream("retries").random()
    assert second.stream("network").random() != second.stream("retries").random()
    assert Engine(8).stream("network").random() != Engine(7).stream("network").random()


def test_a_loop_within_one_millisecond_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "EVENTS_PER_MS_MAX", 100)
    engine = Engine(1)

    def again() -> None:
        engine.at(engine.now_ms, Rank.TIMER, 0, again)

    again()
    with pytest.raises(InternalError, match="more than 100 events"):
        engine.run(START_MS)
