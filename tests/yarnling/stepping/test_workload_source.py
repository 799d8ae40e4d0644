"""Stepping through a workload: it is the run of a what-if, and it can be forked."""

from __future__ import annotations

import pytest

from yarn.errors import InvalidArgumentException, YarnException
from yarn.resource import Resource
from yarnling.stepping.changes import ClusterChange
from yarnling.stepping.session import NODES_MAX, Session
from yarnling.stepping.steps import LineKind
from yarnling.stepping.workload_source import WorkloadSource
from yarnling.whatif.run import run_what_if, what_if_configuration
from yarnling.workload.model import (
    NodeChange,
    NodeEvent,
    NodeSchedule,
    TaskGroup,
    Workload,
    WorkloadApplication,
    WorkloadNode,
)

CONF = what_if_configuration(None, {"yarn.scheduler.minimum-allocation-mb": "1024"}).conf
NODES = tuple(WorkloadNode(f"worker-{number}", Resource(8192, 8)) for number in (1, 2))


def application(name: str, submit_ms: int, count: int) -> WorkloadApplication:
    return WorkloadApplication(name, submit_ms, "ann", "default", (TaskGroup(Resource(2048, 1), (20_000,) * count),))


WORKLOAD = Workload((application("etl", 0, 6), application("report", 10_000, 3)))


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(WorkloadSource(WORKLOAD, NODES, CONF, 3))


def test_the_containers_are_those_of_a_what_if(session: Session) -> None:
    session.go_to(10**9)
    assert session.is_at_end
    result = run_what_if(CONF, WORKLOAD, NODES)
    placed = [line.text for step in session.steps for line in step.lines if line.kind is LineKind.PLACED]
    assert len(placed) == len(result.containers) + sum(one.surplus for one in result.applications)
    assert [app.state for app in session.view().applications] == ["FINISHED SUCCEEDED"] * 2


def test_nodes_join_and_leave_as_their_file_says() -> None:
    host = NODES[1].host
    schedule = NodeSchedule((NodeEvent(5_000, host, NodeChange.JOIN), NodeEvent(30_000, host, NodeChange.LEAVE)))
    session = Session(WorkloadSource(WORKLOAD, NODES, CONF, 3, schedule=schedule))
    session.go_to(10**9)
    placed = [line.text for step in session.steps for line in step.lines if line.kind is LineKind.PLACED]
    assert "worker-1" in placed[0]
    assert any("worker-2" in text for text in placed)
    assert [app.state for app in session.view().applications] == ["FINISHED SUCCEEDED"] * 2
    assert "DECOMMISSIONED" in {node.state for node in session.view().nodes}


def test_nodes_keep_their_names(session: Session) -> None:
    session.go_to_time(12_000)
    assert [node.name for node in session.view().nodes] == ["worker-1", "worker-2"]
    assert {step.place for step in session.steps} >= {"NM worker-1", "NM worker-2"}
    killed = session.fork(ClusterChange.parse("kill worker-2"))
    assert killed.view().nodes[1].process == "down"
    with pytest.raises(InvalidArgumentException, match="choose one of worker-1 to worker-2"):
        session.fork(ClusterChange.parse("remove n1"))


def test_an_application_is_submitted_beside_the_workload(session: Session) -> None:
    session.go_to_time(12_000)
    forked = session.fork(ClusterChange.parse("submit eve containers=2 memory=1024 seconds=4"))
    forked.go_to_time(18_000)
    assert [app.name for app in forked.view().applications] == ["etl", "report", "eve"]
    forked.go_to(10**9)
    assert forked.view().applications[2].state == "FINISHED SUCCEEDED"


def test_nothing_is_submitted_before_the_nodes_have_registered(session: Session) -> None:
    session.go_to(2)
    with pytest.raises(InvalidArgumentException, match="still starting"):
        session.fork(ClusterChange.parse("submit eve"))


def test_what_cannot_be_stepped_through() -> None:
    many = tuple(WorkloadNode(f"w{number}", Resource(8192, 8)) for number in range(NODES_MAX + 1))
    with pytest.raises(InvalidArgumentException, match="too large to be stepped through"):
        WorkloadSource(WORKLOAD, many, CONF, 1)
    other = Workload((WorkloadApplication("x", 0, "ann", "no-such-queue", ()),))
    with pytest.raises(YarnException, match="no-such-queue"):
        WorkloadSource(other, NODES, CONF, 1)
