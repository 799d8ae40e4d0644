"""A plan and a seed determine the schedule; every fault ends with the plan."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from yarnling.faults.kinds import KINDS
from yarnling.faults.plan import ClusterPlan, FaultPlan, Plan, WorkPlan, WorkProgram
from yarnling.faults.schedule import RANDOM_KINDS, random_plan, schedule

KILL = FaultPlan(KINDS["kill-node"], at=(1.0, 2.0), lasts=(0.5, 3.0), times=3, every=(0.5, 1.0))

RARE = {
    "yarn.resourcemanager.work-preserving-recovery.enabled": {"false"},
    "yarn.resourcemanager.auto-update.containers": {"true"},
}
"""The settings of some random plans for the simulation, and their values."""


def plan_of(*faults: FaultPlan, nodes: int = 6, racks: int = 3, lasts: float = 8.0) -> Plan:
    cluster, work = ClusterPlan(nodes=nodes, racks=racks), WorkPlan(program=WorkProgram.BATCH)
    return Plan("plan", "", cluster, (work,), faults, lasts)


def test_the_schedule_depends_only_on_the_seed() -> None:
    plan = plan_of(KILL)
    assert schedule(plan, 5) == schedule(plan, 5)
    assert schedule(plan, 5) != schedule(plan, 6)


def test_target_nodes() -> None:
    def nodes(whom: str, count: int = 1) -> list[tuple[int, ...]]:
        fault = replace(KILL, node=whom, count=count, times=1)
        return [injection.nodes for injection in schedule(plan_of(fault), 1)]

    assert nodes("4") == [(4,)]
    assert nodes("all") == [(1, 2, 3, 4, 5, 6)]
    assert nodes("rack-2") == [(2, 5)]
    assert len(nodes("half")[0]) == 3
    assert len(nodes("any", 2)[0]) == len(set(nodes("any", 2)[0])) == 2


def test_each_of_several_ams_gets_its_own_injection() -> None:
    """Each AM has its own `pick`, so two simultaneous injections hit two AMs if there are two."""
    fault = FaultPlan(KINDS["kill-master"], times=2, count=2)
    injections = schedule(plan_of(fault), 1)
    assert [injection.at_ms for injection in injections] == [1000, 1000, 2000, 2000]
    assert len({injection.pick for injection in injections}) == 4
    assert all(injection.until_ms is None and injection.nodes == () for injection in injections)


def test_option_ranges_are_drawn() -> None:
    fault = FaultPlan(KINDS["slow-node"], options={"delay": (0.1, 0.2), "loss": 0.1})
    (injection,) = schedule(plan_of(fault), 1)
    delay = injection.options["delay"]
    assert isinstance(delay, float)
    assert 0.1 <= delay <= 0.2
    assert f"delay={delay:.2f} loss=0.10" in str(injection)


@given(st.integers(0, 1 << 32))
def test_injections_are_in_order_and_end_with_the_plan(seed: int) -> None:
    plan = random_plan(seed)
    injections = schedule(plan, seed)
    assert [injection.number for injection in injections] == list(range(1, len(injections) + 1))
    assert [injection.at_ms for injection in injections] == sorted(injection.at_ms for injection in injections)
    for injection in injections:
        assert 0 <= injection.at_ms < plan.lasts * 1000
        assert (injection.until_ms is None) is not injection.kind.has_end
        assert injection.until_ms is None or injection.at_ms <= injection.until_ms <= plan.lasts * 1000
        assert all(1 <= number <= plan.cluster.nodes for number in injection.nodes)


@given(st.integers(0, 1 << 32))
def test_a_random_plan_depends_only_on_the_seed(seed: int) -> None:
    assert random_plan(seed) == random_plan(seed)
    assert random_plan(seed).faults
    assert all(fault.optional for fault in random_plan(seed).faults), "a fault may lose its target to another fault"


def test_all_faults_are_added_to_the_plan_of_the_seed() -> None:
    plans = [(random_plan(seed), random_plan(seed, all_faults=True)) for seed in range(60)]
    assert all(more.faults[: len(plan.faults)] == plan.faults for plan, more in plans)
    settings = [{**more.cluster.settings, **dict.fromkeys(plan.cluster.settings, "")} for plan, more in plans]
    rare = {key: [one[key] for one in settings if key in one] for key in RARE}
    assert {key: set(values) for key, values in rare.items()} == RARE
    assert all(3 <= len(values) < 30 for values in rare.values())
    assert all(
        more.cluster.model_copy(update={"settings": plan.cluster.settings}) == plan.cluster for plan, more in plans
    )
    easier = {"ignores_term": False, "killed_after": None}
    drawn = [tuple(work.model_copy(update=easier) for work in more.work) for _, more in plans]
    assert all(work[: len(plan.work)] == plan.work for (plan, _), work in zip(plans, drawn, strict=True))
    added = [work[len(plan.work) :] for (plan, _), work in zip(plans, drawn, strict=True)]
    assert {tuple(work.program.value for work in more) for more in added} == {(), ("gang",)}
    works = [work for _, more in plans for work in more.work]
    assert {work.program.value for work in works if work.ignores_term} == {"batch", "service", "gang"}
    assert {work.program.value for work in works if work.killed_after is not None} == {"batch", "gang"}
    assert {fault.kind.name for _, more in plans for fault in more.faults} == set(KINDS)
    assert not any(plan.only_simulated for plan, _ in plans)


def test_random_plans_leave_out_kinds_of_faults_and_sometimes_the_network() -> None:
    plans = [random_plan(seed) for seed in range(60)]
    assert {fault.kind.name for plan in plans for fault in plan.faults} == set(RANDOM_KINDS)
    assert {plan.needs_network for plan in plans} == {True, False}
    assert len({frozenset(fault.kind.name for fault in plan.faults) for plan in plans}) > 50
