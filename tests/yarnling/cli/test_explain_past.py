"""`yarnling explain --at`: which time is meant, and what is printed of it."""

from __future__ import annotations

from datetime import datetime

import pytest

from yarn.errors import YarnException
from yarn.ids import ApplicationId
from yarn.protocols.inspection import PastExplanation, PastVerdict
from yarnling.cli.explain_past import parse_moment, past_explained

NOW = datetime(2026, 11, 27, 9, 30)


def ms(*moment: int) -> int:
    return round(datetime(2026, 11, *moment).timestamp() * 1000)


FOUND = PastExplanation(
    ApplicationId(1, 1),
    "ann",
    "root.b",
    ms(27, 9, 30),
    ms(27, 1, 0),
    (
        PastVerdict(ms(27, 2, 58, 10), ms(27, 3, 4, 40), "USER_LIMIT", "waits because ann is at her user limit"),
        PastVerdict(ms(27, 9, 0), None, "NODE_FULL", "waits because the cluster is full"),
    ),
)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("03:00", (27, 3, 0)),
        ("3:00:30", (27, 3, 0, 30)),
        ("10:00", (26, 10, 0)),
        ("2026-11-26T23:59", (26, 23, 59)),
        ("2026-11-26 23:59:01", (26, 23, 59, 1)),
        ("10m", (27, 9, 20)),
        ("2h", (27, 7, 30)),
    ],
)
def test_a_time_is_the_last_one_that_was(text: str, moment: tuple[int, ...]) -> None:
    assert parse_moment(text, NOW) == ms(*moment)


@pytest.mark.parametrize("text", ["", "3 am", "25:00", "03:00:99", "10y", "2026-13-01", "9" * 400])
def test_another_text_is_refused_with_examples(text: str) -> None:
    with pytest.raises(YarnException, match="write for example 03:00"):
        parse_moment(text, NOW)


def lines(at_ms: int) -> list[str]:
    return [line.plain for line in past_explained(FOUND, at_ms)]


def test_the_verdict_of_that_time_comes_first() -> None:
    shown = lines(ms(27, 3, 0))
    assert shown[0].startswith("application_1_0001 of ann in root.b, at ")
    assert shown[1] == "  waits because ann is at her user limit"
    assert shown[2].endswith("03:04:40 (6.5 min)")
    assert "until now (30 min): waits because the cluster is full" in shown[-1]


def test_between_two_verdicts_nothing_was_requested() -> None:
    assert "it requested nothing" in lines(ms(27, 5, 0))[1]
