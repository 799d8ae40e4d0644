"""A production cluster that is simulated, and recorded through its ResourceManager's REST API.

The recorder, its requests and the answers are the real ones; only the network between them is left out.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx

from rm.shell.web.counters import AppCounters
from rm.shell.web.service import ReadService
from wire.web.application import WebApplication
from yarn.configuration import Configuration
from yarnling.recorder.day_files import DayFiles
from yarnling.recorder.recorder import ClusterRecorder
from yarnling.recorder.rest_client import Access, RestClient
from yarnling.run.trace import Trace
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.engine import Rank

LOOKER = 1
"""The recorder's number among those who look at the cluster."""
FIRST_POLL_MS = 1000
"""By then the ResourceManager has started."""


class _NoCheck:
    async def check(self, scope: object) -> None:
        pass


class _Recorded(httpx.AsyncBaseTransport):
    """The ResourceManager's answers. GET /conf has what the configuration sets."""

    def __init__(self, cluster: SimulatedCluster, conf: Configuration) -> None:
        core = cluster.rm.core
        rows = ReadService(core, conf, lambda: cluster.engine.now_ms, AppCounters(core.context)).rows()
        self._inner = httpx.ASGITransport(WebApplication(rows, _NoCheck()))  # type: ignore[arg-type]
        properties = [{"key": key, "value": value, "resource": "site.xml"} for key, value in conf.values().items()]
        self._conf = json.dumps({"properties": properties})

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/conf":
            return httpx.Response(200, content=self._conf)
        return await self._inner.handle_async_request(request)


class SimulatedRecorder:
    """A recorder of a simulated cluster. `observe` is for RunOptions: it polls as soon as all nodes have registered."""

    def __init__(self, directory: Path, conf: Configuration, *, every_ms: int) -> None:
        self._directory = directory
        self._conf = conf
        self._every_ms = every_ms
        self._recorder: ClusterRecorder | None = None

    def observe(self, cluster: SimulatedCluster, trace: Trace) -> None:
        """Begin to record the cluster, which is about to start."""
        engine = cluster.engine

        def poll() -> None:
            if self._recorder is None:
                client = RestClient(Access(addresses=("http://rm:8088",)), _Recorded(cluster, self._conf))
                files = DayFiles(self._directory)
                self._recorder = ClusterRecorder(client, files, lambda: engine.now_ms, every_ms=self._every_ms)
            self.poll()
            engine.at(engine.now_ms + self._every_ms, Rank.CLIENT, LOOKER, poll)

        engine.at(engine.now_ms + FIRST_POLL_MS, Rank.CLIENT, LOOKER, poll)

    def poll(self) -> None:
        """Poll now."""
        assert self._recorder is not None, "the cluster has run"
        asyncio.run(self._recorder.poll())
