"""The text of a plan is read as the same plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from yarnling.faults.kinds import FaultScope
from yarnling.faults.plan import Plan
from yarnling.faults.plan_file import find_plan, parse_plan, plan_names
from yarnling.faults.plan_text import plan_text
from yarnling.faults.schedule import pinned, random_plan, schedule


def again(plan: Plan) -> Plan:
    return parse_plan(plan_text(plan), plan.name, plan.name)


@pytest.mark.parametrize("name", plan_names())
def test_every_ready_made_plan_is_read_again_as_it_was(name: str) -> None:
    plan = find_plan(name)
    assert again(plan) == plan


def test_only_what_is_not_the_default_is_written() -> None:
    text = """about: Two faults
seed: 7
cluster: {nodes: 3}
work:
  - {program: batch, tasks: 2, users: [ann, bob]}
faults:
  - {fault: kill-node, at: 0.5, for: 2, node: [1, 3]}
  - {fault: kill-container, at: 1, pick: 0.25, optional: true}
  - {fault: slow-node, at: [1, 2], for: 3, node: half, delay: 0.05}
lasts: 4.5
begins: at once
expect: {nodes_lost: [0, 2], drain: 240}
"""
    assert plan_text(parse_plan(text, "two", "two")) == text


@pytest.mark.slow
@given(st.integers(0, 1 << 32))
def test_a_pinned_plan_has_the_schedule_of_its_seed_with_every_seed(seed: int) -> None:
    plan = random_plan(seed)
    written = again(pinned(plan, seed))
    assert written.seed == seed
    assert (written.cluster, written.work, written.expect) == (plan.cluster, plan.work, plan.expect)
    for one, expected in zip(schedule(written, seed + 1), schedule(plan, seed), strict=True):
        assert replace(one, pick=0.0) == replace(expected, pick=0.0)
        assert expected.kind.scope is not FaultScope.CONTAINER or abs(one.pick - expected.pick) < 1e-6
