"""The error of a prediction, on runs whose times are simple enough to compute the error by hand."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.yarnling.whatif.small_clusters import application, group, run
from yarnling.whatif.prediction_error import Compared, error_table, plain_error, prediction_error, run_times
from yarnling.workload.run_times import ALL_QUEUES, ApplicationTimes, RunTimes, UseOverTime

S = 1000


def app(name: str, submitted_s: int, am_s: int | None, ended_s: int | None, **more: object) -> ApplicationTimes:
    fields = {
        "am_allocated_ms": None if am_s is None else am_s * S,
        "ended_ms": None if ended_s is None else ended_s * S,
        "queue": "root.etl",
        **more,
    }
    return ApplicationTimes(name=name, submitted_ms=submitted_s * S, **fields)  # type: ignore[arg-type]


def times(*applications: ApplicationTimes, use: Iterable[tuple[int, int, int]] = ()) -> RunTimes:
    curve = UseOverTime.of_containers((start * S, end * S, mb) for start, end, mb in use)
    return RunTimes(applications, {ALL_QUEUES: curve}, 1000)


def test_figures_are_means_of_the_simulated_runs() -> None:
    recorded = times(app("a", 0, 10, 100), app("b", 50, 60, 250))
    one, other = times(app("a", 0, 10, 100), app("b", 50, 60, 250)), times(app("a", 0, 20, 120), app("b", 50, 90, 290))
    error = prediction_error(recorded, [one, other])
    assert error.makespan_ms == Compared(250_000, 270_000, 40_000)
    assert error.makespan_ms.error == pytest.approx(0.08)
    assert error.whole.run_mean_ms == Compared(150_000, 165_000, 30_000)
    assert error.whole.run_p95_ms == Compared(200_000, 220_000, 40_000)
    assert error.whole.am_wait_p50_ms == Compared(10_000, 15_000, 10_000)
    assert error.whole.am_wait_p95_ms == Compared(10_000, 25_000, 30_000)
    # Errors of one application: 0, 0.2 and 0, 0.2.
    assert (error.application_p50, error.application_p90) == (0, pytest.approx(0.2))
    assert error.whole.task_wait_p95_ms is None


def test_only_times_that_all_runs_have_are_compared() -> None:
    recorded = times(app("a", 0, 10, 100), app("b", 0, 20, None), app("c", 0, 30, 500))
    error = prediction_error(recorded, [times(app("a", 0, 10, 110), app("b", 0, 40, 300), app("c", 0, None, None))])
    assert error.makespan_ms == Compared(100_000, 110_000)
    assert error.whole.applications == 1
    assert error.whole.am_wait_p95_ms == Compared(20_000, 40_000)
    assert error.only_recorded == 1


def test_applications_of_one_name_are_compared_in_the_order_of_submission() -> None:
    recorded = times(app("a", 0, 0, 10), app("a", 100, 100, 200))
    error = prediction_error(recorded, [times(app("a", 100, 100, 200), app("a", 0, 0, 10))])
    assert error.application_p90 == 0


def test_use_is_compared_over_time() -> None:
    """Recorded: 400 MB for 20 s. Simulated: the same, 10 s later. So two of three spans differ by 40 points."""
    recorded, simulated = times(app("a", 0, 0, 30), use=[(0, 20, 400)]), times(app("a", 0, 0, 30), use=[(10, 30, 400)])
    error = prediction_error(recorded, [simulated])
    assert error.whole.use_points == pytest.approx(80 / 3)
    assert error.queues[0].use_points is None


def test_means_of_use_divide_steps_that_begin_within_them() -> None:
    curve = UseOverTime.of_containers([(2 * S, 8 * S, 100), (5 * S, 15 * S, 10)])
    assert curve.means(10 * S, 20 * S) == [65, 5]


def test_a_queue_has_the_memory_and_the_waits_of_its_applications() -> None:
    fields = {"mb_ms": 1000, "task_waits_ms": (1, 2, 3)}
    recorded = times(app("a", 0, 0, 10, **fields), app("b", 0, 0, 20, queue="root.adhoc", mb_ms=500))
    error = prediction_error(recorded, [recorded])
    adhoc, etl = error.queues
    assert (adhoc.name, adhoc.mb_ms, adhoc.task_wait_p50_ms) == ("root.adhoc", Compared(500, 500), None)
    assert (etl.name, etl.mb_ms, etl.task_wait_p50_ms) == ("root.etl", Compared(1000, 1000), Compared(2, 2))


def test_a_simulated_run_has_no_error_against_itself() -> None:
    found = run_times(run(application(group(6), name="one"), application(group(3), name="two", queue="adhoc", at_s=5)))
    error = prediction_error(found, [found])
    assert error.makespan_ms is not None
    assert error.makespan_ms.recorded > 30 * S
    assert [each.applications for each in (error.whole, *error.queues)] == [2, 1, 1]
    assert error.whole.use_points == 0
    # 9 tasks of 1024 MB for 30 s, and the AMs.
    assert error.whole.mb_ms is not None
    assert error.whole.mb_ms.recorded > 9 * 1024 * 30 * S
    assert error.whole.task_wait_p95_ms is not None


def test_table_and_json_name_every_figure() -> None:
    recorded = times(app("a", 0, 10, 100, mb_ms=7_200_000 * 1024), use=[(0, 100, 500)])
    error = prediction_error(recorded, [times(app("a", 0, 20, 110, mb_ms=7_200_000 * 1024), use=[(0, 100, 500)])])
    rows = [[cell.plain for cell in row] for row in error_table(error).rows]
    assert ["all", "makespan", "1.7 min", "1.8 min", "+10.0 %"] in rows
    assert ["etl", "p95 AM wait", "10 s", "20 s", "+100.0 %"] in rows
    assert ["etl", "memory", "2 GB-hours", "2 GB-hours", "+0.0 %"] in rows
    assert ["all", "use over time, mean difference", "", "", "0.0 points"] in rows
    assert ["all", "p90 error of one application", "", "", "10.0 %"] in rows
    plain = plain_error(error)
    assert plain["makespan_ms"] == {"recorded": 100_000, "simulated": 110_000, "spread": 0, "error": 0.1}
    assert plain["queues"][0]["am_wait_p95_ms"]["error"] == 1


def test_queues_have_the_paths_of_the_simulation() -> None:
    curve = UseOverTime.of_containers([(0, 10 * S, 400)])
    recorded = RunTimes((app("a", 0, 0, 10, queue="etl"),), {"etl": curve}, 1000)
    simulated = RunTimes((app("a", 0, 0, 10),), {"root.etl": curve}, 1000)
    (etl,) = prediction_error(recorded, [simulated]).queues
    assert (etl.name, etl.use_points) == ("root.etl", 0)
