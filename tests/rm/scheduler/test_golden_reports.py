"""Numbers that Hadoop's ResourceManager reports for its queues, for the trees of its web services' tests.

They come from answers to GET /ws/v1/cluster/scheduler. Hadoop's percentages are fractions here.
"""

from __future__ import annotations

import pytest

from rm.scheduler.capacity.activation import user_am_limit
from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster
from yarn.resource import Resource

PATHS = ("root.default", "root.test1", "root.test1.test1_1", "root.test1.test1_2", "root.test1.test1_3", "root.test2")
PERCENTAGES = ("12.5", "50", "12.5", "12.5", "75", "37.5")
WEIGHTS = ("4w", "16w", "2w", "2w", "12w", "12w")

SHARES = (0.125, 0.5, 0.125, 0.125, 0.75, 0.375)
OF_ALL = (0.125, 0.5, 0.0625, 0.0625, 0.375, 0.375)
NOTHING = (0.0,) * 6
APPLICATIONS = (1250, None, 625, 625, 3750, 3750)
ANY_APPLICATIONS = (10000, None, 10000, 10000, 10000, 10000)

Reported = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...], tuple[int | None, ...]]


def tree(capacities: tuple[str, ...], *, legacy: bool) -> dict[str, str]:
    conf = {f"{path}.capacity": capacity for path, capacity in zip(PATHS, capacities, strict=True)}
    return {
        **conf,
        "legacy-queue-mode.enabled": str(legacy).lower(),
        "root.queues": "default, test1, test2",
        "root.test1.queues": "test1_1, test1_2, test1_3",
    }


def reported(cluster: Cluster) -> Reported:
    """capacity, absoluteCapacity, normalizedWeight and, for leaves, maxApplications of all queues."""
    queues = [cluster.scheduler.queue(path) for path in PATHS]
    shares = [queue.capacities.default for queue in queues if queue is not None]
    return (
        tuple(own.capacity for own in shares),
        tuple(own.absolute_capacity for own in shares),
        tuple(own.normalized_weight for own in shares),
        tuple(getattr(queue, "maximum_applications", None) for queue in queues),
    )


@pytest.mark.parametrize(
    ("capacities", "legacy", "gigabytes", "expected"),
    [
        (PERCENTAGES, True, 0, (SHARES, OF_ALL, NOTHING, APPLICATIONS)),
        (PERCENTAGES, False, 0, (NOTHING, NOTHING, NOTHING, ANY_APPLICATIONS)),
        (PERCENTAGES, False, 16, (SHARES, OF_ALL, NOTHING, APPLICATIONS)),
        (PERCENTAGES, False, 32, (SHARES, OF_ALL, NOTHING, APPLICATIONS)),
        (WEIGHTS, True, 16, (NOTHING, OF_ALL, SHARES, APPLICATIONS)),
        (WEIGHTS, False, 0, (NOTHING, NOTHING, NOTHING, ANY_APPLICATIONS)),
        (WEIGHTS, False, 16, (SHARES, OF_ALL, NOTHING, APPLICATIONS)),
        (WEIGHTS, False, 32, (SHARES, OF_ALL, NOTHING, APPLICATIONS)),
    ],
)
def test_shares_of_queues_match_hadoops_report(
    start_cluster: StartCluster, capacities: tuple[str, ...], legacy: bool, gigabytes: int, expected: Reported
) -> None:
    cluster = start_cluster(tree(capacities, legacy=legacy), alone=True)
    if gigabytes:
        cluster.node("h1", gigabytes * GB)
    assert reported(cluster) == expected


@pytest.mark.parametrize("legacy", [True, False])
def test_limits_and_usage_of_queues_and_users_match_hadoops_report(start_cluster: StartCluster, legacy: bool) -> None:
    """Two AMs of 32 and 64 MB wait on 32 GB; each counts as one container of the minimum size."""
    capacities = {"root.a.capacity": "12.5", "root.a.maximum-capacity": "50", "root.b.capacity": "50"}
    conf = {**capacities, "root.c.capacity": "37.5", "root.queues": "a, b, c"}
    cluster = start_cluster({**conf, "legacy-queue-mode.enabled": str(legacy).lower()}, alone=True)
    cluster.node("h1", 32 * GB, 32)
    cluster.submit("app1", queue="a", user="user1", am_mb=32)
    cluster.submit("app2", queue="b", user="user2", am_mb=64)
    a, b, c = (cluster.leaf(name) for name in "abc")
    assert [leaf.effective_minimum("").values() for leaf in (a, b, c)] == [(4096, 4), (16384, 16), (12288, 12)]
    assert [leaf.effective_maximum("").values() for leaf in (a, b, c)] == [(16384, 16), (32768, 32), (32768, 32)]
    assert [leaf.capacities.default.absolute_maximum_capacity for leaf in (a, b, c)] == [0.5, 1.0, 1.0]
    assert [leaf.maximum_applications_per_user for leaf in (a, b, c)] == [1250, 5000, 3750]
    assert [leaf.am_limit("") for leaf in (a, b)] == [Resource(2048, 1), Resource(4096, 1)]
    for leaf, user in ((a, "user1"), (b, "user2")):
        assert (leaf.usage.pending(""), leaf.usage.am_used("")) == (Resource(1024, 1), Resource(1024, 1))
        entry = leaf.users.get_or_add(user)
        assert (entry.active_applications, entry.pending_applications) == (1, 0)
        assert (entry.usage.used(""), entry.usage.am_used("")) == (Resource(0, 0), Resource(1024, 1))
    assert [user_am_limit(leaf, "", 1.0) for leaf in (a, b)] == [Resource(1024, 1), Resource(2048, 1)]
