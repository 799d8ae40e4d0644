"""scripts/both-ways: the same work in simulation and as processes is read alike, and makes a page."""

from __future__ import annotations

import pytest

from benchmarks.both_ways.__main__ import outcomes_of
from benchmarks.both_ways.cases import CASES, SIZE, Case, plan_case, workload_case
from benchmarks.both_ways.observed import Key, Observed
from benchmarks.both_ways.page import TIMES, Outcomes, page, same_node, same_order
from yarnling.faults.plan import ClusterPlan, Plan, WorkPlan
from yarnling.workload.model import TaskGroup, WorkloadApplication

PLAN = Plan("short", "", ClusterPlan(nodes=2), (WorkPlan(applications=2, tasks=3, seconds=0.2),), (), lasts=1)
APPLICATIONS = tuple(
    WorkloadApplication(queue, 0, queue, queue, (TaskGroup(SIZE, (300,) * 3),), SIZE) for queue in ("etl", "adhoc")
)
SHORT = (
    plan_case("A plan", "About it.", PLAN),
    workload_case("A workload", "About it.", APPLICATIONS, 2),
)


def change(kind: str, subject: str, event: str, source: str, target: str) -> dict[str, str]:
    values = {"kind": kind, "subject": subject, "event": event, "source": source, "target": target}
    return {"$": "yarn.machine.dispatcher.StateChanged", **values}


def observed(*starts: tuple[int, int, str]) -> Observed:
    """A run in which the RM allocated containers at these times: (application, time in ms, node)."""
    steps: list[tuple[int, str, list[dict[str, object]]]] = [(0, "nm-1", []), (0, "nm-2", []), (0, "rm", [])]
    for application, at_ms, node in starts:
        container = f"container_1_{application:04}_01_000002"
        answer = {"$": "yarn.protocols.master.AllocateResponse", "allocated": [{"id": {"$id": container}}]}
        steps.append((at_ms, "rm", [{"$": "yarn.machine.dispatcher.Reply", "value": answer}]))
        steps.append((at_ms + 5, node, [dict(change("NMContainer", container, "LAUNCHED", "SCHEDULED", "RUNNING"))]))
    return Observed(steps)


def test_orders_and_nodes_of_two_runs_are_compared() -> None:
    first = observed((1, 10, "nm-1"), (2, 20, "nm-2"), (3, 30, "nm-1"))
    second = observed((2, 10, "nm-2"), (1, 20, "nm-2"), (3, 30, "nm-1"))
    assert (same_order(first, first), same_node(first, first)) == (1, 1)
    assert (same_order(first, second), same_node(first, second)) == (2 / 3, 2 / 3)
    assert first.started == {Key(1, 2): 15, Key(2, 2): 25, Key(3, 2): 35}


@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.name)
def test_a_simulation_has_every_time(case: Case) -> None:
    run = case.simulated(1)
    assert len(run.started) == len(run.ended) == len(run.nodes) == len(run.learned) == 8
    assert [time.name for time in TIMES if not time.of(run)] == []
    assert min(value for time in TIMES for value in time.of(run)) >= 0
    text = page([Outcomes(case.name, case.about, [run], [run])], "a machine")
    assert "Containers: 8 simulated, 8 as processes." in text
    assert "| simulated and processes | 100% | 100% |" in text


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.name)
def test_processes_have_every_time_as_well(case: Case) -> None:
    outcomes = outcomes_of(case, 1)
    (simulated,), (processes,) = outcomes.simulated, outcomes.processes
    assert processes.started.keys() == simulated.started.keys()
    assert processes.ended.keys() == simulated.ended.keys()
    assert set(processes.nodes.values()) <= {1, 2}
    assert [time.name for time in TIMES if len(time.of(processes)) != len(time.of(simulated))] == []


def test_the_cases_of_the_page_are_plans_without_faults_and_a_workload() -> None:
    page_text = page([Outcomes(case.name, case.about, [], []) for case in CASES], "a machine")
    assert [case.name for case in CASES if f"## {case.name}\n" not in page_text] == []
