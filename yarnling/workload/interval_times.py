"""Places the starts and ends of containers within the time between two polls. Pure.

Two polls say how many containers began and ended between them, but not when. The ResourceManager also reports how much
memory times time an application has used so far, so two polls say how much it used between them, which is the mean time
of what changed. Without that, starts and ends are taken to lie evenly between the polls.

A worked example: an application holds two containers of 1 GB at a poll and one at the next, 10 s later. Between them it
used 13 GB-seconds, so the one that is gone had run for 3 s of these ten.

If containers began and others ended, only the difference of their means is known. Both means are then moved from the
middle by the same time, in opposite directions.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Interval(Struct, frozen=True):
    """The time between two polls, in ms. `starts_after_ms`, `ends_by_ms`: no container began before the one or ended
    after the other. `lacking_mb_ms`: by so much less memory times time was used than if what was held before had been
    held until `ends_by_ms` and nothing had begun, negative for more; None: not recorded. `last_end_ms`: when
    the last of several ended; None: not known. `are_starts_spread`: containers waited, so they did not all begin at
    once.
    """

    before_ms: int
    starts_after_ms: int
    ends_by_ms: int
    lacking_mb_ms: float | None = None
    last_end_ms: int | None = None
    are_starts_spread: bool = False


class PlacedTimes(Struct, frozen=True):
    """The times of starts and ends, each in order, in ms."""

    starts_ms: list[int]
    ends_ms: list[int]


def placed_times(interval: Interval, starts_mb: Sequence[int], ends_mb: Sequence[int]) -> PlacedTimes:
    """Place the starts and ends of containers of these sizes in MB, in the order in which they are to begin and end."""
    starts = (interval.starts_after_ms, max(interval.ends_by_ms, interval.starts_after_ms))
    ends = (interval.before_ms, max(interval.ends_by_ms, interval.before_ms))
    start_ms, end_ms = _means(interval, starts, ends, sum(starts_mb), sum(ends_mb))
    placed = _even(len(starts_mb), start_ms, starts) if interval.are_starts_spread else [start_ms] * len(starts_mb)
    return PlacedTimes(
        [round(each) for each in placed], [round(each) for each in _ends(interval, end_ms, ends, ends_mb)]
    )


_Bounds = tuple[float, float]


def _means(interval: Interval, starts: _Bounds, ends: _Bounds, starts_mb: int, ends_mb: int) -> tuple[float, float]:
    """The mean times of starts and of ends, each within its bounds."""
    start_ms, end_ms = sum(starts) / 2, sum(ends) / 2
    if interval.lacking_mb_ms is None or not starts_mb + ends_mb:
        return start_ms, end_ms
    end = interval.ends_by_ms

    def missing(start_ms: float, end_ms: float) -> float:
        """The part of the lacking memory times time that these means leave unexplained, in MB ms."""
        explained = ends_mb * (end - end_ms) - starts_mb * (end - start_ms)
        return (interval.lacking_mb_ms or 0.0) - explained

    shift_ms = missing(start_ms, end_ms) / (starts_mb + ends_mb)
    start_ms, end_ms = _within(start_ms + shift_ms, starts), _within(end_ms - shift_ms, ends)
    if starts_mb:
        start_ms = _within(start_ms + missing(start_ms, end_ms) / starts_mb, starts)
    if ends_mb:
        end_ms = _within(end_ms - missing(start_ms, end_ms) / ends_mb, ends)
    return start_ms, end_ms


def _ends(interval: Interval, mean_ms: float, bounds: _Bounds, ends_mb: Sequence[int]) -> list[float]:
    """The times of ends; the last one is set apart if it is known."""
    last_ms = interval.last_end_ms
    if last_ms is None or not ends_mb or (len(ends_mb) == 1 and interval.lacking_mb_ms is not None):
        return _even(len(ends_mb), mean_ms, bounds)
    *others_mb, last_mb = ends_mb
    earlier = (bounds[0], max(float(last_ms), bounds[0]))
    others_ms = sum(earlier) / 2
    if others_mb and interval.lacking_mb_ms is not None:
        others_ms = _within((mean_ms * sum(ends_mb) - last_ms * last_mb) / sum(others_mb), earlier)
    return [*_even(len(others_mb), others_ms, earlier), earlier[1]]


def _even(count: int, mean_ms: float, bounds: _Bounds) -> list[float]:
    """Times with this mean, at equal distances, as far apart as the bounds allow."""
    half_ms = min(mean_ms - bounds[0], bounds[1] - mean_ms)
    return [mean_ms + half_ms * ((2 * number + 1) / count - 1) for number in range(count)]


def _within(time_ms: float, bounds: _Bounds) -> float:
    return min(max(time_ms, bounds[0]), bounds[1])
