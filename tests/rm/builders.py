"""A ResourceManager's core for tests: nodes that send heartbeats, users that submit, AMs that request containers.

    rm = RM()
    rm.node("n1")
    app = rm.submit()
    rm.run_am(app)
    rm.allocate(app, asks=[ask(2)])

A refused call raises its error. Time stands still until a test moves `rm.now_ms`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rm.core.effects import Effect
from rm.core.events import (
    Allocate,
    AMLaunched,
    Event,
    FinishApplicationMaster,
    GetNewApplication,
    KillApplication,
    NodeHeartbeat,
    RegisterApplicationMaster,
    RegisterNode,
    SubmitApplication,
)
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.placement.walk import Draw, first_of
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import ANY, Container, ContainerStatus, ResourceRequest
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import InvariantsBroken, Refuse, Reply, Tick
from yarn.nodes import NodeHealth
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    RegisterApplicationMasterRequest,
)
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.settings.yarnling import CHECK_INVARIANTS
from yarn.states import ContainerState, FinalApplicationStatus

START_MS = 1_700_000_000_000

ONE_QUEUE = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
    "yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments": "100",
}
"""A queue that may use everything: these tests are not about how queues share."""


def resource_request(count: int, memory_mb: int = 1024, priority: int = 1) -> ResourceRequest:
    """A request for `count` containers on any node."""
    return ResourceRequest(priority, ANY, Resource(memory_mb, 1), count)


def done(container_id: ContainerId, exit_status: int = 0, diagnostics: str = "") -> ContainerStatus:
    """The status of a completed container, as its NM reports it."""
    return ContainerStatus(container_id, ContainerState.COMPLETE, exit_status=exit_status, diagnostics=diagnostics)


@dataclass
class NM:
    """A NodeManager: the containers that run on it, those that it killed by order, and the last response id."""

    node_id: NodeId
    resource: Resource
    response_id: int = 0
    running: dict[ContainerId, None] = field(default_factory=dict)
    killed: list[ContainerStatus] = field(default_factory=list)

    def request(self, ended: Iterable[ContainerStatus] = (), *, healthy: bool = True) -> NodeHeartbeatRequest:
        """The next heartbeat: running containers, and those that `ended` since the last one."""
        reports = [ContainerStatus(container_id, ContainerState.RUNNING) for container_id in self.running]
        health = NodeHealth(healthy=healthy)
        return NodeHeartbeatRequest(self.node_id, self.response_id, containers=(*reports, *ended), health=health)

    def obey(self, response: NodeHeartbeatResponse) -> None:
        """Kill the containers that the response cleans up."""
        self.response_id = response.response_id
        applications = response.applications_to_clean_up
        self.killed = [
            done(container_id, -106)
            for container_id in self.running
            if container_id in response.containers_to_clean_up or container_id.application_id in applications
        ]
        for status in self.killed:
            del self.running[status.container_id]


class RM:
    """A core under test, with its node managers and AMs. `effects`: all of the last step."""

    def __init__(
        self,
        conf: Mapping[str, str] | None = None,
        *,
        user: str | None = None,
        strict: bool = True,
        draw: Draw = first_of,
    ) -> None:
        configuration = Configuration.of({CHECK_INVARIANTS.key: "true", **ONE_QUEUE, **(conf or {})})
        self.core = ResourceManagerCore(configuration, cluster_timestamp=START_MS, user=user, strict=strict, draw=draw)
        self.now_ms = START_MS
        self.effects: list[Effect] = []
        self.log: list[tuple[int, Event, list[Effect]]] = []
        self.nodes: dict[str, NM] = {}
        self._response_ids: dict[ApplicationAttemptId, int] = {}
        self._calls = 0

    def send(self, event: Event) -> Any:
        """A step; the value of its reply, None for an event that is not a call. Raises the error of a refusal."""
        self.effects = self.core.handle(event, self.now_ms)
        self.log.append((self.now_ms, event, self.effects))
        broken = [effect for effect in self.effects if isinstance(effect, InvariantsBroken)]
        assert not broken, broken
        answers = [effect for effect in self.effects if isinstance(effect, Reply | Refuse)]
        assert len(answers) == (1 if hasattr(event, "call") else 0)
        if not answers:
            return None
        answer = answers[0]
        if isinstance(answer, Refuse):
            raise answer.error
        return answer.value

    def wait(self, duration_ms: int) -> None:
        """Let time pass, with a Tick at each deadline on the way."""
        end_ms = self.now_ms + duration_ms
        while (deadline_ms := self.core.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = deadline_ms
            self.send(Tick())
        self.now_ms = end_ms

    # Nodes

    def node(self, host: str, memory_mb: int = 8192, vcores: int = 8) -> NM:
        """Register a node (again)."""
        nm = NM(NodeId(host, 45454), Resource(memory_mb, vcores))
        self.nodes[host] = nm
        self.send(RegisterNode(self.call(), RegisterNodeManagerRequest(nm.node_id, 8042, nm.resource), "/default-rack"))
        return nm

    def beat(
        self, host: str = "n1", ended: Iterable[ContainerStatus] = (), *, healthy: bool = True
    ) -> NodeHeartbeatResponse:
        """Send a heartbeat that reports `ended` containers; those that its reply cleans up are in the next one."""
        nm = self.nodes[host]
        reported = (*nm.killed, *ended)
        for status in reported:
            nm.running.pop(status.container_id, None)
        response: NodeHeartbeatResponse = self.send(NodeHeartbeat(self.call(), nm.request(reported, healthy=healthy)))
        nm.obey(response)
        return response

    def run(self, *containers: Container) -> None:
        """Start containers on their nodes; the next heartbeats report them."""
        for container in containers:
            self.nodes[container.node_id.host].running[container.id] = None

    # Applications

    def submit(self, user: str = "ann", queue: str = "default", **context: Any) -> ApplicationId:
        """A new application with an AM of 1 GB; `context`: fields of its submission."""
        app: ApplicationId = self.send(GetNewApplication(self.call())).application_id
        submission = ApplicationSubmissionContext(app, **{"queue": queue, "resource": Resource(1024, 1), **context})
        self.send(SubmitApplication(self.call(), user, submission))
        return app

    def kill(self, app: ApplicationId) -> bool:
        """Kill it; True once its end is stored."""
        user = self.core.context.apps[app].user
        response = self.send(KillApplication(self.call(), app, f"Application {app} was killed by user {user}", user))
        return bool(response.is_kill_completed)

    def state(self, app: ApplicationId) -> str:
        return self.core.context.apps[app].state.name

    def attempt_id(self, app: ApplicationId) -> ApplicationAttemptId:
        attempt = self.core.context.apps[app].current_attempt
        assert attempt is not None
        return attempt.attempt_id

    def attempt_state(self, app: ApplicationId) -> str:
        attempt = self.core.context.attempt(self.attempt_id(app))
        assert attempt is not None
        return attempt.state.name

    # AMs

    def launch(self, app: ApplicationId, host: str = "n1") -> Container:
        """Allocate the AM's container by a heartbeat if it has none, and start it on its NM."""
        if self.attempt_state(app) == "SCHEDULED":
            self.beat(host)
        attempt = self.core.context.attempt(self.attempt_id(app))
        assert attempt is not None
        assert attempt.am_container is not None
        self.run(attempt.am_container)
        self.send(AMLaunched(attempt.attempt_id))
        return attempt.am_container

    def register(self, app: ApplicationId) -> Any:
        attempt_id = self.attempt_id(app)
        self._response_ids[attempt_id] = 0
        return self.send(RegisterApplicationMaster(self.call(), attempt_id, RegisterApplicationMasterRequest("h", 1)))

    def run_am(self, app: ApplicationId, host: str = "n1") -> Container:
        """Launch and register the AM of a submitted application; returns its container."""
        container = self.launch(app, host)
        self.register(app)
        self.beat(host)
        return container

    def allocate(
        self, app: ApplicationId, asks: Sequence[ResourceRequest] = (), release: Sequence[ContainerId] = ()
    ) -> AllocateResponse:
        """The AM's heartbeat: requests and releases containers."""
        attempt_id = self.attempt_id(app)
        request = AllocateRequest(self._response_ids[attempt_id], asks=tuple(asks), releases=tuple(release))
        response: AllocateResponse = self.send(Allocate(self.call(), attempt_id, request))
        self._response_ids[attempt_id] = response.response_id
        return response

    def get(self, app: ApplicationId, count: int, host: str = "n1") -> list[Container]:
        """Request containers and get them, all on one node; they run, and their NM has reported them."""
        self.allocate(app, [resource_request(count)])
        self.beat(host)
        containers = list(self.allocate(app).allocated)
        assert len(containers) == count
        self.run(*containers)
        self.beat(host)
        return containers

    def finish(self, app: ApplicationId) -> bool:
        """The AM unregisters; True once its end is stored."""
        request = FinishApplicationMasterRequest(FinalApplicationStatus.SUCCEEDED, "all done")
        event = FinishApplicationMaster(self.call(), self.attempt_id(app), request)
        return bool(self.send(event).is_unregistered)

    def call(self) -> int:
        """A fresh number for an RPC."""
        self._calls += 1
        return self._calls
