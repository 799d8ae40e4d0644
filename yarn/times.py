"""Times as YARN writes them in messages (Hadoop's Times), and durations as yarnling shows them.

Hadoop writes them in the time zone of its machine; here they are always UTC, so that pure code needs no time zone. Any
offset is parsed. The calendar is computed here because pure modules may not import datetime, which has a clock.
"""

from __future__ import annotations

import re

from yarn.errors import YarnException

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
UNLIMITED = "UNLIMITED"
"""Written instead of a time that never comes."""

_ISO8601 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})([+-])(\d\d)(\d\d)", re.ASCII)
_DAY_MS = 86_400_000
_LAST_MS = 253_402_300_799_999
"""The last ms of the year 9999: the format has four digits for a year."""


def duration(ms: float) -> str:
    """A duration as every summary and page shows it, with two or three digits and the unit that suits it: "45 s",
    "2.5 min", "41 min", "3.5 h".
    """
    if abs(ms) < SECOND_MS:
        return f"{round(ms)} ms" if ms else "0 s"
    if abs(ms) < 100 * SECOND_MS:
        return f"{short_number(ms / SECOND_MS)} s"
    if abs(ms) < 100 * MINUTE_MS:
        return f"{short_number(ms / MINUTE_MS)} min"
    return f"{short_number(ms / HOUR_MS)} h"


def short_number(number: float) -> str:
    """A number with two significant digits at least, without a fraction of zero."""
    return f"{number:,.0f}" if abs(number) >= 10 else f"{number:.1f}".removesuffix(".0")


def format_iso8601(moment_ms: int) -> str:
    """The time `moment_ms` (ms since 1970) as `2026-11-21T02:06:16.304+0000`.

    Times before 1970 or after 9999 are written as the first or last time in that range.
    """
    days, rest_ms = divmod(max(0, min(moment_ms, _LAST_MS)), _DAY_MS)
    seconds, ms = divmod(rest_ms, 1000)
    year, month, day = _date_of(days)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{ms:03d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}+0000"


def parse_iso8601(text: str) -> int:
    """The time in ms since 1970. Raises YarnException for any other format (RMServerUtils' check of timeouts)."""
    match = _ISO8601.fullmatch(text)
    if match is not None:
        sign = -1 if match[8] == "-" else 1
        year, month, day, hour, minute, second, ms = (int(match[group]) for group in range(1, 8))
        days = _days_of(year, month, day)
        if _date_of(days) == (year, month, day) and hour < 24 and minute < 60 and second < 60:
            offset_minutes = sign * (int(match[9]) * 60 + int(match[10]))
            return days * _DAY_MS + ((hour * 60 + minute - offset_minutes) * 60 + second) * 1000 + ms
    raise YarnException(
        "Expire time is not in ISO8601 format. ISO8601 supported format is yyyy-MM-dd'T'HH:mm:ss.SSSZ. "
        f"Configured timeout value is {text[:100]}"
    )


# The Gregorian calendar, counted from 1 March of the year 0, so that the leap day is the last of its year.

_EPOCH_DAYS = 719_468
"""Days from 1 March 0000 to 1 January 1970."""
_ERA_DAYS = 146_097
"""Days in 400 years, after which the calendar repeats."""


def _date_of(days: int) -> tuple[int, int, int]:
    """The date (year, month, day) that is `days` days after 1 January 1970."""
    era, day_of_era = divmod(days + _EPOCH_DAYS, _ERA_DAYS)
    leap_days = day_of_era // 1460 - day_of_era // 36_524 + day_of_era // 146_096
    year_of_era = (day_of_era - leap_days) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    month = (month_from_march + 2) % 12 + 1
    return era * 400 + year_of_era + (month <= 2), month, day_of_year - (153 * month_from_march + 2) // 5 + 1


def _days_of(year: int, month: int, day: int) -> int:
    """The days from 1 January 1970 to a date. For a date that does not exist, the days of another date."""
    era, year_of_era = divmod(year - (month <= 2), 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = 365 * year_of_era + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _ERA_DAYS + day_of_era - _EPOCH_DAYS
