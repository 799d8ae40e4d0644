"""Figures and names are written short, with their units, and stay different."""

from __future__ import annotations

from yarn.times import HOUR_MS, MINUTE_MS, duration
from yarnling.report.wording import amount, clock, counted, labels, share, short_names


def test_labels_are_shortened_only_as_far_as_they_stay_different() -> None:
    alike = [f"the_first_part_{middle}_and_the_last_part" for middle in ("alpha", "beta")]
    found = labels(["etl", *alike, "another_name_that_is_too_long"])
    assert found["etl"] == "etl"
    assert found["another_name_that_is_too_long"] == "another_name\u2026t_is_too_long"
    assert found[alike[0]] != found[alike[1]]
    assert all("\u2026" in found[name] and len(found[name]) < len(name) for name in alike)


def test_short_names_stay_unique() -> None:
    assert short_names(["root.a.x", "root.b.x", "root.c"]) == {
        "root.a.x": "root.a.x",
        "root.b.x": "root.b.x",
        "root.c": "c",
    }


def test_figures_are_written_short_and_with_their_units() -> None:
    written = [
        duration(ms) for ms in (0, 40, 1500, 45_000, 99_000, 150_000, 41 * MINUTE_MS, 100 * MINUTE_MS, 26 * HOUR_MS)
    ]
    assert written == ["0 s", "40 ms", "1.5 s", "45 s", "99 s", "2.5 min", "41 min", "1.7 h", "26 h"]
    assert [amount(mb, "memory-mb") for mb in (512, 1536, 400 * 1024, 1536 * 1024)] == [
        "512 MB",
        "1.5 GB",
        "400 GB",
        "1,536 GB",
    ]
    assert (amount(7, "vcores"), share(0.004), share(0.616), clock(90 * MINUTE_MS)) == (
        "7 vcores",
        "0.4 %",
        "62 %",
        "01:30",
    )
    assert (counted(1, "node"), counted(1830, "container")) == ("1 node", "1,830 containers")
