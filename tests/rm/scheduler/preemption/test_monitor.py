"""When rounds run, what AMs are asked to release, and when containers are killed."""

from __future__ import annotations

import pytest

from rm.scheduler.model.notices import PreemptionFailed
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.preemption import policy
from rm.scheduler.preemption.policy import ProportionalCapacityPreemptionPolicy
from rm.scheduler.preemption.preemption_round import PreemptionRound, PreemptionRoundFailed, Victims
from tests.compiled import only_interpreted
from tests.rm.scheduler.cluster import GB, Cluster
from yarn.ids import ContainerId
from yarn.resource import Resource

TWO_QUEUES = {
    "root.queues": "a,b",
    "root.a.capacity": "50",
    "root.a.user-limit-factor": "2",
    "root.b.capacity": "50",
    "maximum-am-resource-percent": "1",
    "per-node-heartbeat.maximum-offswitch-assignments": "100",
    "preemption.total_preemption_per_round": "1.0",
    "preemption.natural_termination_factor": "1.0",
    "preemption.max_ignored_over_capacity": "0.0",
}
MONITORED = {**TWO_QUEUES, "yarn.resourcemanager.scheduler.monitor.enable": "true"}


def crowded(conf: dict[str, str]) -> Cluster:
    """10 GB: a uses 9, its AM included; b uses 1 for its AM and requests 4 more, up to its guarantee."""
    cluster = Cluster(conf)
    cluster.node("n1", 10 * GB)
    cluster.run("late", "n1", queue="b")
    cluster.run("early", "n1", queue="a")
    cluster.request("early", 20)
    cluster.heartbeat("n1")
    cluster.poll("early")
    cluster.heartbeat("n1")
    cluster.request("late", 4)
    return cluster


def marked(cluster: Cluster) -> set[int]:
    """The numbers of early's containers that its AM is to be asked to release."""
    return {container_id.number for container_id in cluster.attempt("early").to_preempt}


def heartbeats_until(cluster: Cluster, advance_ms: int) -> list[str]:
    cluster.now_ms += advance_ms
    return cluster.heartbeat("n1")


def test_a_heartbeat_runs_the_round_that_is_due() -> None:
    """SchedulingMonitor: one round per monitoring_interval, counted from the start, which was a day ago."""
    cluster = crowded({**MONITORED, "preemption.monitoring_interval": str(86_400_000 + 3000)})
    heartbeats_until(cluster, 2999)
    assert marked(cluster) == set()
    heartbeats_until(cluster, 1)
    assert marked(cluster) == {6, 7, 8, 9}


def test_a_late_heartbeat_runs_one_round_and_keeps_the_schedule() -> None:
    cluster = crowded({**MONITORED, "preemption.monitoring_interval": "3000"})
    start_ms = cluster.now_ms
    assert cluster.scheduler.monitor.due_ms == start_ms + 3000
    heartbeats_until(cluster, 10_000)
    assert cluster.scheduler.monitor.due_ms == start_ms + 12_000


def test_no_round_is_due_without_the_monitor() -> None:
    cluster = crowded({**TWO_QUEUES, "preemption.monitoring_interval": "3000"})
    heartbeats_until(cluster, 60_000)
    assert marked(cluster) == set()


def test_a_refresh_can_enable_preemption() -> None:
    conf = {**TWO_QUEUES, "preemption.monitoring_interval": "3000"}
    cluster = crowded(conf)
    cluster.refresh({**MONITORED, "preemption.monitoring_interval": "3000"})
    cluster.heartbeat("n1")
    assert marked(cluster) == {6, 7, 8, 9}


def test_the_am_is_notified_once_and_may_release_other_containers_instead() -> None:
    """FiCaSchedulerApp.getAllocation: the containers, and their size in multiples of the minimum allocation."""
    cluster = crowded({**MONITORED, "yarn.scheduler.minimum-allocation-mb": "256"})
    cluster.preempt()
    message = cluster.poll("early").preemption
    assert message is not None
    attempt_id = cluster.attempt("early").attempt_id
    assert sorted(message.negotiable) == [ContainerId(attempt_id, number) for number in (6, 7, 8, 9)]
    assert message.strict == ()
    assert [(ask.capability, ask.count) for ask in message.asks] == [(Resource(256, 1), 16)]
    cluster.preempt()
    assert cluster.poll("early").preemption is None


def test_the_am_is_not_notified_of_a_container_that_has_completed() -> None:
    cluster = crowded(MONITORED)
    cluster.preempt()
    cluster.finish("early", 9)
    cluster.heartbeat("n1")
    message = cluster.poll("early").preemption
    assert message is not None
    assert 9 not in {container_id.number for container_id in message.negotiable}


def test_a_container_is_killed_when_it_is_chosen_again_after_the_wait() -> None:
    cluster = crowded({**MONITORED, "preemption.max_wait_before_kill": "5000"})
    cluster.preempt()
    assert cluster.preempt(4999) == []
    assert "early/9 ended -102: Container preempted by scheduler" in cluster.preempt(1)


def test_a_victim_that_is_not_chosen_again_is_forgotten_after_twice_the_wait() -> None:
    cluster = crowded({**MONITORED, "preemption.max_wait_before_kill": "5000"})
    cluster.preempt()
    cluster.request("late", 0)
    cluster.preempt(10_001)
    cluster.request("late", 4)
    assert {line.split()[1] for line in cluster.preempt(1)} == {"requested"}


def test_observe_only_changes_nothing() -> None:
    cluster = crowded({**MONITORED, "preemption.observe_only": "true", "preemption.max_wait_before_kill": "0"})
    assert [cluster.preempt(), cluster.preempt()] == [[], []]


def test_a_round_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """SchedulingMonitor.PolicyInvoker logs what a round throws and continues with the next."""
    cluster = crowded({**MONITORED, "preemption.monitoring_interval": "3000"})
    notices: list[object] = []
    cluster.scheduler.context.notify = notices.append

    def broken(the_round: PreemptionRound, *, balances: bool) -> Victims:
        raise PreemptionRoundFailed("java.lang.NullPointerException", "no leaf")

    with monkeypatch.context() as inner:
        inner.setattr(policy, "select_fifo", broken)
        heartbeats_until(cluster, 3000)
    assert notices == [PreemptionFailed("no leaf")]
    heartbeats_until(cluster, 3000)
    assert marked(cluster) == {6, 7, 8, 9}


def rounds_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The times of the rounds that are not skipped, from now on."""
    times: list[int] = []
    edit_schedule = ProportionalCapacityPreemptionPolicy.edit_schedule

    def counted(
        self: ProportionalCapacityPreemptionPolicy, root: CSQueue, now_ms: int, drop: policy.DropReservation
    ) -> list[policy.Order]:
        times.append(now_ms)
        return edit_schedule(self, root, now_ms, drop)

    monkeypatch.setattr(ProportionalCapacityPreemptionPolicy, "edit_schedule", counted)
    return times


def balanced(**settings: str) -> Cluster:
    """10 GB, of which a and b use 1 each, for their AMs."""
    cluster = Cluster({**MONITORED, **settings})
    cluster.node("n1", 10 * GB)
    cluster.run("late", "n1", queue="b")
    cluster.run("early", "n1", queue="a")
    return cluster


@only_interpreted
def test_rounds_are_skipped_until_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = balanced()
    cluster.preempt()
    rounds = rounds_of(monkeypatch)
    for _ in range(5):
        cluster.preempt()
    assert len(rounds) <= 1, "the first one may have stored limits of users"
    before = len(rounds)
    cluster.request("late", 1)
    cluster.preempt()
    assert len(rounds) == before + 1


@only_interpreted
def test_rounds_are_not_skipped_while_a_victim_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would neither be killed nor forgotten."""
    cluster = crowded({**MONITORED, "preemption.max_wait_before_kill": "60000"})
    cluster.preempt()
    rounds = rounds_of(monkeypatch)
    for _ in range(5):
        cluster.preempt(1)
    assert len(rounds) == 5


@only_interpreted
def test_a_round_that_has_failed_is_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = balanced()

    def broken(the_round: PreemptionRound, *, balances: bool) -> Victims:
        raise PreemptionRoundFailed("java.lang.NullPointerException", "no leaf")

    monkeypatch.setattr(policy, "select_fifo", broken)
    for _ in range(5):
        cluster.preempt()
        assert cluster.scheduler.monitor.policy.last_failure is not None
    rounds = rounds_of(monkeypatch)
    cluster.preempt()
    assert len(rounds) == 1


def test_rounds_are_not_skipped_while_a_reservation_waits_for_its_age() -> None:
    """With preemption for queues of higher priority, time alone makes its reservation old enough."""
    upward = "ordering-policy.priority-utilization.underutilized-preemption."
    cluster = Cluster(
        {
            **MONITORED,
            "root.ordering-policy": "priority-utilization",
            "root.b.priority": "5",
            "preemption.monitoring_interval": "3000",
            # Only reservations preempt.
            "preemption.max_ignored_over_capacity": "10",
            upward + "enabled": "true",
            upward + "reserved-container-delay-ms": "60000",
        }
    )
    cluster.node("n1", 10 * GB)
    cluster.run("late", "n1", queue="b")
    cluster.run("early", "n1", queue="a")
    for name, count in (("n1", 6), ("full", 10), ("n3", 8)):
        if name != "n1":
            cluster.node(name, 10 * GB)
        cluster.request("early", count)
        cluster.heartbeat(name)
        cluster.poll("early")
    cluster.request("late", 1, 4 * GB)
    cluster.heartbeat("n1")
    assert cluster.node_of("n1").reserved_container is not None
    reserved_ms = cluster.now_ms
    for age_s, victims in ((3, 0), (59, 0), (61, 2)):
        cluster.now_ms = reserved_ms + age_s * 1000
        cluster.heartbeat("full")
        assert len(marked(cluster)) == victims


def test_a_victim_that_was_forgotten_while_it_waited_is_requested_again() -> None:
    """A victim chosen to balance queues waits for 300 s by default, and is forgotten after twice the ordinary wait."""
    balancing = {
        "root.queues": "a,b,c",
        "root.a.capacity": "30",
        "root.a.user-limit-factor": "4",
        "root.b.capacity": "30",
        "root.b.user-limit-factor": "4",
        "root.c.capacity": "40",
        "preemption.max_wait_before_kill": "15000",
        "preemption.preemption-to-balance-queue-after-satisfied.enabled": "true",
    }
    cluster = Cluster({**MONITORED, **balancing})
    cluster.node("n1", 20 * GB)
    for app, queue, count in (("late", "b", 6), ("early", "a", 30)):
        cluster.run(app, "n1", queue=queue)
        cluster.request(app, count)
        cluster.heartbeat("n1")
        cluster.poll(app)
    cluster.request("late", 20)
    rounds = [len(cluster.preempt(30_000)) for _ in range(6)]
    assert rounds == [1, 0, 0, 1, 0, 0]
