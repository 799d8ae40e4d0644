"""The effects of an election: who serves, who stops, and the answer to an administrator."""

from __future__ import annotations

from rm.core.leadership import (
    RETRY_MS,
    Activate,
    Activated,
    ActivationFailed,
    BecomeActive,
    BecomeStandby,
    Campaign,
    CannotServe,
    Deactivate,
    Deactivated,
    Deposed,
    Elected,
    Leadership,
    LeadershipEffect,
    Phase,
    Resign,
    RetryDue,
    Started,
    TransitionDone,
    TransitionFailed,
)
from yarn.states import HAServiceState

PATIENCE_MS = 20_000


def started(*, automatic: bool = True) -> Leadership:
    leadership = Leadership(automatic=automatic, patience_ms=PATIENCE_MS)
    leadership.handle(Started(), 0)
    return leadership


def active(*, automatic: bool = True) -> Leadership:
    leadership = started(automatic=automatic)
    leadership.handle(Elected(1), 0)
    leadership.handle(Activated(), 0)
    return leadership


def state_of(leadership: Leadership) -> HAServiceState:
    return leadership.state


def test_a_new_one_takes_part_in_elections_and_is_standby() -> None:
    leadership = Leadership(automatic=True, patience_ms=PATIENCE_MS)
    assert state_of(leadership) is HAServiceState.INITIALIZING
    assert leadership.handle(Started(), 0) == [Campaign()]
    assert state_of(leadership) is HAServiceState.STANDBY


def test_without_automatic_failover_it_waits_for_an_administrator() -> None:
    leadership = Leadership(automatic=False, patience_ms=PATIENCE_MS)
    assert leadership.handle(Started(), 0) == []
    assert leadership.handle(BecomeActive(7), 0) == [Campaign()]
    assert leadership.handle(Elected(1), 1) == [Activate(1)]
    assert leadership.handle(Activated(), 2) == [TransitionDone(7)]
    assert state_of(leadership) is HAServiceState.ACTIVE


def test_it_is_active_only_once_it_has_recovered() -> None:
    leadership = started()
    assert leadership.handle(Elected(3), 0) == [Activate(3)]
    assert state_of(leadership) is HAServiceState.STANDBY
    leadership.handle(Activated(), 1)
    assert state_of(leadership) is HAServiceState.ACTIVE


def test_a_deposed_one_is_standby_at_once_and_serves_again_only_after_its_services_have_ended() -> None:
    leadership = active()
    assert leadership.handle(Deposed("lease"), 0) == [Deactivate("lease")]
    assert state_of(leadership) is HAServiceState.STANDBY
    assert leadership.handle(Elected(5), 1) == []
    assert leadership.handle(Deactivated(), 2) == [Activate(5)]


def test_one_deposed_while_it_recovers_never_becomes_active() -> None:
    leadership = started()
    leadership.handle(Elected(1), 0)
    assert leadership.handle(Deposed("lease"), 1) == [Deactivate("lease")]
    assert leadership.handle(Activated(), 2) == []
    assert state_of(leadership) is HAServiceState.STANDBY
    leadership.handle(Deactivated(), 3)
    assert leadership.phase is Phase.STANDBY


def test_one_elected_and_deposed_while_its_services_end_stays_standby() -> None:
    leadership = active()
    leadership.handle(Deposed("lease"), 0)
    leadership.handle(Elected(5), 1)
    leadership.handle(Deposed("again"), 2)
    assert leadership.handle(Deactivated(), 3) == []


def test_one_that_cannot_serve_lets_another_lead_and_takes_part_again_later() -> None:
    for event in (ActivationFailed("damaged"), CannotServe("full")):
        leadership = started()
        leadership.handle(Elected(1), 0)
        assert Resign() in leadership.handle(event, 10)
        assert leadership.handle(RetryDue(), 10 + RETRY_MS - 1) == []
        assert leadership.handle(RetryDue(), 10 + RETRY_MS) == [Campaign()]


def test_an_administrator_is_refused_when_another_leads_for_too_long() -> None:
    leadership = started(automatic=False)
    leadership.handle(BecomeActive(1), 0)
    effects = leadership.handle(RetryDue(), PATIENCE_MS)
    assert [type(effect) for effect in effects] == [TransitionFailed, Resign]
    assert leadership.next_deadline_ms() is None


def test_to_become_standby_is_answered_when_the_services_have_ended() -> None:
    leadership = active(automatic=False)
    effects: list[LeadershipEffect] = leadership.handle(BecomeStandby(4), 0)
    assert [type(effect) for effect in effects] == [Deactivate, Resign]
    assert leadership.handle(Deactivated(), 1) == [TransitionDone(4)]
    assert leadership.handle(RetryDue(), 1 + RETRY_MS) == [], "an administrator decides who is next"


def test_a_standby_that_is_told_to_become_standby_is_done() -> None:
    assert started(automatic=False).handle(BecomeStandby(1), 0) == [Resign(), TransitionDone(1)]


def test_an_active_one_that_is_told_to_become_active_is_done() -> None:
    assert active().handle(BecomeActive(1), 0) == [TransitionDone(1)]
