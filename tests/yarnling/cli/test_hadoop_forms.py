"""Numbers and tables as Java's formatters print them; the whole output is held against recordings in tests/cluster."""

import time

import pytest

from yarnling.cli.hadoop import form


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.0, "0%"), (0.5, "50%"), (1.0, "100%"), (0.123456, "12.35%"), (0.005, ".5%"), (0.00001, "0%"), (0.1, "10%")],
)
def test_progress(fraction: float, text: str) -> None:
    """DecimalFormat `###.##%`."""
    assert form.progress(fraction) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0.0, ".00"), (50.0, "50.00"), (-1.0, "-1.00"), (0.125, ".12"), (0.375, ".38"), (-0.5, "-.50")]
)
def test_hundredths(number: float, text: str) -> None:
    """DecimalFormat `#.00`: halves go to the even neighbour."""
    assert form.hundredths(number) == text


def test_a_share_is_multiplied_in_32_bits() -> None:
    assert form.percent(3.7509) == "375.09%"
    assert form.percent(2 / 3) == "66.67%"


def test_a_moment_that_has_not_been() -> None:
    assert form.moment(0) == "N/A"


def test_milliseconds_have_two_places_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """SimpleDateFormat `SS`, and `hh`: midnight is 12."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert form.health_moment(1_795_222_740_005) == "Sat 21/Nov/26 12:59:00:05UTC"


def test_a_box_without_rows_has_no_last_border() -> None:
    assert form.box("none", ("A", "Long one"), []).splitlines() == [
        "+--------------+",
        "|     none     |",
        "+---+----------+",
        "| A | Long one |",
        "+---+----------+",
    ]
