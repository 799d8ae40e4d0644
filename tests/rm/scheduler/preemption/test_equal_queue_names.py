"""Leaves with the same short name below different parents: Hadoop's preemption rounds fail on them."""

from __future__ import annotations

import pytest

from rm.scheduler.preemption.preemption_round import PreemptionRoundFailed
from tests.rm.scheduler.cluster import GB, Cluster

EQUAL_NAMES = {
    "root.queues": "a,b",
    "root.a.capacity": "50",
    "root.a.queues": "x",
    "root.a.x.capacity": "100",
    "root.a.x.user-limit-factor": "2",
    "root.b.capacity": "50",
    "root.b.queues": "x",
    "root.b.x.capacity": "100",
    "maximum-am-resource-percent": "1",
    "per-node-heartbeat.maximum-offswitch-assignments": "100",
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "preemption.total_preemption_per_round": "1.0",
    "preemption.natural_termination_factor": "1.0",
    "preemption.max_ignored_over_capacity": "0.0",
}
INTRA = {**EQUAL_NAMES, "preemption.intra-queue-preemption.enabled": "true"}


def without_equal_names(conf: dict[str, str]) -> dict[str, str]:
    """The same configuration with distinct short names."""
    return {key.replace("b.x", "b.y"): "y" if key == "root.b.queues" else value for key, value in conf.items()}


def crowded(conf: dict[str, str], late: str = "root.b.x") -> Cluster:
    """10 GB: root.a.x uses 9; another leaf runs an AM and requests its guarantee."""
    cluster = Cluster(conf)
    cluster.node("n1", 10 * GB)
    cluster.run("late", "n1", queue=late)
    cluster.run("early", "n1", queue="root.a.x")
    cluster.request("early", 20)
    cluster.heartbeat("n1")
    cluster.poll("early")
    cluster.heartbeat("n1")
    cluster.request("late", 4)
    return cluster


def last_failure(cluster: Cluster) -> PreemptionRoundFailed | None:
    return cluster.scheduler.monitor.policy.last_failure


def test_containers_carry_the_path_of_their_queue_only_if_its_short_name_is_unique() -> None:
    """FiCaSchedulerApp.allocate: CapacityScheduler.normalizeQueueName of the short name."""
    equal, other = crowded(EQUAL_NAMES), crowded(without_equal_names(EQUAL_NAMES), "y")
    assert {live.queue for live in equal.attempt("early").live_containers.values()} == {"x"}
    assert {live.queue for live in other.attempt("early").live_containers.values()} == {"root.a.x"}


def test_a_round_fails_if_a_victims_queue_name_is_not_unique() -> None:
    """deductPreemptableResourcesBasedSelectedCandidates, before the second selector."""
    cluster = crowded(INTRA)
    assert cluster.preempt() == []
    failure = last_failure(cluster)
    assert failure is not None
    assert failure.java_class == "org.apache.hadoop.yarn.exceptions.YarnRuntimeException"
    assert str(failure) == "This shouldn't happen, cannot find TempQueuePerPartition for queueName=x"


@pytest.mark.parametrize("conf", [EQUAL_NAMES, without_equal_names(INTRA)])
def test_a_round_with_one_selector_or_distinct_names_succeeds(conf: dict[str, str]) -> None:
    cluster = crowded(conf, "root.b." + conf["root.b.queues"])
    assert len(cluster.preempt()) == 4
    assert last_failure(cluster) is None


def test_a_queue_of_the_same_name_added_later_does_not_fail_the_round() -> None:
    cluster = crowded(without_equal_names(INTRA), "y")
    with_both = {**without_equal_names(INTRA), "root.b.queues": "x,y", "root.b.x.capacity": "0"}
    cluster.refresh(with_both)
    assert len(cluster.preempt()) == 4
    assert last_failure(cluster) is None


def test_containers_placed_after_the_other_queue_was_removed_keep_the_path() -> None:
    cluster = Cluster({**EQUAL_NAMES, "root.b.x.state": "STOPPED"})
    cluster.node("n1", 10 * GB)
    cluster.run("app1", "n1", queue="root.a.x")
    without_b_x = {key: value for key, value in EQUAL_NAMES.items() if ".b.x" not in key and key != "root.b.queues"}
    cluster.refresh({**without_b_x, "root.b.queues": "y", "root.b.y.capacity": "100"})
    cluster.request("app1", 1)
    cluster.heartbeat("n1")
    assert [live.queue for live in cluster.attempt("app1").live_containers.values()] == ["x", "root.a.x"]


def test_users_first_fails_in_a_leaf_whose_name_is_not_unique() -> None:
    """FifoIntraQueuePreemptionPlugin.skipContainerBasedOnIntraQueuePolicy looks its queue up by the short name."""
    cluster = Cluster({**INTRA, "root.a.x.minimum-user-limit-percent": "50"})
    cluster.node("n1", 10 * GB)
    cluster.run("ann1", "n1", user="ann", queue="root.a.x")
    cluster.request("ann1", 20)
    cluster.heartbeat("n1")
    cluster.submit("bob1", user="bob", queue="root.a.x")
    cluster.preempt()
    failure = last_failure(cluster)
    assert failure is not None
    assert failure.java_class == "java.lang.NullPointerException"


def test_names_of_dynamic_queues_count_from_creation_to_removal() -> None:
    made = {key: value for key, value in EQUAL_NAMES.items() if not key.startswith("root.b.")}
    creation = "root.b.auto-queue-creation-v2."
    cluster = Cluster(
        {
            **made,
            "root.a.capacity": "1w",
            "root.a.x.capacity": "1w",
            "root.b.capacity": "1w",
            f"{creation}enabled": "true",
        }
    )
    cluster.node("n1", 20 * GB)
    cluster.run("app1", "n1", queue="root.a.x")
    cluster.run("app2", "n1", queue="root.b.x")
    names = [placed_in(cluster)]
    cluster.end("app2")
    cluster.remove_idle_queues(301_000)
    cluster.remove_idle_queues()
    names.append(placed_in(cluster))
    assert names == ["x", "root.a.x"]


def placed_in(cluster: Cluster) -> str:
    """The queue name that a container of app1 placed now carries."""
    cluster.request("app1", 1)
    cluster.heartbeat("n1")
    return list(cluster.attempt("app1").live_containers.values())[-1].queue
