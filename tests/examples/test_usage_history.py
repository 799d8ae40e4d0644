"""The chart of queue usage: what a column, a band and the axis show."""

from __future__ import annotations

import pytest

from examples.demo.usage_history import (
    BAND_LINES,
    LABEL_CHARS,
    UsageHistory,
    full_scale,
    usage_chart,
)
from yarnling.report.block_characters import resampled


def history(*shares: float, guaranteed: float = 0.25) -> UsageHistory:
    made = UsageHistory()
    for second, share in enumerate(shares):
        made.add(float(second), {"root.a": (guaranteed, share), "root.idle": (0.5, 0.0)})
    return made


def lines_of(made: UsageHistory, columns: int) -> list[str]:
    return [line[LABEL_CHARS + 1 :] for line in usage_chart(made, columns).plain.splitlines()]


def test_a_band_is_as_high_as_the_share_of_its_scale() -> None:
    top, middle, bottom = lines_of(history(0.0, 0.125, 0.25), 3)[:BAND_LINES]
    assert (top, middle, bottom) == ("  █", " ▄█", " ██")


def test_the_guarantee_is_drawn_where_nothing_is_used() -> None:
    top, middle, bottom = lines_of(history(0.0, 1.0, guaranteed=0.4), 2)[:BAND_LINES]
    assert (top, middle, bottom) == (" █", "┄█", " █")


def test_what_is_above_the_guarantee_has_another_colour() -> None:
    chart = usage_chart(history(1.0, 1.0, guaranteed=0.34), 2)
    styles = [str(span.style) for span in chart.spans if chart.plain[span.start] == "█"]
    assert styles == ["yellow", "yellow", "yellow", "yellow", "green", "green"]


def test_queues_that_were_never_used_are_named_below() -> None:
    assert "never used: root.idle" in usage_chart(history(0.5), 10).plain


def test_marks_stand_on_the_axis_at_their_time_and_are_explained() -> None:
    made = history(0.1, 0.1, 0.1, 0.1, 0.1)
    made.marks[2.0] = "kill -9 nm-1"
    lines = lines_of(made, 8)
    assert lines[BAND_LINES] == "────✗───"
    assert "✗ 2.0 s: kill -9 nm-1" in lines[-2]


def test_a_queue_that_comes_later_was_empty_before() -> None:
    made = history(0.5)
    made.add(1.0, {"root.a": (0.25, 0.5), "root.idle": (0.5, 0.0), "root.late": (0.1, 0.2)})
    assert made.queues["root.late"].samples == [0.0, 0.2]


def test_columns_are_means_of_their_time_and_repeat_where_there_is_no_sample() -> None:
    assert resampled([0.0, 0.1, 4.0], [0.2, 0.4, 1.0], 4, 4.0) == pytest.approx([0.3, 0.3, 0.3, 1.0])


@pytest.mark.parametrize(("largest", "scale"), [(0.05, 0.1), (0.2, 0.2), (0.21, 0.25), (0.8, 1.0), (1.3, 1.0)])
def test_the_scale_holds_the_largest_value(largest: float, scale: float) -> None:
    assert full_scale(largest) == scale


def test_without_samples_there_is_no_picture() -> None:
    assert usage_chart(UsageHistory(), 10).plain == "no samples"
