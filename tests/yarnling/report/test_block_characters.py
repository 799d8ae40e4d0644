"""Pictures in block characters: bands of values over time, and bars."""

from __future__ import annotations

from yarnling.report.block_characters import bar_lines, curve_lines
from yarnling.report.curves import Bar, Bars, Curve, Curves, Mark

TIMES_MS = tuple(range(0, 10_000, 1000))


def texts(curves: Curves, width: int = 58) -> list[str]:
    return [line.text for line in curve_lines(curves, width)]


def test_bands_of_one_scale_stand_above_an_axis_with_marks() -> None:
    full = Curve("ann", (0.0,) * 5 + (16.0,) * 5)
    half = Curve("bob", (8.0,) * 10)
    head, *lines = texts(Curves("Memory", "GB", TIMES_MS, (full, half), (Mark(5000, "ann comes"),)))
    assert head == "Memory (full height: 16 GB)"
    left = lines[0].index("│") + 1
    assert [line[left:] for line in lines[:4]] == [" " * 15 + "█" * 13, " " * 15 + "█" * 13, "", "█" * 28]
    assert lines[0].startswith("  ann ")
    assert lines[1].startswith("  up to 16, at the end 16 GB")
    assert lines[4].endswith("└───────────────1────────────")
    assert lines[5].split() == ["0", "s", "9", "s"]
    assert lines[6].strip() == "1: ann comes"


def test_a_bound_is_drawn_where_the_value_is_below_it() -> None:
    lines = texts(Curves("Memory", "GB", TIMES_MS, (Curve("ann", (0.0,) * 5 + (16.0,) * 5, bound=4.0),)))
    assert "┄" in lines[2]
    assert "┄" not in lines[1]


def test_curves_of_nothing_can_be_drawn() -> None:
    assert texts(Curves("Memory", "GB", TIMES_MS, (Curve("ann", (0.0,) * 10),)))[2].rstrip().endswith("│")


def test_bars_have_one_scale_their_values_and_their_bounds() -> None:
    bars = Bars("Memory", "GB", (Bar("ann", 10.0), Bar("bob", 5.0, bound=7.5)))
    head, ann, bob = (line.text for line in bar_lines(bars, 33))
    assert head == "Memory"
    assert ann == "  ann  " + "█" * 20 + " 10 GB"
    assert bob == "  bob  " + "█" * 10 + " " * 5 + "|" + " " * 4 + " 5 GB"
