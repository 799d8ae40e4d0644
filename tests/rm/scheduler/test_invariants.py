"""Each invariant detects its violation. (test_random_operations.py checks that they hold for random input.)"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rm.scheduler.events.request_checks import BLACKLIST_MAX
from rm.scheduler.invariants.state import violations
from rm.scheduler.model.queue import ParentQueue
from rm.scheduler.model.rm_container_events import RMContainerKill
from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster
from yarn.containers import ContainerStatus
from yarn.resource import Resource
from yarn.states import ContainerState


def _break_node(cluster: Cluster) -> None:
    cluster.node_of("n1").unallocated = Resource(1, 1)


def _break_over_commit(cluster: Cluster) -> None:
    cluster.node_of("n1").update_total(Resource(512, 1))


def _break_node_containers(cluster: Cluster) -> None:
    node = cluster.node_of("n1")
    node.allocated, node.unallocated = Resource(0, 0), node.total


def _break_leaf(cluster: Cluster) -> None:
    cluster.attempt("app1").usage.default.used = Resource(0, 0)


def _break_parent(cluster: Cluster) -> None:
    cluster.scheduler.queues["root"].usage.default.used = Resource(1, 1)


def _break_user(cluster: Cluster) -> None:
    cluster.leaf().users.users["user"].usage.default.used = Resource(1, 1)


def _break_pending(cluster: Cluster) -> None:
    cluster.attempt("app1").usage.default.pending = Resource(7, 7)


def _break_reservation(cluster: Cluster) -> None:
    reserved = cluster.node_of("n1").reserved_container
    cluster.node_of("n1").reserved_container = None
    cluster.node_of("n2").reserved_container = reserved


def _break_reservation_owner(cluster: Cluster) -> None:
    cluster.attempt("app1").is_stopped = True


def _break_am_usage(cluster: Cluster) -> None:
    cluster.leaf().usage.default.am_used = Resource(GB, 2)


def _break_container_count(cluster: Cluster) -> None:
    cluster.leaf().container_count += 1


def _break_parent_container_count(cluster: Cluster) -> None:
    cluster.scheduler.queues["root"].container_count -= 1


def _break_application_count(cluster: Cluster) -> None:
    root = cluster.scheduler.queues["root"]
    assert isinstance(root, ParentQueue)
    root.application_count += 1


def _break_requested_count(cluster: Cluster) -> None:
    for _, request in cluster.attempt("app1").requests.rows():
        request.count = -1


def _break_second_node(cluster: Cluster) -> None:
    container = next(iter(cluster.attempt("app1").live_containers.values()))
    cluster.node_of("n2").allocate_container(container)


def _break_released_container(cluster: Cluster) -> None:
    container = next(iter(cluster.attempt("app1").live_containers.values()))
    cluster.node_of("n1").release_container(container.id, by_node=True)


def _break_container_state(cluster: Cluster) -> None:
    container = next(iter(cluster.attempt("app1").live_containers.values()))
    container.handle(RMContainerKill(ContainerStatus(container.id, ContainerState.COMPLETE)), cluster.now_ms)


def _break_row_count_limit(cluster: Cluster) -> None:
    cluster.attempt("app1").requests.row_count += 1


def _break_blacklist_limit(cluster: Cluster) -> None:
    cluster.attempt("app1").blacklist.update(str(number) for number in range(BLACKLIST_MAX + 1))


@pytest.mark.parametrize(
    ("number", "damage"),
    [
        ("I-01", _break_node),
        ("I-02", _break_over_commit),
        ("I-03", _break_node_containers),
        ("I-04", _break_leaf),
        ("I-05", _break_parent),
        ("I-06", _break_user),
        ("I-06 (with dropped entries)", _break_user),
        ("I-10", _break_am_usage),
        ("I-11", _break_container_count),
        ("I-11", _break_parent_container_count),
        ("I-11", _break_application_count),
        ("I-14", _break_pending),
        ("I-14", _break_requested_count),
        ("I-15", _break_second_node),
        ("I-15", _break_released_container),
        ("I-18", _break_reservation),
        ("I-19", _break_reservation_owner),
        ("I-28", _break_container_state),
        ("I-64", _break_row_count_limit),
        ("I-64", _break_blacklist_limit),
    ],
)
def test_a_violation_is_detected(number: str, damage: Callable[[Cluster], None], start_cluster: StartCluster) -> None:
    every = (*(f"I-{each:02}" for each in range(1, 67)), "I-06 (with dropped entries)")
    cluster = start_cluster(exempt=every)
    cluster.node("n1", 4 * GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 1, 4 * GB)
    cluster.heartbeat("n1")
    assert violations(cluster.scheduler) == []
    damage(cluster)
    assert number in {violation.split(":")[0] for violation in violations(cluster.scheduler)}


def test_a_queue_above_its_maximum_is_detected(start_cluster: StartCluster) -> None:
    """Containers stay when the cluster shrinks: an exemption, not a bug."""
    cluster = start_cluster(exempt=("I-08",))
    cluster.node("n1", 4 * GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 3)
    cluster.heartbeat("n1", 3)
    cluster.lose("n2")
    assert violations(cluster.scheduler) == []
    cluster.scheduler.queues["root.a"].capacities.default.effective_maximum = Resource(GB, 1)
    assert violations(cluster.scheduler)[0].startswith("I-08: root.a")
