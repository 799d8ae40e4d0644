"""The watch detects forbidden preemptions; rounds return a queue's guarantee to it and take no more."""

from __future__ import annotations

from rm.scheduler.model.notices import PreemptionDecided
from rm.scheduler.model.origin import PreemptionStep
from rm.scheduler.model.rm_container import RMContainer
from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.preemption.test_monitor import MONITORED, crowded
from yarn.ids import ContainerId
from yarn.protocols.inspection import QueueInRound
from yarn.resource import Resource

WAIT_MS = 15_000
"""max_wait_before_kill, in ms."""


def order(cluster: Cluster, app: str, number: int, step: str = "requested", *, clock_ms: int = 0) -> list[str]:
    """The invariants that the watch reports as violated."""
    cluster.watch.look_at_notice(decided(cluster, app, number, step, clock_ms))
    return [text.split(":")[0] for text in cluster.watch.take()]


def decided(cluster: Cluster, app: str, number: int, step: str = "requested", clock_ms: int = 0) -> PreemptionDecided:
    """The decision of a round that begins now on a container."""
    attempt, none = cluster.attempt(app), Resource(0, 0)
    leaf = attempt.leaf
    seen = QueueInRound(leaf.path, "", leaf.effective_minimum(""), leaf.usage.used(""), none, none, none, none)
    container: RMContainer = attempt.live_containers[ContainerId(attempt.attempt_id, number)]
    container.note_preemption(PreemptionStep(clock_ms, step, "GUARANTEE", seen, None))
    return PreemptionDecided(container.id, container.node_id, step, "GUARANTEE", "", clock_ms)


def test_a_queue_at_its_guarantee_loses_nothing_to_others() -> None:
    cluster = crowded(MONITORED)
    assert order(cluster, "early", 9) == []
    assert order(cluster, "late", 1) == ["I-53"]


def test_a_queue_may_fall_below_its_guarantee_in_the_course_of_a_round() -> None:
    """The round drops reservations, and a selector takes little notice of what an earlier one has chosen."""
    cluster = crowded(MONITORED)
    last = decided(cluster, "early", 5)
    for number in (9, 8, 7, 6):
        cluster.release("early", number)
    assert cluster.used("a") == 5 * GB
    cluster.watch.look_at_notice(last)
    assert cluster.watch.take() == []
    assert order(cluster, "early", 5) == ["I-53"], "a later round"


def test_a_round_takes_no_more_than_its_share_of_the_cluster() -> None:
    """2 of 10 GB."""
    cluster = crowded({**MONITORED, "preemption.total_preemption_per_round": "0.2"})
    for number in (9, 8):
        cluster.watch.look_at_notice(decided(cluster, "early", number))
    assert cluster.watch.take() == []
    for number in (7, 6, 5):
        cluster.watch.look_at_notice(decided(cluster, "early", number))
    assert [text.split(":")[0] for text in cluster.watch.take()] == ["I-54"]


def test_a_container_is_killed_no_sooner_than_its_wait() -> None:
    cluster = crowded(MONITORED)
    assert order(cluster, "early", 9, clock_ms=1000) == []
    assert order(cluster, "early", 9, "killed", clock_ms=1000 + WAIT_MS - 1) == ["I-55"]
    assert order(cluster, "early", 8, clock_ms=1000) == []
    assert order(cluster, "early", 8, "killed", clock_ms=1000 + WAIT_MS) == []


def test_a_queue_gets_its_guarantee_back_and_no_more_is_taken_for_it() -> None:
    """I-57 and I-58: both queues always request everything; a round may take a fifth of the cluster."""
    slow = {"preemption.total_preemption_per_round": "0.2", "preemption.natural_termination_factor": "1.0"}
    cluster = crowded({**MONITORED, **slow})
    deficit_mb = 5 * GB - cluster.used("b")
    lost_mb = 0
    for _ in range(60):
        cluster.request("early", 20)
        cluster.request("late", 20)
        lost_mb += sum(GB for line in cluster.preempt(WAIT_MS) if " ended -102" in line)
        cluster.heartbeat("n1", 2)
        for app in ("early", "late"):
            cluster.poll(app)
        cluster.heartbeat("n1")
    assert (cluster.used("a"), cluster.used("b")) == (5 * GB, 5 * GB)
    assert deficit_mb <= lost_mb <= 1.2 * deficit_mb
    assert cluster.violations() == []
