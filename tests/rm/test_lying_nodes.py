"""Nodes that report what they like: the ResourceManager goes on, and its audits find no fault in it.

The invariants that concern nodes hold as far as nodes keep to the protocol. What a lying node makes wrong is its own
fault, and must not end a ResourceManager that checks itself.
"""

from __future__ import annotations

from random import Random

import pytest

from rm.core.events import NodeHeartbeat, RefreshNodes, RegisterNode, UnregisterNode, UpdateNodeResource
from rm.core.host_lists import HostLists
from tests.rm.builders import RM, done, resource_request
from yarn.containers import ContainerStatus, NMContainerStatus
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.nodes import NodeHealth
from yarn.protocols.admin import ResourceOption
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import ContainerState, DecommissionType, NodeAction, NodeState

LIARS = ("n1", "n2")
HONEST = "n3"
WALKS = 120
STEPS = 60
"""Steps of one walk."""
EXITS = (0, 3, -100, -105)
SIZE = Resource(1024, 1)


class LyingNodes:
    """Two applications on two nodes that lie; their AMs run on an honest one. Every choice is drawn from `rng`."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.rm = RM()
        self.steps: list[str] = []
        self.apps: list[ApplicationId] = []
        self.containers: list[ContainerId] = []
        for host in (*LIARS, HONEST):
            self.rm.node(host)
        for user in ("ann", "bob"):
            self.submit(user)
            self.containers.append(self.rm.run_am(self.apps[-1], HONEST).id)
            for host in LIARS:
                self.containers += [container.id for container in self.rm.get(self.apps[-1], 2, host)]

    def step(self) -> None:
        step = self.rng.choices(*_WEIGHTED)[0]
        self.steps.append(step.__name__)
        step(self)

    def submit(self, user: str = "ann") -> None:
        self.apps.append(self.rm.submit(user, keep_containers_across_attempts=self.is_true(0.5), max_app_attempts=3))

    def running(self) -> list[ApplicationId]:
        """Applications whose current attempt's AM has registered."""
        return [app for app in self.apps if self.rm.attempt_state(app) == "RUNNING"]

    def is_true(self, probability: float) -> bool:
        return self.rng.random() < probability

    def lies(self) -> list[tuple[ContainerId, ContainerState, int]]:
        """A node's reports of containers: its own, other nodes', and those that ended long ago."""
        states = (ContainerState.NEW, *[ContainerState.RUNNING, ContainerState.COMPLETE] * 4)
        return [
            (self.rng.choice(self.containers), self.rng.choice(states), self.rng.choice(EXITS))
            for _ in range(self.rng.choice((0, 1, 1, 2)))
        ]

    def say(self, *what: object) -> None:
        self.steps[-1] += f" {', '.join(map(str, what))}"

    # Steps

    def beat(self) -> None:
        """A heartbeat with lies, mostly beside a true report; now and then an old one."""
        nm, rng = self.rm.nodes[self.rng.choice(LIARS)], self.rng
        lies, healthy = self.lies(), self.is_true(0.85)
        response_id = max(nm.response_id - rng.choice((0, 0, 0, 0, 0, 1, 2)), 0)
        true = [ContainerStatus(each, ContainerState.RUNNING) for each in nm.running if self.is_true(0.8)]
        lied = [ContainerStatus(each, state, exit_status=exit_status) for each, state, exit_status in lies]
        self.say(nm.node_id, *lied, *true, healthy, response_id)
        request = NodeHeartbeatRequest(nm.node_id, response_id, (*lied, *true), NodeHealth(healthy=healthy))
        nm.response_id = self.rm.send(NodeHeartbeat(self.rm.call(), request)).response_id

    def register(self) -> None:
        """Register again, perhaps as another NodeManager at the same port."""
        nm, rng = self.rm.nodes[self.rng.choice(LIARS)], self.rng
        request = RegisterNodeManagerRequest(
            nm.node_id,
            rng.choice((8042, 8043)),
            Resource(rng.choice((4096, 8192)), 8),
            containers=tuple(
                NMContainerStatus(each, state, SIZE, priority=1, exit_status=exit_status)
                for each, state, exit_status in self.lies()
            ),
            running_applications=rng.choice(((), tuple(self.apps))),
            health=NodeHealth(healthy=self.is_true(0.85)),
        )
        self.say(request)
        self.rm.send(RegisterNode(self.rm.call(), request, "/default-rack"))
        nm.response_id = 0

    def unregister(self) -> None:
        node_id = self.rm.nodes[self.rng.choice(LIARS)].node_id
        self.say(node_id)
        self.rm.send(UnregisterNode(self.rm.call(), node_id))

    def beat_honestly(self) -> None:
        self.rm.beat(HONEST)

    def allocate(self) -> None:
        """An AM requests or releases containers; those that it gets are started where they are."""
        if not self.running():
            self.start_an_am()
            return
        app = self.rng.choice(self.running())
        held = sorted(each for each in self.rm.core.scheduler.containers_of(app) if each.number > 1)
        asks = [resource_request(2)] if self.is_true(0.2) else []
        releases = held[:1] if self.is_true(0.1) else []
        self.say(app, asks, releases)
        reply = self.rm.allocate(app, asks, releases)
        self.rm.run(*reply.allocated)
        self.containers += [container.id for container in reply.allocated]

    def start_an_am(self) -> None:
        for app in self.apps:
            if self.rm.attempt_state(app) == "ALLOCATED":
                self.containers.append(self.rm.launch(app).id)
                self.rm.register(app)

    def end_an_am(self) -> None:
        """The honest node reports that an AM has ended; its application may have another attempt."""
        for each in list(self.rm.nodes[HONEST].running)[:1]:
            self.say(each)
            self.rm.beat(HONEST, ended=[done(each, 1)])

    def end_an_application(self) -> None:
        """The AM unregisters, or a user kills the application; another one is submitted."""
        app = self.rng.choice(self.apps)
        end = self.rm.finish if app in self.running() and self.is_true(0.5) else self.rm.kill
        self.say(app, end.__name__)
        end(app)
        self.submit()

    def refresh_nodes(self) -> None:
        excluded = tuple((host, None) for host in LIARS if self.is_true(0.4))
        kind = self.rng.choice((DecommissionType.GRACEFUL, DecommissionType.GRACEFUL, DecommissionType.NORMAL))
        timeout_s = self.rng.choice((-1, 5, 60))
        self.say(excluded, kind, timeout_s)
        self.rm.send(RefreshNodes(self.rm.call(), HostLists(excluded=excluded), kind, timeout_s))

    def resize(self) -> None:
        node_id = self.rm.nodes[self.rng.choice(LIARS)].node_id
        resources = ((node_id, ResourceOption(Resource(self.rng.choice((2048, 8192)), 8))),)
        self.say(resources)
        self.rm.send(UpdateNodeResource(self.rm.call(), resources))

    def wait(self) -> None:
        duration_ms = self.rng.choice((1_000, 1_000, 10_000, 300_000))
        self.say(duration_ms)
        self.rm.wait(duration_ms)


_STEPS = (
    (LyingNodes.beat, 40),
    (LyingNodes.register, 10),
    (LyingNodes.unregister, 1),
    (LyingNodes.beat_honestly, 10),
    (LyingNodes.allocate, 20),
    (LyingNodes.end_an_am, 2),
    (LyingNodes.end_an_application, 1),
    (LyingNodes.refresh_nodes, 5),
    (LyingNodes.resize, 2),
    (LyingNodes.wait, 5),
)
_WEIGHTED = [step for step, _ in _STEPS], [weight for _, weight in _STEPS]


@pytest.mark.slow
def test_no_report_of_a_node_breaks_an_invariant(seed: int) -> None:
    for number in range(WALKS):
        nodes = LyingNodes(Random(f"{seed} {number}"))
        for _ in range(STEPS):
            try:
                nodes.step()
            except YarnException as error:
                nodes.say(f"refused: {error}")
            except AssertionError as error:
                pytest.fail("\n".join([*nodes.steps, str(error)]), pytrace=False)


# Findings of such walks, each by itself


@pytest.fixture
def rm() -> RM:
    """Two nodes; n1 lies."""
    rm = RM()
    rm.node("n1")
    rm.node("n2")
    return rm


def registered(
    rm: RM, host: str, *reports: NMContainerStatus, apps: tuple[ApplicationId, ...] = (), port: int = 8042
) -> NodeAction:
    """The action with which a node's registration is answered."""
    nm = rm.nodes[host]
    request = RegisterNodeManagerRequest(nm.node_id, port, nm.resource, containers=reports, running_applications=apps)
    reply = rm.send(RegisterNode(rm.call(), request, "/default-rack"))
    nm.response_id = 0
    action: NodeAction = reply.action
    return action


def test_a_container_that_is_reported_as_ended_and_as_running_frees_its_resources(rm: RM) -> None:
    """I-07 is about containers whose nodes only say that they run."""
    app = rm.submit()
    rm.run_am(app, "n2")
    (task,) = rm.get(app, 1, "n1")
    running = ContainerStatus(task.id, ContainerState.RUNNING)
    nm = rm.nodes["n1"]
    rm.send(NodeHeartbeat(rm.call(), NodeHeartbeatRequest(nm.node_id, nm.response_id, (done(task.id), running))))
    assert [status.container_id for status in rm.allocate(app).completed] == [task.id]


def test_a_container_whose_launch_the_scheduler_does_not_know_may_be_released(rm: RM) -> None:
    """Its NM registered again with it; RMNodeImpl.ReconnectNodeTransition queues the launch for the next beat."""
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    rm.allocate(app, [resource_request(1)])
    rm.beat("n1")
    (task,) = rm.allocate(app).allocated
    held = (*rm.nodes["n1"].running, task.id)
    registered(rm, "n1", *(NMContainerStatus(each, ContainerState.RUNNING, SIZE) for each in held), apps=(app,))
    rm.allocate(app, release=[task.id])
    assert [status.container_id for status in rm.allocate(app).completed] == [task.id]


@pytest.mark.parametrize("again", ["another port", "new"])
def test_another_nm_at_the_same_port_may_forget_the_ends_of_the_one_before(rm: RM, again: str) -> None:
    """I-30: the AM has not acknowledged the end, but this NM has no such container; it lies if it reports one."""
    app = rm.submit()
    rm.run_am(app, "n2")
    (task,) = rm.get(app, 1, "n1")
    rm.beat("n1", [done(task.id, 3)])
    if again == "new":
        rm.send(UnregisterNode(rm.call(), rm.nodes["n1"].node_id))
    assert (
        registered(rm, "n1", apps=(app,) if again == "new" else (), port=8043 if again == "another port" else 8042)
        is NodeAction.NORMAL
    )
    assert [status.exit_status for status in rm.allocate(app).completed] == [3]
    rm.beat("n1", [done(task.id, 3)])
    assert rm.beat("n1", [done(task.id, 3)]).containers_to_forget == (task.id,)


def test_a_node_that_is_told_to_shut_down_is_lost_in_time(rm: RM) -> None:
    """I-61: a refused call does not count as a heartbeat.

    The NM that replaces a leaving one does not leave: ResourceTrackerService.registerNodeManager looks at the state of
    the new RMNode, which is NEW, and not at that of the old one.
    """
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    rm.send(RefreshNodes(rm.call(), HostLists(excluded=(("n1", None),)), DecommissionType.GRACEFUL, -1))
    assert registered(rm, "n1", port=8043) is NodeAction.NORMAL
    rm.wait(300_000)
    assert registered(rm, "n1") is NodeAction.SHUTDOWN
    assert rm.beat("n1").action is NodeAction.SHUTDOWN
    rm.wait(500_000)
    assert rm.core.context.inactive_nodes[rm.nodes["n1"].node_id].state is NodeState.LOST
