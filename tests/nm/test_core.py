"""The NodeManager's core: events in, effects out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nm.core.application import NMApplication
from nm.core.container import NMContainer
from nm.core.effects import (
    DeleteApplicationFiles,
    DeleteApplicationLogs,
    EndNode,
    ForgetApplicationKeys,
    LaunchContainer,
    SendHeartbeat,
    SendRegistration,
    SendUnregistration,
    Signal,
    SignalProcess,
)
from nm.core.events import (
    ContainerSignalled,
    HealthChecked,
    NodeHeartbeatAnswered,
    NodeHeartbeatFailed,
    NodeRegistered,
    RegistrationFailed,
    ShutDown,
    Start,
    UnregisterCompleted,
    UtilizationSampled,
)
from nm.core.node_manager import UNREGISTER_TIMEOUT_MS
from nm.core.settings import CoreSettings
from tests.nm.nodes import APP, NODE, RM, Node, container_id, exited, launched
from yarn.machine import Tick
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse
from yarn.resource import Resource
from yarn.states import ContainerState, NodeAction, SignalContainerCommand

RESPONSE_ID_MAX = 0x7FFFFFFF


@pytest.fixture
def node() -> Node:
    return Node().register()


# Registration


def test_a_node_registers_with_its_resources_and_sends_a_heartbeat_at_once() -> None:
    node = Node()
    node.step(Start())
    request = node.one(SendRegistration).request
    assert (request.node_id, request.resource, request.physical_resource) == (
        NODE,
        Resource(2048, 4),
        Resource(8192, 2),
    )

    node.step(NodeRegistered(RegisterNodeManagerResponse(NodeAction.NORMAL, RM)))
    assert node.one(SendHeartbeat).request.response_id == 0


def test_a_node_that_the_rm_refuses_ends_with_the_rms_message() -> None:
    node = Node()
    node.step(Start())
    node.step(
        NodeRegistered(RegisterNodeManagerResponse(NodeAction.SHUTDOWN, RM, diagnostics="Disallowed NodeManager"))
    )
    assert "Message from ResourceManager: Disallowed NodeManager" in node.one(EndNode).failure
    assert node.of(SendUnregistration) == []


@pytest.mark.parametrize(
    ("minimum", "version", "problem"),
    [
        (None, "", ""),
        ("3.4.1", "3.4.1", ""),
        ("3.9", "3.10", ""),
        ("3.10", "3.9", "The Resource Manager's version (3.9) is less than the minimum allowed version 3.10"),
        ("3.4.1", "", "The Resource Manager's did not return a version. Valid version cannot be checked."),
    ],
)
def test_a_node_ends_if_the_rms_version_is_below_its_minimum(minimum: str | None, version: str, problem: str) -> None:
    """NodeStatusUpdaterImpl.registerWithRM: yarn.nodemanager.resourcemanager.minimum.version."""
    node = Node(CoreSettings(rm_minimum_version=minimum))
    node.step(Start())
    node.step(NodeRegistered(RegisterNodeManagerResponse(NodeAction.NORMAL, RM, rm_version=version)))
    assert [problem in end.failure for end in node.of(EndNode)] == ([True] if problem else [])


def test_a_node_that_never_reaches_the_rm_ends() -> None:
    node = Node()
    node.step(Start())
    node.step(RegistrationFailed("127.0.0.1:8031 cannot be reached"))
    assert "127.0.0.1:8031 cannot be reached" in node.one(EndNode).failure


def test_the_rm_may_override_the_nodes_resource(node: Node) -> None:
    node.after(1000, Tick())
    node.answer(resource=Resource(1024, 2))
    node.step(NodeHeartbeatFailed("lost", unreachable=False))
    node.after(1000, Tick())
    node.step(NodeHeartbeatAnswered(NodeHeartbeatResponse(1, NodeAction.RESYNC)))
    assert node.one(SendRegistration).request.resource == Resource(1024, 2)


# Heartbeats


def test_heartbeats_follow_the_interval_that_the_rm_sets(node: Node) -> None:
    node.after(999, Tick())
    assert node.effects == []
    node.after(1, Tick())
    assert node.one(SendHeartbeat).request.response_id == 1
    node.answer(next_heartbeat_ms=250)
    assert node.core.next_deadline_ms() == node.now_ms + 250


def test_a_first_heartbeat_that_fails_is_repeated_with_the_same_response_id(node: Node) -> None:
    """If the RM received the first heartbeat after a registration, it repeats its reply."""
    node.after(1000, Tick())
    node.step(NodeHeartbeatAnswered(NodeHeartbeatResponse(0, NodeAction.RESYNC)))
    node.step(NodeRegistered(RegisterNodeManagerResponse(NodeAction.NORMAL, RM)))
    first = node.one(SendHeartbeat).request
    node.step(NodeHeartbeatFailed("lost", unreachable=False))
    node.after(1000, Tick())
    assert node.one(SendHeartbeat).request == first
    assert first.response_id == 0


def test_the_next_response_id_is_the_one_that_the_rm_sent(node: Node) -> None:
    """The RM determines the numbers: 0 follows the largest Java int. A node that counted by itself would differ."""
    node.after(1000, Tick())
    for sent in (RESPONSE_ID_MAX - 1, RESPONSE_ID_MAX, 0, 1):
        node.step(NodeHeartbeatAnswered(NodeHeartbeatResponse(sent, NodeAction.NORMAL)))
        node.after(1000, Tick())
        assert node.one(SendHeartbeat).request.response_id == sent


def test_a_containers_end_is_reported_at_once(node: Node) -> None:
    launched(node, 1).step(exited(1, 0))
    (status,) = node.one(SendHeartbeat).request.containers
    assert (status.state, status.exit_status) == (ContainerState.COMPLETE, 0)


def test_two_heartbeats_are_never_in_progress_at_once(node: Node) -> None:
    """The end of a container during a heartbeat is reported by the next one, right after the answer (I-24)."""
    launched(launched(node, 1), 2).step(exited(1, 0))
    node.one(SendHeartbeat)
    node.step(exited(2, 0))
    assert node.of(SendHeartbeat) == []
    node.answer()
    assert [status.container_id for status in node.one(SendHeartbeat).request.containers] == [container_id(2)]


def test_an_unexpected_answer_is_ignored(node: Node) -> None:
    assert node.step(NodeHeartbeatAnswered(NodeHeartbeatResponse(9, NodeAction.NORMAL))) == []
    assert node.core.status.state.name == "IDLE"


def test_a_containers_end_is_reported_again_after_a_lost_answer(node: Node) -> None:
    """The first answer after a failed heartbeat may belong to that one. Only the second proves the arrival."""
    launched(node, 1).step(exited(1, 0))
    node.step(NodeHeartbeatFailed("lost", unreachable=False))
    for reported in (True, True, False):
        node.after(1000, Tick())
        request = node.one(SendHeartbeat).request
        assert [status.container_id for status in request.containers] == [container_id(1)] * reported
        node.answer()


def test_a_container_is_kept_until_the_rm_acknowledges_its_end(node: Node) -> None:
    launched(node, 1).step(exited(1, 0))
    node.answer()
    assert container_id(1) in node.core.containers
    node.after(1000, Tick())
    node.answer(containers_to_forget=(container_id(1),))
    assert container_id(1) not in node.core.containers


@pytest.mark.parametrize("in_progress", [False, True])
def test_a_container_that_is_acknowledged_before_its_end_is_dropped_once_that_is_reported(
    node: Node, *, in_progress: bool
) -> None:
    """A heartbeat that is in progress at the end does not report it. Dropped then, the RM would take it for lost."""
    launched(node, 1)
    node.after(1000, Tick())
    node.answer(containers_to_forget=(container_id(1),))
    if in_progress:
        node.after(1000, Tick())
    node.step(exited(1, 0))
    if in_progress:
        node.answer()
    (status,) = node.one(SendHeartbeat).request.containers
    assert status.state is ContainerState.COMPLETE
    node.answer()
    assert container_id(1) not in node.core.containers


def test_a_heartbeat_reports_health_and_utilization(node: Node) -> None:
    node.step(HealthChecked(NodeHealth(False, "1/1 local-dirs have errors", 5)))
    node.step(UtilizationSampled(ResourceUtilization(10, 20, 0.5), ResourceUtilization(100, 200, 1.5)))
    node.after(1000, Tick())
    request = node.one(SendHeartbeat).request
    assert request.health == NodeHealth(False, "1/1 local-dirs have errors", 5)
    assert request.containers_utilization == ResourceUtilization(10, 20, 0.5)
    assert request.node_utilization == ResourceUtilization(100, 200, 1.5)


def test_a_node_that_loses_the_rm_ends_its_containers_and_stops(node: Node) -> None:
    launched(node, 1)
    node.after(1000, Tick())
    node.step(NodeHeartbeatFailed("connection refused", unreachable=True))
    assert node.one(SignalProcess).signal is Signal.TERM
    node.step(exited(1, 143))
    assert "connection refused" in node.one(EndNode).failure
    assert node.of(SendUnregistration) == []


# Orders


def test_the_rm_stops_a_container(node: Node) -> None:
    launched(node, 1)
    node.after(1000, Tick())
    node.answer(containers_to_clean_up=(container_id(1), container_id(77)))
    node.step(exited(1, 143))
    (status,) = node.one(SendHeartbeat).request.containers
    assert status.exit_status == -106
    assert "Container Killed by ResourceManager\n" in status.diagnostics


def test_the_end_of_an_application_deletes_its_directories_and_later_its_logs(
    node: Node,
) -> None:
    launched(launched(node, 1), 2)
    node.after(1000, Tick())
    node.answer(applications_to_clean_up=(APP,))
    assert [effect.signal for effect in node.of(SignalProcess)] == [Signal.TERM, Signal.TERM]
    node.step(exited(1, 143))
    assert node.of(DeleteApplicationFiles) == []
    node.step(exited(2, 143))
    assert node.one(DeleteApplicationFiles).application_id == APP
    assert node.one(ForgetApplicationKeys).application_id == APP
    assert node.core.applications == {}
    (status,) = [s for s in node.core.status._pending_completed.values() if s.container_id == container_id(1)]
    assert status.exit_status == -107
    assert "Container killed on application-finish event: Application killed by ResourceManager\n" in status.diagnostics
    node.after(CoreSettings().log_retain_ms, Tick())
    assert node.one(DeleteApplicationLogs).application_id == APP


def test_a_container_that_is_started_after_its_applications_end_is_killed(node: Node) -> None:
    """The application has ended, but still waits for the end of another container."""
    launched(node, 1)
    node.after(1000, Tick())
    node.answer(applications_to_clean_up=(APP,))
    assert node.start(2).succeeded == (container_id(2),)
    assert node.of(LaunchContainer) == []
    (status,) = [s for s in node.one(SendHeartbeat).request.containers if s.container_id == container_id(2)]
    assert (status.state, status.exit_status) == (ContainerState.COMPLETE, -107)
    assert "Application no longer running.\n" in status.diagnostics
    assert "Container is killed before being launched.\n" in status.diagnostics


def test_a_signal_that_a_user_ordered_is_kept_in_the_diagnostics(node: Node) -> None:
    launched(node, 1)
    node.after(1000, Tick())
    node.answer(containers_to_signal=((container_id(1), SignalContainerCommand.OUTPUT_THREAD_DUMP),))
    signal = node.one(SignalProcess)
    assert (signal.signal, signal.command) == (Signal.QUIT, "OUTPUT_THREAD_DUMP")
    node.step(ContainerSignalled(container_id(1), signal.command, signal.signal, 4711, True))
    assert (
        "Sent signal OUTPUT_THREAD_DUMP (SIGQUIT) to pid 4711 as user alice for container "
        f"{container_id(1)}, result=success\n"
    ) in node.core.containers[container_id(1)].status().diagnostics


def test_a_resync_keeps_the_containers_and_refuses_new_ones_meanwhile(node: Node) -> None:
    launched(node, 1)
    launched(node, 2).step(exited(2, 0))
    node.step(NodeHeartbeatAnswered(NodeHeartbeatResponse(0, NodeAction.RESYNC)))
    request = node.one(SendRegistration).request
    assert {(status.container_id, status.state) for status in request.containers} == {
        (container_id(1), ContainerState.RUNNING),
        (container_id(2), ContainerState.COMPLETE),
    }
    assert request.running_applications == (APP,)
    refused = node.start(3).failed[container_id(3)]
    assert "rejected as it is allocated by a previous RM" in refused.message

    node.step(NodeRegistered(RegisterNodeManagerResponse(NodeAction.NORMAL, RM)))
    assert node.one(SendHeartbeat).request.response_id == 0


@pytest.mark.parametrize("lost", [False, True], ids=["reported once", "maybe not received"])
def test_containers_that_ended_before_a_resync_are_in_the_registration_only(node: Node, *, lost: bool) -> None:
    """NodeStatusUpdaterImpl drops its pending reports: the registration has reported all of them."""
    launched(node, 1)
    launched(node, 2).step(exited(2, 0))
    if lost:
        node.step(NodeHeartbeatFailed("lost", unreachable=False))
        node.after(1000, Tick())
    node.step(NodeHeartbeatAnswered(NodeHeartbeatResponse(0, NodeAction.RESYNC)))
    assert container_id(2) in [status.container_id for status in node.one(SendRegistration).request.containers]
    node.step(NodeRegistered(RegisterNodeManagerResponse(NodeAction.NORMAL, RM)))
    for _ in range(3):
        (status,) = node.one(SendHeartbeat).request.containers
        assert (status.container_id, status.state) == (container_id(1), ContainerState.RUNNING)
        node.response_id = 0
        node.answer()
        node.after(1000, Tick())


def test_a_resync_that_is_not_work_preserving_kills_the_containers_first() -> None:
    node = launched(Node(CoreSettings(work_preserving=False)).register(), 1)
    node.after(1000, Tick())
    node.step(NodeHeartbeatAnswered(NodeHeartbeatResponse(0, NodeAction.RESYNC)))
    assert node.of(SendRegistration) == []
    node.step(exited(1, 143))
    (status,) = node.one(SendRegistration).request.containers
    assert (status.state, status.exit_status) == (ContainerState.COMPLETE, -106)


def test_a_node_that_the_rm_shuts_down_ends_its_containers_without_unregistering(node: Node) -> None:
    launched(node, 1)
    node.after(1000, Tick())
    node.step(NodeHeartbeatAnswered(NodeHeartbeatResponse(0, NodeAction.SHUTDOWN, diagnostics="excluded")))
    node.step(exited(1, 143))
    assert node.one(EndNode).failure == ""
    assert node.of(SendUnregistration) == []


# The end of the node


def test_a_stopping_node_unregisters_and_then_ends_its_containers(node: Node) -> None:
    launched(node, 1).step(ShutDown())
    assert node.effects == [SendUnregistration()]
    node.step(UnregisterCompleted())
    assert node.one(SignalProcess).signal is Signal.TERM
    assert node.of(EndNode) == []
    node.after(250, Tick())
    assert node.one(SignalProcess).signal is Signal.KILL
    node.step(exited(1, 137))
    assert node.one(EndNode).failure == ""


def test_a_stopping_node_accepts_containers_until_it_is_unregistered(node: Node) -> None:
    """The AM requests another container for a lost one. A refused start would count as a failure."""
    launched(node, 1).step(ShutDown())
    assert node.start(2).succeeded == (container_id(2),)
    node.step(UnregisterCompleted())
    refused = node.start(3).failed[container_id(3)]
    assert refused.message == "Container start failed as the NodeManager is in the process of shutting down"


def test_a_stopping_node_does_not_wait_forever(node: Node) -> None:
    launched(node, 1).step(ShutDown())
    node.after(UNREGISTER_TIMEOUT_MS, Tick())
    assert node.one(SignalProcess).signal is Signal.TERM
    assert node.step(UnregisterCompleted()) == []
    node.after(CoreSettings().shutdown_wait_ms, Tick())
    assert node.one(EndNode).failure == ""


def test_a_second_shutdown_has_no_effect(node: Node) -> None:
    launched(node, 1).step(ShutDown())
    assert node.step(ShutDown()) == []


def test_time_does_not_go_back(node: Node) -> None:
    with pytest.raises(AssertionError, match="time went back"):
        node.core.handle(Tick(), node.now_ms - 1)


@pytest.mark.parametrize("acknowledged", [True, False])
def test_what_a_container_costs_does_not_grow_with_those_that_ended_before(
    monkeypatch: pytest.MonkeyPatch, *, acknowledged: bool
) -> None:
    """A long application ends thousands of containers on a node, which remembers them as long as it runs."""
    looked_at = 0
    is_done = NMContainer.is_done.fget
    is_stopped = NMApplication.is_stopped.fget

    def count(look: Callable[[Any], bool] | None) -> property:
        def counted(one: object) -> bool:
            nonlocal looked_at
            looked_at += 1
            assert look is not None
            return look(one)

        return property(counted)

    def looks_for_the_last_of(number_of_containers: int) -> int:
        nonlocal looked_at
        node = Node(CoreSettings(stopped_containers_kept_ms=1000)).register()
        # The invariants look at every container.
        node.core._audit = None
        for number in range(1, number_of_containers + 1):
            if number == number_of_containers:
                node.after(2000, Tick())
                node.answer()
                looked_at = 0
            launched(node, number)
            node.step(exited(number, 0))
            node.answer(containers_to_forget=(container_id(number),) if acknowledged else ())
        return looked_at

    monkeypatch.setattr(NMContainer, "is_done", count(is_done))
    monkeypatch.setattr(NMApplication, "is_stopped", count(is_stopped))
    assert looks_for_the_last_of(200) == looks_for_the_last_of(20)
