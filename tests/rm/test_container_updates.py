"""Containers that change their size: delivery to the NM, the NM's reports, and expiry (RMContainerImpl)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rm.core.events import Allocate, NodeHeartbeat
from rm.scheduler.model.rm_container import RMContainer
from tests.rm.builders import RM, done, resource_request
from yarn.containers import Container, ResourceRequest, UpdateContainerRequest
from yarn.ids import ApplicationId, ContainerId
from yarn.protocols.master import AllocateRequest, AllocateResponse
from yarn.protocols.tracker import NodeHeartbeatResponse
from yarn.resource import Resource
from yarn.states import ContainerUpdateType, ExecutionType

EXPIRY_MS = 600_000
LOOK_MS = EXPIRY_MS // 3
AUTO = "yarn.resourcemanager.auto-update.containers"


class Grower:
    """An application with one running container of 1 GB."""

    def __init__(self, rm: RM) -> None:
        self.rm = rm
        rm.node("n1")
        self.app: ApplicationId = rm.submit()
        rm.run_am(self.app)
        (self.container,) = rm.get(self.app, 1)
        self.id: ContainerId = self.container.id

    @property
    def seen(self) -> RMContainer:
        """The scheduler's container."""
        return self.rm.core.scheduler.containers_of(self.app)[self.id]

    @property
    def size_mb(self) -> int:
        return self.seen.resource.memory_mb

    def change(self, memory_mb: int) -> AllocateResponse:
        """Request another size, send a heartbeat of the node, and fetch the updated container."""
        increase = memory_mb > self.size_mb
        kind = ContainerUpdateType.INCREASE_RESOURCE if increase else ContainerUpdateType.DECREASE_RESOURCE
        request = UpdateContainerRequest(self.id, self.seen.container.version, kind, Resource(memory_mb, 1))
        answer = self.call(request)
        if increase:
            self.beat()
            answer = self.call()
        return answer

    def call(self, *updates: UpdateContainerRequest) -> AllocateResponse:
        rm, attempt_id = self.rm, self.rm.attempt_id(self.app)
        request = AllocateRequest(rm._response_ids[attempt_id], updates=updates)
        response: AllocateResponse = rm.send(Allocate(rm.call(), attempt_id, request))
        rm._response_ids[attempt_id] = response.response_id
        return response

    def beat(self, reported_mb: int | None = None, vcores: int = 1) -> NodeHeartbeatResponse:
        """Send a heartbeat of the node; `reported_mb`: the size of the container in it."""
        nm = self.rm.nodes["n1"]
        grown = () if reported_mb is None else (replace(self.container, resource=Resource(reported_mb, vcores)),)
        request = replace(nm.request(nm.killed), increased_containers=grown)
        nm.killed = []
        response: NodeHeartbeatResponse = self.rm.send(NodeHeartbeat(self.rm.call(), request))
        nm.obey(response)
        return response

    def wait(self, duration_ms: int) -> None:
        """Let time pass while AM and node send heartbeats."""
        for _ in range(duration_ms // 100_000):
            self.rm.wait(100_000)
            self.beat()
            self.call()


@pytest.fixture
def grower() -> Grower:
    return Grower(RM())


def orders(response: NodeHeartbeatResponse) -> list[tuple[ContainerId, int, int]]:
    return [(order.id, order.resource.memory_mb, order.version) for order in response.containers_to_update]


def test_an_am_delivers_an_increase_to_the_node(grower: Grower) -> None:
    (updated,) = grower.change(2048).updated_containers
    assert (updated.container.resource.memory_mb, updated.container.version) == (2048, 1)
    assert orders(grower.beat()) == []


def test_a_decrease_is_sent_to_the_node_once(grower: Grower) -> None:
    grower.change(2048)
    grower.beat(reported_mb=2048)
    grower.change(1024)
    # The order is in the reply to the next heartbeat.
    assert orders(grower.beat()) == [(grower.id, 1024, 2)]
    assert orders(grower.beat()) == []


def test_the_rm_sends_an_increase_to_the_node_if_configured() -> None:
    auto = Grower(RM({AUTO: "true"}))
    auto.change(2048)
    assert orders(auto.beat()) == [(auto.id, 2048, 1)]


def test_a_confirmed_increase_is_kept(grower: Grower) -> None:
    grower.change(2048)
    grower.beat(reported_mb=2048)
    grower.wait(2 * EXPIRY_MS)
    assert grower.size_mb == 2048


def test_an_increase_not_delivered_to_the_node_is_rolled_back(grower: Grower) -> None:
    grower.change(2048)
    grower.wait(EXPIRY_MS - LOOK_MS)
    assert grower.size_mb == 2048
    grower.wait(2 * LOOK_MS)

    assert grower.size_mb == 1024
    assert grower.seen.container.version == 2
    node = grower.rm.core.scheduler.nodes[grower.container.node_id]
    assert node.allocated.memory_mb == 2048, "the AM's and the container's"


def test_a_rolled_back_increase_is_reported_to_am_and_node(grower: Grower) -> None:
    grower.change(2048)
    for _ in range((EXPIRY_MS + LOOK_MS) // 100_000):
        grower.rm.wait(100_000)
        grower.beat()
        answer = grower.call()
        if answer.updated_containers:
            break
    (updated,) = answer.updated_containers
    assert updated.type is ContainerUpdateType.DECREASE_RESOURCE
    assert updated.container.resource.memory_mb == 1024
    assert orders(grower.beat()) == [(grower.id, 1024, 2)]


def test_of_two_increases_only_the_delivered_one_is_kept(grower: Grower) -> None:
    """1 -> 2 -> 4 GB, and the node reports 2 GB: after the expiry the size is 2 GB again."""
    grower.change(2048)
    grower.change(4096)
    assert grower.size_mb == 4096
    grower.beat(reported_mb=2048)
    grower.wait(EXPIRY_MS + LOOK_MS)
    assert grower.size_mb == 2048


def test_a_node_that_reports_too_large_a_size_is_sent_a_decrease(grower: Grower) -> None:
    """The container was made smaller before its node reported the increase."""
    grower.change(4096)
    grower.change(2048)
    assert orders(grower.beat()) == [(grower.id, 2048, 2)]
    grower.beat(reported_mb=4096)
    assert orders(grower.beat()) == [(grower.id, 2048, 2)]


def test_a_reported_size_neither_larger_nor_smaller_kills_the_container(grower: Grower) -> None:
    grower.change(2048)
    grower.beat(reported_mb=1024, vcores=2)
    assert grower.id in grower.beat().containers_to_clean_up


def test_a_container_unknown_to_the_rm_is_killed(grower: Grower) -> None:
    grower.rm.allocate(grower.app, release=[grower.id])
    grower.beat()
    grower.beat()
    grower.beat(reported_mb=2048)
    assert grower.id in grower.beat().containers_to_clean_up


def test_a_completed_containers_increase_no_longer_expires(grower: Grower) -> None:
    grower.change(2048)
    assert grower.id in grower.rm.core.context.increase_expiry
    grower.rm.beat(ended=[done(grower.id)])
    assert grower.id not in grower.rm.core.context.increase_expiry


def test_a_decrease_during_a_pending_increase_is_refused(grower: Grower) -> None:
    """ContainerUpdateContext.checkAndAddToOutstandingDecreases accepts it, and then every call of the AM fails.

    docs/fidelity.md says why it is refused here.
    """
    version = grower.seen.container.version
    grower.call(UpdateContainerRequest(grower.id, version, ContainerUpdateType.INCREASE_RESOURCE, Resource(4096, 1)))
    grower.beat()
    shrink = UpdateContainerRequest(grower.id, version, ContainerUpdateType.DECREASE_RESOURCE, Resource(1024, 1))

    answer = grower.call(shrink)

    assert [error.reason for error in answer.update_errors] == ["UPDATE_OUTSTANDING_ERROR"]
    assert [updated.container.resource.memory_mb for updated in answer.updated_containers] == [4096]
    assert grower.call().update_errors == ()


def test_an_error_says_which_version_the_container_has(grower: Grower) -> None:
    """RMServerUtils.checkAndcreateUpdateError: -1 for a container that does not exist."""
    known = grower.seen.container
    unknown = known.id._replace(number=99)
    late = UpdateContainerRequest(known.id, known.version + 1, ContainerUpdateType.INCREASE_RESOURCE, Resource(2048, 1))

    errors = grower.call(late, replace(late, container_id=unknown)).update_errors

    assert [(error.request.container_id, error.current_version) for error in errors] == [
        (known.id, known.version),
        (unknown, -1),
    ]


def test_a_completion_that_no_am_will_fetch_is_forgotten_by_the_node(grower: Grower) -> None:
    """The scheduler does not have the application any more when its node reports the end."""
    stranger = ContainerId(grower.id.attempt_id, 99)
    grower.rm.beat(ended=[done(stranger)])
    assert stranger in grower.beat().containers_to_forget


def test_an_opportunistic_request_is_served_like_any_other(grower: Grower) -> None:
    """Without a scheduler for opportunistic containers, they become guaranteed ones."""
    rm = grower.rm
    wanted: ResourceRequest = replace(resource_request(1), execution_type=ExecutionType.OPPORTUNISTIC)
    rm.allocate(grower.app, [wanted])
    rm.beat()
    (container,) = rm.allocate(grower.app).allocated
    assert isinstance(container, Container)
    assert container.execution_type is ExecutionType.GUARANTEED
