"""The clock of a simulated machine: it may be wrong, and it may run too fast or too slow.

A daemon there gets its time from this clock, and its timers run by it. The engine's time is the true one.
"""

from __future__ import annotations

from yarnling.simulation.engine import START_MS

PPM = 1_000_000


class MachineClock:
    """Shows `ahead_ms` more than the true time, and gains `drift_ppm` parts per million (negative: loses)."""

    def __init__(self) -> None:
        self._ahead_ms = 0
        self._drift_ppm = 0
        self._since_ms = START_MS

    def set_ahead(self, ahead_ms: int, now_ms: int) -> None:
        """Set how far the clock is ahead of the true time; its drift stays."""
        self._ahead_ms, self._since_ms = ahead_ms, now_ms

    def set_drift(self, drift_ppm: int, now_ms: int) -> None:
        """Set the drift from now on; time gained or lost so far stays."""
        assert abs(drift_ppm) < PPM, f"a clock that drifts by {drift_ppm} parts per million runs backwards"
        self.set_ahead(self.shown_ms(now_ms) - now_ms, now_ms)
        self._drift_ppm = drift_ppm

    def shown_ms(self, true_ms: int) -> int:
        """The clock's reading at a true time, which must not be before the last change."""
        return true_ms + self._ahead_ms + (true_ms - self._since_ms) * self._drift_ppm // PPM

    def true_ms(self, shown_ms: int) -> int:
        """The first true time at which the clock shows at least this time."""
        if not self._drift_ppm:
            return shown_ms - self._ahead_ms
        elapsed_ms = shown_ms - self._ahead_ms - self._since_ms
        true_ms = self._since_ms + elapsed_ms * PPM // (PPM + self._drift_ppm)
        while self.shown_ms(true_ms) < shown_ms:
            true_ms += 1
        while self.shown_ms(true_ms - 1) >= shown_ms:
            true_ms -= 1
        return true_ms
