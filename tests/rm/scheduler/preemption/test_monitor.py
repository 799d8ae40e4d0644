"""When rounds run, what masters are told, and when containers end."""

from __future__ import annotations

import pytest

from rm.scheduler.model.notices import PreemptionFailed
from rm.scheduler.preemption import policy
from rm.scheduler.preemption.preemption_round import PreemptionRound, PreemptionRoundFailed
from rm.scheduler.preemption.victims import Victims
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
    """10 GB: a holds 9, its master among them; b's master 1, and b asks for 4 more, its guarantee."""
    cluster = Cluster(conf)
    cluster.node("n1", 10 * GB)
    cluster.run("late", "n1", queue="b")
    cluster.run("early", "n1", queue="a")
    cluster.ask("early", 20)
    cluster.beat("n1")
    cluster.poll("early")
    cluster.beat("n1")
    cluster.ask("late", 4)
    return cluster


def marked(cluster: Cluster) -> set[int]:
    """The numbers of early's containers that its master is to be told of."""
    return {container_id.number for container_id in cluster.attempt("early").to_preempt}


def beats_until(cluster: Cluster, advance_ms: int) -> list[str]:
    cluster.now_ms += advance_ms
    return cluster.beat("n1")


def test_a_heartbeat_runs_the_round_that_is_due() -> None:
    """SchedulingMonitor: every monitoring_interval from the start, which was a day ago."""
    cluster = crowded({**MONITORED, "preemption.monitoring_interval": str(86_400_000 + 3000)})
    beats_until(cluster, 2999)
    assert marked(cluster) == set()
    beats_until(cluster, 1)
    assert marked(cluster) == {6, 7, 8, 9}


def test_a_late_heartbeat_runs_one_round_and_the_next_keeps_its_time() -> None:
    cluster = crowded({**MONITORED, "preemption.monitoring_interval": "3000"})
    began_ms = cluster.now_ms
    assert cluster.scheduler.monitor.due_ms == began_ms + 3000
    beats_until(cluster, 10_000)
    assert cluster.scheduler.monitor.due_ms == began_ms + 12_000


def test_without_the_monitor_nothing_is_ever_due() -> None:
    cluster = crowded({**TWO_QUEUES, "preemption.monitoring_interval": "3000"})
    beats_until(cluster, 60_000)
    assert marked(cluster) == set()


def test_a_refresh_switches_it_on() -> None:
    conf = {**TWO_QUEUES, "preemption.monitoring_interval": "3000"}
    cluster = crowded(conf)
    cluster.refresh({**MONITORED, "preemption.monitoring_interval": "3000"})
    cluster.beat("n1")
    assert marked(cluster) == {6, 7, 8, 9}


def test_the_master_is_told_once_with_what_would_do_instead() -> None:
    """FiCaSchedulerApp.getAllocation: the containers, and their size in containers of the least size."""
    cluster = crowded({**MONITORED, "yarn.scheduler.minimum-allocation-mb": "256"})
    cluster.preempt()
    told = cluster.poll("early").preemption
    assert told is not None
    attempt_id = cluster.attempt("early").attempt_id
    assert sorted(told.negotiable) == [ContainerId(attempt_id, number) for number in (6, 7, 8, 9)]
    assert told.strict == ()
    assert [(ask.capability, ask.count) for ask in told.asks] == [(Resource(256, 1), 16)]
    cluster.preempt()
    assert cluster.poll("early").preemption is None


def test_what_ended_meanwhile_is_not_told() -> None:
    cluster = crowded(MONITORED)
    cluster.preempt()
    cluster.finish("early", 9)
    cluster.beat("n1")
    told = cluster.poll("early").preemption
    assert told is not None
    assert 9 not in {container_id.number for container_id in told.negotiable}


def test_a_container_ends_when_it_is_chosen_again_after_the_wait() -> None:
    cluster = crowded({**MONITORED, "preemption.max_wait_before_kill": "5000"})
    cluster.preempt()
    assert cluster.preempt(4999) == []
    assert "early/9 ended -102: Container preempted by scheduler" in cluster.preempt(1)


def test_one_that_is_not_chosen_again_is_forgotten_after_twice_the_wait() -> None:
    cluster = crowded({**MONITORED, "preemption.max_wait_before_kill": "5000"})
    cluster.preempt()
    cluster.ask("late", 0)
    cluster.preempt(10_001)
    cluster.ask("late", 4)
    assert {line.split()[1] for line in cluster.preempt(1)} == {"told"}


def test_observing_changes_nothing() -> None:
    cluster = crowded({**MONITORED, "preemption.observe_only": "true", "preemption.max_wait_before_kill": "0"})
    assert [cluster.preempt(), cluster.preempt()] == [[], []]


def test_a_round_that_breaks_off_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """SchedulingMonitor.PolicyInvoker logs what a round throws, and goes on to the next."""
    cluster = crowded({**MONITORED, "preemption.monitoring_interval": "3000"})
    notices: list[object] = []
    cluster.scheduler.context.notify = notices.append

    def broken(the_round: PreemptionRound, *, balances: bool) -> Victims:
        raise PreemptionRoundFailed("java.lang.NullPointerException", "no leaf")

    with monkeypatch.context() as inner:
        inner.setattr(policy, "select_fifo", broken)
        beats_until(cluster, 3000)
    assert notices == [PreemptionFailed("no leaf")]
    beats_until(cluster, 3000)
    assert marked(cluster) == {6, 7, 8, 9}
