"""Starts and ends between two polls: their mean follows from the memory that was used meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnling.workload.interval_times import Interval, PlacedTimes, placed_times

GB = 1024
S = 1000


def interval(lacking_gb_s: float | None = None, *, last_end_ms: int | None = None, spread: bool = False) -> Interval:
    lacking = None if lacking_gb_s is None else lacking_gb_s * GB * S
    return Interval(0, 0, 10 * S, lacking, last_end_ms, spread)


def test_the_example_of_the_module() -> None:
    """Two held for 10 s would have used 20 GB-seconds; 13 were used."""
    assert placed_times(interval(7), [], [GB]) == PlacedTimes([], [3 * S])


def test_without_memory_ends_lie_evenly_and_starts_in_the_middle() -> None:
    assert placed_times(interval(), [GB, GB], [GB, GB]) == PlacedTimes([5 * S, 5 * S], [2500, 7500])
    assert placed_times(interval(spread=True), [GB, GB], []) == PlacedTimes([2500, 7500], [])


def test_several_ends_keep_their_mean_and_the_bounds() -> None:
    """Both had ended 2 s before the poll, on average: so none of them before 6 s."""
    assert placed_times(interval(4), [], [GB, GB]) == PlacedTimes([], [7 * S, 9 * S])


def test_the_last_end_of_an_application_is_known() -> None:
    assert placed_times(interval(last_end_ms=9500), [], [GB, GB, GB]).ends_ms[-1] == 9500
    found = placed_times(interval(12, last_end_ms=9500), [], [GB, GB, GB]).ends_ms
    assert found[-1] == 9500
    assert sum(10 * S - each for each in found) == pytest.approx(12 * S, abs=5)


def test_starts_and_ends_in_one_interval_move_apart() -> None:
    """A container ended and another began: 4 GB-seconds are lacking, so there were 4 s between them."""
    assert placed_times(interval(4), [GB], [GB]) == PlacedTimes([7 * S], [3 * S])


def test_what_no_times_explain_is_bounded() -> None:
    """Another client has asked meanwhile, and the ResourceManager keeps what it answers for 3 s."""
    assert placed_times(interval(70), [], [GB]) == PlacedTimes([], [0])
    assert placed_times(interval(-70), [GB], []) == PlacedTimes([0], [])


_SIZES = st.lists(st.sampled_from([GB, 2 * GB, 4 * GB]), max_size=5)


@given(st.floats(-80, 80) | st.none(), _SIZES, _SIZES, st.booleans(), st.sampled_from([None, 9500]))
def test_all_times_are_in_order_and_within_the_interval(
    lacking: float | None, starts: list[int], ends: list[int], spread: bool, last: int | None
) -> None:
    found = placed_times(interval(lacking, last_end_ms=last, spread=spread), starts, ends)
    for times, sizes in ((found.starts_ms, starts), (found.ends_ms, ends)):
        assert len(times) == len(sizes)
        assert times == sorted(times)
        assert all(0 <= each <= 10 * S for each in times)
