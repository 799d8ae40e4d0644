"""Leaves that a managed parent creates and gives guarantees to (Hadoop: TestCapacitySchedulerAutoQueueCreation)."""

from __future__ import annotations

import pytest

from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster
from yarn.faults import ConfigurationException
from yarn.states import QueueState

CREATION = "root.users.auto-create-child-queue."
TEMPLATE = "root.users.leaf-queue-template."
MANAGED = {
    "root.queues": "users,other",
    "root.users.capacity": "50",
    "root.other.capacity": "50",
    f"{CREATION}enabled": "true",
    f"{TEMPLATE}capacity": "50",
    "maximum-am-resource-percent": "1",
}
"""Two leaves at a time have a guarantee, each of a quarter of the cluster."""


def start(start_cluster: StartCluster, conf: dict[str, str] | None = None) -> Cluster:
    cluster = start_cluster({**MANAGED, **(conf or {})}, alone=True)
    cluster.node("n1", 24 * GB)
    return cluster


def submit(cluster: Cluster, app: str, user: str) -> list[str]:
    """Submit as the placement rule `u:%user:root.users.%user` does."""
    return cluster.submit(app, user, f"root.users.{user}", placed=f"root.users.{user}")


def guaranteed(cluster: Cluster, user: str) -> int:
    return cluster.scheduler.queues[f"root.users.{user}"].effective_minimum("").memory_mb // GB


def maximum(cluster: Cluster, user: str) -> int:
    return cluster.scheduler.queues[f"root.users.{user}"].effective_maximum("").memory_mb // GB


def run_round(cluster: Cluster) -> None:
    cluster.scheduler.policies.entitle_leaves(cluster.now_ms)


def test_the_first_leaves_get_a_guarantee(start_cluster: StartCluster) -> None:
    """GuaranteedOrZeroCapacityOverTimePolicy.getInitialLeafQueueConfiguration."""
    cluster = start(start_cluster)
    for number, user in enumerate(("ann", "bob", "cid"), start=1):
        submit(cluster, f"app{number}", user)
    assert [guaranteed(cluster, user) for user in ("ann", "bob", "cid")] == [6, 6, 0]
    assert [maximum(cluster, user) for user in ("ann", "bob", "cid")] == [24, 24, 24]


def test_a_leaf_follows_its_template_whatever_its_own_keys_say(start_cluster: StartCluster) -> None:
    """ManagedParentQueue.setLeafQueueConfigs; but user weights come from the configuration as it was loaded."""
    conf = {
        f"{TEMPLATE}user-limit-factor": "3",
        f"{TEMPLATE}maximum-capacity": "75",
        f"{TEMPLATE}user-settings.ann.weight": "0.5",
        "root.users.ann.user-limit-factor": "7",
        "root.users.ann.minimum-user-limit-percent": "25",
        "root.users.ann.user-settings.bob.weight": "0.25",
    }
    cluster = start(start_cluster, conf)
    submit(cluster, "app1", "ann")
    own = cluster.leaf("ann").configuration
    assert (own.user_limit_factor, own.user_limit, own.user_weights) == (3.0, 25.0, {"bob": 0.25})
    assert maximum(cluster, "ann") == 18


def test_a_round_moves_the_guarantee_of_an_idle_leaf_to_one_that_waits(start_cluster: StartCluster) -> None:
    """A leaf that lost its guarantee has a maximum of zero until the cluster changes: a round updates nothing else."""
    cluster = start(start_cluster)
    for number, user in enumerate(("ann", "bob", "cid", "dan"), start=1):
        submit(cluster, f"app{number}", user)
    run_round(cluster)
    assert [guaranteed(cluster, user) for user in ("ann", "bob", "cid", "dan")] == [6, 6, 0, 0]
    cluster.end("app1")
    run_round(cluster)
    assert [guaranteed(cluster, user) for user in ("ann", "bob", "cid", "dan")] == [0, 6, 6, 0]
    assert [maximum(cluster, user) for user in ("ann", "bob", "cid", "dan")] == [0, 24, 24, 24]
    cluster.node("n2", 24 * GB)
    assert [guaranteed(cluster, user) for user in ("ann", "bob", "cid", "dan")] == [0, 12, 12, 0]
    assert maximum(cluster, "ann") == 48


def test_a_new_guarantee_changes_the_order_of_leaves_at_once(start_cluster: StartCluster) -> None:
    """Leaves without a guarantee come last, however little they use: without the round ann's would be first."""
    cluster = start(start_cluster)
    for number, user in enumerate(("ann", "bob", "cid"), start=1):
        submit(cluster, f"app{number}", user)
    cluster.request("app1", 1)
    cluster.heartbeat("n1", 4)
    cluster.poll("app1")
    cluster.end("app2")
    cluster.request("app1", 1)
    cluster.request("app3", 1)
    run_round(cluster)
    assert cluster.heartbeat("n1", 2) == ["app3/2 on n1 1024", "app1/3 on n1 1024"]


def test_usage_without_a_guarantee_is_relative_to_the_templates_capacity(start_cluster: StartCluster) -> None:
    """CSQueueUtils.updateUsedCapacity."""
    cluster = start(start_cluster)
    for number, user in enumerate(("ann", "bob", "cid"), start=1):
        submit(cluster, f"app{number}", user)
    cluster.heartbeat("n1", 3)
    used = [cluster.leaf(user).capacities.default.used_capacity for user in ("ann", "cid")]
    assert used[0] == used[1] == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("conf", "refusal"),
    [
        (
            {f"{CREATION}max-queues": "2"},
            "Cannot auto create leaf queue root.users.cid.Max Child Queue limit exceeded which is configured as : 2 "
            "and number of child queues is : 2",
        ),
        (
            {f"{CREATION}fail-on-exceeding-parent-capacity": "true"},
            "Cannot auto create leaf queue root.users.cid. Child queues capacities have reached parent queue : "
            "root.users's guaranteed capacity",
        ),
    ],
)
def test_a_leaf_above_the_limit_is_not_created(start_cluster: StartCluster, conf: dict[str, str], refusal: str) -> None:
    """ManagedParentQueue.addChildQueue."""
    cluster = start(start_cluster, conf)
    submit(cluster, "app1", "ann")
    submit(cluster, "app2", "bob")
    assert submit(cluster, "app3", "cid") == [
        "refused: Application application_1700000000000_0003 submission by user : cid to  queue : root.users.cid "
        f"failed : {refusal}"
    ]
    assert "root.users.cid" not in cluster.scheduler.queues


def test_only_placement_rules_submit_to_an_existing_leaf(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    submit(cluster, "app1", "ann")
    assert cluster.submit("app2", "ann", "root.users.ann") == [
        "refused: Application application_1700000000000_0002 submission by user : ann to specified queue : "
        "root.users.ann  is prohibited. Verify automatic queue mapping for user exists in "
        "yarn.scheduler.capacity.queue-mappings"
    ]


def test_a_leaf_accepts_any_number_of_applications(start_cluster: StartCluster) -> None:
    """AbstractLeafQueue.validateSubmitApplication exempts AutoCreatedLeafQueue."""
    cluster = start(start_cluster, {f"{TEMPLATE}maximum-applications": "1"})
    assert submit(cluster, "app1", "ann") == submit(cluster, "app2", "ann") == []


def test_a_refresh_assigns_guarantees_again_to_leaves_with_applications(start_cluster: StartCluster) -> None:
    """ManagedParentQueue.reinitialize: to the first two such leaves, by the new template."""
    cluster = start(start_cluster)
    for number, user in enumerate(("ann", "bob", "cid", "dan"), start=1):
        submit(cluster, f"app{number}", user)
    cluster.end("app1")
    cluster.refresh({**MANAGED, f"{TEMPLATE}capacity": "34"})
    shares = [cluster.leaf(user).capacities.default.capacity for user in ("ann", "bob", "cid", "dan")]
    assert shares == pytest.approx([0, 0.34, 0.34, 0])


@pytest.mark.parametrize(
    ("conf", "problem"),
    [
        ({f"{CREATION}enabled": "false"}, "Cannot convert auto create enabled parent queue: root.users to leaf queue."),
        (
            {"root.dept.auto-create-child-queue.enabled": "true"},
            "Can not convert parent queue: root.dept to auto create enabled parent queue since it could have other "
            "pre-configured queues which is not supported",
        ),
        (
            {f"{TEMPLATE}capacity": "[memory=1024,vcores=1]"},
            "Managed Parent Queue root.users config type is different from leaf queue template config type",
        ),
        ({f"{TEMPLATE}capacity": "150"}, "Illegal capacity of 150.0 for queue root.users.leaf-queue-template"),
        ({"root.users.queues": "x", "root.users.x.capacity": "100"}, "its configured queues cannot change"),
    ],
)
def test_a_forbidden_refresh_changes_nothing(start_cluster: StartCluster, conf: dict[str, str], problem: str) -> None:
    """CapacitySchedulerConfigValidator.validateParentQueueConversion."""
    tree = {"root.queues": "users,other,dept", "root.users.capacity": "50", "root.other.capacity": "25"}
    tree |= {"root.dept.capacity": "25", "root.dept.queues": "x", "root.dept.x.capacity": "100"}
    cluster = start(start_cluster, tree)
    submit(cluster, "app1", "ann")
    with pytest.raises(ConfigurationException) as refused:
        cluster.refresh({**MANAGED, **tree, **conf})
    assert any(problem in fault.problem for fault in refused.value.faults)
    assert guaranteed(cluster, "ann") == 6


def test_a_refresh_cannot_forbid_guarantees_above_the_parents_if_they_exist(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    submit(cluster, "app1", "ann")
    submit(cluster, "app2", "bob")
    with pytest.raises(ConfigurationException, match=r"capacity : 1\.0 exceeds Parent queue's root\.users guaranteed"):
        cluster.refresh({**MANAGED, f"{CREATION}fail-on-exceeding-parent-capacity": "true"})


def test_leaves_have_amounts_if_their_parent_has(start_cluster: StartCluster) -> None:
    """ManagedParentQueue.updateQueueCapacities; configuredMinResource of a leaf without a guarantee is zero."""
    amounts = {
        "root.users.capacity": "[memory=12288,vcores=12]",
        "root.other.capacity": "[memory=12288,vcores=12]",
        f"{TEMPLATE}capacity": "[memory=5120,vcores=5]",
    }
    cluster = start(start_cluster, amounts)
    for number, user in enumerate(("ann", "bob", "cid"), start=1):
        submit(cluster, f"app{number}", user)
    assert [guaranteed(cluster, user) for user in ("ann", "bob", "cid")] == [5, 5, 0]
    cluster.end("app1")
    run_round(cluster)
    assert [guaranteed(cluster, user) for user in ("ann", "bob", "cid")] == [0, 5, 5]


def test_a_leaf_starts_in_the_state_of_its_parent(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    cluster.refresh({**MANAGED, "root.users.state": "STOPPED"})
    assert "is STOPPED" in submit(cluster, "app1", "ann")[0]
    assert cluster.scheduler.queues["root.users.ann"].state is QueueState.STOPPED


def test_rounds_run_only_if_the_policy_is_configured(start_cluster: StartCluster) -> None:
    """SchedulingMonitor: a round at once, then one after each interval."""
    policy = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.QueueManagementDynamicEditPolicy"
    named = {
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
        "yarn.resourcemanager.scheduler.monitor.policies": policy,
        "yarn.resourcemanager.monitor.capacity.queue-management.monitoring-interval": "2000",
    }
    assert start(start_cluster).scheduler.next_deadline_ms() is None
    cluster = start(start_cluster, named)
    for number, user in enumerate(("ann", "bob", "cid"), start=1):
        submit(cluster, f"app{number}", user)
    cluster.scheduler.tick(cluster.now_ms)
    cluster.end("app1")
    deadline_ms = cluster.scheduler.next_deadline_ms()
    assert deadline_ms is not None
    assert cluster.now_ms < deadline_ms <= cluster.now_ms + 2000
    cluster.scheduler.tick(deadline_ms - 1)
    assert guaranteed(cluster, "cid") == 0
    cluster.scheduler.tick(deadline_ms)
    assert guaranteed(cluster, "cid") == 6


def test_idle_leaves_keep_their_guarantee_if_the_parent_refuses_to_exceed_its_own(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster, {f"{CREATION}fail-on-exceeding-parent-capacity": "true"})
    submit(cluster, "app1", "ann")
    cluster.end("app1")
    run_round(cluster)
    assert guaranteed(cluster, "ann") == 6
