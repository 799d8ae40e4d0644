"""The watch sees a booking that must not be: each is brought about by damage done between the visits."""

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
    """app1 runs on n1 and asks for a container; app2 has n2 reserved."""
    cluster = start_cluster()
    cluster.node("n1", 8 * GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.run("app2", "n2")
    cluster.ask("app2", 1, 4 * GB)
    cluster.beat("n2")
    cluster.ask("app1", 1)
    return cluster


def proposal_of(cluster: Cluster, app: str, node: str) -> Proposal:
    """A sound one."""
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


def _not_asked_for(cluster: Cluster, proposal: Proposal) -> None:
    cluster.ask("app1", 0)


def _node_is_down(cluster: Cluster, proposal: Proposal) -> None:
    proposal.node.is_running = False


def _reserved_for_another(cluster: Cluster, proposal: Proposal) -> None:
    proposal.node = cluster.node_of("n2")


def _reservation_is_gone(cluster: Cluster, proposal: Proposal) -> None:
    proposal.reserved = cluster.node_of("n2").reserved_container


def _blacklisted(cluster: Cluster, proposal: Proposal) -> None:
    proposal.application.blacklist.add("/r1")


def _of_another_partition(cluster: Cluster, proposal: Proposal) -> None:
    keyed = proposal.application.requests.at(proposal.key)
    assert keyed is not None
    keyed.partition = "gpu"


def _not_settled(cluster: Cluster, proposal: Proposal) -> None:
    cluster.scheduler.context.placing_from_ms = cluster.now_ms


@pytest.mark.parametrize(
    ("number", "damage"),
    [
        ("I-09", _user_above_limit),
        ("I-13", _too_small),
        ("I-13", _too_large),
        ("I-14", _not_asked_for),
        ("I-16", _node_is_down),
        ("I-20", _reserved_for_another),
        ("I-20", _reservation_is_gone),
        ("I-23", _blacklisted),
        ("I-23", _of_another_partition),
        ("I-46", _not_settled),
    ],
)
def test_a_booking_that_must_not_be_is_found(number: str, damage: Damage, cluster: Cluster) -> None:
    proposal = proposal_of(cluster, "app1", "n1")
    limit_of(cluster.leaf().users, "user", "", proposal.mode)
    cluster.watch.look_at_booking(proposal)
    assert cluster.watch.take() == []
    damage(cluster, proposal)
    cluster.watch.look_at_booking(proposal)
    assert [text.split(":")[0] for text in cluster.watch.take()] == [number]


def test_every_booking_is_looked_at(cluster: Cluster) -> None:
    """The commit shows it what it is about to book."""
    seen: list[Proposal] = []
    cluster.scheduler.placement.watch = seen.append
    cluster.beat("n1")
    assert [(str(proposal.application), proposal.node.name) for proposal in seen] == [
        (str(cluster.attempt("app1").attempt_id), "n1")
    ]


def test_a_container_ends_once(cluster: Cluster) -> None:
    """The same end told again is no other end."""
    container_id = ContainerId(cluster.attempt("app1").attempt_id, 1)

    def tell(exit_status: int) -> None:
        status = ContainerStatus(container_id, ContainerState.COMPLETE, exit_status)
        cluster.watch.look_at_notice(
            ContainerFinished(container_id.attempt_id, cluster.node_of("n1").node_id, status, Resource(GB, 1), 0)
        )

    tell(0)
    tell(0)
    assert cluster.watch.take() == []
    tell(1)
    assert cluster.watch.take() == [f"I-31: {container_id}: ended with 0, and with 1"]
