"""`yarnling submit PROGRAM`: run one of yarnling's applications, with the options of Hadoop's clients."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from am.client.submission import OptionParser, Submission
from am.programs.distributed_shell import client as distributed_shell
from am.programs.elastic import client as elastic
from am.programs.gang import client as gang
from am.programs.mapreduce import client as mapreduce
from yarn.applications import ApplicationReport
from yarn.errors import YarnException
from yarn.ids import ApplicationId
from yarn.states import FINAL_APPLICATION_STATES, FinalApplicationStatus
from yarn.times import duration
from yarnling.cli.shared.arguments import reading_arguments
from yarnling.cli.shared.connection import connect
from yarnling.cli.shared.output import notices, print_json, without_page_hint
from yarnling.cluster.client import Client, WaitTimeout, why_waiting
from yarnling.cluster.state import name_option
from yarnling.report.escapes import in_line, shown

HELP = ("-h", "-help", "--help")
POLL_S = 0.1
KILL_S = 5.0
"""The time to wait, after an interrupt, for a ResourceManager that does not answer the request to kill, in seconds."""

Parse = Callable[[Sequence[str]], Submission]
PROGRAMS: dict[str, tuple[Parse, Callable[[], OptionParser]]] = {
    "distributed-shell": (distributed_shell.parse, distributed_shell.make_parser),
    "mapreduce": (mapreduce.parse, mapreduce.make_parser),
    "elastic": (elastic.parse, elastic.make_parser),
    "gang": (gang.parse, gang.make_parser),
}
"""{program: (function that parses its options, function that makes the parser for its help)}."""


class SubmitOptions(Struct, frozen=True):
    """The options of `submit` itself. `name`: of the cluster. `wait`: wait for the end of the application."""

    name: str
    user: str = ""
    wait: bool = True
    as_json: bool = False


def submit(program: str, arguments: Sequence[str], options: SubmitOptions) -> int:
    """Submit an application. Returns 0 if it succeeded; without `wait`, 0 if it was accepted."""
    parse, make_parser = PROGRAMS[program]
    if any(argument in HELP for argument in arguments):
        sys.stdout.write(make_parser().format_help())
        return 0
    with reading_arguments():
        submission = parse(arguments)
    report = asyncio.run(_submit(program, submission, options))
    if options.as_json:
        print_json(report)
    if not options.wait:
        return 0
    return 0 if report.final_status is FinalApplicationStatus.SUCCEEDED else 1


async def _submit(program: str, submission: Submission, options: SubmitOptions) -> ApplicationReport:
    state, client = connect(options.name, options.user)
    async with client:
        report = await client.start(submission, lambda notice: sys.stderr.write(f"{program}: {notice}\n"))
        if not options.wait:
            if not options.as_json:
                sys.stdout.write(f"{report.application_id}\n")
            return report
        sys.stderr.write(f"Submitted {report.application_id}\n")
        timeout_ms = submission.options.timeout_ms
        timeout_s = None if timeout_ms is None else timeout_ms / 1000
        ended = await follow(client, report.application_id, timeout_s, web=state.web)
        where = name_option(options.name)
        sys.stderr.write(f"Show its output: yarnling logs {ended.application_id} --file stdout{where}\n")
        return ended


async def follow(
    client: Client,
    app_id: ApplicationId,
    timeout_s: float | None,
    *,
    web: str,
    print_new: Callable[[], Awaitable[None]] | None = None,
    print_rest: Callable[[], Awaitable[None]] | None = None,
) -> ApplicationReport:
    """Wait for the end of an application and return its last report.

    Progress is shown on a terminal; elsewhere a line is printed for each state. `print_new` is called at every poll,
    and `print_rest` once before the summary. An interrupt kills the application. If the application takes longer than
    `timeout_s`, it is killed and WaitTimeout is raised. `web`: the ResourceManager's web pages (`output.live`).
    """
    console = notices()
    try:
        async with asyncio.timeout(timeout_s):
            report = await _wait(client, app_id, console, print_new)
    except TimeoutError:
        why = await why_waiting(client, app_id)
        await client.kill(app_id, f"Killed after {timeout_s:g} s by its client.")
        raise WaitTimeout(f"{app_id} took longer than {timeout_s:g} s and was killed{why}") from None
    except (asyncio.CancelledError, OSError):
        # The command was interrupted, or the reader of our output has exited (`| head`). Do not leave the application
        # running unnoticed.
        with contextlib.suppress(TimeoutError, YarnException):
            async with asyncio.timeout(KILL_S):
                await client.kill(app_id, "Killed by its client.")
        raise
    if print_rest is not None:
        await print_rest()
    _print_end(report, console, web)
    return report


async def _wait(
    client: Client, app_id: ApplicationId, console: Console, print_new: Callable[[], Awaitable[None]] | None
) -> ApplicationReport:
    before = None
    with console.status("ACCEPTED") as status:
        while True:
            report = await client.report(app_id)
            if report.state is not before and not console.is_terminal:
                console.print(f"{app_id} {report.state.name}")
            before = report.state
            if print_new is not None:
                await print_new()
            if report.state in FINAL_APPLICATION_STATES:
                return report
            status.update(Text(in_line(f"{report.state.name} in {report.queue}, {report.progress:.0%} done")))
            await asyncio.sleep(POLL_S)


def _print_end(report: ApplicationReport, console: Console, web: str) -> None:
    ran = duration(max(0, report.finish_time_ms - report.start_time_ms))
    console.print(f"{report.application_id} {report.final_status.name} after {ran}")
    if report.final_status is not FinalApplicationStatus.SUCCEEDED and report.diagnostics.strip():
        console.print(shown(without_page_hint(report.diagnostics, web).strip()))
