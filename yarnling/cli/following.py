"""An application that is waited for: its progress on a terminal, its changes of state elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from rich.console import Console
from rich.text import Text

from yarn.applications import ApplicationReport
from yarn.errors import YarnException
from yarn.ids import ApplicationId
from yarn.states import FINAL_APPLICATION_STATES, FinalApplicationStatus
from yarnling.cli.terminal import in_line, notices, shown, without_page_hint
from yarnling.cluster.client import Client, WaitTimeout

POLL_S = 0.1
KILL_S = 5.0
"""Who interrupts is not kept waiting for a ResourceManager that does not answer."""

Look = Callable[[], Awaitable[object]]


async def follow(
    client: Client,
    app_id: ApplicationId,
    timeout_s: float | None,
    *,
    look: Look | None = None,
    last_look: Look | None = None,
) -> ApplicationReport:
    """Its last report. `look` prints output that is new, at each round; `last_look` the rest, before the summary.

    An interrupt kills the application. Raises WaitTimeout after killing it, if it takes longer than `timeout_s`.
    """
    console = notices()
    try:
        async with asyncio.timeout(timeout_s):
            report = await _ended(client, app_id, console, look)
    except TimeoutError:
        await client.kill(app_id, f"Killed after {timeout_s:g} s by its client.")
        raise WaitTimeout(f"{app_id} took longer than {timeout_s:g} s and was killed") from None
    except (asyncio.CancelledError, OSError):
        # Interrupted, or nobody reads what it writes (`| head`): it shall not run on unseen.
        with contextlib.suppress(TimeoutError, YarnException):
            async with asyncio.timeout(KILL_S):
                await client.kill(app_id, "Killed by its client.")
        raise
    if last_look is not None:
        await last_look()
    _tell_end(report, console)
    return report


async def _ended(client: Client, app_id: ApplicationId, console: Console, look: Look | None) -> ApplicationReport:
    before = None
    with console.status("ACCEPTED") as status:
        while True:
            report = await client.report(app_id)
            if report.state is not before and not console.is_terminal:
                console.print(f"{app_id} {report.state.name}")
            before = report.state
            if look is not None:
                await look()
            if report.state in FINAL_APPLICATION_STATES:
                return report
            status.update(Text(in_line(f"{report.state.name} in {report.queue}, {report.progress:.0%} done")))
            await asyncio.sleep(POLL_S)


def _tell_end(report: ApplicationReport, console: Console) -> None:
    seconds = (report.finish_time_ms - report.start_time_ms) / 1000
    console.print(f"{report.application_id} {report.final_status.name} after {seconds:.1f} s")
    if report.final_status is not FinalApplicationStatus.SUCCEEDED and report.diagnostics.strip():
        console.print(shown(without_page_hint(report.diagnostics).strip()))
