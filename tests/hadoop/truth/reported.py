"""Records a true run as `yarnling record` would have: a ResourceManager's answers at any time, from its recording.

The times of allocations, ends and requests are those of Hadoop. Surplus containers have no times there, so they are
left out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct

from tests.hadoop.truth.recording import AM_GROUP, rows_of
from tests.hadoop.truth.runs import RECORDINGS, TrueRun, workload_of
from yarnling.recorder.day_files import DayFiles
from yarnling.recorder.recorder import ClusterRecorder
from yarnling.recorder.rest_client import Access, RestClient
from yarnling.workload.model import WorkloadApplication

EPOCH_MS = 1_700_000_000_000
"""The start of the workload by the clock of the recorder."""
FIRST_POLL_MS = 137


class ReportedContainer(Struct, frozen=True):
    """A container. Times in ms since the start of the workload. `asked_ms`: when its AM requested it."""

    placed_ms: int
    ended_ms: int
    memory_mb: int
    vcores: int
    priority: int
    asked_ms: int


class ReportedApplication(Struct):
    """An application of a true run. `containers`: in the order of their placement, its AM first."""

    id: str
    work: WorkloadApplication
    submitted_ms: int
    launched_ms: int
    registered_ms: int
    finished_ms: int
    containers: list[ReportedContainer]

    def held_at(self, now_ms: int) -> list[ReportedContainer]:
        return [each for each in self.containers if each.placed_ms <= now_ms < each.ended_ms]

    def entry(self, now_ms: int) -> dict[str, Any]:
        """Its entry in an answer to GET /ws/v1/cluster/apps."""
        held, is_over = self.held_at(now_ms), self.finished_ms <= now_ms
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
            "memorySeconds": sum(each.memory_mb * (each.ended_ms - each.placed_ms) for each in self.containers) // 1000,
            "vcoreSeconds": sum(each.vcores * (each.ended_ms - each.placed_ms) for each in self.containers) // 1000,
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


def reported_applications(run: TrueRun, number: int) -> dict[str, ReportedApplication]:
    """{id: application} of the recording of a run with this number."""
    directory = RECORDINGS / f"{run.name}-{number}"
    found = {int(row["application"]): row for row in rows_of(directory / "applications.csv.gz")}
    containers: dict[int, list[ReportedContainer]] = {position: [] for position in found}
    applications = workload_of(run).applications
    for row in rows_of(directory / "containers.csv.gz"):
        if row["group"] != AM_GROUP and row["ended"]:
            group = applications[int(row["application"])].groups[int(row["group"])]
            times = int(row["placed"]), int(row["ended"]), int(row["mb"])
            each = ReportedContainer(*times, group.resource.vcores, group.priority, int(row["asked"]))
            containers[int(row["application"])].append(each)
    return {each.id: each for each in _applications(found, containers, applications)}


def _applications(
    found: dict[int, dict[str, str]],
    containers: dict[int, list[ReportedContainer]],
    applications: tuple[WorkloadApplication, ...],
) -> Iterator[ReportedApplication]:
    for position, row in found.items():
        work = applications[position]
        placed, finished = int(row["am_placed"]), int(row["finished"])
        am = ReportedContainer(placed, finished, work.am_resource.memory_mb, work.am_resource.vcores, 0, placed)
        yield ReportedApplication(
            f"application_{EPOCH_MS}_{position + 1:04}",
            work,
            int(row["submitted"]),
            int(row["am_started"]),
            int(row["registered"]),
            finished,
            [am, *sorted(containers[position], key=lambda each: each.placed_ms)],
        )


class _Answers(httpx.AsyncBaseTransport):
    """The answers of the ResourceManager of a true run. It does not say how its queues are configured."""

    def __init__(self, run: TrueRun, applications: dict[str, ReportedApplication], now_ms: Callable[[], int]) -> None:
        self._run = run
        self._applications = applications
        self._now_ms = now_ms

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._answer(request.url.path.removeprefix("/ws/v1/cluster"), dict(request.url.params))
        return httpx.Response(404 if answer is None else 200, content=json.dumps(answer))

    def _answer(self, path: str, parameters: dict[str, str]) -> dict[str, Any] | None:
        now_ms = self._now_ms()
        if path.endswith("/containers"):
            return {"container": self._applications[path.split("/")[2]].rows(now_ms)}
        match path:
            case "/info":
                return {"clusterInfo": {"startedOn": EPOCH_MS, "resourceManagerVersion": self._run.release}}
            case "/metrics":
                return {"clusterMetrics": {}}
            case "/nodes":
                return {"nodes": {"node": self._nodes()}}
            case "/apps":
                wants_ended = "FINISHED" in parameters["states"]
                wanted = [each for each in self._applications.values() if each.submitted_ms <= now_ms]
                wanted = [each for each in wanted if (each.finished_ms <= now_ms) == wants_ended]
                return {"apps": {"app": [each.entry(now_ms) for each in wanted]}}
            case _:
                return None

    def _nodes(self) -> list[dict[str, Any]]:
        return [
            {
                "id": f"{node.host}:1",
                "state": "RUNNING",
                "rack": node.rack,
                "nodeHostName": node.host,
                "totalResource": {"memory": node.resource.memory_mb, "vCores": node.resource.vcores},
            }
            for node in self._run.nodes
        ]


def record_true_run(run: TrueRun, directory: Path, *, every_ms: int, number: int = 1) -> dict[str, ReportedApplication]:
    """Record a run into the directory; returns what happened in it."""
    applications, now_ms = reported_applications(run, number), FIRST_POLL_MS

    async def poll_to_the_end() -> None:
        nonlocal now_ms
        client = RestClient(
            Access(addresses=("http://rm:8088",)), transport=_Answers(run, applications, lambda: now_ms)
        )
        files = DayFiles(directory)
        recorder = ClusterRecorder(client, files, lambda: EPOCH_MS + now_ms, every_ms=every_ms)
        last_ms = max(each.finished_ms for each in applications.values())
        while now_ms <= last_ms + every_ms:
            await recorder.poll()
            now_ms += every_ms

    asyncio.run(poll_to_the_end())
    return applications
