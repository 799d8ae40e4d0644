"""The election by ZooKeeper: the machine by its events, and contests of several in virtual time."""

from __future__ import annotations

import pytest

from rm.core.zookeeper_election import (
    Connected,
    CreateLock,
    DeleteLock,
    Disconnected,
    JoinElection,
    LockCallFailed,
    LockChanged,
    LockRead,
    LockTried,
    Lost,
    QuitElection,
    ReadLock,
    SessionOver,
    TimePassed,
    Won,
    ZooKeeperElection,
)
from tests.zookeeper.contest import contest

OWN, OTHER = 7, 8


def leading(now_ms: int = 0) -> ZooKeeperElection:
    """A leader in term 5, whose lock was last read at `now_ms`."""
    election = ZooKeeperElection(1000)
    election.handle(JoinElection(), now_ms)
    assert election.handle(Connected(OWN), now_ms) == [ReadLock(1)]
    assert election.handle(LockRead(1), now_ms) == [CreateLock(2)]
    assert election.handle(LockTried(2), now_ms) == [ReadLock(3)]
    assert election.handle(LockRead(3, OWN, 5, "rm1"), now_ms) == [Won(5)]
    return election


def test_a_candidate_creates_the_lock_and_leads_once_it_has_read_it() -> None:
    election = leading()
    assert election.holder == "rm1"
    assert (election.holds(999), election.holds(1000)) == (True, False)


def test_a_candidate_waits_while_another_session_has_the_lock() -> None:
    election = ZooKeeperElection(900)
    election.handle(JoinElection(), 0)
    election.handle(Connected(OWN), 0)
    assert election.handle(LockRead(1, OTHER, 5, "rm2"), 10) == []
    assert (election.holder, election.next_deadline_ms()) == ("rm2", 310)
    assert election.handle(TimePassed(), 309) == []
    assert election.handle(TimePassed(), 310) == [ReadLock(2)]
    assert election.handle(LockRead(2), 311) == [CreateLock(3)]


def test_a_watch_has_the_lock_read_at_once() -> None:
    election = ZooKeeperElection(900)
    election.handle(JoinElection(), 0)
    election.handle(Connected(OWN), 0)
    election.handle(LockRead(1, OTHER, 5, "rm2"), 10)
    assert election.handle(LockChanged(), 11) == [ReadLock(2)]
    assert election.handle(LockChanged(), 12) == []
    assert election.handle(LockRead(2, OTHER, 5, "rm2"), 13) == [ReadLock(3)]


def test_each_answer_extends_the_leadership_from_when_the_read_was_sent() -> None:
    election = leading()
    assert election.next_deadline_ms() == 333
    assert election.handle(TimePassed(), 333) == [ReadLock(4)]
    assert election.handle(LockRead(4, OWN, 5, "rm1"), 900) == []
    assert (election.holds(1332), election.holds(1333)) == (True, False)


def test_a_leader_without_an_answer_for_a_session_timeout_is_deposed() -> None:
    election = leading()
    election.handle(TimePassed(), 333)
    assert election.next_deadline_ms() == 1000
    assert election.handle(TimePassed(), 1000) == [Lost("ZooKeeper has not answered for a session timeout")]
    assert election.handle(LockRead(4, OWN, 5, "rm1"), 1100) == [Won(5)]
    assert election.holds(1332)


def test_an_answer_that_comes_after_a_session_timeout_does_not_make_a_leader() -> None:
    election = ZooKeeperElection(1000)
    election.handle(JoinElection(), 0)
    election.handle(Connected(OWN), 0)
    assert election.handle(LockRead(1, OWN, 5, "rm1"), 1000) == []
    assert not election.holds(1000)


def test_a_stopped_leader_is_deposed_by_the_first_event_after_it_wakes() -> None:
    election = leading()
    assert not election.holds(5000)
    assert election.handle(LockChanged(), 5000)[0] == Lost("ZooKeeper has not answered for a session timeout")


def test_a_short_loss_of_the_connection_leaves_the_leader() -> None:
    election = leading()
    assert election.handle(Disconnected(), 100) == []
    assert election.holds(500)
    assert election.handle(Connected(OWN), 600) == [ReadLock(4)]
    assert election.handle(LockRead(4, OWN, 5, "rm1"), 610) == []
    assert election.holds(1500)


@pytest.mark.parametrize("length_ms", [400, 999])
def test_a_leader_without_a_connection_is_deposed_a_session_timeout_after_the_last_answer(length_ms: int) -> None:
    election = leading()
    election.handle(Disconnected(), 1000 - length_ms)
    assert election.next_deadline_ms() == 1000
    assert election.handle(TimePassed(), 1000) == [Lost("ZooKeeper has not answered for a session timeout")]
    assert election.next_deadline_ms() is None


def test_the_end_of_the_session_deposes_the_leader() -> None:
    election = leading()
    assert election.handle(SessionOver(), 10) == [Lost("the session with ZooKeeper is over")]
    assert election.handle(Connected(OTHER), 20) == [ReadLock(4)]
    assert election.handle(LockRead(4, OWN, 5, "rm1"), 30) == []


def test_the_loss_of_the_lock_deposes_the_leader() -> None:
    election = leading()
    assert election.handle(LockChanged(), 10) == [ReadLock(4)]
    assert election.handle(LockRead(4), 11) == [Lost("the lock was deleted"), CreateLock(5)]
    election = leading()
    election.handle(LockChanged(), 10)
    assert election.handle(LockRead(4, OTHER, 9, "rm2"), 11) == [Lost("rm2 leads")]
    election = leading()
    election.handle(LockChanged(), 10)
    assert election.handle(LockRead(4, OWN, 9, "rm1"), 11) == [Lost("the lock was created again"), Won(9)]


def test_a_lock_that_cannot_be_created_is_not_tried_without_pause() -> None:
    election = ZooKeeperElection(900)
    election.handle(JoinElection(), 0)
    election.handle(Connected(OWN), 0)
    assert election.handle(LockRead(1), 1) == [CreateLock(2)]
    assert election.handle(LockTried(2), 2) == [ReadLock(3)]
    assert election.handle(LockRead(3), 3) == []
    assert election.handle(TimePassed(), 303) == [ReadLock(4)]
    assert election.handle(LockRead(4), 304) == [CreateLock(5)]
    assert election.handle(LockCallFailed(5), 305) == []
    assert election.next_deadline_ms() == 605


def test_a_leader_that_resigns_deletes_the_lock_and_holds_no_more() -> None:
    election = leading()
    assert election.handle(QuitElection(), 10) == [ReadLock(4)]
    assert not election.holds(10)
    assert election.handle(LockRead(4, OWN, 5, "rm1"), 20) == [DeleteLock(5)]
    assert election.handle(LockTried(5), 30) == [ReadLock(6)]
    assert election.handle(LockRead(6), 40) == []
    assert election.holder == ""
    assert election.handle(JoinElection(), 50) == [ReadLock(7)]


def test_a_leader_that_resigns_without_a_connection_deletes_the_lock_later() -> None:
    election = leading()
    election.handle(Disconnected(), 10)
    assert election.handle(QuitElection(), 20) == []
    assert election.handle(Connected(OWN), 30) == [ReadLock(4)]
    assert election.handle(LockRead(4, OWN, 5, "rm1"), 40) == [DeleteLock(5)]


def test_an_answer_from_before_the_connection_was_lost_has_no_effect() -> None:
    election = leading()
    election.handle(TimePassed(), 333)
    election.handle(Disconnected(), 400)
    election.handle(Connected(OWN), 500)
    assert election.handle(LockRead(4, OTHER, 9, "rm2"), 510) == []
    assert election.handle(LockTried(4), 510) == []
    assert election.handle(LockCallFailed(4), 510) == []


@pytest.mark.parametrize("number", range(1, 21))
def test_in_a_contest_at_most_one_leads_and_nothing_confirmed_is_lost(number: int) -> None:
    assert contest(number) == []
