"""How many containers a second the ResourceManager's core places: no wire, no clock, one process.

10,000 containers for two applications in two queues, asked for anywhere, so that each heartbeat places one; the
nodes send their heartbeats in turn. Timed are the heartbeats alone, from the first until the last container is placed,
in seconds of CPU: the core does nothing but compute, and what else the machine does should not count.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

from rm.core import ResourceManagerCore
from rm.effects import Reply
from rm.events import (
    Allocate,
    MasterLaunched,
    NodeHeartbeat,
    RegisterApplicationMaster,
    RegisterNode,
    SubmitApplication,
)
from yarn.applications import ApplicationSubmissionContext
from yarn.asks import ANY, ResourceRequest
from yarn.configuration import Configuration
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.protocols.master import AllocateRequest, RegisterApplicationMasterRequest
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse, RegisterNodeManagerRequest
from yarn.resource import Resource

CONTAINERS = 10_000
NODES = (500, 1_000, 5_000)
RUNS = 3
"""Each size is measured so often; the median is told."""

START_MS = 1_700_000_000_000
_SIZE = Resource(1024, 1)
_NODE = Resource(65_536, 64)
_CONFIGURATION = {
    "yarn.scheduler.capacity.root.queues": "a,b",
    "yarn.scheduler.capacity.root.a.capacity": "50",
    "yarn.scheduler.capacity.root.b.capacity": "50",
    "yarn.scheduler.capacity.user-limit-factor": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"containers_per_s_N": placed a second with N nodes}."""
    figures = {}
    for nodes in NODES:
        progress(f"{CONTAINERS:,} containers on {nodes:,} nodes")
        figures[f"containers_per_s_{nodes}"] = round(statistics.median(containers_per_s(nodes) for _ in range(RUNS)))
    return figures


def containers_per_s(node_count: int) -> float:
    """One run."""
    cluster = _Cluster(node_count)
    for number, queue in enumerate(("root.a", "root.b"), 1):
        cluster.run_application(number, queue, CONTAINERS // 2)
    gc.collect()
    before = time.process_time()
    cluster.beat_until_placed(CONTAINERS)
    return CONTAINERS / (time.process_time() - before)


class _Cluster:
    """A core with nodes that beat in turn."""

    def __init__(self, node_count: int) -> None:
        self._core = ResourceManagerCore(Configuration.of(_CONFIGURATION), cluster_timestamp=START_MS)
        self._now_ms = START_MS
        self._nodes = [NodeId(f"host{i}", 1) for i in range(node_count)]
        self._response_ids = dict.fromkeys(self._nodes, 0)
        self._next = 0
        for node_id in self._nodes:
            self._core.handle(RegisterNode(0, RegisterNodeManagerRequest(node_id, 1, _NODE), "/r1"), self._now_ms)

    def run_application(self, number: int, queue: str, containers: int) -> None:
        """Submit it, start its master and ask for `containers`."""
        application_id = ApplicationId(START_MS, number)
        attempt_id = ApplicationAttemptId(application_id, 1)
        context = ApplicationSubmissionContext(application_id, resource=_SIZE, queue=queue)
        self._core.handle(SubmitApplication(0, "user", context), self._now_ms)
        self._beat()
        self._core.handle(MasterLaunched(attempt_id), self._now_ms)
        self._core.handle(RegisterApplicationMaster(0, attempt_id, RegisterApplicationMasterRequest()), self._now_ms)
        asks = (ResourceRequest(1, ANY, _SIZE, containers),)
        self._core.handle(Allocate(0, attempt_id, AllocateRequest(0, asks=asks)), self._now_ms)

    def beat_until_placed(self, containers: int) -> None:
        """One heartbeat after the other until so many containers stand beside the masters."""
        root = self._core.scheduler.queues["root"]
        wanted = root.container_count + containers
        while root.container_count < wanted:
            self._beat()

    def _beat(self) -> None:
        node_id = self._nodes[self._next]
        self._next = (self._next + 1) % len(self._nodes)
        self._now_ms += 1
        request = NodeHeartbeatRequest(node_id, self._response_ids[node_id])
        for effect in self._core.handle(NodeHeartbeat(0, request), self._now_ms):
            if isinstance(effect, Reply) and isinstance(effect.value, NodeHeartbeatResponse):
                self._response_ids[node_id] = effect.value.response_id
