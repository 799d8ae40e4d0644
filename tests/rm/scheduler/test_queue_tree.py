"""Finding queues, their states, and refreshing all of them or none."""

from __future__ import annotations

import pytest

from tests.rm.scheduler.cluster import GB, ONE_QUEUE, Cluster
from tests.rm.scheduler.conftest import StartCluster
from yarn.faults import ConfigurationException
from yarn.states import QueueState

TWO = {
    "root.queues": "a,b",
    "root.a.capacity": "60",
    "root.b.capacity": "40",
    "maximum-am-resource-percent": "1",
    "user-limit-factor": "10",
}


def start_two(start_cluster: StartCluster, conf: dict[str, str] | None = None) -> Cluster:
    cluster = start_cluster({**TWO, **(conf or {})}, alone=True)
    cluster.node("n1", 10 * GB)
    return cluster


def problems(cluster: Cluster, conf: dict[str, str]) -> list[str]:
    """The problems listed by a refused refresh."""
    with pytest.raises(ConfigurationException) as caught:
        cluster.refresh(conf)
    return [fault.problem for fault in caught.value.faults]


def states(cluster: Cluster) -> dict[str, str]:
    return {path: queue.state.name for path, queue in cluster.scheduler.queues.items()}


def test_a_unique_short_name_finds_its_queue(start_cluster: StartCluster) -> None:
    cluster = start_two(start_cluster, {"root.a.queues": "b", "root.a.b.capacity": "100"})
    assert cluster.scheduler.queue_path("a") == "root.a"
    assert cluster.scheduler.queue("b") is None, "the name is not unique"
    assert cluster.scheduler.queue_path("b") == "b"
    assert cluster.scheduler.queue_path("root") == "root"


@pytest.mark.case("C6")
def test_a_refresh_changes_guarantees_and_keeps_usage(start_cluster: StartCluster) -> None:
    cluster = start_two(start_cluster)
    cluster.run("app1", "n1", queue="b")
    cluster.request("app1", 5)
    cluster.heartbeat("n1", 5)
    cluster.refresh({**TWO, "root.a.capacity": "80", "root.b.capacity": "20"})
    assert cluster.leaf("b").effective_minimum("").memory_mb == 2 * GB
    assert cluster.used("b") == 6 * GB
    assert cluster.leaf("b").active_count == 1


def test_after_a_refresh_children_are_in_javas_hash_order(start_cluster: StartCluster) -> None:
    """AbstractParentQueue.reinitialize rebuilds the list from a HashMap."""
    conf = {"root.queues": "c,b,a", **{f"root.{name}.capacity": "30" for name in "cb"}, "root.a.capacity": "40"}
    cluster = start_cluster(conf, alone=True)
    assert list(cluster.scheduler.queues) == ["root", "root.c", "root.b", "root.a"]
    cluster.refresh(conf)
    assert list(cluster.scheduler.queues) == ["root", "root.a", "root.b", "root.c"]


def test_a_refused_refresh_changes_nothing_but_the_order_of_queues(start_cluster: StartCluster) -> None:
    conf = {"root.queues": "c,a", "root.c.capacity": "60", "root.a.capacity": "40"}
    cluster = start_cluster(conf, alone=True)
    cluster.node("n1", 10 * GB)
    problems(cluster, {**conf, "root.a.capacity": "50"})
    assert cluster.leaf("a").effective_minimum("").memory_mb == 4 * GB
    assert list(cluster.scheduler.queues) == ["root", "root.a", "root.c"]


def test_a_refresh_compares_amounts_by_the_current_cluster(start_cluster: StartCluster) -> None:
    """Two vcores are more than one only if the cluster has any: the file loads at the start, but not at a refresh.

    With dominant shares, <1163, 1> and <1162, 2> are equal in an empty cluster. A refresh then refuses the old file
    too, and not even the order of the queues changes.
    """
    conf = {
        "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        "root.queues": "c,a",
        "root.c.capacity": "[memory=1024,vcores=1]",
        "root.a.capacity": "[memory=1163,vcores=1]",
        "root.a.queues": "x,y",
        "root.a.x.capacity": "[memory=193,vcores=1]",
        "root.a.y.capacity": "[memory=969,vcores=1]",
    }
    cluster = start_cluster(conf, alone=True)
    cluster.node("n1", 48 * GB, 32)
    (problem,) = problems(cluster, conf)
    assert problem == (
        "Parent Queues capacity: <memory:1163, vCores:1> is less than to its children:<memory:1162, vCores:2> for "
        "queue:a"
    )
    assert list(cluster.scheduler.queues) == ["root", "root.c", "root.a", "root.a.x", "root.a.y"]


@pytest.mark.case("C6")
def test_queues_are_added_and_removed(start_cluster: StartCluster) -> None:
    """A queue can be removed once it is stopped; until then the refresh is refused."""
    cluster = start_two(start_cluster)
    only_a = {"root.queues": "a", "root.a.capacity": "100"}
    assert problems(cluster, only_a) == [
        "root.b cannot be deleted from the capacity scheduler configuration, as the queue is not yet in stopped state. "
        "Current State : RUNNING"
    ]
    not_trimmed = problems(cluster, {**only_a, "root.b.state": " STOPPED"})
    assert not_trimmed[0] == problems(cluster, only_a)[0]
    cluster.refresh({**TWO, "root.b.state": "STOPPED"})
    cluster.refresh(only_a)
    assert list(cluster.scheduler.queues) == ["root", "root.a"]
    cluster.refresh({**only_a, "root.queues": "a,n", "root.a.capacity": "70", "root.n.capacity": "30"})
    assert cluster.leaf("n").effective_minimum("").memory_mb == 3 * GB
    assert cluster.submit("app1", queue="n") == []


def test_a_leaf_becomes_a_parent_only_when_stopped(start_cluster: StartCluster) -> None:
    cluster = start_two(start_cluster)
    b_as_parent = {**TWO, "root.b.queues": "x", "root.b.x.capacity": "100"}
    assert problems(cluster, b_as_parent) == [
        "Can not convert the leaf queue: root.b to parent queue since it is not yet in stopped state. "
        "Current State : RUNNING"
    ]
    cluster.refresh({**TWO, "root.b.state": "STOPPED"})
    cluster.refresh(b_as_parent)
    assert states(cluster)["root.b.x"] == "RUNNING"
    cluster.refresh({**b_as_parent, "root.b.x.state": "STOPPED"})
    cluster.refresh(TWO)
    assert "root.b.x" not in states(cluster)


def test_the_largest_container_of_a_leaf_may_not_shrink(start_cluster: StartCluster) -> None:
    cluster = start_two(start_cluster)
    (problem,) = problems(cluster, {**TWO, "root.a.maximum-allocation-mb": "4096"})
    assert problem == (
        "Trying to reinitialize root.a the maximum allocation size can not be decreased! Current setting: "
        "<memory:8192, vCores:4>, trying to set it to: <memory:4096, vCores:4>"
    )


@pytest.mark.case("C6")
def test_a_stopped_queue_drains_first(start_cluster: StartCluster) -> None:
    """QueueStateHelper: DRAINING while its applications run; STOPPED when the last one ends."""
    cluster = start_two(start_cluster)
    cluster.run("app1", "n1", queue="a")
    cluster.refresh({**TWO, "root.a.state": "STOPPED"})
    assert states(cluster)["root.a"] == "DRAINING"
    cluster.request("app1", 1)
    assert cluster.heartbeat("n1") == ["app1/2 on n1 1024"]
    (refusal,) = cluster.submit("app2", queue="a")
    assert refusal.endswith(
        "Queue root.a is STOPPED. Cannot accept submission of application: application_1700000000000_0002"
    )
    cluster.end("app1")
    assert states(cluster)["root.a"] == "STOPPED"
    cluster.refresh(TWO)
    assert states(cluster)["root.a"] == "STOPPED", "not configured: nothing changes"
    cluster.refresh({**TWO, "root.a.state": "RUNNING"})
    assert cluster.submit("app3", queue="a") == []


@pytest.mark.case("C6")
def test_stopping_a_parent_stops_the_queues_below(start_cluster: StartCluster) -> None:
    conf = {**TWO, "root.a.queues": "x", "root.a.x.capacity": "100"}
    cluster = start_two(start_cluster, conf)
    cluster.refresh({**conf, "root.a.state": "STOPPED"})
    assert states(cluster) | {"root": "", "root.b": ""} == {
        "root": "",
        "root.a": "STOPPED",
        "root.a.x": "STOPPED",
        "root.b": "",
    }


def test_a_queue_cannot_run_below_a_stopped_one(start_cluster: StartCluster) -> None:
    with pytest.raises(ConfigurationException) as caught:
        start_cluster({**ONE_QUEUE, "root.state": "STOPPED", "root.a.state": "RUNNING"})
    assert str(caught.value.faults[0].problem) == (
        "The parent queue:root cannot be STOPPED as the child queue:root.a is in RUNNING state."
    )
    cluster = start_two(start_cluster, {"root.a.state": "RUNNING"})
    (problem,) = problems(cluster, {**TWO, "root.state": "STOPPED", "root.a.state": "RUNNING"})
    assert problem.startswith("The parent queue:root cannot be STOPPED")


def test_a_queue_starts_again_only_below_a_running_one(start_cluster: StartCluster) -> None:
    """AbstractCSQueue.activateQueue: the state of the existing parent counts, even if the file does not name one."""
    conf = {**TWO, "root.a.queues": "x", "root.a.x.capacity": "100"}
    cluster = start_two(start_cluster, conf)
    cluster.refresh({**conf, "root.a.state": "STOPPED"})
    (problem,) = problems(cluster, {**conf, "root.a.x.state": "RUNNING"})
    assert problem == "The parent Queue:root.a is not running. Please activate the parent queue first"
    cluster.refresh({**conf, "root.a.state": "RUNNING", "root.a.x.state": "RUNNING"})
    assert states(cluster)["root.a.x"] == "RUNNING"


def test_a_new_queue_takes_its_state_only_from_the_file(start_cluster: StartCluster) -> None:
    """The queue is created in the new file's tree before it is attached to the existing parent (parseQueue)."""
    conf = {**TWO, "root.a.queues": "x", "root.a.x.capacity": "100"}
    cluster = start_two(start_cluster, conf)
    cluster.refresh({**conf, "root.a.state": "STOPPED"})
    cluster.refresh({**conf, "root.a.queues": "x,y", "root.a.x.capacity": "50", "root.a.y.capacity": "50"})
    found = states(cluster)
    assert [found[path] for path in ("root.a", "root.a.x", "root.a.y")] == ["STOPPED", "STOPPED", "RUNNING"]


def test_a_queue_starts_in_the_state_of_its_parent(start_cluster: StartCluster) -> None:
    cluster = start_cluster({**ONE_QUEUE, "root.state": "STOPPED"})
    assert cluster.leaf().state is QueueState.STOPPED


def test_a_refresh_updates_settings_of_the_scheduler(start_cluster: StartCluster) -> None:
    """Locality delays and sizes are read again; the calculator and the minimum are not."""
    cluster = start_two(start_cluster)
    cluster.refresh(
        {
            **TWO,
            "node-locality-delay": "7",
            "yarn.scheduler.minimum-allocation-mb": "2048",
            "yarn.scheduler.maximum-allocation-mb": "9216",
        }
    )
    assert cluster.scheduler.context.settings.node_locality_delay == 7
    assert cluster.scheduler.minimum_allocation.memory_mb == 1024
    assert cluster.scheduler.maximum_allocation(cluster.scheduler.context.now_ms).memory_mb == 9 * GB


def test_allowing_children_without_capacity_needs_a_restart(start_cluster: StartCluster) -> None:
    """setChildQueues: the flag is that of the parent's creation; the old and the new parent must both accept."""
    conf = {**TWO, "root.a.queues": "x", "root.a.x.capacity": "100"}
    cluster = start_two(start_cluster, conf)
    zero = {**conf, "root.a.x.capacity": "0", "root.a.allow-zero-capacity-sum": "true"}
    (problem,) = problems(cluster, zero)
    assert problem.startswith("Illegal capacity sum of 0.0 for children of queue a for label=. It is set to 0")
    assert start_two(start_cluster, zero).leaf("x").effective_minimum("").is_none()


def test_a_refused_refresh_reports_all_problems(start_cluster: StartCluster) -> None:
    """The file's errors, Hadoop's first; then what the running queues forbid, then warnings."""
    cluster = start_two(start_cluster)
    conf = {
        "root.queues": "b,c",
        "root.b.capacity": "50",
        "root.b.minimum-user-limit-percent": "400",
        "root.c.capacity": "40",
        "root.a.capacity": "60",
    }
    sum_of_children, deletion, user_limit, orphan = problems(cluster, conf)
    assert sum_of_children.startswith("Illegal capacity sum of 0.9 for children of queue root")
    assert deletion.startswith("root.a cannot be deleted from the capacity scheduler configuration")
    assert orphan.startswith("there is no queue root.a")
    assert user_limit == "400 is not a percentage of the queue"


def test_running_queues_are_not_compared_with_an_unreadable_tree(start_cluster: StartCluster) -> None:
    """A blank among the children makes us stop reading the list: the queues after it are unknown."""
    (problem,) = problems(start_two(start_cluster), {**TWO, "root.queues": "a, ,b"})
    assert problem == "a blank is not a valid queue name"
