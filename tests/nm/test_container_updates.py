"""Updates of containers: by a token of the AM, or ordered by the RM (ContainerManagerImpl, ContainerImpl)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nm.core.effects import ChangeMonitoring, MonitorContainer, SendHeartbeat
from nm.core.events import (
    ContainerLaunched,
    NodeHeartbeatAnswered,
    NodeHeartbeatFailed,
    ShutDown,
    StopContainers,
    UnregisterCompleted,
    UpdateContainers,
)
from tests.nm.nodes import NOW_MS, OTHER_ATTEMPT, RM, Node, container_id, container_token, nm_token
from yarn.containers import ContainerTokenIdentifier, NMTokenIdentifier
from yarn.errors import InvalidContainerException, YarnException
from yarn.machine import Reply, Tick, Warn
from yarn.protocols.container_management import UpdateContainersResponse
from yarn.protocols.tracker import NodeHeartbeatResponse
from yarn.resource import Resource
from yarn.states import ExecutionType, NodeAction

MB = 1 << 20


@pytest.fixture
def node() -> Node:
    """A node on which container 1 with 128 MB runs. The RM knows the container."""
    node = Node().register()
    node.start(1)
    node.step(ContainerLaunched(container_id(1), 1))
    return node


def promise(memory_mb: int, version: int = 1, number: int = 1, **changes: object) -> ContainerTokenIdentifier:
    return replace(container_token(number, memory_mb=memory_mb), version=version, **changes)  # type: ignore[arg-type]


def update(
    node: Node, *tokens: ContainerTokenIdentifier, caller: NMTokenIdentifier | None = None
) -> UpdateContainersResponse:
    node.step(UpdateContainers(1, caller or nm_token(), tokens))
    value = node.one(Reply).value
    assert isinstance(value, UpdateContainersResponse)
    return value


def refusal(node: Node, token: ContainerTokenIdentifier, caller: NMTokenIdentifier | None = None) -> YarnException:
    (error,) = update(node, token, caller=caller).failed.values()
    assert not node.of(ChangeMonitoring)
    return error


def beat(node: Node) -> SendHeartbeat:
    node.after(1000, Tick())
    return node.one(SendHeartbeat)


def order(node: Node, *tokens: ContainerTokenIdentifier) -> None:
    """Answer the next heartbeat with orders of the RM."""
    beat(node)
    node.response_id += 1
    node.step(NodeHeartbeatAnswered(NodeHeartbeatResponse(node.response_id, NodeAction.NORMAL), tokens))


def test_a_container_grows_at_once_and_the_next_heartbeat_reports_it(node: Node) -> None:
    assert update(node, promise(512)).succeeded == (container_id(1),)

    assert node.one(ChangeMonitoring) == ChangeMonitoring(container_id(1), 512 * MB, int(2.1 * 512 * MB), 1, False)
    request = beat(node).request
    (grown,) = request.increased_containers
    assert (grown.id, grown.resource, grown.version) == (container_id(1), Resource(512, 1), 1)
    assert request.containers[0].capability == Resource(512, 1)


def test_an_increase_is_reported_once_even_if_the_heartbeat_is_lost(node: Node) -> None:
    update(node, promise(512))
    assert beat(node).request.increased_containers
    node.step(NodeHeartbeatFailed("lost", unreachable=False))
    assert beat(node).request.increased_containers == ()


def test_the_rm_can_update_a_container_by_a_heartbeat(node: Node) -> None:
    order(node, promise(64))
    assert node.one(ChangeMonitoring).physical_memory_limit_bytes == 64 * MB
    request = beat(node).request
    assert request.increased_containers == ()
    assert request.containers[0].capability == Resource(64, 1)


def test_a_failed_update_that_the_rm_ordered_is_logged(node: Node) -> None:
    order(node, promise(64, number=2))
    assert node.one(Warn).text == (
        f"Unable to update container: Container {container_id(2)} is not handled by this NodeManager"
    )


def test_the_execution_type_alone_can_be_changed(node: Node) -> None:
    update(node, promise(128, execution_type=ExecutionType.OPPORTUNISTIC))
    assert beat(node).request.containers[0].execution_type is ExecutionType.OPPORTUNISTIC


def test_a_container_that_is_updated_during_its_launch_is_monitored_by_its_new_size() -> None:
    node = Node().register()
    node.start(1)
    assert update(node, promise(512)).succeeded
    assert not node.of(ChangeMonitoring), "nothing is watched yet"
    node.step(ContainerLaunched(container_id(1), 1))
    assert node.one(MonitorContainer).physical_memory_limit_bytes == 512 * MB


def test_a_container_that_is_being_killed_keeps_its_size(node: Node) -> None:
    node.step(StopContainers(1, nm_token(), (container_id(1),)))
    assert update(node, promise(512)).succeeded
    assert node.core.containers[container_id(1)].token.resource == Resource(128, 1)


@pytest.mark.parametrize("version", [0, 1])
def test_a_token_with_an_older_version_is_refused(node: Node, version: int) -> None:
    order(node, promise(256, version=1))
    beat(node)
    node.answer()
    assert refusal(node, promise(512, version=version)).message == (
        f"Container {container_id(1)} has update version [1] >= requested version [{version}]"
    )


def test_a_second_increase_before_the_next_heartbeat_is_refused(node: Node) -> None:
    update(node, promise(256, version=1))
    assert "resource is being increased" in refusal(node, promise(512, version=2)).message
    beat(node)
    node.answer()
    assert update(node, promise(512, version=2)).succeeded


def test_unauthorized_updates_are_refused(node: Node) -> None:
    text = refusal(node, promise(512), caller=nm_token(OTHER_ATTEMPT)).message
    assert text.startswith("Unauthorized request to increase container resource.\nNMToken for application attempt : ")
    assert "was used for increasing resource of container" in text
    assert "This token is expired" in refusal(node, promise(512, expiry_ms=NOW_MS - 1)).message
    assert isinstance(refusal(node, promise(512, rm_identifier=RM - 1)), InvalidContainerException)
    assert "is not handled by this NodeManager" in refusal(node, promise(512, number=7)).message


def test_a_refused_update_does_not_affect_the_others(node: Node) -> None:
    response = update(node, promise(512, number=7), promise(512))
    assert response.succeeded == (container_id(1),)
    assert list(response.failed) == [container_id(7)]


def test_a_node_that_is_shutting_down_refuses_updates(node: Node) -> None:
    node.step(ShutDown())
    node.step(UnregisterCompleted())
    assert "in the process of shutting down" in refusal(node, promise(512)).message
