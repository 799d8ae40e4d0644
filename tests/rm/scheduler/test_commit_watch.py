"""The watch detects forbidden bookings; each test causes one by corrupting the state between visits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rm.scheduler.capacity.limits import limit_of
from rm.scheduler.model.notices import ContainerFinished
from rm.scheduler.model.requests import NodeType
from rm.scheduler.placement.allocator import Proposal
from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster
from yarn.containers import ContainerStatus
from yarn.ids import ContainerId
from yarn.resource import Resource
from yarn.states import ContainerState

Damage = Callable[[Cluster, Proposal], None]


@pytest.fixture
def cluster(start_cluster: StartCluster) -> Cluster:
    """app1 runs on n1 and requests a container; n2 is reserved for app2."""
    cluster = start_cluster()
    cluster.node("n1", 8 * GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.run("app2", "n2")
    cluster.request("app2", 1, 4 * GB)
    cluster.heartbeat("n2")
    cluster.request("app1", 1)
    return cluster


def proposal_of(cluster: Cluster, app: str, node: str) -> Proposal:
    """A valid proposal."""
    attempt = cluster.attempt(app)
    key = next(iter(attempt.requests.keys))
    return Proposal(attempt, cluster.node_of(node), key, Resource(GB, 1), NodeType.OFF_SWITCH, is_allocation=True)


def _too_small(cluster: Cluster, proposal: Proposal) -> None:
    proposal.resource = Resource(512, 1)


def _too_large(cluster: Cluster, proposal: Proposal) -> None:
    proposal.resource = Resource(9 * GB, 1)


def _user_above_limit(cluster: Cluster, proposal: Proposal) -> None:
    user = cluster.leaf().users.users["user"]
    user.limit = Resource(GB, 1)


def _not_requested(cluster: Cluster, proposal: Proposal) -> None:
    cluster.request("app1", 0)


def _node_is_down(cluster: Cluster, proposal: Proposal) -> None:
    proposal.node.is_running = False


def _reserved_for_another(cluster: Cluster, proposal: Proposal) -> None:
    proposal.node = cluster.node_of("n2")


def _reservation_was_removed(cluster: Cluster, proposal: Proposal) -> None:
    proposal.reserved = cluster.node_of("n2").reserved_container


def _blacklisted(cluster: Cluster, proposal: Proposal) -> None:
    proposal.application.blacklist.add("/r1")


def _of_another_partition(cluster: Cluster, proposal: Proposal) -> None:
    keyed = proposal.application.requests.at(proposal.key)
    assert keyed is not None
    keyed.partition = "gpu"


def _work_preserving_recovery_not_over(cluster: Cluster, proposal: Proposal) -> None:
    cluster.scheduler.context.placing_from_ms = cluster.now_ms


@pytest.mark.parametrize(
    ("numbers", "damage"),
    [
        ("I-09", _user_above_limit),
        ("I-13", _too_small),
        ("I-13, I-08 (at a commit)", _too_large),
        ("I-14", _not_requested),
        ("I-16", _node_is_down),
        ("I-20", _reserved_for_another),
        ("I-20", _reservation_was_removed),
        ("I-23", _blacklisted),
        ("I-23", _of_another_partition),
        ("I-46", _work_preserving_recovery_not_over),
    ],
)
def test_a_forbidden_booking_is_detected(numbers: str, damage: Damage, cluster: Cluster) -> None:
    proposal = proposal_of(cluster, "app1", "n1")
    limit_of(cluster.leaf().users, "user", "", proposal.mode)
    cluster.watch.look_at_booking(proposal)
    assert cluster.watch.take() == []
    damage(cluster, proposal)
    cluster.watch.look_at_booking(proposal)
    assert {text.split(":")[0] for text in cluster.watch.take()} == set(numbers.split(", "))


def test_every_booking_is_checked(cluster: Cluster) -> None:
    """The commit passes to the watch what it is about to book."""
    seen: list[Proposal] = []
    cluster.scheduler.placement.watch = seen.append
    cluster.heartbeat("n1")
    assert [(str(proposal.application), proposal.node.name) for proposal in seen] == [
        (str(cluster.attempt("app1").attempt_id), "n1")
    ]


def test_a_container_completes_once(cluster: Cluster) -> None:
    """The same completion reported again is not a second one."""
    container_id = ContainerId(cluster.attempt("app1").attempt_id, 1)

    def report(exit_status: int) -> None:
        status = ContainerStatus(container_id, ContainerState.COMPLETE, exit_status)
        cluster.watch.look_at_notice(
            ContainerFinished(container_id.attempt_id, cluster.node_of("n1").node_id, status, Resource(GB, 1), 0)
        )

    report(0)
    report(0)
    assert cluster.watch.take() == []
    report(1)
    assert cluster.watch.take() == [f"I-31: {container_id}: ended with 0, and with 1"]
