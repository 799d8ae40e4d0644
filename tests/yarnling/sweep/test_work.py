"""The work of a worker on a batch."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tests.yarnling.sweep.sweeps import write_workload_sweep
from yarn.resource import Resource
from yarnling.faults.plan_file import find_plan
from yarnling.faults.verdict import RunVerdict
from yarnling.sweep.result_file import open_results
from yarnling.sweep.runs import Inputs, SweepRun
from yarnling.sweep.work import run_batch
from yarnling.whatif.figures import NodeFigures
from yarnling.whatif.run import what_if_configuration
from yarnling.workload.model import (
    NodeChange,
    NodeEvent,
    NodeSchedule,
    TaskGroup,
    Workload,
    WorkloadApplication,
    WorkloadNode,
)


@pytest.mark.slow
def test_a_workload_is_simulated_under_each_configuration(tmp_path: Path) -> None:
    sweep = pickle.loads(pickle.dumps(write_workload_sweep(tmp_path)))
    with open_results(tmp_path / "r.sqlite") as file:
        file.add(run_batch(sweep.inputs, sweep.runs))
        assert file.not_passed(9) == []
        assert file.verdicts() == {"narrow work.yaml": {"pass": 4}, "wide work.yaml": {"pass": 4}}
        found = {(one.load_factor, one.configuration): one for one in file.queues() if one.queue == "root.etl"}
    assert {key: one.runs for key, one in found.items()} == dict.fromkeys(found, 2)
    narrow, wide = found[2.0, "narrow"].wait_p95_ms, found[2.0, "wide"].wait_p95_ms
    assert narrow is not None
    assert wide is not None
    assert narrow > wide


def test_a_run_that_cannot_be_done_does_not_take_its_batch_with_it() -> None:
    unknown, lost = run_batch(Inputs(), [SweepRun("none", seed=1), SweepRun("", "none", "none", seed=2)])
    assert (unknown.verdict, lost.verdict) == (RunVerdict.FAIL, RunVerdict.FAIL)
    assert unknown.reasons == "KeyError: 'none'"


def test_nodes_change_in_each_run() -> None:
    """The only node joins when the workload has given up waiting."""
    nodes, joined = (WorkloadNode("n1", Resource(8192, 8)),), NodeSchedule((NodeEvent(90_000, "n1", NodeChange.JOIN),))
    tasks = TaskGroup(Resource(1024, 1), (1_000,))
    workloads = {"w": Workload((WorkloadApplication("a", 0, "ann", "default", (tasks,)),))}
    configurations = {"c": what_if_configuration(None, {}).conf.values()}
    inputs = Inputs({}, configurations, workloads, nodes, 60_000, schedule=joined)
    (result,) = run_batch(inputs, [SweepRun("", "c", "w", 1.0, 1)])
    assert [(one.applications, one.finished) for one in result.queues] == [(1, 0)]
    assert (result.nodes, result.cluster is not None) == (NodeFigures(0, 0, 0), True)


def test_a_plan_follows_the_release_of_the_sweep() -> None:
    """3.5.0 schedules asynchronously by default, so the trace is another one."""
    run, plans = SweepRun("p", seed=1), {"p": find_plan("kill-node")}
    (before,) = run_batch(Inputs(plans, hashed=True), [run])
    (after,) = run_batch(Inputs(plans, hashed=True, release="3.5.0"), [run])
    assert before.verdict == after.verdict == RunVerdict.PASS
    assert before.trace != after.trace
