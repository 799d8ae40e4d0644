"""Nodes that join later, leave, are drained and are lost while a workload runs."""

from __future__ import annotations

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
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import run_what_if
from yarnling.workload.model import NodeChange, NodeEvent, NodeSchedule, Workload, WorkloadApplication

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
    assert {one.end for one in lost} == {End.FAILED}
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
    assert {one.end for one in lost} == {End.FAILED}
    assert all(one.ended_ms is not None and 10_000 <= one.ended_ms - AT_MS <= 13_000 for one in lost)
    assert completed(result) == 6


def test_a_node_that_leaves_does_not_end_one_that_is_being_drained() -> None:
    events = (event(NodeChange.DRAIN, timeout_s=600), event(NodeChange.LEAVE, "h3", AT_MS + 1_000))
    result = run(*events, applications=(application(group(9, 60)),), machines=3)
    assert {one.end for one in on(result, "h2")} == {End.COMPLETED}
    assert {one.end for one in on(result, "h3")} == {End.FAILED}


def test_a_lost_node_is_noticed_when_it_expires_and_its_tasks_run_again() -> None:
    """Its containers are released with exit status -100 (ABORTED), which does not count as a failure of the task."""
    result = run(event(NodeChange.LOST), applications=(application(group(6, 30)),))
    lost = on(result, "h2")
    assert {one.end for one in lost} == {End.FAILED}
    again = placed_after(tasks(result), AT_MS)
    assert len(again) == len(lost)
    assert all(EXPIRY_MS <= (one.requested_ms - AT_MS) <= 2 * EXPIRY_MS for one in again)
    assert completed(result) == 6


def test_the_am_of_a_lost_node_is_started_again_and_continues() -> None:
    work = application(group(1, 300), am_lasts_ms=0)
    machines_of_am = [one.host for one in run(applications=(work,)).containers if one.is_am]
    result = run(event(NodeChange.LOST, machines_of_am[0]), applications=(work,))
    first, second = (one for one in result.containers if one.is_am)
    assert (first.end, second.end) == (End.FAILED, End.COMPLETED)
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
