"""The clock of a simulated machine, which may be wrong and may drift."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yarnling.simulation.engine import START_MS
from yarnling.simulation.machine_clock import PPM, MachineClock


def test_a_clock_is_right_until_it_is_set() -> None:
    clock = MachineClock()
    assert clock.shown_ms(START_MS + 5) == START_MS + 5
    clock.set_ahead(-3600, START_MS + 5)
    assert clock.shown_ms(START_MS + 7) == START_MS - 3593


def test_what_a_clock_has_gained_stays_when_it_no_longer_drifts() -> None:
    clock = MachineClock()
    clock.set_drift(PPM // 10, START_MS)
    assert clock.shown_ms(START_MS + 1000) == START_MS + 1100
    clock.set_drift(0, START_MS + 1000)
    assert clock.shown_ms(START_MS + 3000) == START_MS + 3100
    clock.set_drift(-PPM // 2, START_MS + 3000)
    assert clock.shown_ms(START_MS + 3200) == START_MS + 3200


@given(st.integers(-900_000, 900_000), st.integers(-5000, 5000), st.integers(-10_000, 100_000))
def test_a_deadline_comes_when_the_clock_first_shows_it(drift: int, ahead: int, after: int) -> None:
    """A timer that went off before would look again in the same millisecond, for ever."""
    clock = MachineClock()
    clock.set_ahead(ahead, START_MS)
    clock.set_drift(drift, START_MS)
    reached_ms = clock.true_ms(START_MS + after)
    assert clock.shown_ms(reached_ms) >= START_MS + after > clock.shown_ms(reached_ms - 1)
