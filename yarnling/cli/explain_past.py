"""`yarnling explain APPLICATION_ID --at TIME`: shows why an application waited at a time in the past."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from rich.text import Text

from yarn.errors import YarnException
from yarn.ids import ApplicationId
from yarn.protocols.inspection import PastExplanation, PastVerdict
from yarn.times import duration
from yarnling.cli.shared.arguments import UsageException, reading_arguments
from yarnling.cli.shared.connection import connect
from yarnling.cli.shared.output import print_indented, print_json, terminal
from yarnling.report.escapes import in_line

_AGO = re.compile(r"(\d{1,6})(s|m|min|h)")
_UNITS = {"s": "seconds", "m": "minutes", "min": "minutes", "h": "hours"}


def show_past(name: str, application: str | None, at: str, user: str, *, as_json: bool) -> None:
    """Print why the application waited at that time.

    Raises YarnException if the ResourceManager refuses the request, or keeps nothing of that time.
    """
    if application is None or application.startswith("container_"):
        raise UsageException("--at needs the id of an application (yarnling status lists them)")
    with reading_arguments():
        app_id = ApplicationId.parse(application)
        at_ms = parse_moment(at, datetime.now())
    found = asyncio.run(_load(name, app_id, user))
    if not found.since_ms <= at_ms <= found.now_ms:
        raise YarnException(
            f"--at {at}: {clock_time(at_ms)} is not between {clock_time(found.since_ms)}, when the history began, "
            f"and {clock_time(found.now_ms)}"
        )
    if as_json:
        print_json({"at_ms": at_ms, "verdict": verdict_at(found, at_ms), "history": found})
        return
    console = terminal()
    for line in past_explained(found, at_ms):
        print_indented(console, line)


def parse_moment(text: str, now: datetime) -> int:
    """The time in ms since 1970 of `03:00` (the last one before `now`), an ISO time, or `10m` (ago).

    Raises YarnException for another text.
    """
    if ago := _AGO.fullmatch(text):
        return _ms(now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}))
    try:
        if re.fullmatch(r"\d\d?:\d\d(:\d\d)?", text):
            moment = datetime.combine(now.date(), datetime.strptime(text, _clock_format(text)).time())
            return _ms(moment if moment <= now else moment - timedelta(days=1))
        return _ms(datetime.fromisoformat(text))
    except (ValueError, OverflowError, OSError):
        raise YarnException(
            f"--at {text}: not a time (write for example 03:00, 03:00:30, 2026-11-27T03:00, or 10m for ten minutes ago)"
        ) from None


def verdict_at(found: PastExplanation, at_ms: int) -> PastVerdict | None:
    """The verdict that held at that time; None if the application requested nothing then."""
    held = (one for one in found.verdicts if one.from_ms <= at_ms and (one.until_ms is None or at_ms < one.until_ms))
    return next(held, None)


def past_explained(found: PastExplanation, at_ms: int) -> Iterator[Text]:
    """The lines: why it waited at that time, then the whole history of the application."""
    yield Text(in_line(f"{found.application_id} of {found.user} in {found.queue}, at {clock_time(at_ms)}"), "bold")
    held = verdict_at(found, at_ms)
    if held is None:
        yield Text("  it requested nothing, or waited for less than the time between two samples")
    else:
        yield Text(in_line(f"  {held.sentence}"), "bold yellow")
        yield Text(f"  {_span(held, found.now_ms)}")
    if len(found.verdicts) > (held is not None):
        yield Text("All that was sampled", "bold")
    else:
        return
    for verdict in found.verdicts:
        yield Text(in_line(f"  {_span(verdict, found.now_ms)}: {verdict.sentence}"))


def _span(verdict: PastVerdict, now_ms: int) -> str:
    """`from 02:58:10 to 03:04:40 (6.5 min)`."""
    until_ms = now_ms if verdict.until_ms is None else verdict.until_ms
    end = "until now" if verdict.until_ms is None else f"to {clock_time(verdict.until_ms)}"
    return f"from {clock_time(verdict.from_ms)} {end} ({duration(until_ms - verdict.from_ms)})"


def clock_time(ms: int) -> str:
    """The time of the day here, with the date if it is not today's."""
    moment = datetime.fromtimestamp(ms / 1000)
    return moment.strftime("%H:%M:%S" if moment.date() == datetime.now().date() else "%Y-%m-%d %H:%M:%S")


def _clock_format(text: str) -> str:
    return "%H:%M:%S" if text.count(":") == 2 else "%H:%M"


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


async def _load(name: str, app_id: ApplicationId, user: str) -> PastExplanation:
    _, client = connect(name, user)
    async with client:
        return await client.explain_past(app_id)
