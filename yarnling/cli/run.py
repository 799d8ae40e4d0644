"""`yarnling run`: a command line in N containers, its output here with the container's name before each line."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from msgspec import Struct, to_builtins

from am.client.submission import ApplicationOptions
from am.programs.distributed_shell.client import DistributedShell
from am.programs.distributed_shell.core import Width
from yarn.applications import ApplicationReport
from yarn.ids import ApplicationId, ContainerId
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus
from yarnling.cli import json_form
from yarnling.cli.arguments import UsageException
from yarnling.cli.connection import connect
from yarnling.cli.container_output import GrowingOutput
from yarnling.cli.following import follow
from yarnling.cluster.client import Client

STATUS_FILE = "exit-status"
MASTER_MB = 128
SHELL_NAME_CHARS_MAX = 60

SCRIPT_LINK = "run.sh"
SCRIPT = """\
bash -c {line}
status=$?
echo $status >"$1"
exit $status
"""
"""Shipped as a file: a command in a launch context meets two shells on its way, and its `$` the wrong one.

$1 is where the line's exit status goes: an NM tells it to the master only, and the master tells a count.
"""


class RunOptions(Struct, frozen=True):
    """What to run where. `timeout_s` None: however long it takes."""

    command: tuple[str, ...]
    containers: int = 1
    memory_mb: int = 128
    vcores: int = 1
    queue: str = "default"
    user: str = ""
    timeout_s: float | None = None
    name: str = "default"
    as_json: bool = False


class ContainerOutcome(Struct, frozen=True):
    """What a container has written, and its exit status; None if it was killed or lost before it had one."""

    container_id: ContainerId
    exit_status: int | None
    stdout: str
    stderr: str


def run(options: RunOptions) -> int:
    """The exit status: the largest of the containers', 1 if that is 0 but the application failed."""
    if options.timeout_s is not None and not options.timeout_s > 0:
        raise UsageException(f"--timeout {options.timeout_s:g}: must be above 0 (leave it out to wait)")
    report, outcomes = asyncio.run(_run(options))
    if options.as_json:
        found = {"application": report, "containers": [to_builtins(outcome) for outcome in outcomes]}
        sys.stdout.write(json_form.text(found) + "\n")
    return worst(report, outcomes)


def worst(report: ApplicationReport, outcomes: Iterable[ContainerOutcome]) -> int:
    largest = max((outcome.exit_status or 0 for outcome in outcomes), default=0)
    failed = report.final_status is not FinalApplicationStatus.SUCCEEDED
    return largest or int(failed)


def shell_line(command: Sequence[str]) -> str:
    """One word is a line for the shell, several are a command with its arguments."""
    return command[0] if len(command) == 1 else shlex.join(command)


def submission_of(options: RunOptions, script: Path) -> DistributedShell:
    """`script` holds what `script_text` says."""
    line = shell_line(options.command)
    command = f"bash {SCRIPT_LINK} <LOG_DIR>/{STATUS_FILE}"
    width = Width(options.containers, Resource(options.memory_mb, options.vcores), exact=True)
    application = ApplicationOptions(
        line[:SHELL_NAME_CHARS_MAX], queue=options.queue, master_resource=Resource(MASTER_MB, 1)
    )
    return DistributedShell(command, width, application, files={SCRIPT_LINK: script})


def script_text(command: Sequence[str]) -> str:
    """The script of a container: the user's line, and a note of how it ended."""
    return SCRIPT.format(line=shlex.quote(shell_line(command)))


async def _run(options: RunOptions) -> tuple[ApplicationReport, list[ContainerOutcome]]:
    _, client = connect(options.name, options.user)
    async with client:
        client.staging_root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=client.staging_root, prefix="run-", suffix=".sh") as script:
            script.write(script_text(options.command))
            script.flush()
            app_id = (await client.start(submission_of(options, Path(script.name)))).application_id
            if options.as_json:
                report = await follow(client, app_id, options.timeout_s)
            else:
                output = GrowingOutput(client, app_id)
                report = await follow(
                    client, app_id, options.timeout_s, look=output.print_new, last_look=output.print_rest
                )
        masters = {attempt.am_container_id for attempt in await client.attempts(app_id)}
        return report, [outcome for outcome in outcomes_of(client, app_id) if outcome.container_id not in masters]


def outcomes_of(client: Client, app_id: ApplicationId) -> list[ContainerOutcome]:
    """What every container of the application has left, the masters' included."""
    texts: dict[ContainerId, dict[str, str]] = {}
    for log in client.logs(app_id):
        texts.setdefault(log.container_id, {})[log.name] = log.text()
    return [
        ContainerOutcome(
            container_id, _status(files.get(STATUS_FILE)), files.get("stdout", ""), files.get("stderr", "")
        )
        for container_id, files in texts.items()
    ]


def _status(text: str | None) -> int | None:
    return int(text) if text and text.strip().isdigit() else None
