"""Points in time are formatted as in Hadoop, and parsed again."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarn.errors import YarnException
from yarn.times import format_iso8601, parse_iso8601

LAST_MS = 253_402_300_799_999
"""The end of the year 9999."""


def test_a_time_is_formatted_in_utc_with_milliseconds() -> None:
    assert format_iso8601(1795226776304) == "2026-11-21T02:06:16.304+0000"
    assert format_iso8601(0) == "1970-01-01T00:00:00.000+0000"


@given(st.integers(0, LAST_MS))
def test_the_calendar_is_that_of_datetime(moment_ms: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment_ms)
    assert format_iso8601(moment_ms) == f"{moment:%Y-%m-%dT%H:%M:%S}.{moment_ms % 1000:03d}+0000"


@given(st.integers(0, LAST_MS))
def test_a_formatted_time_can_be_parsed(moment_ms: int) -> None:
    assert parse_iso8601(format_iso8601(moment_ms)) == moment_ms


def test_any_utc_offset_is_parsed() -> None:
    assert parse_iso8601("2026-11-21T03:06:16.304+0100") == 1795226776304
    assert parse_iso8601("1969-12-31T23:30:00.000-0030") == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-11-21",
        "2026-13-21T03:06:16.304+0100",
        "2026-02-29T03:06:16.304+0100",
        "2026-02-20T24:06:16.304+0100",
        "2026-11-21T03:06:16+0100",
        "２026-11-21",
    ],
)
def test_any_other_format_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(YarnException, match=f"Configured timeout value is {re.escape(text)}$"):
        parse_iso8601(text)


def test_a_time_beyond_the_calendar_becomes_its_end() -> None:
    assert parse_iso8601(format_iso8601(1 << 62)) == LAST_MS
