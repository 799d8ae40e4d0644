"""`yarnling submit PROGRAM`: the programs that come with yarnling, under the options of Hadoop's clients."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence

from msgspec import Struct

from am.client.submission import OptionParser, Submission
from am.programs.distributed_shell import client as distributed_shell
from am.programs.elastic import client as elastic
from am.programs.gang import client as gang
from am.programs.mapreduce import client as mapreduce
from yarn.applications import ApplicationReport
from yarn.states import FinalApplicationStatus
from yarnling.cli import json_form
from yarnling.cli.arguments import reading_arguments
from yarnling.cli.connection import connect
from yarnling.cli.following import follow
from yarnling.cluster.state import name_option

HELP = ("-h", "-help", "--help")


class Program(Struct, frozen=True):
    """A program's options, read and explained."""

    parse: Callable[[Sequence[str]], Submission]
    parser: Callable[[], OptionParser]


PROGRAMS = {
    "distributed-shell": Program(distributed_shell.parse, distributed_shell.make_parser),
    "mapreduce": Program(mapreduce.parse, mapreduce.make_parser),
    "elastic": Program(elastic.parse, elastic.make_parser),
    "gang": Program(gang.parse, gang.make_parser),
}


class SubmitOptions(Struct, frozen=True):
    """Where to, as whom, and what then. `timeout_s`: kill it then; None = as the program's own option says."""

    name: str
    user: str = ""
    wait: bool = True
    as_json: bool = False


def submit(program: str, arguments: Sequence[str], options: SubmitOptions) -> int:
    """The exit status: 0 if it succeeded, or was accepted and is not waited for."""
    if any(argument in HELP for argument in arguments):
        sys.stdout.write(PROGRAMS[program].parser().format_help())
        return 0
    with reading_arguments():
        submission = PROGRAMS[program].parse(arguments)
    report = asyncio.run(_submit(program, submission, options))
    if options.as_json:
        sys.stdout.write(json_form.text(report) + "\n")
    if not options.wait:
        return 0
    return 0 if report.final_status is FinalApplicationStatus.SUCCEEDED else 1


async def _submit(program: str, submission: Submission, options: SubmitOptions) -> ApplicationReport:
    _, client = connect(options.name, options.user)
    async with client:
        report = await client.start(submission, lambda notice: sys.stderr.write(f"{program}: {notice}\n"))
        if not options.wait:
            if not options.as_json:
                sys.stdout.write(f"{report.application_id}\n")
            return report
        sys.stderr.write(f"Submitted {report.application_id}\n")
        timeout_ms = submission.options.timeout_ms
        ended = await follow(client, report.application_id, None if timeout_ms is None else timeout_ms / 1000)
        where = name_option(options.name)
        sys.stderr.write(f"What it wrote: yarnling logs {ended.application_id} --file stdout{where}\n")
        return ended
