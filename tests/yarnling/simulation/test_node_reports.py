"""Omissions in NodeManagers' reports are noticed, and what they may leave out is not."""

from __future__ import annotations

import pytest

from tests.mutants.bug import planted
from tests.mutants.catalogue import find_bug
from tests.yarnling.simulation.intruder import simulate
from yarnling.faults.plan_file import find_plan, parse_plan
from yarnling.simulation.runner import Options

FAST = Options(encode=False)


@pytest.mark.parametrize(
    ("bug", "plan", "violation"),
    [
        ("end-dropped-after-a-lost-reply", "lost-replies", "I-30: Container container_"),
        ("end-not-reported-at-registration", "kill-rm", "I-45: n0000"),
    ],
)
def test_an_end_that_a_node_does_not_report_is_a_violation(bug: str, plan: str, violation: str) -> None:
    with planted(find_bug(bug)):
        run = simulate(find_plan(plan), 1, FAST)
    assert any(violation in crash for crash in run.history.crashed), run.history.crashed


@pytest.mark.slow
def test_a_restarted_node_manager_may_have_forgotten_its_containers() -> None:
    run = simulate(find_plan("flap"), 1, FAST)
    assert run.judgement.reasons == ()


def test_as_in_hadoop_the_report_of_an_unhealthy_decommissioning_node_is_ignored() -> None:
    """Its ended containers are missing in its next report, and end as lost."""
    plan = """
cluster: {nodes: 1}
work:
  - {program: batch, applications: 4, tasks: 1, seconds: 1.7, users: [ann], may_fail: true}
faults:
  - {fault: decommission-node, at: 2.5, for: 1.4, node: 1}
  - {fault: full-disk, at: 3.4, for: 0.2, node: 1}
lasts: 4
begins: at once
"""
    warnings: list[str] = []
    options = Options(encode=False, traced=True, line=warnings.append)
    run = simulate(parse_plan(plan, "ignored", "ignored"), 600854, options)
    assert any("was running but not reported" in line for line in warnings), "the plan no longer shows it"
    assert run.judgement.reasons == ()
