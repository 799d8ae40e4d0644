"""The error beside the figures of a prediction, and the sentences about how far it is to be trusted."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace
from rich.console import Console

from tests.yarnling.whatif.outcomes import page_of
from tests.yarnling.whatif.small_clusters import TWO_QUEUES, application, configuration, group, nodes
from tests.yarnling.whatif.test_compare import ETL, outcome
from yarnling.cli.simulate_workload import print_summary
from yarnling.whatif.compare import Comparison, compare
from yarnling.whatif.compare_words import NO_DIFFERENCE, findings, headline, tiles
from yarnling.whatif.error_margins import margin_of, with_margin
from yarnling.whatif.figures import figures_of
from yarnling.whatif.headlines import findings as findings_of_a_run
from yarnling.whatif.measures import CLUSTER, MEASURES, Scope, Value
from yarnling.whatif.result_file import decode_result, encode_result
from yarnling.whatif.run import run_what_if
from yarnling.workload.calibration import Calibration, ReplayError
from yarnling.workload.evidence import Basis, Evidence
from yarnling.workload.model import Workload

MINUTE_MS = 60_000
CALIBRATION = Calibration(
    "friday",
    3,
    (
        ReplayError("", 20, run_mean=0.02, am_wait_p50=0.2, am_wait_p95=-0.1, memory=0.001),
        ReplayError("root.etl", 10, am_wait_p50=0.3, am_wait_p95=0.25, memory=-0.04),
    ),
    makespan=-0.03,
)
EVIDENCE = (
    Evidence(Basis.RECORDED, 0.6, "AMs"),
    Evidence(Basis.DETERMINED, 0.3, "x"),
    Evidence(Basis.ASSUMED, 0.1, "y"),
)


def compared(*etl_min: float, calibration: Calibration | None = CALIBRATION) -> Comparison:
    """Queue etl waits 12 minutes before the change, and so many after it, a run each."""

    def run(minutes: float) -> object:
        return figures_of(outcome(minutes, calibration=calibration, evidence=EVIDENCE))

    return compare([run(12)], [run(minutes) for minutes in etl_min])  # type: ignore[list-item]


def margin(name: str, scope: Scope, number: float, spread: float = 0.0) -> float | None:
    return margin_of(MEASURES[name], scope, Value(number), CALIBRATION, spread)


def test_a_figure_is_as_far_off_as_the_nearest_one_that_was_recorded() -> None:
    assert margin("p95 wait", ETL, 1000) == 250
    assert margin("p50 wait", ETL, 1000) == 300
    assert margin("p95 AM wait", CLUSTER, 1000) == 100
    assert margin("p95 wait", Scope("queue", "root"), 1000) == 100
    assert margin("p95 wait", Scope("queue", "root.new"), 1000) == 100
    assert margin("p95 wait", Scope("user", "root.etl"), 1000) == 100
    assert margin("mean run time", CLUSTER, 1000) == 20
    assert margin("use", ETL, 0.5) == pytest.approx(0.02)


def test_the_spread_of_the_seeds_counts_where_it_is_larger() -> None:
    assert margin("p95 wait", ETL, 1000, spread=400) == 400
    assert margin("preempted containers", ETL, 7, spread=3) == 3
    assert margin("preempted containers", ETL, 7) == 0


def test_a_workload_that_was_not_calibrated_has_no_margins() -> None:
    assert margin_of(MEASURES["p95 wait"], ETL, Value(1000), None, 400) is None
    assert with_margin(MEASURES["p95 wait"], Value(5 * MINUTE_MS), None) == "5 min"
    assert with_margin(MEASURES["p95 wait"], None, None) == "-"


def test_a_comparison_says_the_error_beside_its_figures() -> None:
    comparison = compared(41)
    assert "etl waits p95 12 min -> 41 min ± 10 min" in headline(comparison)
    assert tiles(comparison)[0].value == "41 min ± 4.1 min"
    assert findings(comparison)[-3:] == (
        "The replay of friday was off by at most 10 % (the makespan -3 %, the mean run time +2 %, "
        "the p95 wait of AMs -10 %, the memory-hours +0.1 %).",
        "Its p95 waits of AMs were off, by queue: etl +25 %.",
        "Of the load's memory-hours 60 % are recorded, 30 % follow from the record, and 10 % are assumed.",
    )
    etl = next(each for each in comparison.differences if (each.scope, each.measure.name) == (ETL, "p95 wait"))
    assert etl.margin == pytest.approx(0.25 * 41 * MINUTE_MS)


def test_who_pays_and_gains_has_the_error_of_its_mean_wait() -> None:
    (etl, *_) = compared(41).balances
    assert etl.scope == ETL
    assert etl.after_text == "41 min ± 10 min"
    (etl, *_) = compared(41, calibration=None).balances
    assert (etl.after_text, etl.margin_ms) == ("41 min", None)


def test_the_page_of_a_comparison_has_the_errors_in_its_tables() -> None:
    """In what differs (p50 and p95), in who pays (the mean), and in all queues."""
    sides = [outcome(minutes, calibration=CALIBRATION) for minutes in (12, 41)]
    page = page_of(sides[0], sides[1]).replace(' class="number"', "")
    assert page.count("<td>41 min ± 10 min</td>") == 3
    assert "± " not in page_of(*(outcome(minutes) for minutes in (12, 41)))


def test_a_comparison_begins_with_a_replay_that_was_far_off() -> None:
    far = replace(CALIBRATION, makespan=0.31)
    assert headline(compared(41, calibration=far)).startswith(
        "The replay of friday was off by up to 31 %. Longer waits"
    )
    assert headline(compared(12, calibration=far)) == f"The replay of friday was off by up to 31 %. {NO_DIFFERENCE}"
    assert any(
        "trust only differences that are much larger" in each for each in findings(compared(41, calibration=far))
    )
    assert not headline(compared(41)).startswith("The replay")


def test_a_workload_that_was_drawn_says_nothing_of_records() -> None:
    drawn = figures_of(outcome(evidence=(Evidence(Basis.ASSUMED, 1.0, "all was drawn"),)))
    assert not any("memory-hours" in each for each in findings_of_a_run(drawn))


def test_a_simulation_of_a_calibrated_workload_says_its_errors() -> None:
    workload = Workload((application(group(12, 60.0)),), calibration=CALIBRATION, evidence=EVIDENCE)
    result = run_what_if(configuration(TWO_QUEUES), workload, nodes())
    assert (result.calibration, result.evidence) == (CALIBRATION, EVIDENCE)
    assert decode_result(encode_result(result)) == result
    console = Console(file=io.StringIO(), width=200)
    print_summary(result, figures_of(result), None, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "The replay of friday was off by at most 10 %" in text
    assert "60 % are recorded" in text
    assert " s ± " in text
