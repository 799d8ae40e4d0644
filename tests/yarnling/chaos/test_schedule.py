"""A plan and a seed give one schedule; it ends with the plan."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from yarnling.chaos.plan import KINDS, ClusterPlan, FaultPlan, Plan, Program, Work
from yarnling.chaos.schedule import schedule
from yarnling.chaos.swarm import random_plan

KILL = FaultPlan(KINDS["kill-node"], at=(1.0, 2.0), lasts=(0.5, 3.0), times=3, every=(0.5, 1.0))


def plan_of(*faults: FaultPlan, nodes: int = 6, racks: int = 3, lasts: float = 8.0) -> Plan:
    return Plan("plan", "", ClusterPlan(nodes, racks), (Work(Program.BATCH),), faults, lasts)


def test_the_same_seed_gives_the_same_schedule_and_another_another() -> None:
    plan = plan_of(KILL)
    assert schedule(plan, 5) == schedule(plan, 5)
    assert schedule(plan, 5) != schedule(plan, 6)


def test_who_is_struck() -> None:
    def nodes(whom: str, count: int = 1) -> list[tuple[int, ...]]:
        fault = replace(KILL, node=whom, count=count, times=1)
        return [blow.nodes for blow in schedule(plan_of(fault), 1)]

    assert nodes("4") == [(4,)]
    assert nodes("all") == [(1, 2, 3, 4, 5, 6)]
    assert nodes("rack-2") == [(2, 5)]
    assert len(nodes("half")[0]) == 3
    assert len(nodes("any", 2)[0]) == len(set(nodes("any", 2)[0])) == 2


def test_so_many_masters_are_so_many_blows() -> None:
    """Each has a pick of its own: two at once are two masters, if there are two."""
    fault = FaultPlan(KINDS["kill-master"], times=2, count=2)
    blows = schedule(plan_of(fault), 1)
    assert [blow.at_ms for blow in blows] == [1000, 1000, 2000, 2000]
    assert len({blow.pick for blow in blows}) == 4
    assert all(blow.until_ms is None and blow.nodes == () for blow in blows)


def test_spans_of_options_are_drawn() -> None:
    fault = FaultPlan(KINDS["slow-node"], options={"delay": (0.1, 0.2), "loss": 0.1})
    (blow,) = schedule(plan_of(fault), 1)
    delay = blow.options["delay"]
    assert isinstance(delay, float)
    assert 0.1 <= delay <= 0.2
    assert f"delay={delay:.2f} loss=0.10" in str(blow)


@given(st.integers(0, 1 << 32))
def test_all_ends_with_the_plan_and_in_order(seed: int) -> None:
    plan = random_plan(seed)
    blows = schedule(plan, seed)
    assert [blow.number for blow in blows] == list(range(1, len(blows) + 1))
    assert [blow.at_ms for blow in blows] == sorted(blow.at_ms for blow in blows)
    for blow in blows:
        assert 0 <= blow.at_ms < plan.lasts * 1000
        assert (blow.until_ms is None) is not blow.kind.has_end
        assert blow.until_ms is None or blow.at_ms <= blow.until_ms <= plan.lasts * 1000
        assert all(1 <= number <= plan.cluster.nodes for number in blow.nodes)


@given(st.integers(0, 1 << 32))
def test_a_seed_is_a_plan(seed: int) -> None:
    assert random_plan(seed) == random_plan(seed)
    assert random_plan(seed).faults
    assert all(fault.optional for fault in random_plan(seed).faults), "none is owed what another one takes away"


def test_seeds_leave_classes_out_and_the_network_too() -> None:
    plans = [random_plan(seed) for seed in range(60)]
    assert {fault.kind.name for plan in plans for fault in plan.faults} >= set(KINDS) - {"full-disk", "full-store"}
    assert {plan.needs_network for plan in plans} == {True, False}
    assert len({frozenset(fault.kind.name for fault in plan.faults) for plan in plans}) > 50
