"""Nodes: heartbeats and their response ids, expiry, resync, and orders that are sent once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rm.core.events import NodeHeartbeat, ProcessStalled, RegisterNode, UnregisterNode, UpdateNodeResource
from rm.core.node_reports import cluster_metrics, node_reports
from tests.rm.builders import RM, done, resource_request
from yarn.containers import ContainerStatus, NMContainerStatus
from yarn.errors import ResourceNotFoundException, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import Tick, Warn
from yarn.protocols.admin import ResourceOption
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest, RegisterNodeManagerResponse
from yarn.resource import Resource
from yarn.states import ContainerState, ExecutionType, NodeAction, NodeState

NODE_EXPIRY_MS = 600_000
RESPONSE_ID_MAX = 0x7FFFFFFF


@pytest.fixture
def rm() -> RM:
    rm = RM()
    rm.node("n1")
    rm.node("n2")
    return rm


@pytest.fixture
def app(rm: RM) -> ApplicationId:
    """An application with its AM on n1."""
    app = rm.submit()
    rm.run_am(app)
    return app


def state(rm: RM, host: str) -> NodeState:
    context = rm.core.context
    node_id = rm.nodes[host].node_id
    return (context.nodes.get(node_id) or context.inactive_nodes[node_id]).state


def alive(rm: RM, duration_ms: int, *hosts: str) -> None:
    """Let time pass with heartbeats of some nodes every second minute."""
    for _ in range(duration_ms // 120_000):
        rm.wait(120_000)
        for host in hosts:
            rm.beat(host)


# Response ids


def test_a_resent_heartbeat_gets_the_same_reply_and_does_nothing(rm: RM, app: ApplicationId) -> None:
    """The reply with the clean-up order was lost: it is sent again, and nothing is scheduled twice."""
    container = rm.get(app, 1)[0]
    rm.allocate(app, [resource_request(3)], release=[container.id])
    before = rm.nodes["n1"].response_id
    reply = rm.beat()
    assert reply.containers_to_clean_up == (container.id,)
    rm.nodes["n1"].response_id = before
    placed = rm.core.scheduler.node_usage(rm.nodes["n1"].node_id)
    assert rm.beat() is reply
    assert rm.core.scheduler.node_usage(rm.nodes["n1"].node_id) == placed
    assert rm.beat().containers_to_clean_up == ()


@pytest.mark.parametrize("registers_again", [False, True])
def test_a_lost_reply_to_the_first_heartbeat_is_sent_again(
    rm: RM, app: ApplicationId, *, registers_again: bool
) -> None:
    """The first heartbeat has id 0, and so has its repetition: nothing more is allocated, and there is no resync."""
    nm = rm.node("n3")
    if registers_again:
        rm.beat("n3")
        nm = rm.node("n3")
    rm.allocate(app, [resource_request(3)])
    reply = rm.beat("n3")
    placed = rm.core.scheduler.node_usage(nm.node_id)
    assert len(rm.allocate(app).allocated) == 3
    rm.allocate(app, [resource_request(3)])
    nm.response_id = 0
    assert rm.beat("n3") is reply
    assert (reply.action, reply.response_id) == (NodeAction.NORMAL, 1)
    assert rm.core.scheduler.node_usage(nm.node_id) == placed
    assert rm.beat("n3").response_id == 2


def test_response_ids_of_a_node_wrap_around_after_the_largest_java_int(rm: RM) -> None:
    node = rm.core.context.nodes[rm.nodes["n1"].node_id]
    node.last_response = replace(node.last_response, response_id=RESPONSE_ID_MAX)
    rm.nodes["n1"].response_id = RESPONSE_ID_MAX
    around = rm.beat()
    assert around.response_id == 0
    rm.nodes["n1"].response_id = RESPONSE_ID_MAX
    assert rm.beat() is around
    assert rm.beat().response_id == 1


@pytest.mark.parametrize("response_id", [0, 7, 1000])
def test_a_node_with_a_wrong_response_id_has_to_register_again(rm: RM, app: ApplicationId, response_id: int) -> None:
    """The node is REBOOTED, its containers are lost; it registers as a new node."""
    for _ in range(3):
        rm.beat("n2")
    rm.allocate(app, [resource_request(1)])
    rm.beat("n2")
    lost = rm.allocate(app).allocated[0]
    rm.nodes["n2"].response_id = response_id
    reply = rm.beat("n2")
    assert reply.action is NodeAction.RESYNC
    assert reply.diagnostics == f"Too far behind rm response id:4 nm response id:{response_id}"
    assert state(rm, "n2") is NodeState.REBOOTED
    (status,) = rm.allocate(app).completed
    assert (status.container_id, status.exit_status) == (lost.id, -100)
    assert status.diagnostics == "Container released on a *lost* node"
    rm.node("n2")
    assert state(rm, "n2") is NodeState.RUNNING


def test_an_unknown_node_has_to_register(rm: RM) -> None:
    request = NodeHeartbeatRequest(NodeId("n9", 1), 0)
    reply = rm.send(NodeHeartbeat(rm.call(), request))
    assert (reply.action, reply.diagnostics) == (NodeAction.RESYNC, "Node not found resyncing n9:1")


# Registering


def test_a_node_too_small_for_any_container_is_refused(rm: RM) -> None:
    request = RegisterNodeManagerRequest(NodeId("tiny", 1), 8042, Resource(512, 1))
    reply = rm.send(RegisterNode(rm.call(), request, "/default-rack"))
    assert reply.action is NodeAction.SHUTDOWN
    assert reply.diagnostics == (
        "NodeManager from  tiny doesn't satisfy minimum allocations, Sending SHUTDOWN signal to the NodeManager."
        " Node capabilities are <memory:512, vCores:1>; minimums are 1024mb and 1 vcores"
    )
    assert NodeId("tiny", 1) not in rm.core.context.nodes


MINIMUM_VERSION = "yarn.resourcemanager.nodemanager.minimum.version"


def register(rm: RM, version: str) -> RegisterNodeManagerResponse:
    request = RegisterNodeManagerRequest(NodeId("n1", 1), 8042, Resource(4096, 4), version)
    reply: RegisterNodeManagerResponse = rm.send(RegisterNode(rm.call(), request, "/default-rack"))
    return reply


@pytest.mark.parametrize(
    ("minimum", "version", "allowed"),
    [
        ("3.4.1", "3.4.1", True),
        ("3.4.1", "3.4.0", False),
        ("3.4.1", "3.4.1-SNAPSHOT", False),
        ("3.4.1", "3.4.1.7.2.0", True),
        ("3.9", "3.10", True),
        ("3.10", "3.9", False),
        ("3.4.1", "", False),
        ("EqualToRM", "3.4.1", True),
        ("EqualToRM", "3.4.0", False),
        ("EqualToRM", "3.5.0", True),
        ("NONE", "0.1", True),
        ("NONE", "", True),
    ],
)
def test_a_node_below_the_minimum_version_is_refused(minimum: str, version: str, *, allowed: bool) -> None:
    """ResourceTrackerService.registerNodeManager: versions are compared before anything else; NONE allows all."""
    rm = RM({MINIMUM_VERSION: minimum})
    reply = register(rm, version)
    assert (reply.action, reply.rm_version) == ((NodeAction.NORMAL, "3.4.1") if allowed else (NodeAction.SHUTDOWN, ""))
    assert (reply.rm_identifier != 0) is allowed
    assert (NodeId("n1", 1) in rm.core.context.nodes) is allowed


@pytest.mark.parametrize("version", ["3.3.6", ""])
def test_the_refusal_of_a_version_is_that_of_hadoop(version: str) -> None:
    reply = register(RM({MINIMUM_VERSION: "EqualToRM"}), version)
    assert reply.diagnostics == (
        f"Disallowed NodeManager Version {version}, is less than the minimum version 3.4.1 sending SHUTDOWN signal to "
        "NodeManager."
    )


def test_a_refused_registration_is_a_warning_for_the_operator() -> None:
    rm = RM({MINIMUM_VERSION: "3.10"})
    reply = register(rm, "3.9")
    assert [effect.text for effect in rm.effects if isinstance(effect, Warn)] == [reply.diagnostics]


def test_a_long_version_is_shortened_in_the_refusal() -> None:
    reply = register(RM({MINIMUM_VERSION: "3.4.1"}), "3.3." + "x" * 100_000)
    assert (reply.action, len(reply.diagnostics) < 300) == (NodeAction.SHUTDOWN, True)


def test_a_long_version_is_shortened_in_reports() -> None:
    rm = RM()
    register(rm, "3.4.1-" + "x" * 100_000)
    assert len(rm.core.context.nodes[NodeId("n1", 1)].nm_version) == 100


def test_a_node_with_an_unknown_resource_type_is_refused(rm: RM) -> None:
    resource = Resource(4096, 4, (("gpu", 2),))
    with pytest.raises(ResourceNotFoundException, match="Unknown resource 'gpu'"):
        rm.send(RegisterNode(rm.call(), RegisterNodeManagerRequest(NodeId("n9", 1), 8042, resource), "/default-rack"))
    with pytest.raises(ResourceNotFoundException):
        rm.send(UpdateNodeResource(rm.call(), ((rm.nodes["n1"].node_id, ResourceOption(resource)),)))
    assert rm.core.scheduler.cluster_resource == Resource(2 * 8192, 16)


def test_a_node_that_registers_again_without_applications_has_lost_its_containers(rm: RM, app: ApplicationId) -> None:
    rm.allocate(app, [resource_request(1)])
    rm.beat("n2")
    (container,) = rm.allocate(app).allocated
    rm.run(container)
    rm.beat("n2")
    rm.node("n2")
    (status,) = rm.allocate(app).completed
    assert (status.container_id, status.exit_status) == (container.id, -100)
    assert rm.beat("n2").action is NodeAction.NORMAL


def test_a_node_that_registers_again_with_its_applications_keeps_them(rm: RM, app: ApplicationId) -> None:
    """An NM that recovered: same containers, its ids start at 0."""
    rm.allocate(app, [resource_request(1)])
    rm.beat("n2")
    (container,) = rm.allocate(app).allocated
    rm.run(container)
    rm.beat("n2")
    nm = rm.nodes["n2"]
    reported = NMContainerStatus(container.id, ContainerState.RUNNING, container.resource)
    request = RegisterNodeManagerRequest(
        nm.node_id, 8042, nm.resource, containers=(reported,), running_applications=(app,)
    )
    rm.send(RegisterNode(rm.call(), request, "/default-rack"))
    nm.response_id = 0
    assert rm.beat("n2").action is NodeAction.NORMAL
    assert rm.allocate(app).completed == ()
    assert rm.core.scheduler.container(container.id) is not None


def test_only_its_own_node_can_report_at_registration_that_an_am_has_ended(rm: RM) -> None:
    """ResourceTrackerService.handleNMContainerStatus does not check this."""
    app = rm.submit(max_app_attempts=2)
    am = rm.run_am(app)
    ended = NMContainerStatus(am.id, ContainerState.COMPLETE, am.resource, exit_status=3)
    for host, attempt in (("n2", 1), ("n1", 2)):
        request = RegisterNodeManagerRequest(
            rm.nodes[host].node_id, 8042, Resource(8192, 8), containers=(ended,), running_applications=(app,)
        )
        rm.send(RegisterNode(rm.call(), request, "/default-rack"))
        assert rm.attempt_id(app).attempt == attempt


def test_the_end_of_an_am_that_is_known_is_ignored_at_registration(rm: RM) -> None:
    """The next attempt is not told of it, and the node may forget it."""
    app = rm.submit(max_app_attempts=2, keep_containers_across_attempts=True)
    am = rm.run_am(app)
    rm.beat("n1", [done(am.id, 3)])
    assert rm.beat("n1").containers_to_forget == (am.id,)
    ended = NMContainerStatus(am.id, ContainerState.COMPLETE, am.resource, exit_status=3)
    again = RegisterNodeManagerRequest(
        rm.nodes["n1"].node_id, 8042, Resource(8192, 8), containers=(ended,), running_applications=(app,)
    )
    rm.send(RegisterNode(rm.call(), again, "/default-rack"))
    rm.nodes["n1"].response_id = 0
    rm.run_am(app, "n2")
    assert rm.allocate(app).completed == ()
    assert rm.beat("n1").containers_to_forget == (am.id,)


@pytest.mark.parametrize("reported_state", [ContainerState.RUNNING, ContainerState.COMPLETE])
def test_a_report_about_a_container_of_another_node_is_ignored(
    rm: RM, app: ApplicationId, reported_state: ContainerState
) -> None:
    rm.allocate(app, [resource_request(1)])
    rm.beat("n2")
    (container,) = rm.allocate(app).allocated
    rm.run(container)
    rm.beat("n2")
    nm = rm.nodes["n1"]
    status = ContainerStatus(container.id, reported_state, 7)
    increased = replace(container, resource=Resource(7 * 1024, 1))
    am = [ContainerStatus(one, ContainerState.RUNNING) for one in nm.running]
    beat = NodeHeartbeatRequest(nm.node_id, nm.response_id, (*am, status), increased_containers=(increased,))
    reply = rm.send(NodeHeartbeat(rm.call(), beat))
    nm.response_id = reply.response_id
    rm.beat("n1")
    held = rm.core.scheduler.container(container.id)
    assert held is not None
    assert (held.node_id, held.resource) == (rm.nodes["n2"].node_id, container.resource)
    assert rm.allocate(app).completed == ()
    rm.beat("n2")
    assert rm.core.scheduler.container(container.id) is held


def test_another_nm_at_the_same_port_replaces_the_old_one(rm: RM, app: ApplicationId) -> None:
    rm.allocate(app, [resource_request(1)])
    rm.beat("n2")
    (container,) = rm.allocate(app).allocated
    nm = rm.nodes["n2"]
    request = RegisterNodeManagerRequest(nm.node_id, 9999, Resource(2048, 2))
    rm.send(RegisterNode(rm.call(), request, "/default-rack"))
    (status,) = rm.allocate(app).completed
    assert status.container_id == container.id
    assert rm.core.context.nodes[nm.node_id].http_address == "n2:9999"
    assert rm.core.scheduler.cluster_resource == Resource(8192 + 2048, 8 + 2)


# Loss


@pytest.mark.case("I2")
def test_a_silent_node_is_lost_with_its_containers(rm: RM, app: ApplicationId) -> None:
    """Detected at the first check after the interval T: between T and 4/3 T."""
    rm.allocate(app, [resource_request(1)])
    rm.beat("n2")
    (container,) = rm.allocate(app).allocated
    rm.run(container)
    rm.beat("n2")
    alive(rm, NODE_EXPIRY_MS, "n1")
    assert state(rm, "n2") is NodeState.RUNNING
    rm.allocate(app)
    alive(rm, 240_000, "n1")
    assert state(rm, "n2") is NodeState.LOST
    reply = rm.allocate(app)
    assert [(status.container_id, status.exit_status) for status in reply.completed] == [(container.id, -100)]
    assert [(node.node_id.host, node.state) for node in reply.updated_nodes] == [("n2", NodeState.LOST)]
    assert rm.allocate(app).updated_nodes == ()
    assert (
        cluster_metrics(rm.core.context).lost,
        cluster_metrics(rm.core.context).active,
    ) == (1, 1)


def test_containers_that_a_lost_node_still_runs_are_cleaned_up_when_it_returns(rm: RM, app: ApplicationId) -> None:
    """The node registers again; its containers are not recovered, and are killed after it has reported them."""
    rm.allocate(app, [resource_request(1)])
    rm.beat("n2")
    (container,) = rm.allocate(app).allocated
    rm.run(container)
    rm.beat("n2")
    alive(rm, NODE_EXPIRY_MS + 240_000, "n1")
    assert rm.beat("n2").action is NodeAction.RESYNC
    rm.node("n2")
    rm.run(container)
    assert rm.beat("n2").containers_to_clean_up == ()
    assert rm.beat("n2").containers_to_clean_up == (container.id,)


def test_an_unregistered_node_is_shut_down(rm: RM) -> None:
    rm.send(UnregisterNode(rm.call(), rm.nodes["n2"].node_id))
    assert state(rm, "n2") is NodeState.SHUTDOWN
    assert rm.beat("n2").action is NodeAction.RESYNC
    assert [report.node_id.host for report in node_reports(rm.core.context, frozenset({NodeState.SHUTDOWN}))] == ["n2"]


def test_a_container_missing_from_a_heartbeat_is_completed(rm: RM, app: ApplicationId) -> None:
    container = rm.get(app, 1)[0]
    del rm.nodes["n1"].running[container.id]
    rm.beat()
    (status,) = rm.allocate(app).completed
    assert status.exit_status == -100
    assert status.diagnostics == f"Container {container.id} was running but not reported from n1:45454"


def test_opportunistic_containers_are_completed_with_one_missing_from_a_heartbeat(rm: RM, app: ApplicationId) -> None:
    """findLostContainers checks only guaranteed containers."""
    kept, missing, opportunistic = (container.id for container in rm.get(app, 3))
    nm = rm.nodes["n1"]
    del nm.running[missing]
    reports = [
        replace(status, execution_type=ExecutionType.OPPORTUNISTIC) if status.container_id == opportunistic else status
        for status in nm.request().containers
    ]
    rm.send(NodeHeartbeat(rm.call(), replace(nm.request(), containers=tuple(reports))))
    over = {status.container_id for status in rm.allocate(app).completed}
    assert over == {missing, opportunistic}
    assert kept not in over


# Health


def test_an_unhealthy_node_loses_its_containers_and_comes_back_empty(rm: RM, app: ApplicationId) -> None:
    rm.allocate(app, [resource_request(1)])
    rm.beat("n2")
    (container,) = rm.allocate(app).allocated
    rm.run(container)
    rm.beat("n2")
    rm.beat("n2", healthy=False)
    assert state(rm, "n2") is NodeState.UNHEALTHY
    assert [status.container_id for status in rm.allocate(app).completed] == [container.id]
    assert rm.core.scheduler.cluster_resource == Resource(8192, 8)
    reply = rm.beat("n2", healthy=True)
    assert reply.containers_to_clean_up == (container.id,)
    assert state(rm, "n2") is NodeState.RUNNING
    assert rm.core.scheduler.cluster_resource == Resource(2 * 8192, 16)


# Orders


def test_an_ended_application_is_cleaned_up_on_its_nodes(rm: RM, app: ApplicationId) -> None:
    rm.kill(app)
    rm.nodes["n1"].running.clear()
    assert rm.beat("n1").applications_to_clean_up == (app,)
    assert rm.beat("n1").applications_to_clean_up == ()
    assert rm.beat("n2").applications_to_clean_up == ()


def test_containers_of_an_unknown_application_are_cleaned_up(rm: RM) -> None:
    stranger = ApplicationId(1, 1)
    container_id = ContainerId(ApplicationAttemptId(stranger, 1), 1)
    rm.nodes["n1"].running[container_id] = None
    rm.beat()
    assert rm.beat().applications_to_clean_up == (stranger,)


@pytest.mark.case("H1")
def test_resizing_a_node_reaches_the_scheduler_and_the_node(rm: RM) -> None:
    rm.send(UpdateNodeResource(rm.call(), ((rm.nodes["n1"].node_id, ResourceOption(Resource(4096, 4))),)))
    assert rm.core.scheduler.cluster_resource == Resource(4096 + 8192, 12)
    assert rm.beat("n1").resource == Resource(4096, 4)
    assert rm.beat("n1").resource is None


def test_resizing_an_unknown_node_refuses_all(rm: RM) -> None:
    resources = (
        (rm.nodes["n1"].node_id, ResourceOption(Resource(4096, 4))),
        (NodeId("n9", 1), ResourceOption(Resource(1024, 1))),
    )
    with pytest.raises(YarnException, match="n9:1"):
        rm.send(UpdateNodeResource(rm.call(), resources))
    assert rm.core.scheduler.cluster_resource == Resource(2 * 8192, 16)


def test_an_ended_container_is_reported_by_id_only_once_to_the_scheduler(rm: RM, app: ApplicationId) -> None:
    """NMs repeat a completion with each heartbeat; the queue's container count decreases only once."""
    container = rm.get(app, 2)[0]
    for _ in range(3):
        rm.beat(ended=[done(container.id)])
    assert len(rm.core.scheduler.containers_of(app)) == 2


# A stalled ResourceManager


def test_a_stall_of_the_rm_expires_nothing(rm: RM, app: ApplicationId) -> None:
    """F09: the tick of the liveness monitors comes before the heartbeats that nodes and AMs sent during the stall."""
    rm.get(app, 1)
    rm.now_ms += 2_000_000
    rm.send(ProcessStalled(2_000_000))
    rm.send(Tick())
    assert [state(rm, host) for host in ("n1", "n2")] == [NodeState.RUNNING] * 2
    assert rm.attempt_state(app) == "RUNNING"
    assert len(rm.core.scheduler.containers_of(app)) == 2
    rm.wait(NODE_EXPIRY_MS - 1)
    assert [state(rm, host) for host in ("n1", "n2")] == [NodeState.RUNNING] * 2


def test_a_node_silent_after_a_stall_expires_on_time(rm: RM) -> None:
    rm.wait(120_000)
    rm.beat("n1")
    rm.now_ms += 2_000_000
    rm.send(ProcessStalled(2_000_000))
    alive(rm, NODE_EXPIRY_MS * 4 // 3, "n1")
    assert [state(rm, host) for host in ("n1", "n2")] == [NodeState.RUNNING, NodeState.LOST]
