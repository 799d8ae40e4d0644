"""Map-reduce jobs in virtual time: lost map output is made again, and a wrong output is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn.ids import ApplicationId
from yarn.states import FinalApplicationStatus
from yarnling.faults.plan_file import parse_plan
from yarnling.faults.verdict import RunVerdict
from yarnling.simulation import mapreduce
from yarnling.simulation.mapreduce import MAPS, SimulatedJob
from yarnling.simulation.runner import Options, SimulatedRun, simulate

PLAN = """
cluster: {nodes: 3, same_ports: true}
work:
  - {program: wordcount, users: eve}
faults:
  - {fault: kill-node, node: all, at: 0.6, for: 0.5}
  - {fault: kill-master, at: 0.3, optional: true}
begins: at once
lasts: 3
"""


def run(seed: int) -> SimulatedRun:
    return simulate(parse_plan(PLAN, "words", "words"), seed, Options(encode=False))


@pytest.mark.slow
def test_a_job_whose_machines_fail_is_right_in_the_end() -> None:
    for seed in (1, 2, 3):
        one = run(seed)
        assert one.judgement.reasons == ()
        (outcome,) = one.history.outcomes.values()
        assert outcome.final_status is FinalApplicationStatus.SUCCEEDED
        assert outcome.right


def test_a_reduce_that_skips_a_map_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = mapreduce.SimulatedTask._finish_reduce

    def skipping(task: mapreduce.SimulatedTask) -> None:
        task._fetched.popitem()
        finish(task)

    monkeypatch.setattr(mapreduce.SimulatedTask, "_finish_reduce", skipping)
    one = run(1)
    assert one.judgement.verdict is RunVerdict.FAIL
    assert any("its counts are wrong" in reason for reason in one.judgement.reasons)


def test_a_job_that_did_not_commit_is_not_right(tmp_path: Path) -> None:
    job = SimulatedJob(tmp_path, ApplicationId(1, 1))
    job.maps_in_part[0] = MAPS
    assert not job.is_right()
