"""Containers that are increased and decreased (ContainerUpdateContext, spec 8.13)."""

from __future__ import annotations

import pytest

from rm.scheduler.placement.container_updates import INCORRECT_VERSION, INVALID_ID, OUTSIDE_RANGE, OUTSTANDING
from tests.rm.scheduler.cluster import GB, ONE_QUEUE, Cluster
from yarn.containers import UpdateContainerRequest
from yarn.errors import YARNFeatureNotEnabledException
from yarn.ids import ContainerId
from yarn.resource import Resource
from yarn.states import ContainerUpdateType, ExecutionType


@pytest.fixture
def cluster() -> Cluster:
    """app1 runs container 2 of 2 GB beside its AM on n1; n2 is empty."""
    cluster = Cluster(ONE_QUEUE)
    cluster.node("n1", 8 * GB)
    cluster.node("n2", 8 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 1, 2 * GB)
    cluster.heartbeat("n1")
    cluster.poll("app1")
    cluster.heartbeat("n1")
    return cluster


def test_an_increase_is_served_on_the_containers_own_node(cluster: Cluster) -> None:
    """createResourceRequests: a request for the difference without relaxed locality."""
    assert cluster.resize_container("app1", 2, 5 * GB).updated == ()
    assert cluster.heartbeat("n2") == []
    assert cluster.heartbeat("n1") == ["app1/3 on n1 3072"]
    assert cluster.used() == 6 * GB
    allocation = cluster.poll("app1")
    assert allocation.containers == ()
    updated = allocation.updated[0]
    assert (updated.container.id.number, updated.container.resource.memory_mb, updated.container.version) == (
        2,
        5 * GB,
        1,
    )
    assert updated.type is ContainerUpdateType.INCREASE_RESOURCE
    assert cluster.used() == 6 * GB
    assert cluster.held("app1") == 6 * GB
    assert [container.id.number for container in cluster.node_of("n1").containers.values()] == [1, 2]


def test_an_increase_lapses_if_its_temporary_container_was_released(cluster: Cluster) -> None:
    """An AM can guess the id that it never received.

    SchedulerApplicationAttempt.pullNewlyUpdatedContainers then reports the increase without its resources
    (random seed 400671; docs/fidelity.md).
    """
    cluster.resize_container("app1", 2, 5 * GB)
    cluster.heartbeat("n1")
    cluster.release("app1", 3)
    assert cluster.poll("app1").updated == ()
    assert cluster.held("app1") == cluster.used() == 3 * GB
    assert cluster.violations() == []


def test_a_decrease_frees_the_difference_after_the_call_that_requests_it(cluster: Cluster) -> None:
    """The temporary container takes the difference and is released by a separate event, after the response."""
    updated = cluster.resize_container("app1", 2, GB).updated[0]
    assert updated.type is ContainerUpdateType.DECREASE_RESOURCE
    assert (updated.container.resource.memory_mb, updated.container.version) == (GB, 1)
    assert (cluster.used(), cluster.held("app1")) == (2 * GB, 2 * GB)
    assert cluster.node_of("n1").unallocated.memory_mb == 6 * GB


def test_a_decrease_leaves_the_count_of_containers_one_too_low(cluster: Cluster) -> None:
    """AbstractYarnScheduler.createDecreasedRMContainer counts none, AbstractCSQueue.releaseResource one less."""
    before = cluster.leaf().container_count
    cluster.resize_container("app1", 2, GB)
    assert cluster.leaf().container_count == before - 1


def test_a_second_increase_replaces_the_first(cluster: Cluster) -> None:
    """checkAndAddToOutstandingIncreases cancels what is left of the earlier request."""
    cluster.resize_container("app1", 2, 8 * GB)
    assert cluster.attempt("app1").usage.pending("").memory_mb == 6 * GB
    cluster.resize_container("app1", 2, 3 * GB)
    assert cluster.attempt("app1").usage.pending("").memory_mb == GB
    assert cluster.heartbeat("n1") == ["app1/3 on n1 1024"]
    assert cluster.poll("app1").updated[0].container.resource.memory_mb == 3 * GB


def test_a_decrease_cancels_an_increase(cluster: Cluster) -> None:
    cluster.resize_container("app1", 2, 8 * GB)
    cluster.resize_container("app1", 2, GB)
    assert cluster.attempt("app1").usage.pending("").memory_mb == 0
    assert cluster.used() == 2 * GB


def test_a_completion_removes_the_reservation_for_the_containers_increase(cluster: Cluster) -> None:
    """AbstractYarnScheduler.completeOustandingUpdatesWhichAreReserved."""
    cluster.run("app2", "n1")
    cluster.request("app2", 1, 3 * GB)
    cluster.heartbeat("n1")
    cluster.resize_container("app1", 2, 5 * GB)
    assert cluster.heartbeat("n1") == ["app1/3 reserved on n1 3072"]
    cluster.finish("app1", 2)
    assert cluster.heartbeat("n1")[0] == "app1/2 ended 0"
    assert cluster.attempt("app1").reserved_containers == []


def test_invalid_updates_are_refused(cluster: Cluster) -> None:
    """RMServerUtils.validateAndSplitUpdateResourceRequests: errors are returned, never raised."""
    attempt = cluster.attempt("app1")
    known, unknown = ContainerId(attempt.attempt_id, 2), ContainerId(attempt.attempt_id, 9)
    increase = ContainerUpdateType.INCREASE_RESOURCE
    accepted, errors = cluster.scheduler.check_updates(
        "root.a",
        [
            UpdateContainerRequest(unknown, 0, increase, Resource(4 * GB, 1)),
            UpdateContainerRequest(known, 7, increase, Resource(4 * GB, 1)),
            UpdateContainerRequest(known, 0, increase, Resource(9 * GB, 1)),
            UpdateContainerRequest(known, 0, increase, Resource(3000, 1)),
            UpdateContainerRequest(known, 0, increase, Resource(4 * GB, 1)),
        ],
    )
    assert [error.reason for error in errors] == [INVALID_ID, INCORRECT_VERSION, OUTSIDE_RANGE, OUTSTANDING]
    assert [request.capability for request in accepted] == [Resource(3 * GB, 1)]
    assert [error.current_version for error in errors] == [-1, 0, 0, 0]


def test_promoting_a_guaranteed_container_changes_nothing_and_demoting_it_is_refused(cluster: Cluster) -> None:
    known = ContainerId(cluster.attempt("app1").attempt_id, 2)
    kind = ContainerUpdateType.PROMOTE_EXECUTION_TYPE
    promotion = UpdateContainerRequest(known, 0, kind, execution_type=ExecutionType.GUARANTEED)
    assert cluster.scheduler.check_updates("root.a", [promotion]) == ([], [])
    kind = ContainerUpdateType.DEMOTE_EXECUTION_TYPE
    demotion = UpdateContainerRequest(known, 0, kind, execution_type=ExecutionType.OPPORTUNISTIC)
    with pytest.raises(YARNFeatureNotEnabledException, match="there are no opportunistic containers"):
        cluster.scheduler.check_updates("root.a", [demotion])
