"""Applications for the tests on clusters, and their containers."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from am.client.submission import ApplicationOptions
from am.programs.distributed_shell.client import DistributedShell
from am.programs.distributed_shell.core import Width
from tests.cluster.conftest import eventually
from yarn.applications import ApplicationReport, ApplicationSubmissionContext, ContainerReport
from yarn.containers import ContainerLaunchContext
from yarn.ids import ApplicationId, ContainerId
from yarn.resource import Resource
from yarnling.cluster.blocking import BlockingClient
from yarnling.cluster.containers import processes_of
from yarnling.cluster.processes import kill

AM_RESOURCE = Resource(128, 1)
TASK = Resource(128, 1)


def options(name: str, *, keep_containers: bool = False) -> ApplicationOptions:
    return ApplicationOptions(name, am_resource=AM_RESOURCE, keep_containers=keep_containers)


def shell(
    command: str, containers: int, *, resource: Resource = TASK, keep_containers: bool = False
) -> DistributedShell:
    return DistributedShell(command, Width(containers, resource), options("shell", keep_containers=keep_containers))


def until(file: Path) -> str:
    """A command that ends once `file` exists, so that the test decides when.

    It looks five times a second: each look starts a process, and twenty containers may wait.
    """
    return f"while ! test -e {shlex.quote(str(file))}; do sleep 0.2; done"


def python(code: str) -> str:
    """A command that runs Python `code`, which must not contain single quotes (see the launch script)."""
    return f"exec {shlex.quote(sys.executable)} -c '{code}'"


def bare_am(app_id: ApplicationId, command: str, resource: Resource) -> ApplicationSubmissionContext:
    """An application whose AM only runs `command`, with one attempt."""
    container = ContainerLaunchContext(commands=(f"{command} 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr",))
    return ApplicationSubmissionContext(app_id, container, resource, name="bare", max_app_attempts=1)


def am_of(client: BlockingClient, app_id: ApplicationId) -> ContainerId | None:
    """The container of the current attempt's AM, once it has one."""
    report = client.report(app_id)
    for attempt in client.attempts(app_id):
        if attempt.attempt_id == report.current_attempt_id:
            return attempt.am_container_id
    return None


def tasks_of(client: BlockingClient, report: ApplicationReport) -> list[ContainerReport]:
    """The live containers of the application, except that of its AM.

    The containers are listed first: when the AM's container is in that list, it is already known as the AM's.
    """
    app_id = report.application_id
    containers = client.containers(client.report(app_id).current_attempt_id)
    am = am_of(client, app_id)
    return [container for container in containers if container.container_id != am]


def wait_tasks(client: BlockingClient, report: ApplicationReport, count: int) -> list[ContainerReport]:
    """The task containers, once there are `count` of them and their processes run."""

    def running() -> list[ContainerReport]:
        tasks = tasks_of(client, report)
        return tasks if len(tasks) == count and all(processes_of(task.container_id) for task in tasks) else []

    return eventually(running, 60.0)


def kill_container(container_id: ContainerId) -> None:
    """Send SIGKILL to all processes of the container."""
    for process in eventually(lambda: processes_of(container_id)):
        kill(process)
