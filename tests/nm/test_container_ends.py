"""The ends of a node's containers: killed, failed, over their memory, relaunched."""

from __future__ import annotations

import pytest

from nm.core.effects import (
    DeleteContainerFiles,
    LaunchContainer,
    SendHeartbeat,
    Signal,
    SignalProcess,
)
from nm.core.events import (
    ContainerLaunched,
    LaunchCancelled,
    LaunchFailed,
    LimitExceeded,
)
from nm.core.settings import CoreSettings
from tests.nm.nodes import Node, container_id, exited, launched, stop
from yarn.containers import ContainerLaunchContext, ContainerRetryContext
from yarn.machine import Tick
from yarn.states import ContainerRetryPolicy, ContainerState

RETRY_TWICE = ContainerLaunchContext(
    ("exit 3",), retry=ContainerRetryContext(ContainerRetryPolicy.RETRY_ON_ALL_ERRORS, max_retries=2)
)


@pytest.fixture
def node() -> Node:
    return Node().register()


def test_a_kill_sends_term_then_kill(node: Node) -> None:
    launched(node, 1)
    stop(node, 1)
    assert [effect.signal for effect in node.of(SignalProcess)] == [Signal.TERM]
    node.after(249, Tick())
    assert node.of(SignalProcess) == []
    node.after(1, Tick())
    assert [effect.signal for effect in node.of(SignalProcess)] == [Signal.KILL]


def test_without_a_delay_a_kill_sends_only_kill() -> None:
    node = launched(Node(CoreSettings(sigkill_delay_ms=0)).register(), 1)
    stop(node, 1)
    assert [effect.signal for effect in node.of(SignalProcess)] == [Signal.KILL]


@pytest.mark.parametrize(("code", "status"), [(143, -105), (137, -105), (0, 0), (7, 7)])
def test_the_exit_code_of_a_process_replaces_the_reason_of_its_kill(node: Node, code: int, status: int) -> None:
    launched(node, 1)
    stop(node, 1)
    node.step(exited(1, code))
    (reported,) = node.one(SendHeartbeat).request.containers
    assert reported.exit_status == status
    assert reported.diagnostics.startswith("[2023-11-14 22:15:00.000]Container killed by the ApplicationMaster.\n")


def test_orphans_of_an_exited_process_are_ended(node: Node) -> None:
    launched(node, 1).step(exited(1, 0))
    assert [effect.signal for effect in node.of(SignalProcess)] == [Signal.TERM]
    node.after(250, Tick())
    assert [effect.signal for effect in node.of(SignalProcess)] == [Signal.KILL]


def test_a_container_that_is_killed_before_its_process_started_ends_as_killed(node: Node) -> None:
    node.start(1)
    stop(node, 1)
    node.step(LaunchCancelled(container_id(1), 1))
    (reported,) = node.one(SendHeartbeat).request.containers
    assert reported.exit_status == -105
    assert "Container terminated before launch.\n" in reported.diagnostics


def test_a_container_fails_if_all_disks_are_bad(node: Node) -> None:
    node.start(1)
    node.step(LaunchFailed(container_id(1), 1, -101, "Most of the disks failed. 1/1 local-dirs have errors"))
    (reported,) = node.one(SendHeartbeat).request.containers
    assert reported.exit_status == -101
    assert "Most of the disks failed. 1/1 local-dirs have errors\n" in reported.diagnostics


@pytest.mark.case("H4")
def test_a_container_over_its_memory_dies_with_minus_104_and_the_numbers(node: Node) -> None:
    launched(node, 1)
    node.step(LimitExceeded(container_id(1), 1, -104, "Container is running 5B beyond the 'PHYSICAL' memory limit."))
    node.step(exited(1, 143))
    (reported,) = node.one(SendHeartbeat).request.containers
    assert reported.exit_status == -104
    assert "running 5B beyond the 'PHYSICAL' memory limit.\n" in reported.diagnostics
    assert "Container killed on request. Exit code is 143\n" in reported.diagnostics
    assert "Killed by external signal" not in reported.diagnostics


def test_a_failed_container_is_relaunched_as_often_as_its_retry_context_allows(node: Node) -> None:
    launched(node, 1, RETRY_TWICE)
    for launch in (2, 3):
        node.step(exited(1, 3, launch - 1))
        assert node.state(1) == "RELAUNCHING"
        assert node.of(LaunchContainer) == []
        node.after(1000, Tick())
        assert node.one(LaunchContainer).launch == launch
        node.step(ContainerLaunched(container_id(1), launch))
    node.step(exited(1, 3, 3))
    reported = node.core.containers[container_id(1)].status()
    assert (reported.state, reported.exit_status) == (ContainerState.COMPLETE, 3)
    assert reported.diagnostics.count("Diagnostic message from attempt : ") == 3


def test_a_container_that_is_killed_between_two_launches_is_not_relaunched(node: Node) -> None:
    launched(node, 1, RETRY_TWICE).step(exited(1, 3))
    stop(node, 1)
    (reported,) = node.one(SendHeartbeat).request.containers
    assert reported.exit_status == -105
    node.after(1000, Tick())
    assert node.of(LaunchContainer) == []


def test_events_of_an_earlier_launch_are_ignored(node: Node) -> None:
    launched(node, 1, RETRY_TWICE).step(exited(1, 3))
    node.after(1000, Tick())
    node.step(ContainerLaunched(container_id(1), 2))
    node.step(exited(1, 3, launch=1))
    assert node.state(1) == "RUNNING"


def test_events_of_an_unknown_container_are_ignored(node: Node) -> None:
    assert node.step(exited(9, 0)) == []
    assert node.step(LimitExceeded(container_id(9), 1, -104, "")) == []


def test_long_diagnostics_keep_their_end() -> None:
    node = launched(Node(CoreSettings(diagnostics_max_chars=60)).register(), 1)
    node.step(exited(1, 143))
    (reported,) = node.one(SendHeartbeat).request.containers
    assert len(reported.diagnostics) == 60
    assert reported.diagnostics.endswith("Killed by external signal\n")


def test_files_can_be_kept_for_a_while_for_debugging() -> None:
    node = launched(Node(CoreSettings(deletion_delay_ms=5000)).register(), 1)
    node.step(exited(1, 1))
    assert node.of(DeleteContainerFiles) == []
    node.after(5000, Tick())
    assert node.one(DeleteContainerFiles).container_id == container_id(1)


def test_files_can_be_kept_forever() -> None:
    node = launched(Node(CoreSettings(deletion_delay_ms=-1000)).register(), 1)
    node.step(exited(1, 1))
    node.after(10**9, Tick())
    assert node.of(DeleteContainerFiles) == []
