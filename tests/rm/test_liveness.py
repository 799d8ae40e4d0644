"""Monitors: keys expire at the instants of Hadoop's checkers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rm.core.liveness import DeadlineMonitor, LivenessMonitor

INTERVAL_MS = 30_000
STEP_MS = 10_000


def monitor(*keys: str) -> LivenessMonitor[str]:
    watched: LivenessMonitor[str] = LivenessMonitor(INTERVAL_MS, 0)
    for key in keys:
        watched.register(key, 0)
    return watched


def test_without_monitored_objects_there_is_no_deadline() -> None:
    assert monitor().next_deadline_ms() is None
    assert monitor().expire(10**9) == []


def test_silence_of_exactly_the_interval_does_not_expire() -> None:
    """AbstractLivelinessMonitor: expired when now > last ping + interval, checked every third of the interval."""
    watched = monitor("n1")
    assert watched.next_deadline_ms() == 40_000
    assert watched.expire(39_999) == []
    assert watched.expire(40_000) == ["n1"]
    assert "n1" not in watched


def test_a_ping_moves_the_deadline() -> None:
    watched = monitor("n1", "n2")
    watched.ping("n1", 15_000)
    assert watched.next_deadline_ms() == 40_000
    assert watched.expire(40_000) == ["n2"]
    assert watched.next_deadline_ms() == 50_000


def test_a_stall_extends_the_deadline() -> None:
    """The object silent for longest stays first."""
    watched = monitor("n1", "n2")
    watched.ping("n1", 1_000)
    watched.extend(25_000)
    assert watched.expire(50_000) == []
    assert watched.next_deadline_ms() == 60_000
    assert watched.expire(60_000) == ["n2", "n1"]


def test_a_ping_of_an_unmonitored_object_has_no_effect() -> None:
    watched = monitor("n1")
    watched.unregister("n1")
    watched.ping("n1", 5)
    assert len(watched) == 0


def test_the_object_silent_for_longest_expires_first() -> None:
    watched = monitor("a", "b", "c")
    watched.ping("b", 1)
    watched.ping("a", 2)
    assert watched.expire(10**6) == ["c", "b", "a"]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 5_000)), max_size=40),
    st.integers(1, 100_000),
)
def test_expiry_agrees_with_a_scan_of_all_objects(pings: list[tuple[str, int]], later_ms: int) -> None:
    """The rule: silent for more than the interval at the last check before now."""
    watched = monitor(*"abcde")
    last = dict.fromkeys("abcde", 0)
    now_ms = 0
    for key, gap_ms in pings:
        now_ms += gap_ms
        watched.ping(key, now_ms)
        last[key] = now_ms
    check_ms = (now_ms + later_ms) // STEP_MS * STEP_MS
    assert sorted(watched.expire(now_ms + later_ms)) == [k for k in "abcde" if last[k] + INTERVAL_MS < check_ms]


@settings(deadline=None)
@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=8), st.integers(0, 300_000))
def test_nothing_expires_before_the_deadline_and_something_at_it(starts: list[int], probe_ms: int) -> None:
    watched: LivenessMonitor[int] = LivenessMonitor(INTERVAL_MS, 0)
    for key, start_ms in enumerate(sorted(starts)):
        watched.register(key, start_ms)
    deadline_ms = watched.next_deadline_ms()
    assert deadline_ms is not None
    if probe_ms < deadline_ms:
        assert watched.expire(probe_ms) == []
    assert watched.expire(deadline_ms) != []


def test_deadlines_expire_at_the_next_check() -> None:
    lifetimes: DeadlineMonitor[str] = DeadlineMonitor(3_000, 0)
    lifetimes.register("late", 60_000)
    lifetimes.register("early", 5_000)
    assert lifetimes.next_deadline_ms() == 6_000
    assert lifetimes.expire(5_999) == []
    assert lifetimes.expire(6_000) == ["early"]
    assert lifetimes.next_deadline_ms() == 63_000


def test_a_deadline_can_be_replaced_and_removed() -> None:
    lifetimes: DeadlineMonitor[str] = DeadlineMonitor(3_000, 0)
    lifetimes.register("a", 5_000)
    lifetimes.register("a", 9_500)
    lifetimes.register("b", 5_000)
    lifetimes.unregister("b")
    assert lifetimes.deadline_ms("a") == 9_500
    assert lifetimes.next_deadline_ms() == 12_000
    assert lifetimes.expire(11_999) == []
    assert lifetimes.expire(12_000) == ["a"]
    assert lifetimes.next_deadline_ms() is None


def test_a_suspended_key_does_not_expire_and_takes_its_place_again() -> None:
    watched = monitor("n1", "n2", "n3")
    assert watched.suspend("n1")
    assert not watched.suspend("n9")
    watched.ping("n1", 500)
    watched.ping("n2", 15_000)
    watched.ping("n3", 12_000)
    watched.resume("n1", 11_000)
    assert watched.next_deadline_ms() == 50_000
    assert watched.expire(50_000) == ["n1", "n3", "n2"]


def test_only_suspended_keys_leave_no_deadline() -> None:
    watched = monitor("n1")
    watched.suspend("n1")
    assert watched.next_deadline_ms() is None
    assert watched.expire(10**9) == []
    watched.resume("n1", 10**9)
    assert watched.expire(10**9 + 2 * INTERVAL_MS) == ["n1"]
