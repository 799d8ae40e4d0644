"""Containers that are demoted to opportunistic ones and promoted again, and what counts for them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rm.core.events import MoveApplication
from tests.rm.builders import RM, done, resource_request
from tests.rm.test_container_updates import Grower
from yarn.containers import UpdateContainerRequest
from yarn.errors import YARNFeatureNotEnabledException
from yarn.protocols.master import AllocateResponse
from yarn.resource import Resource
from yarn.states import ContainerUpdateType, ExecutionType

OPPORTUNISTIC_ALLOCATION = {"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true"}
AM_MB = 1024
KINDS = {
    ExecutionType.GUARANTEED: ContainerUpdateType.PROMOTE_EXECUTION_TYPE,
    ExecutionType.OPPORTUNISTIC: ContainerUpdateType.DEMOTE_EXECUTION_TYPE,
}


@pytest.fixture
def grower() -> Grower:
    return Grower(RM(OPPORTUNISTIC_ALLOCATION))


def update(grower: Grower, execution: ExecutionType) -> AllocateResponse:
    version = grower.seen.container.version
    request = UpdateContainerRequest(grower.id, version, KINDS[execution], execution_type=execution)
    return grower.call(request)


def demote(grower: Grower) -> AllocateResponse:
    return update(grower, ExecutionType.OPPORTUNISTIC)


def used_mb(grower: Grower) -> tuple[int, int]:
    """MB in use: by the queue, on the node."""
    scheduler = grower.rm.core.scheduler
    queue = scheduler.queues["root.default"].usage.used("").memory_mb
    return queue, scheduler.nodes[grower.container.node_id].allocated.memory_mb


def test_a_demoted_container_does_not_count_towards_usage(grower: Grower) -> None:
    (updated,) = demote(grower).updated_containers
    assert updated.type is ContainerUpdateType.DEMOTE_EXECUTION_TYPE
    assert updated.container.execution_type is ExecutionType.OPPORTUNISTIC
    assert (updated.container.resource, updated.container.version) == (Resource(1024, 1), 1)
    assert used_mb(grower) == (AM_MB, AM_MB)


def test_a_promoted_container_counts_again_once_its_node_has_room(grower: Grower) -> None:
    demote(grower)
    assert update(grower, ExecutionType.GUARANTEED).updated_containers == ()
    grower.beat()
    (updated,) = grower.call().updated_containers
    assert updated.type is ContainerUpdateType.PROMOTE_EXECUTION_TYPE
    assert (updated.container.execution_type, updated.container.version) == (ExecutionType.GUARANTEED, 2)
    assert used_mb(grower) == (AM_MB + 1024, AM_MB + 1024)
    assert len(grower.rm.core.scheduler.containers_of(grower.app)) == 2, "the temporary container has been removed"


def test_a_completed_opportunistic_container_frees_nothing(grower: Grower) -> None:
    demote(grower)
    grower.rm.beat(ended=[done(grower.id)])
    assert [status.container_id for status in grower.call().completed] == [grower.id]
    assert used_mb(grower) == (AM_MB, AM_MB)
    assert grower.id not in grower.rm.core.scheduler.containers_of(grower.app)


def test_a_completed_promoted_container_frees_all_its_resources(grower: Grower) -> None:
    demote(grower)
    update(grower, ExecutionType.GUARANTEED)
    grower.beat()
    grower.call()
    grower.rm.beat(ended=[done(grower.id)])
    assert used_mb(grower) == (AM_MB, AM_MB)


def test_a_second_update_of_the_same_container_is_refused(grower: Grower) -> None:
    demote(grower)
    update(grower, ExecutionType.GUARANTEED)
    answer = update(grower, ExecutionType.GUARANTEED)
    assert [error.reason for error in answer.update_errors] == ["UPDATE_OUTSTANDING_ERROR"]


def test_an_update_to_the_current_execution_type_changes_nothing(grower: Grower) -> None:
    answer = update(grower, ExecutionType.GUARANTEED)
    assert (answer.updated_containers, answer.update_errors) == ((), ())


def test_moving_an_opportunistic_container_moves_no_usage() -> None:
    conf = {
        "yarn.scheduler.capacity.root.queues": "default,other",
        "yarn.scheduler.capacity.root.default.capacity": "50",
        "yarn.scheduler.capacity.root.other.capacity": "50",
    }
    grower = Grower(RM({**OPPORTUNISTIC_ALLOCATION, **conf}))
    demote(grower)
    grower.rm.send(MoveApplication(grower.rm.call(), "yarn", grower.app, "root.other"))
    used = {
        name: grower.rm.core.scheduler.queues[name].usage.used("").memory_mb for name in ("root.default", "root.other")
    }
    assert used == {"root.default": 0, "root.other": AM_MB}


def test_requests_for_opportunistic_containers_are_refused_by_name(grower: Grower) -> None:
    wanted = replace(resource_request(1), execution_type=ExecutionType.OPPORTUNISTIC)
    with pytest.raises(YARNFeatureNotEnabledException, match="become opportunistic by an update only"):
        grower.rm.allocate(grower.app, [wanted])


def test_without_opportunistic_allocation_nothing_is_demoted() -> None:
    grower = Grower(RM())
    with pytest.raises(YARNFeatureNotEnabledException, match="cannot be demoted"):
        demote(grower)
    assert used_mb(grower) == (AM_MB + 1024, AM_MB + 1024)
