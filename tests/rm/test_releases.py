"""The versions and texts in which a client or a node sees the release whose rules the ResourceManager follows."""

from __future__ import annotations

import pytest

from rm.core.reports.applications import application_report
from rm.scheduler.events.request_correction import correct_requests
from rm.shell.web.cluster import cluster_info
from tests.rm.builders import RM
from tests.rm.scheduler.cluster import GB, ONE_QUEUE, Cluster
from wire.web.records import versions
from yarn.settings.release import RELEASE

ON_3_5_0 = {RELEASE.key: "3.5.0", "yarn.scheduler.capacity.schedule-asynchronously.enable": "false"}
AT_USER_LIMIT = {
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
    "yarn.scheduler.capacity.root.queues": "default,other",
    "yarn.scheduler.capacity.root.default.capacity": "50",
    "yarn.scheduler.capacity.root.other.capacity": "50",
    "yarn.scheduler.capacity.root.default.user-limit-factor": "0.5",
}


@pytest.mark.parametrize(
    ("release", "text"),
    [
        ({}, "User capacity has reached its maximum limit. Details"),
        (
            ON_3_5_0,
            "User capacity has reached its maximum limit, user limit is <memory:2048, vCores:1>, "
            "resource used by ann is <memory:3072, vCores:3>. Details",
        ),
    ],
)
def test_the_diagnostics_of_a_user_at_the_limit(release: dict[str, str], text: str) -> None:
    """YARN-11699: since 3.5.0 with the limit and the usage."""
    rm = RM({**AT_USER_LIMIT, **release})
    rm.node("n1")
    first = rm.submit()
    rm.run_am(first)
    rm.get(first, 2)
    waiting = rm.submit()
    rm.beat("n1")
    assert text in application_report(rm.core.context, waiting).diagnostics


def test_the_version_is_that_of_the_release() -> None:
    rm = RM({RELEASE.key: "3.5.0"})
    info = cluster_info(rm.core.context, "").content
    assert versions("resourceManager", "3.5.0").items() <= info.fields.items()


MANAGED = {
    "root.queues": "a,b,m",
    "root.a.capacity": "40",
    "root.a.user-limit-factor": "3",
    "root.b.capacity": "40",
    "root.m.capacity": "20",
    "root.m.auto-create-child-queue.enabled": "true",
    "root.m.leaf-queue-template.capacity": "50",
    "maximum-am-resource-percent": "1",
    "per-node-heartbeat.maximum-offswitch-assignments": "100",
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "preemption.total_preemption_per_round": "1.0",
    "preemption.natural_termination_factor": "1.0",
    "preemption.max_ignored_over_capacity": "0.0",
}


@pytest.mark.parametrize(("release", "is_preempted"), [("3.4.1", False), ("3.4.3", False), ("3.5.0", True)])
def test_a_managed_parent_without_leaves_makes_preemption_fail_before_3_5_0(release: str, is_preempted: bool) -> None:
    """YARN-11801: FifoCandidatesSelector takes the parent for a leaf, and the whole round ends."""
    cluster = Cluster({**MANAGED, RELEASE.key: release, "schedule-asynchronously.enable": "false"})
    cluster.node("n1", 10 * GB)
    cluster.run("late", "n1", queue="b")
    cluster.run("early", "n1", queue="a")
    cluster.request("early", 20)
    cluster.heartbeat("n1")
    cluster.poll("early")
    cluster.request("late", 3)
    cluster.preempt()
    assert bool(cluster.attempt("early").to_preempt) is is_preempted


def test_requests_are_corrected_only_by_a_release_that_can() -> None:
    """YARN-11702: 3.4.1 does not know the setting."""
    key = "yarn.resourcemanager.scheduler.autocorrect.container.allocation"
    held: list[int] = []
    for release in ("3.4.1", "3.5.0"):
        conf = {**ONE_QUEUE, key: "true", RELEASE.key: release, "schedule-asynchronously.enable": "false"}
        cluster = Cluster({**conf, "per-node-heartbeat.maximum-offswitch-assignments": "9"})
        cluster.node("n1", 10 * GB)
        cluster.run("app", "n1")
        cluster.request("app", 4)
        cluster.heartbeat("n1")
        cluster.request("app", 2)
        held.append(len(cluster.attempt("app").live_containers))
    assert held == [5, 3]
    assert correct_requests(cluster.attempt("app"), [], lambda _: None) == []
