"""The containers that one heartbeat may place."""

from __future__ import annotations

import pytest

from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.refusals import Reason
from rm.scheduler.model.requests import SchedulerKey
from rm.scheduler.placement.visit import Placement
from tests.compiled import only_interpreted
from tests.rm.scheduler.cluster import GB, ONE_QUEUE, row
from tests.rm.scheduler.conftest import StartCluster
from yarn.ids import NodeId

ALL = {
    "per-node-heartbeat.maximum-offswitch-assignments": "1000",
    "per-node-heartbeat.maximum-container-assignments": "-1",
}


def test_off_switch_containers_have_a_separate_limit(start_cluster: StartCluster) -> None:
    """testAssignMultipleOffswitchContainers: 1 by default, 3 if so configured."""
    cluster = start_cluster()
    cluster.node("n1", 80 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 5)
    assert len(cluster.heartbeat("n1")) == 1
    cluster.refresh({**ONE_QUEUE, "per-node-heartbeat.maximum-offswitch-assignments": "3"})
    assert len(cluster.heartbeat("n1")) == 3


def test_local_containers_are_limited_per_heartbeat(start_cluster: StartCluster) -> None:
    """maximum-container-assignments 2 with node-local containers."""
    cluster = start_cluster({"per-node-heartbeat.maximum-container-assignments": "2"})
    cluster.node("n1", 80 * GB)
    cluster.run("app1", "n1")
    cluster.send("app1", [row(9, name="n1"), row(9, name="/r1"), row(9)])
    assert len(cluster.heartbeat("n1")) == 2


def test_multiple_assignments_can_be_disabled(start_cluster: StartCluster) -> None:
    cluster = start_cluster({**ALL, "per-node-heartbeat.multiple-assignments-enabled": "false"})
    cluster.node("n1", 80 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 5)
    assert len(cluster.heartbeat("n1")) == 1


def test_one_heartbeat_can_fill_a_node_for_two_users(start_cluster: StartCluster) -> None:
    """testUserLimitAllocationMultipleContainers: 1000 GB, user limit 50 %, 5 GB containers: 101 and 100 are live."""
    cluster = start_cluster(
        {
            "root.a.minimum-user-limit-percent": "50",
            "per-node-heartbeat.maximum-container-assignments": "-1",
            "yarn.scheduler.maximum-allocation-mb": str(16 * GB),
        }
    )
    cluster.node("n1", 1000 * GB)
    cluster.run("app1", "n1", "user1")
    cluster.run("app2", "n1", "user2")
    for app in ("app1", "app2"):
        cluster.send(app, [row(1000, 5 * GB, name=name) for name in ("n1", "/r1", "*")])
    cluster.heartbeat("n1")
    assert [len(cluster.attempt(app).live_containers) for app in ("app1", "app2")] == [101, 100]


def test_a_fulfilled_reservation_ends_the_heartbeat(start_cluster: StartCluster) -> None:
    """CapacityScheduler returns null after a reservation, fulfilled or not."""
    cluster = start_cluster(ALL)
    cluster.node("n1", 8 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 1, 4 * GB)
    cluster.heartbeat("n1")
    cluster.poll("app1")
    cluster.heartbeat("n1")
    # A second node keeps the queue below its maximum, at which the reservation would be refused.
    cluster.node("n2", 8 * GB)
    cluster.request("app1", 1, 5 * GB, priority=2)
    cluster.heartbeat("n1")
    cluster.request("app1", 2, priority=3)
    cluster.finish("app1", 2)
    assert cluster.heartbeat("n1") == ["app1/2 ended 0", "app1/3 not reserved on n1 any more", "app1/3 on n1 5120"]
    assert cluster.heartbeat("n1") == ["app1/4 on n1 1024", "app1/5 on n1 1024"]


def test_container_ids_have_no_gaps_after_a_refused_commit(start_cluster: StartCluster) -> None:
    """A number is used only when a placement is booked."""
    cluster = start_cluster()
    cluster.node("n1", 4 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 10)
    cluster.heartbeat("n1", 10)
    assert sorted(container.number for container in cluster.attempt("app1").live_containers) == [1, 2, 3, 4]


def test_a_node_below_the_minimum_is_not_visited(start_cluster: StartCluster) -> None:
    """CapacityScheduler.allocateContainerOnSingleNode: no scheduling opportunity is counted."""
    cluster = start_cluster()
    cluster.node("n1", 1500)
    cluster.node("n2", 8 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 1)
    assert cluster.heartbeat("n1") == []
    assert list(cluster.attempt("app1").opportunities) == [SchedulerKey(False, 0, -1)], "only the key of the AM"


def test_a_proposal_refused_repeatedly_ends_the_visit(start_cluster: StartCluster) -> None:
    """The limit before booking ignores the vcores here, so each proposal is refused when it is booked.

    By dominant share, that limit is the smaller of the leaf's maximum and what others leave free. Hadoop proposes the
    container on the same host without end if nothing limits the containers of a heartbeat.
    """
    cluster = start_cluster(
        {
            "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
            "root.queues": "a,b",
            "root.a.capacity": "[memory=10240,vcores=2]",
            "root.a.maximum-capacity": "[memory=20480,vcores=2]",
            "root.a.user-limit-factor": "10",
            "root.b.capacity": "[memory=1024,vcores=1]",
            **ALL,
        },
        alone=True,
    )
    cluster.node("n1", 20 * GB, 20)
    cluster.run("app1", "n1")
    cluster.run("other", "n1", queue="b")
    cluster.send("app1", [row(9, GB, 2, name=name) for name in ("n1", "/r1", "*")])
    assert cluster.heartbeat("n1") == []
    assert cluster.leaf().last_refusals(cluster.attempt("app1"))[NodeId("n1", 1)].reason is Reason.COMMIT_QUEUE_MAXIMUM


@only_interpreted
def test_no_node_is_visited_while_nothing_is_requested(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if something else has changed: otherwise each idle heartbeat of thousands of nodes would cost a visit."""
    visited: list[str] = []
    end = Placement.end

    def record(placement: Placement, node: SchedulerNode, change_count: int) -> None:
        visited.append(node.name)
        end(placement, node, change_count)

    monkeypatch.setattr(Placement, "end", record)
    cluster = start_cluster()
    cluster.node("n1", 8 * GB)
    cluster.node("n2", 8 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 1)
    cluster.heartbeat("n1")
    cluster.poll("app1")
    cluster.finish("app1", 2)
    visited.clear()
    assert cluster.heartbeat("n1") == ["app1/2 ended 0"]
    assert cluster.heartbeat("n2") == []
    assert visited == []
    cluster.request("app1", 1)
    assert cluster.heartbeat("n2") == ["app1/3 on n2 1024"]
    assert visited == ["n2"]


def test_a_refusal_by_the_root_is_removed_once_nothing_is_requested(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    cluster.node("n1", 2 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 2)
    cluster.heartbeat("n1", 2)
    cluster.poll("app1")
    root = cluster.leaf().parent
    assert root.refusals.by_node()[NodeId("n1", 1)].reason is Reason.NODE_TOO_SMALL
    cluster.request("app1", 0)
    cluster.finish("app1", 2)
    cluster.heartbeat("n1")
    assert root.refusals.by_node() == {}


def test_a_full_node_is_reported_at_the_first_request(start_cluster: StartCluster) -> None:
    """The node was full before, while nothing was requested."""
    cluster = start_cluster()
    cluster.node("n1", GB)
    cluster.run("app1", "n1")
    cluster.heartbeat("n1")
    assert cluster.leaf().parent.refusals.by_node()[NodeId("n1", 1)].reason is Reason.NODE_TOO_SMALL
