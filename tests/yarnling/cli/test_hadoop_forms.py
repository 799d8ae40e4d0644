"""Numbers and tables in the format of Java's formatters; tests/cluster compares whole outputs with recordings."""

import time

import pytest

from yarnling.cli.hadoop import form


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.0, "0%"), (0.5, "50%"), (1.0, "100%"), (0.123456, "12.35%"), (0.005, ".5%"), (0.00001, "0%"), (0.1, "10%")],
)
def test_progress(fraction: float, text: str) -> None:
    """The format is that of Java's DecimalFormat `###.##%`."""
    assert form.progress(fraction) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0.0, ".00"), (50.0, "50.00"), (-1.0, "-1.00"), (0.125, ".12"), (0.375, ".38"), (-0.5, "-.50")]
)
def test_hundredths(number: float, text: str) -> None:
    """The format is that of Java's DecimalFormat `#.00`: halves are rounded to the even neighbour."""
    assert form.hundredths(number) == text


def test_a_percentage_is_computed_in_32_bit_floats() -> None:
    assert form.percent(3.7509) == "375.09%"
    assert form.percent(2 / 3) == "66.67%"


def test_a_time_that_has_not_come_is_not_available() -> None:
    assert form.moment(0) == "N/A"


def test_milliseconds_have_at_least_two_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The format is that of SimpleDateFormat's `SS`, and with `hh` midnight is 12."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert form.health_moment(1_795_222_740_005) == "Sat 21/Nov/26 12:59:00:05UTC"


def test_a_box_without_rows_lacks_the_last_border() -> None:
    assert form.box("none", ("A", "Long one"), []).splitlines() == [
        "+--------------+",
        "|     none     |",
        "+---+----------+",
        "| A | Long one |",
        "+---+----------+",
    ]
