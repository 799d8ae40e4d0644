"""Nodes that join later, leave, are drained and are lost while a workload runs."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.yarnling.whatif.small_clusters import (
    AN_HOUR,
    MINUTE_MS,
    TWO_QUEUES,
    application,
    configuration,
    group,
    nodes,
    tasks,
)
from yarn.errors import YarnException
from yarnling.whatif.containers import ContainerOutcome, End
from yarnling.whatif.figures import NodeFigures, figures_of
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import RunOptions, run_what_if
from yarnling.workload.autoscaling import MemoryPolicy, NodeScaling, RulePolicy, ScalingMetric, ScalingRule
from yarnling.workload.model import (
    NodeChange,
    NodeEvent,
    NodeSchedule,
    SpotNodes,
    Workload,
    WorkloadApplication,
)

EXPIRY_MS = 60_000
SETTINGS = {
    **TWO_QUEUES,
    "yarn.nm.liveness-monitor.expiry-interval-ms": str(EXPIRY_MS),
    "yarn.am.liveness-monitor.expiry-interval-ms": str(EXPIRY_MS),
}
AT_MS = 20_000


def run(*events: NodeEvent, applications: tuple[WorkloadApplication, ...], machines: int = 2) -> WhatIfResult:
    workload = Workload(applications)
    return run_what_if(configuration(SETTINGS), workload, nodes(machines), AN_HOUR, schedule=NodeSchedule(events))


def event(change: NodeChange, host: str = "h2", at_ms: int = AT_MS, timeout_s: int | None = None) -> NodeEvent:
    return NodeEvent(at_ms, host, change, timeout_s)


def on(result: WhatIfResult, host: str, *, of: int = 0) -> list[ContainerOutcome]:
    """The tasks that were placed on the host."""
    return [one for one in tasks(result, of) if one.host == host]


def placed_after(containers: list[ContainerOutcome], at_ms: int) -> list[ContainerOutcome]:
    return [one for one in containers if one.allocated_ms is not None and one.allocated_ms > at_ms]


def completed(result: WhatIfResult) -> int:
    return sum(one.end is End.COMPLETED for one in tasks(result))


def test_a_node_that_joins_gets_containers_from_then_on() -> None:
    result = run(event(NodeChange.JOIN), applications=(application(group(20, 30)),))
    assert completed(result) == 20
    first = min(one.allocated_ms or 0 for one in on(result, "h2"))
    assert AT_MS < first <= AT_MS + 3_000
    assert any("Nodes change (join 1)" in text for text in result.assumptions)


def test_a_node_that_leaves_loses_its_containers_at_once_and_they_run_again_elsewhere() -> None:
    result = run(event(NodeChange.LEAVE), applications=(application(group(6, 30)),))
    lost = on(result, "h2")
    assert {one.end for one in lost} == {End.LOST}
    assert all(one.ended_ms is not None and AT_MS <= one.ended_ms <= AT_MS + 3_000 for one in lost)
    assert completed(result) == 6
    assert not placed_after(lost, AT_MS)


def test_a_node_that_is_drained_ends_its_containers_and_gets_no_others() -> None:
    result = run(event(NodeChange.DRAIN), applications=(application(group(20, 30)),))
    drained = on(result, "h2")
    assert drained
    assert not placed_after(drained, AT_MS)
    assert {one.end for one in tasks(result)} == {End.COMPLETED}


def test_the_containers_of_a_drained_node_are_killed_after_the_timeout() -> None:
    result = run(event(NodeChange.DRAIN, timeout_s=10), applications=(application(group(6, 120)),))
    lost = on(result, "h2")
    assert {one.end for one in lost} == {End.LOST}
    assert all(one.ended_ms is not None and 10_000 <= one.ended_ms - AT_MS <= 13_000 for one in lost)
    assert completed(result) == 6


def test_a_node_that_leaves_does_not_end_one_that_is_being_drained() -> None:
    events = (event(NodeChange.DRAIN, timeout_s=600), event(NodeChange.LEAVE, "h3", AT_MS + 1_000))
    result = run(*events, applications=(application(group(9, 60)),), machines=3)
    assert {one.end for one in on(result, "h2")} == {End.COMPLETED}
    assert {one.end for one in on(result, "h3")} == {End.LOST}


def test_a_lost_node_is_noticed_when_it_expires_and_its_tasks_run_again() -> None:
    """Its containers are released with exit status -100 (ABORTED), which does not count as a failure of the task."""
    result = run(event(NodeChange.LOST), applications=(application(group(6, 30)),))
    lost = on(result, "h2")
    assert {one.end for one in lost} == {End.LOST}
    again = placed_after(tasks(result), AT_MS)
    assert len(again) == len(lost)
    assert all(EXPIRY_MS <= (one.requested_ms - AT_MS) <= 2 * EXPIRY_MS for one in again)
    assert completed(result) == 6


def test_the_am_of_a_lost_node_is_started_again_and_continues() -> None:
    work = application(group(1, 300), am_lasts_ms=0)
    machines_of_am = [one.host for one in run(applications=(work,)).containers if one.is_am]
    result = run(event(NodeChange.LOST, machines_of_am[0]), applications=(work,))
    first, second = (one for one in result.containers if one.is_am)
    assert (first.end, second.end) == (End.LOST, End.COMPLETED)
    assert second.host != first.host
    assert second.requested_ms - AT_MS >= EXPIRY_MS
    assert result.applications[0].state == "FINISHED"


def test_nodes_that_were_lost_or_have_left_can_join_again() -> None:
    back_ms = 3 * MINUTE_MS
    events = [event(change, host) for change, host in ((NodeChange.LOST, "h2"), (NodeChange.LEAVE, "h3"))]
    events += [event(NodeChange.JOIN, host, back_ms) for host in ("h2", "h3")]
    works = application(group(6, 30)), application(group(12, 30), name="later", at_s=200)
    result = run(*events, applications=works, machines=3)
    for host in ("h2", "h3"):
        assert placed_after(on(result, host, of=1), back_ms)
    assert {one.end for one in tasks(result, 1)} == {End.COMPLETED}


def test_a_drain_is_cancelled_if_the_node_joins_again() -> None:
    events = event(NodeChange.DRAIN, timeout_s=600), event(NodeChange.JOIN, at_ms=AT_MS + 15_000)
    result = run(*events, applications=(application(group(20, 30)),))
    assert placed_after(on(result, "h2"), AT_MS + 15_000)
    assert not [one for one in placed_after(on(result, "h2"), AT_MS) if (one.allocated_ms or 0) < AT_MS + 15_000]


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ((event(NodeChange.LEAVE, "h9"),), "node h9, leave at 20 s: there is no such node"),
        ((event(NodeChange.LEAVE, at_ms=-1),), "before the start"),
        ((event(NodeChange.LEAVE), event(NodeChange.LOST, at_ms=30_000)), "not there after leave"),
        ((event(NodeChange.JOIN), event(NodeChange.JOIN, at_ms=30_000)), "it has joined before"),
    ],
)
def test_events_that_do_not_fit_the_nodes_are_refused(events: tuple[NodeEvent, ...], fault: str) -> None:
    with pytest.raises(YarnException, match=fault):
        run(*events, applications=(application(group(1, 1)),))


def counts(result: WhatIfResult) -> list[int]:
    return [each.nodes for each in result.node_counts]


def test_the_work_of_containers_that_were_lost_with_nodes_is_counted() -> None:
    """Each of the lost ones ran for less than 20 s."""
    result = run(event(NodeChange.LOST), applications=(application(group(6, 30)),))
    lost = figures_of(result).cluster.lost_with_nodes
    ended = [one for one in result.containers if one.end is End.LOST]
    assert lost.containers == len(ended) >= 2
    assert 0 < lost.container_ms < 20_000 * lost.containers
    assert lost.container_ms == sum((one.ended_ms or 0) - (one.allocated_ms or 0) for one in ended)


def test_the_tasks_of_a_lost_am_are_lost_with_it() -> None:
    work = application(group(3, 300), am_lasts_ms=0)
    machines_of_am = [one.host for one in run(applications=(work,)).containers if one.is_am]
    result = run(event(NodeChange.LOST, machines_of_am[0]), applications=(work,))
    assert {one.end for one in result.containers} == {End.LOST, End.COMPLETED}


def test_node_hours_are_those_of_machines_that_are_there() -> None:
    """h1 stays, h2 leaves at 20 s, h3 joins at 30 s and is lost at 40 s."""
    events = event(NodeChange.LEAVE), event(NodeChange.JOIN, "h3", 30_000), event(NodeChange.LOST, "h3", 40_000)
    result = run(*events, applications=(application(group(4, 60)),), machines=3)
    assert counts(result) == [2, 1, 2, 1]
    left_ms = result.node_counts[1].time_ms
    assert AT_MS <= left_ms < AT_MS + 1_000
    assert figures_of(result).nodes == NodeFigures(result.until_ms + left_ms + 10_000, 1, 2)


def test_a_drained_node_costs_until_its_containers_have_ended() -> None:
    result = run(event(NodeChange.DRAIN), applications=(application(group(12, 60)),))
    assert counts(result) == [2, 1]
    ends = [one.ended_ms for one in on(result, "h2") if one.ended_ms is not None]
    assert result.node_counts[1].time_ms > max(ends)


SPOTS = tuple(f"h{number}" for number in range(2, 12))


def lose(lost_per_hour: float, seed: int = 1, replaced_ms: int | None = None) -> WhatIfResult:
    """An hour with ten spot nodes, h2 to h11."""
    schedule = NodeSchedule(spots=(SpotNodes(SPOTS, lost_per_hour, replaced_ms),))
    work = application(group(1, 7200))
    options = RunOptions(seed, until_ms=3_600_000)
    return run_what_if(configuration(SETTINGS), Workload((work,)), nodes(11), options, schedule=schedule)


def test_spot_nodes_are_lost_at_their_rate() -> None:
    """In ten hours of ten nodes at 30 % an hour: 30 are expected, with a deviation of 5."""
    lost = [counts(lose(0.3, seed))[0] - counts(lose(0.3, seed))[-1] for seed in range(1, 11)]
    assert 20 <= sum(lost) <= 40
    assert len(set(lost)) > 2


def test_the_same_seed_loses_the_same_nodes() -> None:
    assert lose(0.3, 7).node_counts == lose(0.3, 7).node_counts
    assert lose(0.3, 7).node_counts != lose(0.3, 8).node_counts


def test_a_lost_spot_node_is_replaced_if_asked() -> None:
    result = lose(0.9, replaced_ms=60_000)
    assert len(result.node_counts) > 20
    assert {other.nodes - one.nodes for one, other in pairwise(result.node_counts)} == {-1, 1}
    assert counts(result)[-1] >= 9


def test_spot_nodes_that_are_never_lost_change_nothing() -> None:
    assert counts(lose(0.0)) == [11]


def scaled(policy: MemoryPolicy | RulePolicy, *, played: bool = True, **more: int) -> WhatIfResult:
    """h1 is always there, h2 to h11 as an autoscaler wants; 24 containers of 100 s are too many for h1."""
    scaling = NodeScaling(SPOTS, 4096, policy, **{"cooldown_ms": 60_000, "start_ms": 30_000, **more})
    work = application(group(24, 100)), application(group(1, 1800), name="last")
    options = RunOptions(until_ms=7_200_000, played=played)
    schedule = NodeSchedule(scaling=scaling)
    return run_what_if(configuration(SETTINGS), Workload(work), nodes(11), options, schedule=schedule)


BY_MEMORY = MemoryPolicy(1.0, 1.0)
BY_RULES = RulePolicy(
    (
        ScalingRule(ScalingMetric.PENDING_CONTAINERS, True, 0, 2, cooldown_ms=60_000),
        ScalingRule(ScalingMetric.AVAILABLE_MEMORY, True, 0.5, -1, cooldown_ms=60_000),
    ),
    60_000,
)


@pytest.mark.parametrize("policy", [BY_MEMORY, BY_RULES], ids=["memory", "rules"])
def test_an_autoscaler_adds_nodes_for_what_waits_and_removes_them_afterwards(policy: MemoryPolicy | RulePolicy) -> None:
    result = scaled(policy)
    assert counts(result)[0] == 1
    assert max(counts(result)) > 3
    assert counts(result)[-1] < 4
    assert completed(result) == 24
    assert figures_of(result).cluster.lost_with_nodes.containers == 0
    first_ms = min(one.allocated_ms or 0 for one in tasks(result) if one.host != "h1")
    assert 60_000 + 30_000 < first_ms < 60_000 + 35_000


@pytest.mark.parametrize("policy", [BY_MEMORY, BY_RULES], ids=["memory", "rules"])
def test_an_autoscaler_decides_the_same_if_all_steps_are_taken(policy: MemoryPolicy | RulePolicy) -> None:
    played, full = (scaled(policy, played=way) for way in (True, False))
    assert played.node_counts == full.node_counts
    assert played.containers == full.containers


def test_a_scaled_node_that_does_not_end_its_work_is_killed_after_the_timeout() -> None:
    """The rule removes even a node that works."""
    rule = ScalingRule(ScalingMetric.AVAILABLE_MEMORY, True, 0.0, -1, cooldown_ms=60_000)
    result = scaled(RulePolicy((rule,), 60_000), initial=3, drain_timeout_s=20)
    assert (counts(result)[0], min(counts(result))) == (4, 1)
    assert figures_of(result).cluster.lost_with_nodes.containers > 0


def test_hosts_of_a_schedule_must_be_nodes() -> None:
    schedule = NodeSchedule(
        (NodeEvent(0, "h2", NodeChange.LEAVE),),
        (SpotNodes(("h7",), 0.1),),
        NodeScaling(("h2", "h8"), 4096, BY_MEMORY),
    )
    with pytest.raises(YarnException) as refused:
        run_what_if(configuration(SETTINGS), Workload((application(),)), nodes(3), AN_HOUR, schedule=schedule)
    assert "there are no nodes h7, h8" in str(refused.value)
    assert "nodes h2 have events, but an autoscaler" in str(refused.value)
