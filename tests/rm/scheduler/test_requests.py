"""An attempt's resource requests, kept in step with its queue's pending resources."""

from __future__ import annotations

import pytest

from rm.scheduler.capacity.booking import restore_requests, take_request
from rm.scheduler.model.requests import NodeType, SchedulerKey
from tests.rm.scheduler.cluster import GB, Cluster, row
from tests.rm.scheduler.conftest import StartCluster
from yarn.errors import InvalidLabelResourceRequestException, InvalidResourceRequestException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.nodes import NodeLabel
from yarn.resource import INT32_MAX, Resource

KEY = SchedulerKey(False, 1, -1)


@pytest.fixture
def cluster(start_cluster: StartCluster) -> Cluster:
    """An application whose AM runs."""
    cluster = start_cluster()
    cluster.node("n1", 16 * GB)
    cluster.run("app1", "n1")
    return cluster


def pending(cluster: Cluster) -> int:
    return cluster.leaf().usage.pending("").memory_mb // GB


def test_keys_are_served_by_priority_then_request_id_with_updates_last() -> None:
    """SchedulerRequestKey.compareTo; its own comment says the opposite."""
    attempt_id = ApplicationAttemptId(ApplicationId(1, 1), 1)
    keys = [
        SchedulerKey(True, 0, -1, ContainerId(attempt_id, 1)),
        SchedulerKey(False, 5, 3),
        SchedulerKey(False, 5, -1),
        SchedulerKey(False, 0, 9),
    ]
    assert sorted(keys) == [keys[3], keys[2], keys[1], keys[0]]


def test_a_request_replaces_the_earlier_one(cluster: Cluster) -> None:
    cluster.request("app1", 5)
    cluster.request("app1", 2, 2 * GB)
    assert pending(cluster) == 4
    assert cluster.attempt("app1").requests.count(KEY) == 2


def test_in_one_call_the_last_row_for_a_name_wins(cluster: Cluster) -> None:
    cluster.send("app1", [row(5), row(1)])
    assert pending(cluster) == 1


def test_request_ids_separate_requests_of_one_priority(cluster: Cluster) -> None:
    cluster.send("app1", [row(1, request_id=1), row(2, 2 * GB, request_id=2)])
    assert pending(cluster) == 5


def test_hosts_without_an_any_row_are_not_pending(cluster: Cluster) -> None:
    cluster.send("app1", [row(3, name="n1"), row(3, name="/r1")])
    assert pending(cluster) == 0
    assert not cluster.attempt("app1").requests.keys


def test_withdrawing_a_request_removes_the_rows_of_its_key(cluster: Cluster) -> None:
    cluster.send("app1", [row(1, name="n1"), row(1, name="/r1"), row(1)])
    cluster.request("app1", 0)
    assert pending(cluster) == 0
    assert cluster.attempt("app1").requests.at(KEY) is None
    assert not cluster.leaf().users.is_active("user")


def test_a_new_request_makes_the_user_active_again(cluster: Cluster) -> None:
    assert not cluster.leaf().users.is_active("user"), "its AM was its last request"
    cluster.request("app1", 1)
    assert cluster.leaf().users.is_active("user")
    cluster.heartbeat("n1")
    assert not cluster.leaf().users.is_active("user")


def test_unserved_locality_rows_wait_for_the_next_request(cluster: Cluster) -> None:
    """LocalityAppPlacementAllocator: an off-switch container sets `*` to 0 and leaves host and rack rows behind."""
    requests = cluster.attempt("app1").requests
    cluster.send("app1", [row(1, name="far"), row(1, name="/far"), row(1)])
    take_request(cluster.attempt("app1"), NodeType.OFF_SWITCH, cluster.node_of("n1"), KEY)
    keyed = requests.at(KEY)
    assert keyed is not None
    assert sorted(keyed.rows) == ["/far", "far"]
    assert pending(cluster) == 0
    cluster.request("app1", 1)
    assert sorted(keyed.rows) == ["*", "/far", "far"]


def test_a_rack_local_container_decrements_two_rows(cluster: Cluster) -> None:
    requests = cluster.attempt("app1").requests
    cluster.send("app1", [row(2, name="n1"), row(2, name="/r1"), row(2)])
    cluster.node("n2", GB, rack="/r1")
    terms = take_request(cluster.attempt("app1"), NodeType.RACK_LOCAL, cluster.node_of("n2"), KEY)
    assert [term.resource_name for term in terms] == ["/r1", "*"]
    assert [requests.count(KEY, name) for name in ("n1", "/r1", "*")] == [2, 1, 1]


def test_a_lost_container_is_requested_again(cluster: Cluster) -> None:
    """LeafQueue.completedContainer: each row's count + 1; a row that was removed is created again with 1."""
    requests = cluster.attempt("app1").requests
    cluster.send("app1", [row(1, name="n1"), row(1, name="/r1"), row(2)])
    attempt = cluster.attempt("app1")
    terms = take_request(attempt, NodeType.NODE_LOCAL, cluster.node_of("n1"), KEY)
    restore_requests(attempt, KEY, terms)
    assert [requests.count(KEY, name) for name in ("n1", "/r1", "*")] == [1, 1, 2]
    assert pending(cluster) == 2


def test_requests_are_normalised_and_the_rest_of_the_row_is_kept(cluster: Cluster) -> None:
    cluster.send("app1", [row(1, 1500, 3, priority=7, request_id=4, relax=False)])
    keyed = cluster.attempt("app1").requests.at(SchedulerKey(False, 7, 4))
    assert keyed is not None
    assert keyed.rows["*"].terms.capability == Resource(2048, 1)
    assert not keyed.rows["*"].terms.relax_locality


@pytest.mark.parametrize("size", [(-1, 1), (8193, 1), (1024, 5), (1024, -1)])
def test_an_invalid_request_refuses_the_whole_call(cluster: Cluster, size: tuple[int, int]) -> None:
    """SchedulerUtils: every type is checked, also vcores, which the calculator ignores."""
    with pytest.raises(InvalidResourceRequestException):
        cluster.send("app1", [row(1), row(1, *size, priority=2)])
    assert pending(cluster) == 0


@pytest.mark.parametrize("name", ["*", "n1"])
def test_labels_are_refused(cluster: Cluster, name: str) -> None:
    request = row(1, name=name)
    labelled = type(request)(request.priority, name, request.capability, 1, label="gpu")
    with pytest.raises(InvalidLabelResourceRequestException):
        cluster.send("app1", [labelled])


def test_the_largest_node_limits_the_size_of_a_request(start_cluster: StartCluster) -> None:
    """testContainerRejectionWhenAskBeyondDynamicMax; without a node the configured maximum applies."""
    cluster = start_cluster()
    assert cluster.scheduler.maximum_allocation(cluster.scheduler.context.now_ms) == Resource(8192, 4)
    cluster.node("n1", 4 * GB, 2)
    cluster.node("n2", 2 * GB, 3)
    assert cluster.scheduler.maximum_allocation(cluster.scheduler.context.now_ms) == Resource(4096, 3)
    cluster.run("app1", "n1")
    with pytest.raises(InvalidResourceRequestException):
        cluster.request("app1", 1, 5 * GB)
    cluster.lose("n1")
    assert cluster.scheduler.maximum_allocation(cluster.scheduler.context.now_ms) == Resource(2048, 3)


def test_blanks_around_a_label_are_ignored(start_cluster: StartCluster) -> None:
    """ResourceRequestPBImpl.getNodeLabelExpression trims every label it returns."""
    cluster = start_cluster({"root.accessible-node-labels": "*", "yarn.node-labels.enabled": "true"})
    queue, labels = cluster.leaf().path, cluster.scheduler.labels
    with pytest.raises(InvalidLabelResourceRequestException, match="cluster do not contain"):
        cluster.scheduler.check_asks(queue, [row(1, label=" x ")])
    labels.add([NodeLabel("x")])
    (checked,) = cluster.scheduler.check_asks(queue, [row(1, label=" x\t")])
    assert checked.label == "x"


def test_a_negative_count_stays_subtracted_from_pending_resources(start_cluster: StartCluster) -> None:
    """AppSchedulingInfo.updatePendingResources drops the row and keeps the sum, so later requests count less."""
    cluster = start_cluster(exempt=("I-14 (miscounted)",))
    cluster.node("n1", 16 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", -2)
    assert cluster.attempt("app1").requests.at(KEY) is None
    assert pending(cluster) == -2
    cluster.request("app1", 3)
    assert pending(cluster) == 1


def test_pending_vcores_are_truncated_to_32_bits_when_the_next_request_is_counted(start_cluster: StartCluster) -> None:
    """Resources.add clones its first operand, and Resource.castToIntSafely bounds the vcores of the clone."""
    cluster = start_cluster(exempt=("I-14 (miscounted)",))
    cluster.node("n1", 16 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 5, priority=2)
    cluster.request("app1", INT32_MAX, priority=3)
    assert cluster.leaf().usage.pending("").vcores == INT32_MAX + 5
    cluster.request("app1", 0, priority=3)
    assert cluster.leaf().usage.pending("") == Resource(5 * GB, 0)
    assert cluster.attempt("app1").usage.pending("") == Resource(5 * GB, 0)


def test_a_miscount_of_an_application_ends_with_it(start_cluster: StartCluster) -> None:
    """Otherwise one call with a negative count would block all ancestor queues until the RM restarts."""
    cluster = start_cluster(exempt=("I-14 (miscounted)",))
    cluster.node("n1", 16 * GB)
    for app in ("app1", "app2"):
        cluster.run(app, "n1")
    cluster.request("app1", -INT32_MAX)
    cluster.request("app2", 2)
    cluster.heartbeat("n1")
    assert pending(cluster) == 2 - INT32_MAX
    cluster.end("app1")
    assert pending(cluster) == 2
    assert cluster.scheduler.queues["root"].usage.pending("") == Resource(2 * GB, 2)
    cluster.heartbeat("n1")
    assert pending(cluster) == 1
