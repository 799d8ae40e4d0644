"""Jobs: a shell command line that runs in a number of containers, and the result of each container."""

from __future__ import annotations

import asyncio
import shlex

from msgspec import Struct

from am.client.submission import ApplicationOptions
from am.programs.distributed_shell.client import DistributedShell
from am.programs.distributed_shell.core import Width
from yarn.applications import ApplicationReport
from yarn.ids import ApplicationId, ContainerId
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus
from yarnling.cluster.client import Client, WaitTimeout
from yarnling.cluster.containers import ContainerLog, read_log

AM_MEMORY_MB = 128
NAME_CHARS_MAX = 60
STATUS_FILE = "exit-status"
SCRIPT_LINK = "run.sh"
SCRIPT = """\
bash -c {command}
status=$?
echo $status >"$1"
exit $status
"""
"""The script that a job's containers run. The script is shipped as a file, because a command in a launch context passes
through two shells, and the first one would expand its `$`.

The script writes the exit status of the command to $1, because a NodeManager reports the status only to the
ApplicationMaster, which reports only how many containers failed.
"""


class Job(Struct, frozen=True):
    """A shell command line to run in `containers` containers of the given size. `name` is the command by default."""

    command: str
    containers: int = 1
    memory_mb: int = 128
    vcores: int = 1
    queue: str = "default"
    name: str = ""

    def submission(self) -> DistributedShell:
        """The distributed shell application that runs this job."""
        return DistributedShell(
            f"bash {SCRIPT_LINK} <LOG_DIR>/{STATUS_FILE}",
            Width(self.containers, Resource(self.memory_mb, self.vcores), exact=True),
            ApplicationOptions(
                self.name or self.command[:NAME_CHARS_MAX],
                queue=self.queue,
                am_resource=Resource(AM_MEMORY_MB, 1),
            ),
            texts={SCRIPT_LINK: SCRIPT.format(command=shlex.quote(self.command))},
        )


class ContainerResult(Struct, frozen=True):
    """The output of a container, and its exit status, which is None if it was killed or lost before it exited."""

    container_id: ContainerId
    exit_status: int | None
    stdout: str
    stderr: str


class JobResult(Struct, frozen=True):
    """The end of a job: the last report of the application, and the results of its containers except those of AMs."""

    report: ApplicationReport
    containers: tuple[ContainerResult, ...]

    @property
    def application_id(self) -> ApplicationId:
        return self.report.application_id

    @property
    def succeeded(self) -> bool:
        return self.report.final_status is FinalApplicationStatus.SUCCEEDED

    @property
    def stdout(self) -> str:
        """The standard output of all containers, in the order of their ids."""
        return "".join(container.stdout for container in self.containers)

    def __repr__(self) -> str:
        return f"<JobResult {self.application_id} {self.report.final_status.name}, {len(self.containers)} containers>"

    def _repr_html_(self) -> str:
        from yarnling.cluster.notebook import job_html

        rows = [(str(each.container_id), each.exit_status, each.stdout + each.stderr) for each in self.containers]
        return job_html(self.report, rows)


async def run_job(client: Client, job: Job, timeout_s: float | None = None) -> JobResult:
    """Submit the job and wait until it has ended.

    If that takes longer than `timeout_s`, kill it and raise WaitTimeout.
    """
    app_id = (await client.start(job.submission())).application_id
    try:
        report = await client.wait(app_id, timeout_s=timeout_s)
    except WaitTimeout:
        await client.kill(app_id, f"Killed after {timeout_s:g} s by its client.")
        raise
    except asyncio.CancelledError:
        await client.kill(app_id, "Killed by its client.")
        raise
    return JobResult(report, await container_results(client, app_id))


async def container_results(client: Client, app_id: ApplicationId) -> tuple[ContainerResult, ...]:
    """The results of the application's containers, sorted by id, without its ApplicationMasters."""
    ams = {attempt.am_container_id for attempt in await client.attempts(app_id)}
    texts: dict[ContainerId, dict[str, str]] = {}
    for log in client.logs(app_id):
        if log.container_id not in ams:
            text = read_log(log, lambda: client.logs(app_id), ContainerLog.text)
            texts.setdefault(log.container_id, {})[log.name] = text or ""
    return tuple(
        ContainerResult(container_id, _status(files.get(STATUS_FILE)), files.get("stdout", ""), files.get("stderr", ""))
        for container_id, files in texts.items()
    )


def _status(text: str | None) -> int | None:
    return int(text) if text and text.strip().isdigit() else None
