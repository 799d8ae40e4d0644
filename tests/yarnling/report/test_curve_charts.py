"""Pictures of values over time and of bars, as SVG."""

from __future__ import annotations

import re

import pytest

from yarnling.report.curve_charts import bars_picture, curves_picture
from yarnling.report.curves import Bar, Bars, Curve, Curves, Mark

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("is_stacked", [False, True])
def test_curves_have_a_colour_of_their_own_a_legend_and_numbered_marks(is_stacked: bool) -> None:
    curves = (Curve("ann", (0.0, 4.0, 4.0), bound=3.0), Curve("bob", (1.0, 1.0, 2.0)))
    marks = (Mark(1000, "ann <comes>"),)
    drawn = curves_picture(Curves("Memory", "GB", (0, 1000, 2000), curves, marks, is_stacked), 1)
    assert drawn.legend == (("queue-1", "ann"), ("queue-2", "bob"))
    assert drawn.caption == "1: ann <comes>"
    for svg in (drawn.wide, drawn.narrow):
        assert "var(--queue-1)" in svg
        assert "var(--queue-2)" in svg
        assert 'aria-label="Memory: ann at most 4 GB, bob at most 2 GB"' in svg
        assert re.search(r"<text[^>]*>1</text>", svg)


def test_bars_have_their_names_and_values() -> None:
    drawn = bars_picture(Bars("Memory", "GB", (Bar("ann", 10.0), Bar("bob", 5.0, bound=7.5))), 2)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn.wide)
    assert {"ann", "bob", "10 GB", "5 GB"} <= set(texts)
    assert "var(--guarantee)" in drawn.wide
