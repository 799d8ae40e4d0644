"""A failing plan becomes smaller and fails in the same way; planted bugs shrink to a few lines."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rm.core import invariants
from rm.scheduler.capacity_scheduler import CapacityScheduler
from yarnling.faults.plan import Plan, WorkPlan
from yarnling.faults.plan_file import find_plan, parse_plan
from yarnling.faults.plan_text import plan_text
from yarnling.simulation import shrink as shrinking
from yarnling.simulation.runner import Options, SimulatedRun, simulate
from yarnling.simulation.shrink import _plainer_work, failures, shrink
from yarnling.simulation.state_store import SimulatedStore

FAST = Options(encode=False)
FEW_FAULTS = """
cluster: {nodes: 2}
work:
  - {program: tasks, applications: 2, tasks: 2, seconds: 0.3, users: dan, may_fail: true}
faults:
  - {fault: kill-container, at: 0.4, optional: true}
  - {fault: kill-rm, at: 0.6, for: 0.3}
  - {fault: pause-node, at: 0.7, for: 0.2, node: 2}
lasts: 1.5
expect: {drain: 5}
"""


def failing(plan: Plan, seed: int) -> SimulatedRun:
    run = simulate(plan, seed, FAST)
    assert failures(run)
    return run


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(parse_plan(FEW_FAULTS, "few", "few"), marks=pytest.mark.slow, id="few faults"),
        pytest.param(find_plan("storm"), marks=pytest.mark.soak, id="storm"),
    ],
)
def test_a_store_that_forgets_shrinks_to_one_kill_of_the_resource_manager(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedStore, "write", lambda self, effects: None)
    shrunk = shrink(failing(plan, 1), options=FAST)
    assert shrunk.failure == "no acknowledged application is lost"
    (fault,) = shrunk.plan.faults
    (work,) = shrunk.plan.work
    assert (fault.kind.name, shrunk.plan.cluster.nodes, work.applications, work.tasks) == ("kill-rm", 1, 1, 1)
    assert len(plan_text(shrunk.plan).splitlines()) < 12
    again = simulate(parse_plan(plan_text(shrunk.plan), "again", "again"), 1, FAST)
    assert shrunk.failure in failures(again)
    monkeypatch.undo()
    assert simulate(shrunk.plan, 1, FAST).judgement.reasons == ()


def test_the_same_invariant_must_break(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smaller plan that breaks another invariant is not taken for the same failure."""

    def violations(scheduler: CapacityScheduler) -> list[str]:
        nodes = len(scheduler.context.nodes)
        return [f"I-0{min(nodes, 3)}: planted"] if nodes else []

    monkeypatch.setattr(invariants, "violations", violations)
    shrunk = shrink(failing(replace(find_plan("kill-node"), faults=()), 1), options=FAST, runs_max=30)
    assert shrunk.failure == "I-01"


@pytest.mark.slow
def test_no_more_runs_than_allowed_and_the_smallest_so_far_is_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedStore, "write", lambda self, effects: None)
    runs: list[int] = []

    def count(plan: Plan, seed: int, options: Options) -> SimulatedRun:
        runs.append(seed)
        return simulate(plan, seed, options)

    run = failing(parse_plan(FEW_FAULTS, "few", "few"), 1)
    monkeypatch.setattr(shrinking, "simulate", count)
    shrunk = shrink(run, options=FAST, runs_max=3)
    assert shrunk.runs == len(runs) == 3
    assert shrunk.failure in failures(shrunk.run)


def test_it_ends_when_its_runs_have_had_enough_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedStore, "write", lambda self, effects: None)
    run = failing(parse_plan(FEW_FAULTS, "few", "few"), 1)
    shrunk = shrink(run, options=FAST, events_max=1)
    assert (shrunk.runs, shrunk.failure) == (1, failures(run)[0])
    assert shrunk.failure in failures(simulate(shrunk.plan, 1, FAST))


def test_work_becomes_plainer() -> None:
    plain = {"users": ("ann",), "keep_containers": False, "attempts": 0, "ignores_term": False, "killed_after": None}
    work = WorkPlan(users=("ann", "bob"), keep_containers=True, attempts=2, ignores_term=True, killed_after=1.5)
    assert list(_plainer_work(work)) == [work.model_copy(update={key: value}) for key, value in plain.items()]


@pytest.mark.parametrize(
    ("failure", "waits"),
    [("no acknowledged application is lost", (20.0, 20.0)), ("all resources are released", (60.0, 120.0))],
)
def test_waits_become_shorter_unless_the_failure_is_a_wait(
    failure: str, waits: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application that needs half a minute to end would fail for a short wait, and not for the bug."""
    run = simulate(replace(find_plan("kill-node"), faults=(), work=(), lasts=0.1, awaits_work=False), 1, FAST)
    monkeypatch.setattr(shrinking, "failures", lambda one: [failure])
    shrunk = shrink(run, options=FAST, runs_max=1)
    assert (shrunk.plan.expect.heal, shrunk.plan.expect.drain) == waits
