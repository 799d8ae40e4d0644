"""The ends of containers, and when their resources are freed."""

from __future__ import annotations

from rm.scheduler.model.rm_container import RMContainerState
from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster
from yarn.ids import ContainerId


def start_one(start_cluster: StartCluster, count: int = 2) -> Cluster:
    """An application with its AM and `count` requested containers on one node of 8 GB."""
    cluster = start_cluster()
    cluster.node("n1", 8 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", count)
    cluster.heartbeat("n1", count)
    return cluster


def test_a_running_containers_resources_are_freed_on_the_nodes_report(start_cluster: StartCluster) -> None:
    """The queue gets them at once, the node when its NM has reported the completion."""
    cluster = start_one(start_cluster)
    cluster.poll("app1")
    cluster.heartbeat("n1")
    assert cluster.release("app1", 2) == ["app1/2 ended -100: Container released by application"]
    assert cluster.used() == 2 * GB
    assert cluster.node_of("n1").allocated.memory_mb == 3 * GB
    cluster.heartbeat("n1")
    assert cluster.node_of("n1").allocated.memory_mb == 2 * GB


def test_an_unstarted_containers_resources_are_freed_at_once(start_cluster: StartCluster) -> None:
    cluster = start_one(start_cluster)
    cluster.poll("app1")
    cluster.release("app1", 2)
    assert cluster.node_of("n1").allocated.memory_mb == 2 * GB


def test_a_container_released_before_it_was_acquired_is_requested_again(start_cluster: StartCluster) -> None:
    """RMContainerImpl has no transition to RELEASED here, so the AM gets no report; the request is restored."""
    cluster = start_one(start_cluster)
    assert cluster.release("app1", 2) == []
    assert cluster.leaf().usage.pending("").memory_mb == GB
    assert [container.number for container in cluster.attempt("app1").live_containers] == [1, 3]
    assert cluster.heartbeat("n1") == ["app1/4 on n1 1024"]


def test_a_lost_node_restores_requests_whose_containers_were_not_fetched(start_cluster: StartCluster) -> None:
    """The AM itself must request again what it had fetched."""
    cluster = start_one(start_cluster, 1)
    cluster.poll("app1")
    cluster.request("app1", 1)
    cluster.heartbeat("n1")
    cluster.node("n2", 8 * GB)
    story = cluster.lose("n1")
    assert sorted(story) == [f"app1/{n} ended -100: Container released on a *lost* node" for n in (1, 2, 3)]
    assert cluster.leaf().usage.pending("").memory_mb == GB
    assert cluster.used() == 0


def test_an_expired_container_completes_and_is_not_requested_again(start_cluster: StartCluster) -> None:
    """ContainerAllocationExpirer: it was fetched, so its AM must request another."""
    cluster = start_one(start_cluster)
    cluster.poll("app1")
    expired = ContainerId(cluster.attempt("app1").attempt_id, 2)
    cluster.scheduler.expire_container(expired, cluster.now_ms)
    assert cluster.read_story() == ["app1/2 ended -100: Container expired since it was unused"]
    assert cluster.leaf().usage.pending("").is_none()


def test_a_running_container_does_not_expire(start_cluster: StartCluster) -> None:
    cluster = start_one(start_cluster)
    cluster.poll("app1")
    cluster.heartbeat("n1")
    running = ContainerId(cluster.attempt("app1").attempt_id, 2)
    cluster.scheduler.expire_container(running, cluster.now_ms)
    assert cluster.read_story() == []
    assert cluster.scheduler.container(running) is not None


def test_kept_containers_pass_to_the_next_attempt(start_cluster: StartCluster) -> None:
    """doneApplicationAttempt: running containers pass to the next attempt; allocated ones are killed."""
    cluster = start_cluster(exempt=("I-06",))
    cluster.node("n1", 8 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 2)
    cluster.heartbeat("n1")
    cluster.poll("app1")
    cluster.heartbeat("n1")
    cluster.finish("app1", 1)
    cluster.heartbeat("n1")
    story = cluster.retry("app1", keep_containers=True)
    assert story == ["app1/3 ended -100: Container of a completed application"]
    attempt = cluster.attempt("app1")
    assert attempt.attempt_id.attempt == 2
    assert [container.number for container in attempt.live_containers] == [2]
    assert attempt.usage.used("").memory_mb == GB
    assert cluster.heartbeat("n1") == ["app1.2/1 on n1 1024 master"]


def test_without_keeping_all_containers_complete_with_their_attempt(start_cluster: StartCluster) -> None:
    cluster = start_one(start_cluster)
    cluster.poll("app1")
    cluster.heartbeat("n1")
    assert len(cluster.retry("app1")) == 3
    assert cluster.used() == 0


def test_a_late_report_of_a_completed_container_frees_only_the_node(start_cluster: StartCluster) -> None:
    """LeafQueue.completedContainer: the NM's late report finds no container and frees the node's resources."""
    cluster = start_one(start_cluster)
    cluster.poll("app1")
    cluster.heartbeat("n1")
    container = cluster.scheduler.container(ContainerId(cluster.attempt("app1").attempt_id, 2))
    assert container is not None
    cluster.end("app1")
    assert container.state is RMContainerState.KILLED
    assert cluster.node_of("n1").allocated.memory_mb == 3 * GB
    cluster.heartbeat("n1")
    assert cluster.node_of("n1").allocated.memory_mb == 0


def test_a_shrunk_node_is_over_committed_until_containers_complete(start_cluster: StartCluster) -> None:
    """SchedulerNode.updateTotalResource: unallocated is negative and nothing is placed."""
    cluster = start_cluster(exempt=("I-02", "I-08"))
    cluster.node("n1", 8 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 4)
    cluster.heartbeat("n1", 4)
    cluster.resize("n1", 2 * GB)
    assert cluster.node_of("n1").unallocated.memory_mb == -3 * GB
    cluster.request("app1", 1)
    assert cluster.heartbeat("n1") == []
