"""`yarnling run`: run a command in N containers. Each line of their output is printed after the container's id."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterable, Sequence

from yarn.applications import ApplicationReport
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.states import FinalApplicationStatus
from yarnling.cli.options.cluster import CommandOptions
from yarnling.cli.shared.arguments import UsageException
from yarnling.cli.shared.connection import connect
from yarnling.cli.shared.output import print_json
from yarnling.cli.submit import follow
from yarnling.cluster.client import Client
from yarnling.cluster.containers import ContainerLog, read_log
from yarnling.cluster.jobs import ContainerResult, Job, container_results

STREAMS = ("stdout", "stderr")


def run(options: CommandOptions) -> int:
    """Run the command. Returns the exit status.

    The exit status is the largest one of the containers; 1 if all containers exited with 0 but the application failed.
    """
    if options.timeout is not None and not options.timeout > 0:
        raise UsageException(f"--timeout {options.timeout:g}: must be above 0 (leave it out to wait without a limit)")
    report, results = asyncio.run(_run(options))
    if options.as_json:
        print_json({"application": report, "containers": results})
    return worst(report, results)


def worst(report: ApplicationReport, results: Iterable[ContainerResult]) -> int:
    largest = max((result.exit_status or 0 for result in results), default=0)
    failed = report.final_status is not FinalApplicationStatus.SUCCEEDED
    return largest or int(failed)


def shell_line(command: Sequence[str]) -> str:
    """The shell command line for `command`: a single word is a line of shell, several words are a command with
    arguments.
    """
    return command[0] if len(command) == 1 else shlex.join(command)


async def _run(options: CommandOptions) -> tuple[ApplicationReport, Sequence[ContainerResult]]:
    job = Job(shell_line(options.command), options.containers, options.memory, options.vcores, options.queue)
    state, client = connect(options.name, options.user)
    async with client:
        started = await client.start(job.submission(), lambda notice: sys.stderr.write(f"run: {notice}\n"))
        app_id = started.application_id
        if options.as_json:
            report = await follow(client, app_id, options.timeout, web=state.web)
        else:
            output = ContainerOutput(client, app_id)
            report = await follow(
                client,
                app_id,
                options.timeout,
                web=state.web,
                print_new=output.print_new,
                print_rest=output.print_rest,
            )
        return report, await container_results(client, app_id)


class ContainerOutput:
    """Prints the output of containers as it appears, to the stream it was written to.

    Each line follows the container's id. The output of ApplicationMasters is left out. The ResourceManager reports
    which containers they are, because after a restart their ids follow no pattern.
    """

    def __init__(self, client: Client, app_id: ApplicationId) -> None:
        self._client = client
        self._app_id = app_id
        self._printed_bytes: dict[tuple[ContainerId, str], int] = {}
        self._masters: dict[ApplicationAttemptId, ContainerId | None] = {}

    async def print_new(self) -> None:
        """Print the new complete lines. An incomplete line may still grow, so it is left for later."""
        for log in await self._logs():
            data = self._unread(log)
            self._print(log, data[: data.rfind(b"\n") + 1])

    async def print_rest(self) -> None:
        """Print everything that remains, after all containers have ended."""
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
        start = self._printed_bytes.get((log.container_id, log.name), 0)
        return read_log(log, lambda: self._client.logs(self._app_id), lambda found: found.read(start)) or b""

    def _print(self, log: ContainerLog, data: bytes) -> None:
        if not data:
            return
        key = (log.container_id, log.name)
        self._printed_bytes[key] = self._printed_bytes.get(key, 0) + len(data)
        stream = sys.stdout if log.name == "stdout" else sys.stderr
        # splitlines is not used, because only a newline ends a line of a container's output.
        for line in data.decode(errors="replace").removesuffix("\n").split("\n"):
            stream.write(f"{log.container_id} | {line}\n")
        stream.flush()
