"""Runs in which nodes and AMs are played have the result of those in which every message is sent."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from tests.yarnling.whatif.small_clusters import CS, TWO_QUEUES, application, configuration, group
from yarn.configuration import Configuration
from yarn.resource import Resource
from yarn.settings.resourcemanager import AM_HEARTBEAT_INTERVAL, NM_CLIENT_CONNECT_RETRY_INTERVAL
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import RunOptions, run_what_if
from yarnling.workload.model import NodeChange, NodeEvent, NodeSchedule, Workload, WorkloadNode

OFTEN = {AM_HEARTBEAT_INTERVAL.key: "2", NM_CLIENT_CONNECT_RETRY_INTERVAL.key: "1000"}
"""Calls to a node overlap, and an AM learns of a container a few milliseconds after its allocation."""
AT_ONCE = {
    f"{CS}per-node-heartbeat.maximum-offswitch-assignments": "400",
    f"{CS}per-node-heartbeat.maximum-container-assignments": "-1",
}


def result_of(
    conf: Configuration, workload: Workload, nodes: Sequence[WorkloadNode], events: Sequence[NodeEvent], *, played: bool
) -> WhatIfResult:
    options = RunOptions(until_ms=120_000, played=played)
    result = run_what_if(conf, workload, nodes, options, schedule=NodeSchedule(tuple(events)))
    return replace(result, containers=tuple(result.containers), events=0, wall_s=0)


@pytest.mark.parametrize("settings", [{}, OFTEN])
def test_more_starts_on_a_node_than_a_call_takes(settings: dict[str, str]) -> None:
    nodes = [WorkloadNode("n00001", Resource(500_000, 500), "/rack-1")]
    workload = Workload((application(group(330, 5, memory_mb=1024)),))
    conf = configuration(TWO_QUEUES | AT_ONCE | settings)
    every = result_of(conf, workload, nodes, (), played=False)
    assert len(every.containers) == 331
    assert result_of(conf, workload, nodes, (), played=True) == every


@pytest.mark.parametrize("later_ms", range(-1, 8))
def test_a_node_that_is_lost_while_tasks_start_there(later_ms: int) -> None:
    """Before the call is made, while the AM connects, while the call is under way, and after its arrival."""
    nodes = [WorkloadNode(f"n0000{number}", Resource(4096, 4), "/rack-1") for number in (1, 2)]
    workload = Workload((application(group(5, 9), group(5, 3)),))
    conf = configuration(TWO_QUEUES | OFTEN)
    undisturbed = result_of(conf, workload, nodes, (), played=False)
    am, *_ = sorted(undisturbed.containers, key=lambda one: one.allocated_ms or 0)
    other = next(one for one in undisturbed.containers if one.host != am.host)
    assert other.allocated_ms is not None
    lost = NodeEvent(other.allocated_ms + later_ms, other.host, NodeChange.LOST)
    back = NodeEvent(lost.time_ms + 3_000, other.host, NodeChange.JOIN)
    every = result_of(conf, workload, nodes, (lost, back), played=False)
    assert every != undisturbed
    assert result_of(conf, workload, nodes, (lost, back), played=True) == every
