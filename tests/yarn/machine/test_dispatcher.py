"""Events, timers and effects of a core: order, time, answers to calls."""

from __future__ import annotations

from enum import Enum

import pytest
from msgspec import Struct

from yarn.errors import InternalError, InvalidArgumentException
from yarn.machine import Dispatcher, IllegalTransition, Lifecycle, Machine, Refuse, Reply, Row, StateChanged, Warn


class Ring(Struct, frozen=True):
    number: int


class Ask(Struct, frozen=True):
    call: int
    question: str


class Lamp(Enum):
    OFF = 0
    ON = 1


class Press(Struct, frozen=True):
    pass


LAMP: Lifecycle[str, Lamp] = Lifecycle("Lamp", Lamp.OFF, [Row(Lamp.OFF, Press, Lamp.ON)])


@pytest.fixture
def heard() -> list[int]:
    return []


@pytest.fixture
def dispatcher(heard: list[int]) -> Dispatcher[str]:
    dispatcher: Dispatcher[str] = Dispatcher(now_ms=100)

    def ring(event: Ring) -> None:
        heard.append(event.number)
        if event.number < 10:
            dispatcher.send(Ring(event.number * 10))
            dispatcher.send(Ring(event.number * 10 + 1))

    dispatcher.on(Ring, ring)
    return dispatcher


def test_events_are_delivered_first_in_first_out(dispatcher: Dispatcher[str], heard: list[int]) -> None:
    dispatcher.begin(100)
    dispatcher.send(Ring(1))
    dispatcher.send(Ring(2))
    dispatcher.drain()
    assert heard == [1, 2, 10, 11, 20, 21]


def test_a_timer_is_delivered_in_the_first_step_at_or_after_its_time(
    dispatcher: Dispatcher[str], heard: list[int]
) -> None:
    dispatcher.send_after(50, Ring(30))
    dispatcher.send_after(20, Ring(20))
    dispatcher.send_after(50, Ring(31))
    assert dispatcher.next_deadline_ms() == 120
    dispatcher.begin(119)
    assert heard == []
    dispatcher.begin(200)
    assert heard == [20, 30, 31]
    assert dispatcher.next_deadline_ms() is None


def test_time_does_not_go_back(dispatcher: Dispatcher[str]) -> None:
    with pytest.raises(AssertionError, match="time went back from 100 to 99 ms"):
        dispatcher.begin(99)


def test_a_call_is_replied_to_with_what_its_handler_returns_and_refused_with_what_it_raises(
    dispatcher: Dispatcher[str],
) -> None:
    refusal = InvalidArgumentException("no question")

    def answer(event: Ask) -> str:
        if not event.question:
            raise refusal
        return event.question.upper()

    dispatcher.on_call(Ask, answer)
    dispatcher.deliver(Ask(1, "why?"))
    dispatcher.deliver(Ask(2, ""))
    assert dispatcher.take_effects() == [Reply(1, "WHY?"), Refuse(2, refusal)]
    assert dispatcher.take_effects() == []


def test_a_bug_in_a_handler_is_not_an_answer(dispatcher: Dispatcher[str]) -> None:
    dispatcher.on_call(Ask, lambda event: event.question[7])
    with pytest.raises(IndexError):
        dispatcher.deliver(Ask(1, ""))
    assert dispatcher.take_effects() == []


def test_a_transition_is_logged_only_if_the_state_changed(dispatcher: Dispatcher[str]) -> None:
    machine = Machine(Lamp.OFF)
    dispatcher.transition(LAMP, "lamp 3", machine, Press())
    assert dispatcher.take_effects() == [StateChanged("Lamp", "lamp 3", "PRESS", "OFF", "ON")]
    assert machine.history[0].at_ms == 100
    with pytest.raises(IllegalTransition, match="100: OFF --PRESS--> ON"):
        dispatcher.transition(LAMP, "lamp 3", machine, Press())
    assert dispatcher.take_effects() == []


def test_a_lifecycle_may_describe_its_subject_in_the_log(dispatcher: Dispatcher[str]) -> None:
    described: Lifecycle[str, Lamp] = Lifecycle("Lamp", Lamp.OFF, LAMP.rows, lambda lamp: f"{lamp} glows")
    dispatcher.transition(described, "lamp 3", Machine(Lamp.OFF), Press())
    assert dispatcher.take_effects() == [StateChanged("Lamp", "lamp 3", "PRESS", "OFF", "ON", "lamp 3 glows")]


def test_an_illegal_event_is_a_warning_unless_strict() -> None:
    lenient: Dispatcher[str] = Dispatcher(strict=False)
    machine = Machine(Lamp.ON)
    lenient.transition(LAMP, "lamp 3", machine, Press())
    assert lenient.take_effects() == [Warn("Lamp lamp 3: PRESS is illegal in ON")]
    assert machine.state is Lamp.ON


def test_an_event_has_one_handler(dispatcher: Dispatcher[str]) -> None:
    with pytest.raises(InternalError, match="Ring has a handler"):
        dispatcher.on(Ring, lambda _: None)
    with pytest.raises(InternalError, match="no handler for Press"):
        dispatcher.deliver(Press())


def test_scheduled_events_of_one_class_can_be_cancelled(dispatcher: Dispatcher[str], heard: list[int]) -> None:
    dispatcher.send_after(10, Ring(10))
    dispatcher.send_after(20, Press())
    assert sorted(dispatcher.scheduled(), key=repr) == [Press(), Ring(10)]
    dispatcher.cancel(Ring)
    assert dispatcher.scheduled() == [Press()]
    assert dispatcher.next_deadline_ms() == 120
    dispatcher.begin(115)
    assert heard == []
