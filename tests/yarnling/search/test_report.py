"""The answer of a search and its page, on an imagined cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

pytest.importorskip("optuna")

from tests.yarnling.search import imagined
from tests.yarnling.search.imagined import ImaginedCluster, goals_of, sides, waits_of
from tests.yarnling.whatif.small_clusters import CS, write_configuration
from yarn.times import HOUR_MS
from yarnling.report.page import html_of
from yarnling.search.answer import SearchAnswer, answer_of
from yarnling.search.goals_file import SearchGoals
from yarnling.search.report import search_page
from yarnling.search.run_cache import open_cache
from yarnling.search.search import SearchBounds, SearchOutcome, search
from yarnling.search.trials import Trials
from yarnling.whatif.figures import NodeFigures
from yarnling.workload.calibration import Calibration, ReplayError

CAPACITIES = {f"{CS}root.queues": "etl,adhoc", f"{CS}root.etl.capacity": "50", f"{CS}root.adhoc.capacity": "50"}
TWO_LIMITS = goals_of("queue etl: p95 wait < 10 min", "queue adhoc: p95 wait < 5 min")


CALIBRATION = Calibration("friday", 3, (ReplayError("", 9, am_wait_p95=0.12),), makespan=-0.02)


def answered(
    path: Path,
    needs: dict[str, float],
    goals: SearchGoals = TWO_LIMITS,
    calibration: Calibration | None = None,
) -> tuple[SearchAnswer, SearchOutcome]:
    write_configuration(path / "now", CAPACITIES)
    with open_cache(path / "runs.sqlite") as cache:
        runs = [replace(run, workload=replace(run.workload, calibration=calibration)) for run in sides(3)]
        trials = Trials(runs, goals.space, cache, ImaginedCluster(waits_of(needs)))
        outcome = search(trials, goals, SearchBounds(40), lambda _: None)
        return answer_of(outcome, trials, goals.space, path / "now", path / "out"), outcome


def test_goals_that_are_met_have_a_change_its_files_and_a_picture(tmp_path: Path) -> None:
    answer, outcome = answered(tmp_path, {"root.etl": 70.0, "root.adhoc": 25.0})
    assert answer.headline == ("2 changes meet all goals: root.etl.capacity 50 -> 61, root.adhoc.capacity 50 -> 39.")
    assert [each.value for each in answer.checked] == ["9.1 min, was 20 min", "3 s, was 3 s"]
    assert "+    " not in (tmp_path / "out" / "change.diff").read_text()
    assert "<value>61</value>" in (tmp_path / "out" / "change.diff").read_text()
    assert answer.front is None
    page = html_of(search_page(answer, outcome, TWO_LIMITS.space))
    assert page.count("<svg") == 2, "one picture, for wide and for narrow pages"
    assert "All configurations" in page


def test_figures_have_the_error_of_the_replay_beside_them(tmp_path: Path) -> None:
    """etl waits 9.1 min of at most 10: less than the error below its limit."""
    needs = {"root.etl": 70.0, "root.adhoc": 25.0}
    answer, outcome = answered(tmp_path, needs, calibration=CALIBRATION)
    assert [each.value for each in answer.checked] == ["9.1 min ± 65 s, was 20 min", "3 s ± 360 ms, was 3 s"]
    assert "The replay of friday was off by at most 12 %" in answer.findings[-1]
    close = "nearer to the limit than the replay was off, so it may hold or not: queue etl: p95 wait < 10 min"
    assert close in answer.findings
    assert "9.1 min ± 65 s *" in html_of(search_page(answer, outcome, TWO_LIMITS.space))
    (tmp_path / "far").mkdir()
    far, _ = answered(tmp_path / "far", needs, calibration=replace(CALIBRATION, makespan=0.4))
    assert far.headline.startswith("The replay of friday was off by up to 40 %. 2 changes meet all goals")


def test_what_the_machines_cost_is_said_if_they_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {"root.etl": 70.0, "root.adhoc": 25.0}
    (tmp_path / "fixed").mkdir()
    assert not any("node-hours" in text for text in answered(tmp_path / "fixed", needs)[0].findings)
    scaled = replace(imagined.TEMPLATE, nodes=NodeFigures(12 * HOUR_MS, 2, 5))
    monkeypatch.setattr(imagined, "TEMPLATE", scaled)
    assert "cluster: node-hours: 12, was 12 (mean of the seeds)" in answered(tmp_path, needs)[0].findings


def test_goals_that_contradict_have_a_front_with_at_least_two_ends(tmp_path: Path) -> None:
    answer, outcome = answered(tmp_path, {"root.etl": 70.0, "root.adhoc": 60.0})
    assert answer.headline.startswith("No configuration that was tried meets all goals: queue ")
    assert len(answer.contradictions) == 2
    assert answer.front is not None
    assert answer.front.columns == ("change", "queue etl: p95 wait", "queue adhoc: p95 wait")
    assert any(row[1].endswith(" *") for row in answer.front.rows)
    assert any(row[2].endswith(" *") for row in answer.front.rows)
    assert "Between the goals" in html_of(search_page(answer, outcome, TWO_LIMITS.space))


def test_a_goal_out_of_reach_is_in_the_headline(tmp_path: Path) -> None:
    answer, _ = answered(tmp_path, {"root.etl": 110.0, "root.adhoc": 10.0})
    assert answer.headline == "No configuration that was tried meets queue etl: p95 wait < 10 min."
    assert answer.unmet[0].startswith("queue etl: p95 wait < 10 min: at best 20 min")


def test_nothing_to_change_is_said(tmp_path: Path) -> None:
    answer, _ = answered(tmp_path, {"root.etl": 50.0, "root.adhoc": 50.0})
    assert answer.headline == "Nothing has to change: all goals are met, and nothing better was found."
    assert answer.changes == ()
    assert (tmp_path / "out" / "change.diff").read_text() == ""


def test_the_figure_to_minimise_is_compared_with_before(tmp_path: Path) -> None:
    goals = goals_of(minimise="queue root.etl: p95 wait")
    answer, _ = answered(tmp_path, {"root.etl": 70.0}, goals)
    assert answer.headline.startswith("2 changes are the best that was found: ")
    assert answer.findings[0] == "queue root.etl: p95 wait: 3 s, was 20 min (lowest that was found)"
