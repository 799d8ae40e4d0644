"""Records a run of which all times are known as `yarnling record` would have, from what a ResourceManager would answer.

The replay of such a recording shows what a recording loses: the starts and ends of containers, of which polls see a
part. The recorder is the real one; only the answers are made here. A surplus container, which was released unused, has
no times in a result, so it is left out.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from msgspec import Struct
from msgspec.structs import replace

from yarnling.recorder.day_files import DayFiles
from yarnling.recorder.recorder import ClusterRecorder
from yarnling.recorder.rest_client import Access, RestClient
from yarnling.whatif.containers import ContainerOutcome
from yarnling.whatif.prediction_error import run_times
from yarnling.whatif.result import WhatIfResult
from yarnling.workload.formats import read_recorded_cluster
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication, WorkloadNode
from yarnling.workload.recorded_cluster import RecordedCluster
from yarnling.workload.run_times import RunTimes

EPOCH_MS = 1_700_000_000_000
"""The start of the run by the clock of the recorder."""
FIRST_POLL_MS = 137


class ReportedContainer(Struct, frozen=True):
    """A container. Times in ms since the start of the run. `asked_ms`: when its AM requested it."""

    placed_ms: int
    ended_ms: int
    memory_mb: int
    vcores: int
    priority: int
    asked_ms: int

    def lasted_ms(self, now_ms: int) -> int:
        """The time that it has run, in ms."""
        return max(min(self.ended_ms, now_ms) - self.placed_ms, 0)


class ReportedApplication(Struct):
    """An application of a run. Times in ms since the start of the run. `containers`: in the order of their placement,
    its AM first.
    """

    id: str
    work: WorkloadApplication
    submitted_ms: int
    launched_ms: int
    registered_ms: int
    finished_ms: int
    containers: list[ReportedContainer]

    def entry(self, now_ms: int) -> dict[str, Any]:
        """Its entry in an answer to GET /ws/v1/cluster/apps."""
        held = [each for each in self.containers if each.placed_ms <= now_ms < each.ended_ms]
        is_over = self.finished_ms <= now_ms
        state = "FINISHED" if is_over else "RUNNING" if self.registered_ms <= now_ms else "ACCEPTED"
        return {
            "id": self.id,
            "user": self.work.user,
            "queue": self.work.queue,
            "state": state,
            "applicationType": self.work.kind,
            "priority": self.work.priority,
            "startedTime": EPOCH_MS + self.submitted_ms,
            "launchTime": EPOCH_MS + self.launched_ms if self.launched_ms <= now_ms else 0,
            "finishedTime": EPOCH_MS + self.finished_ms if is_over else 0,
            "elapsedTime": min(now_ms, self.finished_ms) - self.submitted_ms,
            "memorySeconds": sum(each.memory_mb * each.lasted_ms(now_ms) for each in self.containers) // 1000,
            "vcoreSeconds": sum(each.vcores * each.lasted_ms(now_ms) for each in self.containers) // 1000,
            "allocatedMB": -1 if is_over else sum(each.memory_mb for each in held),
            "allocatedVCores": -1 if is_over else sum(each.vcores for each in held),
            "runningContainers": -1 if is_over else len(held),
            "unmanagedApplication": False,
            **({"amContainerLogs": f"http://h/{self._container_id(1)}/u"} if held else {}),
            **({} if is_over else {"resourceInfo": self._usage(now_ms)}),
        }

    def rows(self, now_ms: int) -> list[dict[str, Any]]:
        """Its containers in an answer to GET .../appattempts/{attempt}/containers."""
        return [
            {
                "containerId": self._container_id(number),
                "allocatedMB": str(each.memory_mb),
                "allocatedVCores": str(each.vcores),
                "priority": str(each.priority),
                "startedTime": EPOCH_MS + each.placed_ms,
            }
            for number, each in enumerate(self.containers, 1)
            if each.placed_ms <= now_ms < each.ended_ms
        ]

    def _container_id(self, number: int) -> str:
        return f"{self.id.replace('application', 'container')}_01_{number:06}"

    def _usage(self, now_ms: int) -> dict[str, Any]:
        waiting = (each.memory_mb for each in self.containers if each.asked_ms <= now_ms < each.placed_ms)
        return {"resourceUsagesByPartition": [{"partitionName": "", "pending": {"memory": sum(waiting)}}]}


def application_id(position: int) -> str:
    """The id of the application at a position of the workload."""
    return f"application_{EPOCH_MS}_{position + 1:04}"


def simulated_applications(result: WhatIfResult, workload: Workload) -> dict[str, ReportedApplication]:
    """{id: application} of a simulated run: those that ended. The ids are those of their positions."""
    containers: dict[int, list[ContainerOutcome]] = defaultdict(list)
    for each in result.containers:
        if each.allocated_ms is not None and each.ended_ms is not None:
            containers[each.application].append(each)
    found: dict[str, ReportedApplication] = {}
    for position, (app, work) in enumerate(zip(result.applications, workload.applications, strict=True)):
        held = sorted(containers[position], key=lambda each: (not each.is_am, each.allocated_ms))
        if app.ended_ms is None or app.am_started_ms is None or not held or not held[0].is_am:
            continue
        priorities = {group.resource: group.priority for group in work.groups}
        reported = [_container(each, priorities.get(each.resource, TaskGroup.priority)) for each in held]
        times = app.submitted_ms, reported[0].placed_ms, app.am_started_ms, app.ended_ms
        found[application_id(position)] = ReportedApplication(application_id(position), work, *times, reported)
    return found


def _container(each: ContainerOutcome, priority: int) -> ReportedContainer:
    assert each.allocated_ms is not None
    assert each.ended_ms is not None
    size = each.resource
    number = 0 if each.is_am else priority
    return ReportedContainer(each.allocated_ms, each.ended_ms, size.memory_mb, size.vcores, number, each.requested_ms)


class RunAnswers(httpx.AsyncBaseTransport):
    """The answers of the ResourceManager of a run. It does not say how its queues are configured."""

    def __init__(
        self,
        applications: Mapping[str, ReportedApplication],
        now_ms: Callable[[], int],
        nodes: Sequence[WorkloadNode] = (),
        release: str = "",
    ) -> None:
        self._applications = applications
        self._now_ms = now_ms
        self._nodes = nodes
        self._release = release

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._answer(request.url.path.removeprefix("/ws/v1/cluster"), dict(request.url.params))
        return httpx.Response(404 if answer is None else 200, content=json.dumps(answer))

    def _answer(self, path: str, parameters: dict[str, str]) -> dict[str, Any] | None:
        now_ms = self._now_ms()
        if path.endswith("/containers"):
            return {"container": self._applications[path.split("/")[2]].rows(now_ms)}
        match path:
            case "/info":
                return {"clusterInfo": {"startedOn": EPOCH_MS, "resourceManagerVersion": self._release}}
            case "/metrics":
                return {"clusterMetrics": {}}
            case "/nodes":
                return {"nodes": {"node": [_node(each) for each in self._nodes]}}
            case "/apps":
                wants_ended = "FINISHED" in parameters["states"]
                wanted = [each for each in self._applications.values() if each.submitted_ms <= now_ms]
                since_ms = int(parameters.get("finishedTimeBegin", 0)) - EPOCH_MS
                wanted = [each for each in wanted if (each.finished_ms <= now_ms) == wants_ended]
                wanted = [each for each in wanted if not wants_ended or each.finished_ms >= since_ms]
                return {"apps": {"app": [each.entry(now_ms) for each in wanted]}}
            case _:
                return None


def _node(node: WorkloadNode) -> dict[str, Any]:
    total = {"memory": node.resource.memory_mb, "vCores": node.resource.vcores}
    place = {"rack": node.rack, "nodeHostName": node.host}
    return {"id": f"{node.host}:1", "state": "RUNNING", **place, "totalResource": total}


def record_run(
    applications: Mapping[str, ReportedApplication],
    directory: Path,
    *,
    every_ms: int,
    nodes: Sequence[WorkloadNode] = (),
    release: str = "",
) -> None:
    """Record a run of these applications into the directory. There is no running event loop."""
    now_ms = FIRST_POLL_MS
    last_ms = max((each.finished_ms for each in applications.values()), default=0)
    answers = RunAnswers(applications, lambda: now_ms, nodes, release)

    async def poll_to_the_end() -> None:
        nonlocal now_ms
        files = DayFiles(directory)
        try:
            client = RestClient(Access(addresses=("http://rm:8088",)), transport=answers)
            recorder = ClusterRecorder(client, files, lambda: EPOCH_MS + now_ms, every_ms=every_ms)
            while now_ms <= last_ms + every_ms:
                await recorder.poll()
                now_ms += every_ms
        finally:
            files.close()

    asyncio.run(poll_to_the_end())


def recorded_again(result: WhatIfResult, workload: Workload, every_ms: int) -> tuple[RunTimes, RecordedCluster]:
    """(The times of a simulated run, what a recording of it has): its applications have the same ids in both."""
    with TemporaryDirectory() as directory:
        record_run(simulated_applications(result, workload), Path(directory), every_ms=every_ms)
        cluster = read_recorded_cluster(Path(directory))
    assert cluster is not None, "the recorder has written into the directory"
    times = run_times(result)
    named = [replace(each, name=application_id(position)) for position, each in enumerate(times.applications)]
    return replace(times, applications=tuple(named)), cluster
