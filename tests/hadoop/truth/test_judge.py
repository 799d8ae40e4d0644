"""Simulations promise what Hadoop's own ResourceManager needed in real time for the same workload. Needs no Java."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.hadoop.truth.judge import (
    BEGIN,
    FIGURES,
    SEEDS,
    SENTENCE,
    Verdict,
    floor_of,
    judge,
    module_with,
    page_with,
    recordings_of,
    sentence,
    simulated_times,
    tables,
    value_of,
)
from tests.hadoop.truth.recording import directories
from tests.hadoop.truth.runs import CONFIGURATIONS, RUNS, TrueRun, workload_of
from yarn.times import HOUR_MS
from yarnling.whatif.prediction_error import Compared, run_times
from yarnling.whatif.run import RunOptions, run_what_if, what_if_configuration
from yarnling.workload.model import RequestStyle, Workload
from yarnling.workload.run_times import ApplicationTimes, RunTimes, UseOverTime

RECORDED = [run for run in RUNS if directories(run)]
WITHIN = {"makespan": 1.5, "mean run time": 3.0, "use over time": 4.0, "one application": 0.05}
"""{figure: its largest error, in percent, points, or a fraction}, unless two true runs differ by more.

Of one application it is 0.045 in the fair order, where two true runs differ by 0.035, and less than 0.03 in the others.
"""
AM_WAIT_PERCENT, AM_WAIT_MS = 30, 2500


def too_far(verdict: Verdict) -> dict[str, float]:
    """{figure: its error}, of those that are further off than WITHIN and the floor."""
    errors = {name: value_of(verdict, FIGURES[name]) or 0.0 for name in WITHIN}
    floors = {name: floor_of(verdict, FIGURES[name]) or 0.0 for name in WITHIN}
    return {name: error for name, error in errors.items() if abs(error) > max(WITHIN[name], floors[name])}


def wrong_am_waits(verdict: Verdict) -> dict[str, Compared]:
    """{queue: its p95 AM wait}, of those further off than the bounds, the floor, and the seeds from each other.

    Of twenty AMs of a queue the p95 is the wait of the second, and chance: two true runs differ by up to 57 %.
    """
    floors = {} if verdict.floor is None else {group.name: group.am_wait_p95_ms for group in verdict.floor.queues}
    return {
        group.name: wait
        for group in verdict.errors[0].queues
        if (wait := group.am_wait_p95_ms) is not None
        and abs(wait.simulated - wait.recorded) > max(AM_WAIT_MS, wait.spread, _off_ms(floors.get(group.name)))
        and abs(wait.simulated - wait.recorded) > wait.recorded * AM_WAIT_PERCENT / 100
    }


def _off_ms(compared: Compared | None) -> float:
    return 0 if compared is None else abs(compared.simulated - compared.recorded)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("run", RECORDED, ids=lambda run: run.name)
def test_a_simulation_promises_what_hadoop_needed(run: TrueRun) -> None:
    verdict = judge(run, recordings_of(run), [simulated_times(run, seed) for seed in SEEDS])
    assert too_far(verdict) == {}
    assert wrong_am_waits(verdict) == {}


def test_no_bound_is_narrower_than_the_floor() -> None:
    alone = judge(RUNS[0], [times(10_000)], [times(11_000)])
    assert set(too_far(alone)) == {"makespan", "mean run time", "one application"}
    assert too_far(judge(RUNS[0], [times(10_000), times(11_200)], [times(11_000)])) == {}
    late = replace(times(10_000), applications=(replace(times(10_000).applications[0], am_allocated_ms=5_000),))
    assert set(wrong_am_waits(judge(RUNS[0], [times(10_000)], [late]))) == {"root.etl"}
    assert wrong_am_waits(judge(RUNS[0], [times(10_000), late], [late])) == {}


@pytest.mark.slow
@pytest.mark.unmeasured
def test_ams_that_do_not_ask_again_would_promise_too_much() -> None:
    (run,) = (run for run in RECORDED if run.name == "quick-starts")
    applications = workload_of(run).applications
    exact = Workload(tuple(replace(one, client=RequestStyle.EXACT) for one in applications))
    conf = what_if_configuration(CONFIGURATIONS / run.configuration, run.simulated_settings).conf
    result = run_what_if(conf, exact, run.nodes, RunOptions(until_ms=HOUR_MS))
    verdict = judge(run, recordings_of(run)[:1], [run_times(result)])
    assert (value_of(verdict, FIGURES["makespan"]) or 0) < -2
    assert (value_of(verdict, FIGURES["mean run time"]) or 0) < -5


def times(ended_ms: int) -> RunTimes:
    """A run of one application, which ends then."""
    one = ApplicationTimes(name="a", queue="root.etl", submitted_ms=0, am_allocated_ms=1000, ended_ms=ended_ms)
    return RunTimes((one,), {"": UseOverTime((0, ended_ms), (1024, 0))}, 2048)


def test_an_error_is_the_mean_over_all_recordings_and_has_its_floor() -> None:
    run = RUNS[0]
    verdict = judge(run, [times(10_000), times(12_500)], [times(11_000), times(11_500)])
    assert value_of(verdict, FIGURES["makespan"]) == pytest.approx((12.5 - 10) / 2)
    header, _, row, *rest = tables([verdict])
    assert header.startswith("| run | makespan | mean run time |")
    assert row.startswith(f"| {run.name}: {run.about} | +1.2 (25.0) | +1.2 (25.0) | +0.0 (0.0) | - |")
    assert rest[-1].startswith(
        f"| {run.name} | etl | 1 s | 1 s (0 s) | +0.0 (0.0) | 11 s | 11 s (500 ms) | +1.2 (25.0) |"
    )
    alone = judge(run, [times(10_000)], [times(11_000)])
    assert "| +10.0 (-) |" in tables([alone])[2]


def test_the_change_of_a_queue_is_compared_where_both_sides_are_recorded() -> None:
    by_name = {run.name: run for run in RUNS}
    before = judge(by_name["overload-before"], [times(10_000)], [times(10_000)])
    after = judge(by_name["overload-after"], [times(15_000)], [times(14_000)])
    assert tables([before, after])[-1] == "| etl | +50 % | +40 % |"
    assert not any(line.startswith("| queue | change") for line in tables([before]))


def test_a_sentence_says_how_far_the_worst_run_is_off() -> None:
    one = judge(RUNS[0], [times(10_000)], [times(10_100)])
    other = judge(RUNS[1], [times(10_000)], [times(9_800)])
    text = "".join(sentence([one, other]))
    assert text.startswith(
        "Simulations of 2 true runs of Hadoop's ResourceManager were at most 2.0 % off in their makespan"
    )
    module = '"""About."""\n\nJUDGED = (\n    "old"\n)\n"""Why."""\n'
    written = module_with(module, ("a ", "b"))
    assert written == '"""About."""\n\nJUDGED = (\n    "a "\n    "b"\n)\n"""Why."""\n'
    assert module_with(SENTENCE.read_text(), ("a ", "b")).count('"a "') == 1


def test_the_page_is_written_between_its_marks() -> None:
    page = "# One\n\n<!-- true runs: begin -->\nold\n<!-- true runs: end -->\n\nlast\n"
    written = page_with(page, ["| new |"])
    assert written == f"# One\n\n{BEGIN}\n\n| new |\n\n<!-- true runs: end -->\n\nlast\n"
    assert page_with(written, ["| new |"]) == written
