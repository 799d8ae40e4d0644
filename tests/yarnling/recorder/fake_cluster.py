"""A ResourceManager's web services that a test fills in: over httpx's transport, without a network."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec

from yarnling.recorder.day_files import DayFiles
from yarnling.recorder.recorder import ClusterRecorder
from yarnling.recorder.rest_client import Access, RestClient
from yarnling.workload.line_files import lines_of
from yarnling.workload.recording_lines import RecordingLine

START_MS = 1_795_000_000_000
Answer = httpx.Response | dict[str, Any]


class Clock:
    """A clock that a test moves. `sleep` moves it instead of waiting."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms

    async def sleep(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)


class FakeCluster:
    """Answers by path. `requests`: all that were asked, with their queries."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.started_ms = 1
        self.live: list[dict[str, Any]] = []
        self.ended: list[dict[str, Any]] = []
        self.answers: dict[str, Answer | Callable[[httpx.Request], Answer]] = {}

    @property
    def paths(self) -> list[str]:
        return [request.url.path.removeprefix("/ws/v1/cluster") for request in self.requests]

    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._handle)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        path = request.url.path.removeprefix("/ws/v1/cluster")
        answer = self.answers.get(path, self._usual(path, request))
        found = answer(request) if callable(answer) else answer
        return found if isinstance(found, httpx.Response) else httpx.Response(200, content=json.dumps(found))

    def _usual(self, path: str, request: httpx.Request) -> Answer:
        if path == "/info":
            return {"clusterInfo": {"startedOn": self.started_ms, "resourceManagerVersion": "3.4.1"}}
        if path == "/apps":
            return {"apps": {"app": self.ended if "FINISHED" in request.url.params["states"] else self.live}}
        others: dict[str, Answer] = {
            "/metrics": {"clusterMetrics": {"allocatedMB": 1}},
            "/nodes": {"nodes": {"node": [node("n1")]}},
            "/scheduler": {"scheduler": {"schedulerInfo": {"type": "capacityScheduler", "queueName": "root"}}},
            "/conf": {"properties": []},
        }
        return others.get(path, {"container": []})


def node(host: str, **more: Any) -> dict[str, Any]:
    total = {"memory": 8192, "vCores": 4}
    return {"id": f"{host}:1", "nodeHostName": host, "rack": "/r", "state": "RUNNING", "totalResource": total} | more


def app(number: int, **more: Any) -> dict[str, Any]:
    """An entry of an answer, of a running application with its AM and two containers."""
    return {
        "id": f"application_1_{number:04}",
        "user": "ann",
        "queue": "root.etl",
        "state": "RUNNING",
        "applicationType": "SPARK",
        "startedTime": START_MS,
        "launchTime": START_MS + 2000,
        "finishedTime": 0,
        "elapsedTime": 1000,
        "allocatedMB": 5120,
        "allocatedVCores": 3,
        "runningContainers": 3,
        "memorySeconds": 100,
        "vcoreSeconds": 10,
        "amContainerLogs": f"http://n1:8042/node/containerlogs/container_e17_1_{number:04}_01_000001/ann",
    } | more


def recorder_of(
    cluster: FakeCluster | httpx.AsyncBaseTransport,
    directory: Path,
    clock: Clock,
    *,
    since_ms: int | None = None,
    **access: Any,
) -> ClusterRecorder:
    """A recorder that polls every 15 s; `DayFiles` of the directory stay open."""
    given = Access(**{"addresses": ("http://rm:8088",), **access})
    client = RestClient(given, cluster.transport() if isinstance(cluster, FakeCluster) else cluster)
    return ClusterRecorder(client, DayFiles(directory), clock, every_ms=15_000, since_ms=since_ms)


def lines_in(directory: Path) -> list[RecordingLine]:
    """All lines of the files in a directory."""
    return [msgspec.json.decode(line.text, type=RecordingLine) for line in lines_of(directory)]
