"""`yarnling run`: run a command in N containers, and print each line of their output after the container's id."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from msgspec import Struct

from am.client.submission import ApplicationOptions
from am.programs.distributed_shell.client import DistributedShell
from am.programs.distributed_shell.core import Width
from yarn.applications import ApplicationReport
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus
from yarnling.cli.arguments import UsageException
from yarnling.cli.connection import connect
from yarnling.cli.output import print_json
from yarnling.cli.submit import follow
from yarnling.cluster.client import Client
from yarnling.cluster.containers import ContainerLog

STREAMS = ("stdout", "stderr")
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
"""Shipped as a file: a command in a launch context passes through two shells, and the first would expand its `$`.

The exit status of the line is written to $1: a NodeManager reports it only to the ApplicationMaster, which reports only
how many containers failed.
"""


class RunOptions(Struct, frozen=True):
    """What to run, and where. `timeout_s`: None for no limit."""

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
    """The output of a container and its exit status; None if it was killed or lost before it exited."""

    container_id: ContainerId
    exit_status: int | None
    stdout: str
    stderr: str


def run(options: RunOptions) -> int:
    """The exit status: the largest of the containers'; 1 if that is 0 but the application failed."""
    if options.timeout_s is not None and not options.timeout_s > 0:
        raise UsageException(f"--timeout {options.timeout_s:g}: must be above 0 (leave it out to wait without a limit)")
    report, outcomes = asyncio.run(_run(options))
    if options.as_json:
        print_json({"application": report, "containers": outcomes})
    return worst(report, outcomes)


def worst(report: ApplicationReport, outcomes: Iterable[ContainerOutcome]) -> int:
    largest = max((outcome.exit_status or 0 for outcome in outcomes), default=0)
    failed = report.final_status is not FinalApplicationStatus.SUCCEEDED
    return largest or int(failed)


def shell_line(command: Sequence[str]) -> str:
    """A single word is a line of shell; several are a command with its arguments."""
    return command[0] if len(command) == 1 else shlex.join(command)


def submission_of(options: RunOptions, script: Path) -> DistributedShell:
    """The application; `script` is a file with `script_text`."""
    line = shell_line(options.command)
    command = f"bash {SCRIPT_LINK} <LOG_DIR>/{STATUS_FILE}"
    width = Width(options.containers, Resource(options.memory_mb, options.vcores), exact=True)
    application = ApplicationOptions(
        line[:SHELL_NAME_CHARS_MAX], queue=options.queue, am_resource=Resource(MASTER_MB, 1)
    )
    return DistributedShell(command, width, application, files={SCRIPT_LINK: script})


def script_text(command: Sequence[str]) -> str:
    """The script of a container: the user's line, and then its exit status written to a file."""
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
                output = ContainerOutput(client, app_id)
                report = await follow(
                    client, app_id, options.timeout_s, print_new=output.print_new, print_rest=output.print_rest
                )
        masters = {attempt.am_container_id for attempt in await client.attempts(app_id)}
        return report, [outcome for outcome in outcomes_of(client, app_id) if outcome.container_id not in masters]


def outcomes_of(client: Client, app_id: ApplicationId) -> list[ContainerOutcome]:
    """The outcome of every container of the application, ApplicationMasters included."""
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


class ContainerOutput:
    """Prints the lines of containers, as they appear, to the stream they were written to, after the container's id.

    ApplicationMasters are left out. The ResourceManager says which containers they are: after a restart their ids
    follow no pattern.
    """

    def __init__(self, client: Client, app_id: ApplicationId) -> None:
        self._client = client
        self._app_id = app_id
        self._printed_bytes: dict[tuple[ContainerId, str], int] = {}
        self._masters: dict[ApplicationAttemptId, ContainerId | None] = {}

    async def print_new(self) -> None:
        """Print the new complete lines; an incomplete one may still grow."""
        for log in await self._logs():
            data = self._unread(log)
            self._print(log, data[: data.rfind(b"\n") + 1])

    async def print_rest(self) -> None:
        """Print all that remains, when nothing is written any more."""
        for log in await self._logs():
            self._print(log, self._unread(log))

    async def _logs(self) -> list[ContainerLog]:
        logs = [log for log in self._client.logs(self._app_id) if log.name in STREAMS]
        if any(log.container_id.attempt_id not in self._masters for log in logs):
            attempts = await self._client.attempts(self._app_id)
            self._masters = {attempt.attempt_id: attempt.am_container_id for attempt in attempts}
        return [
            log
            for log in logs
            if log.container_id.attempt_id in self._masters
            and log.container_id != self._masters[log.container_id.attempt_id]
        ]

    def _unread(self, log: ContainerLog) -> bytes:
        with log.path.open("rb") as file:
            file.seek(self._printed_bytes.get((log.container_id, log.name), 0))
            return file.read()

    def _print(self, log: ContainerLog, data: bytes) -> None:
        if not data:
            return
        key = (log.container_id, log.name)
        self._printed_bytes[key] = self._printed_bytes.get(key, 0) + len(data)
        stream = sys.stdout if log.name == "stdout" else sys.stderr
        # Not splitlines: only a newline ends a line of a container.
        for line in data.decode(errors="replace").removesuffix("\n").split("\n"):
            stream.write(f"{log.container_id} | {line}\n")
        stream.flush()
