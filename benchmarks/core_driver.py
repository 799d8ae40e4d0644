"""Drives a ResourceManager's core directly, without RPCs and clocks: nodes send heartbeats in turn, AMs send requests.

Benchmarks that use it measure seconds of CPU, which other work on the machine hardly changes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence

from rm.core.events import (
    Allocate,
    AMLaunched,
    NodeHeartbeat,
    RegisterApplicationMaster,
    RegisterNode,
    SubmitApplication,
)
from rm.core.resource_manager import ResourceManagerCore
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import ANY, ContainerStatus, ResourceRequest
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.machine import Reply
from yarn.protocols.master import AllocateRequest, RegisterApplicationMasterRequest
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse, RegisterNodeManagerRequest
from yarn.resource import Resource

START_MS = 1_700_000_000_000
CONTAINER = Resource(1024, 1)


def queues(count: int, **settings: str) -> dict[str, str]:
    """The configuration of `count` queues q0, q1, ... of equal capacity, in which a user may use everything.

    AMs are not limited either. `settings` are further settings of every queue, with underscores for dashes.
    """
    names = [f"q{i}" for i in range(count)]
    configuration = {
        "yarn.scheduler.capacity.root.queues": ",".join(names),
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
    }
    every = {"user_limit_factor": str(count * 100), **settings}
    for name in names:
        configuration[f"yarn.scheduler.capacity.root.{name}.capacity"] = str(100 / count)
        for key, value in every.items():
            configuration[f"yarn.scheduler.capacity.root.{name}.{key.replace('_', '-')}"] = value
    return configuration


class CoreDriver:
    """A core with `node_count` registered nodes of one size. Each method sends the events of one step."""

    def __init__(self, node_count: int, configuration: Mapping[str, str], node: Resource) -> None:
        self.core = ResourceManagerCore(Configuration.of(dict(configuration)), cluster_timestamp=START_MS)
        self.nodes = [NodeId(f"host{i}", 1) for i in range(node_count)]
        self.now_ms = START_MS
        self._response_ids = dict.fromkeys(self.nodes, 0)
        self._ams = dict[ApplicationAttemptId, int]()
        self._next = 0
        for node_id in self.nodes:
            self.core.handle(RegisterNode(0, RegisterNodeManagerRequest(node_id, 1, node), "/r1"), self.now_ms)

    @property
    def container_count(self) -> int:
        """The number of allocated containers, including those of AMs."""
        return self.core.scheduler.queues["root"].container_count

    def containers(self) -> list[tuple[int, int, int]]:
        """(application, container, node) of each allocated container, in order; nodes are counted from 0."""
        node_numbers = {node_id: number for number, node_id in enumerate(self.nodes)}
        return sorted(
            (container_id.attempt_id.application_id.id, container_id.number, node_numbers[node.node_id])
            for node in self.core.scheduler.nodes.values()
            for container_id in node.containers
        )

    def run_application(self, number: int, queue: str, user: str, containers: int) -> ApplicationAttemptId:
        """Submit an application, start its AM on the next node in turn, and request `containers`, anywhere."""
        application_id = ApplicationId(START_MS, number)
        attempt_id = ApplicationAttemptId(application_id, 1)
        context = ApplicationSubmissionContext(application_id, resource=CONTAINER, queue=queue)
        self.core.handle(SubmitApplication(0, user, context), self.now_ms)
        self.beat()
        self.core.handle(AMLaunched(attempt_id), self.now_ms)
        self.core.handle(RegisterApplicationMaster(0, attempt_id, RegisterApplicationMasterRequest()), self.now_ms)
        self._ams[attempt_id] = 0
        if containers:
            self.request(attempt_id, containers)
        return attempt_id

    @property
    def attempts(self) -> list[ApplicationAttemptId]:
        """The attempts of the running applications, oldest first."""
        return list(self._ams)

    def request(self, attempt_id: ApplicationAttemptId, containers: int) -> None:
        """Send an allocate call in which the AM requests this number of containers."""
        response_id = self._ams[attempt_id]
        self._ams[attempt_id] = response_id + 1
        asks = (ResourceRequest(1, ANY, CONTAINER, containers),)
        self.core.handle(Allocate(0, attempt_id, AllocateRequest(response_id, asks=asks)), self.now_ms)

    def beat(self, containers: Sequence[ContainerStatus] = ()) -> None:
        """Send the heartbeat of the next node in turn."""
        node_id = self.next_node()
        request = NodeHeartbeatRequest(node_id, self._response_ids[node_id], containers=tuple(containers))
        for effect in self.core.handle(NodeHeartbeat(0, request), self.now_ms):
            if isinstance(effect, Reply) and isinstance(effect.value, NodeHeartbeatResponse):
                self._response_ids[node_id] = effect.value.response_id

    def next_node(self) -> NodeId:
        """The next node in turn, a millisecond later."""
        node_id = self.nodes[self._next]
        self._next = (self._next + 1) % len(self.nodes)
        self.now_ms += 1
        return node_id

    def beat_times(self, heartbeats: int) -> None:
        """Send this many heartbeats, each for the next node in turn."""
        for _ in range(heartbeats):
            self.beat()

    def beat_until_placed(self, containers: int) -> None:
        """Send heartbeats until `containers` more containers are allocated."""
        wanted = self.container_count + containers
        while self.container_count < wanted:
            self.beat()


def cpu_s(work: Callable[[], object], *, sweep: bool = True) -> float:
    """The seconds of CPU that `work` takes. If `sweep`, garbage is collected before."""
    if sweep:
        gc.collect()
    before = time.process_time()
    work()
    return time.process_time() - before
