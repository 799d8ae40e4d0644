"""For any order of events: each call is answered once, each completion reported once, nothing is left behind.

The steps of `RM` are audited (rm.core.invariants): each checks all invariants of the scheduler and its bookings.
"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rm.core.events import (
    Allocate,
    MoveApplication,
    NodeHeartbeat,
    RefreshQueues,
    UnregisterNode,
    UpdateApplicationPriority,
    UpdateNodeResource,
)
from rm.core.states import FINAL_APP_STATES, RMAppState
from rm.scheduler.model.rm_container import RMContainer, RMContainerState
from tests.rm.builders import ONE_QUEUE, RM, done, resource_request
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.protocols.admin import ResourceOption
from yarn.protocols.master import AllocateRequest, AllocateResponse
from yarn.protocols.tracker import NodeHeartbeatRequest
from yarn.resource import Resource
from yarn.states import NodeAction

HOSTS = ("n1", "n2", "n3")
APPLICATIONS_MAX = 6
NONE = Resource(0, 0)
DISTURBANCES = ("leave", "sicken", "restart", "silence", "crash", "crash", "finish", "kill")
TWO_QUEUES = {
    "yarn.scheduler.capacity.root.queues": "a,default",
    "yarn.scheduler.capacity.root.a.capacity": "50",
    "yarn.scheduler.capacity.root.default.capacity": "50",
}


class ResourceManagerMachine(RuleBasedStateMachine):
    """AMs with containers on three nodes; faults are rare, so that there is work that they can disturb."""

    @initialize(keep=st.booleans())
    def start(self, keep: bool) -> None:
        self.rm = RM(TWO_QUEUES)
        self.apps: list[ApplicationId] = []
        self.reported: set[tuple[ApplicationAttemptId, ContainerId]] = set()
        for host in HOSTS:
            self.rm.node(host)
        for user, queue in (("ann", "a"), ("bob", "default")):
            self.submit(keep, queue, user)
            self.rm.run_am(self.apps[-1])

    def running(self) -> list[ApplicationId]:
        """Applications whose current attempt's AM has registered."""
        return [app for app in self.apps if self.rm.attempt_state(app) == "RUNNING"]

    def live(self, app: ApplicationId, *, am: bool = False) -> list[RMContainer]:
        """Containers of the application that an AM has fetched."""
        containers = self.rm.core.scheduler.containers_of(app).values()
        return [c for c in containers if c.is_am == am and c.state is not RMContainerState.ALLOCATED]

    # Work

    @precondition(lambda self: len(self.apps) < APPLICATIONS_MAX)
    @rule(keep=st.booleans(), queue=st.sampled_from(["a", "default"]), user=st.sampled_from(["ann", "bob"]))
    def submit(self, keep: bool, queue: str, user: str) -> None:
        self.apps.append(self.rm.submit(user, queue, keep_containers_across_attempts=keep, max_app_attempts=3))

    @rule(host=st.sampled_from(HOSTS))
    def beat(self, host: str) -> None:
        if self.rm.beat(host).action is NodeAction.RESYNC:
            self.rm.node(host)

    @rule(data=st.data())
    def start_an_am(self, data: st.DataObject) -> None:
        waiting = [app for app in self.apps if self.rm.attempt_state(app) == "ALLOCATED"]
        if waiting:
            app = data.draw(st.sampled_from(waiting))
            self.rm.launch(app)
            self.rm.register(app)

    @precondition(lambda self: self.running())
    @rule(data=st.data(), count=st.integers(0, 5), size_mb=st.sampled_from([512, 1024, 3000]))
    def request_containers(self, data: st.DataObject, count: int, size_mb: int) -> None:
        """Request containers, send a heartbeat of every node, and start what was allocated.

        Each size has its own priority: Hadoop fills a reservation at its old size if a request of the same priority
        has meanwhile shrunk, and puts more on the node than it has.
        """
        app = data.draw(st.sampled_from(self.running()))
        self.check_completed(app, self.rm.allocate(app, [resource_request(count, size_mb, priority=size_mb)]))
        for host in HOSTS:
            self.beat(host)
        if app in self.running():
            reply = self.rm.allocate(app)
            self.check_completed(app, reply)
            self.rm.run(*reply.allocated)

    @precondition(lambda self: self.running())
    @rule(data=st.data(), release=st.booleans(), exit_status=st.sampled_from([0, 1]))
    def end_a_task(self, data: st.DataObject, release: bool, exit_status: int) -> None:
        app = data.draw(st.sampled_from(self.running()))
        live = self.live(app)
        if not live:
            return
        task = data.draw(st.sampled_from(live))
        if release:
            self.check_completed(app, self.rm.allocate(app, release=[task.id]))
        elif task.id in self.rm.nodes[task.node_id.host].running:
            self.rm.beat(task.node_id.host, ended=[done(task.id, exit_status)])

    # Changes by administrators and clients

    @precondition(lambda self: self.running())
    @rule(data=st.data(), queue=st.sampled_from(["a", "default"]), priority=st.integers(0, 9))
    def move_and_prioritize(self, data: st.DataObject, queue: str, priority: int) -> None:
        app = data.draw(st.sampled_from(self.running()))
        self.rm.send(UpdateApplicationPriority(self.rm.call(), app, priority, "ann"))
        with contextlib.suppress(YarnException):
            self.rm.send(MoveApplication(self.rm.call(), "ann", app, queue))

    @rule(host=st.sampled_from(HOSTS), memory_mb=st.sampled_from([2048, 4096, 8192, 16384]))
    def resize(self, host: str, memory_mb: int) -> None:
        resources = ((self.rm.nodes[host].node_id, ResourceOption(Resource(memory_mb, 8))),)
        with contextlib.suppress(YarnException):
            self.rm.send(UpdateNodeResource(self.rm.call(), resources))

    @rule(
        share=st.sampled_from([20, 50, 80]), most=st.sampled_from([60, 100]), max_parallel=st.sampled_from(["1", "9"])
    )
    def refresh(self, share: int, most: int, max_parallel: str) -> None:
        conf = {
            **ONE_QUEUE,
            **TWO_QUEUES,
            "yarn.scheduler.capacity.root.a.capacity": str(share),
            "yarn.scheduler.capacity.root.default.capacity": str(100 - share),
            "yarn.scheduler.capacity.root.default.maximum-capacity": str(max(most, 100 - share)),
            "yarn.scheduler.capacity.root.a.max-parallel-apps": max_parallel,
        }
        self.rm.send(RefreshQueues(self.rm.call(), Configuration.of(conf)))

    # Lost replies: the same call once more is answered with the same object, and does nothing else

    @rule(host=st.sampled_from(HOSTS))
    def resend_a_heartbeat(self, host: str) -> None:
        nm = self.rm.nodes[host]
        node = self.rm.core.context.nodes.get(nm.node_id)
        if node is None or nm.response_id == 0:
            return
        request = NodeHeartbeatRequest(nm.node_id, nm.response_id - 1)
        assert self.rm.send(NodeHeartbeat(self.rm.call(), request)) is node.last_response
        assert len(self.rm.effects) == 1

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def resend_an_allocate(self, data: st.DataObject) -> None:
        app = data.draw(st.sampled_from(self.running()))
        first = self.rm.allocate(app)
        self.check_completed(app, first)
        self.rm.run(*first.allocated)
        request = AllocateRequest(first.response_id - 1, asks=(resource_request(5),))
        assert self.rm.send(Allocate(self.rm.call(), self.rm.attempt_id(app), request)) is first
        assert len(self.rm.effects) == 1

    # Faults and ends

    @rule(data=st.data(), host=st.sampled_from(HOSTS), kind=st.sampled_from(DISTURBANCES))
    def disturb(self, data: st.DataObject, host: str, kind: str) -> None:
        if kind == "leave":
            self.rm.send(UnregisterNode(self.rm.call(), self.rm.nodes[host].node_id))
        elif kind == "sicken":
            self.rm.beat(host, healthy=False)
        elif kind == "restart":
            self.rm.node(host)
        elif kind == "silence":
            self.rm.wait(data.draw(st.sampled_from([1_000, 300_000, 700_000])))
        elif self.running():
            getattr(self, kind)(data.draw(st.sampled_from(self.running())))

    def crash(self, app: ApplicationId) -> None:
        """The AM ends by itself."""
        for am in self.live(app, am=True):
            if am.id in self.rm.nodes[am.node_id.host].running:
                self.rm.beat(am.node_id.host, ended=[done(am.id, 1)])

    def finish(self, app: ApplicationId) -> None:
        self.rm.finish(app)

    def kill(self, app: ApplicationId) -> None:
        self.rm.kill(app)

    def check_completed(self, app: ApplicationId, reply: AllocateResponse) -> None:
        """Each AM is sent a completion once; the next attempt may be sent it again."""
        attempt_id = self.rm.attempt_id(app)
        for status in reply.completed:
            assert (attempt_id, status.container_id) not in self.reported, "a completion was reported twice"
            self.reported.add((attempt_id, status.container_id))

    def teardown(self) -> None:
        """After nodes have returned, applications are killed and AMs have exited, nothing is left (I-32, I-41, I-60).

        One heartbeat's reply orders a node to kill containers; the next heartbeat reports that they ended.
        """
        for _ in range(3):
            for host in HOSTS:
                self.beat(host)
        for app in self.apps:
            self.rm.kill(app)
        unregistered = {app for app in self.apps if self.rm.state(app) == "FINISHING"}
        for host in HOSTS:
            ams = [each for each in self.rm.nodes[host].running if each.application_id in unregistered]
            self.rm.beat(host, ended=[done(am) for am in ams])
        for _ in range(3):
            for host in HOSTS:
                self.beat(host)
        assert {self.rm.core.context.apps[app].state for app in self.apps} <= FINAL_APP_STATES
        root = self.rm.core.scheduler.queues["root"].usage.default
        assert (root.used, root.pending) == (NONE, NONE)
        assert [nm.running for nm in self.rm.nodes.values()] == [{}, {}, {}]

    @invariant()
    def ended_applications_hold_no_containers(self) -> None:
        for app in self.apps:
            if self.rm.core.context.apps[app].state in (RMAppState.FAILED, RMAppState.KILLED, RMAppState.FINISHED):
                assert not self.rm.core.scheduler.containers_of(app)


ResourceManagerMachine.TestCase.settings = settings(
    max_examples=40, stateful_step_count=50, deadline=None, derandomize=True
)
TestResourceManager = pytest.mark.slow(ResourceManagerMachine.TestCase)
