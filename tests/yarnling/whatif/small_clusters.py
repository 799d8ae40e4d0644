"""Small workloads and clusters for tests, and the figures that tests ask of a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from yarn.configuration import Configuration
from yarn.resource import Resource
from yarnling.whatif.containers import ContainerOutcome
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import RunOptions, run_what_if, what_if_configuration
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication, WorkloadNode

MINUTE_MS = 60_000
CS = "yarn.scheduler.capacity."
AM = Resource(512, 1)
AN_HOUR = RunOptions(until_ms=60 * MINUTE_MS)
TWO_QUEUES = {
    f"{CS}root.queues": "etl,adhoc",
    f"{CS}root.etl.capacity": "50",
    f"{CS}root.adhoc.capacity": "50",
    f"{CS}root.etl.user-limit-factor": "2",
    f"{CS}root.adhoc.user-limit-factor": "2",
    f"{CS}maximum-am-resource-percent": "0.5",
}


def configuration(settings: Mapping[str, str] = TWO_QUEUES) -> Configuration:
    return what_if_configuration(None, {"yarn.scheduler.minimum-allocation-mb": "512", **settings}).conf


def write_configuration(directory: Path, properties: Mapping[str, object]) -> None:
    """Make a directory with a capacity-scheduler.xml."""
    directory.mkdir()
    texts = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items()
    )
    (directory / "capacity-scheduler.xml").write_text(f"<configuration>{texts}</configuration>")


def write_workload_of_a_queue(directory: Path, lasts: str) -> list[str]:
    """Write files of two nodes and of an application each minute in the queue `default`; the options that name them."""
    (directory / "nodes.yaml").write_text("nodes: [{host: w, memory_mb: 8192, vcores: 8, count: 2}]")
    tasks = "tasks: [{containers: 20, memory: 1GB, duration: 30s}]"
    (directory / "workload.yaml").write_text(
        f"lasts: {lasts}\nqueues: [{{queue: default, users: ann, per_hour: 60, applications: [{{{tasks}}}]}}]"
    )
    return ["--workload", str(directory / "workload.yaml"), "--nodes", str(directory / "nodes.yaml")]


def nodes(count: int = 2, memory_mb: int = 4096) -> tuple[WorkloadNode, ...]:
    return tuple(WorkloadNode(f"h{n}", Resource(memory_mb, 8), f"/r{n % 2}") for n in range(1, count + 1))


def group(count: int, seconds: float = 30.0, *, memory_mb: int = 1024, **more: Any) -> TaskGroup:
    """A group of equal tasks."""
    return TaskGroup(Resource(memory_mb, 1), (round(seconds * 1000),) * count, **more)


def application(
    *groups: TaskGroup, name: str = "one", queue: str = "etl", at_s: float = 0, **more: Any
) -> WorkloadApplication:
    return WorkloadApplication(name, round(at_s * 1000), "ann", queue, groups, AM, **more)


def run(
    *applications: WorkloadApplication,
    settings: Mapping[str, str] = TWO_QUEUES,
    machines: Sequence[WorkloadNode] | None = None,
    options: RunOptions = AN_HOUR,
) -> WhatIfResult:
    return run_what_if(configuration(settings), Workload(applications), machines or nodes(), options)


def tasks(result: WhatIfResult, application: int = 0) -> list[ContainerOutcome]:
    """The containers of an application without its AMs."""
    return [one for one in result.containers if one.application == application and not one.is_am]


def wait_ms(container: ContainerOutcome) -> int:
    assert container.allocated_ms is not None
    return container.allocated_ms - container.requested_ms
