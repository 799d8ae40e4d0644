"""The work of a worker: the runs of one batch, one after another."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence

from msgspec.structs import replace

from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings.release import RELEASE
from yarnling.cluster.silent_logs import without_logs
from yarnling.faults.schedule import random_plan
from yarnling.faults.verdict import RunVerdict
from yarnling.simulation.runner import Options, simulate
from yarnling.sweep.runs import RANDOM_PLAN, Inputs, RunResult, SweepRun
from yarnling.whatif.figures import figures_of
from yarnling.whatif.run import RunOptions, run_what_if
from yarnling.workload.scaling import scaled


def run_batch(inputs: Inputs, runs: Sequence[SweepRun]) -> list[RunResult]:
    """The result of each run. The log lines of the simulated services are left out."""
    with without_logs():
        return [_timed(inputs, run) for run in runs]


def _timed(inputs: Inputs, run: SweepRun) -> RunResult:
    started_s = time.perf_counter()
    try:
        row = _plan_row(inputs, run) if run.plan else _workload_row(inputs, run)
    except YarnException as error:
        row = RunResult(run, RunVerdict.CANNOT_TELL, error.message)
    except Exception as bug:  # A run that cannot be finished must not take the results of its batch with it.
        row = RunResult(run, RunVerdict.FAIL, f"{type(bug).__name__}: {bug}")
    return replace(row, wall_s=round(time.perf_counter() - started_s, 3), worker=platform.node())


def _plan_row(inputs: Inputs, run: SweepRun) -> RunResult:
    plan = random_plan(run.seed) if run.plan == RANDOM_PLAN else inputs.plans[run.plan]
    if inputs.release:
        plan = plan.with_settings({RELEASE.key: inputs.release})
    result = simulate(plan, run.seed, Options(encode=inputs.encode, traced=inputs.hashed))
    judgement = result.judgement
    reasons = "\n".join(judgement.reasons)
    return RunResult(run, judgement.verdict, reasons, result.events, round(result.virtual_s, 3), result.trace)


def _workload_row(inputs: Inputs, run: SweepRun) -> RunResult:
    """A workload passes if its simulation ran to the end. Copies for the load factor are drawn from the run's seed."""
    workload = scaled(inputs.workloads[run.workload], run.load_factor, run.seed)
    options = RunOptions(run.seed, inputs.until_ms, inputs.hashed)
    conf = Configuration.of(inputs.configurations[run.configuration])
    result = run_what_if(conf, workload, inputs.nodes, options, schedule=inputs.schedule)
    figures = figures_of(result)
    row = RunResult(run, RunVerdict.PASS, "", result.events, result.until_ms / 1000, result.trace)
    return replace(row, queues=figures.queues, cluster=figures.cluster, nodes=figures.nodes)
