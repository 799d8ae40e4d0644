"""Headroom over time in the examples of docs/timelines.md.

The amounts are those of Hadoop's ResourceManager in the same situations (tests/scenarios/scripts/b4-*, b5-*, b6-*).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from yarnling.cli.app import app
from yarnling.run.reader import read_run
from yarnling.run.records import Outcome, RecordedRun, Sample
from yarnling.timeline.plot_data import plot_of_timeline

EXAMPLES = Path(__file__).parents[3] / "examples" / "headroom"
GB = 1024

Traced = Callable[..., Path]


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    """The trace of an example, made once."""
    directory = tmp_path_factory.mktemp("headroom")

    def trace_of(case: str, workload: str = "workload") -> Path:
        path, files = directory / f"{case}-{workload}.jsonl", EXAMPLES / case
        if not path.exists():
            inputs = ["--conf", files, "--workload", files / f"{workload}.yaml", "--nodes", files / "nodes.yaml"]
            ran = CliRunner().invoke(
                app, ["simulate", *map(str, inputs), "--until", "2m", "--seed", "1", "--trace", str(path)]
            )
            assert ran.exit_code == 0, ran.output
        return path

    return trace_of


def curve(timeline: RecordedRun, number: int) -> list[Sample]:
    return [one for one in timeline.samples if one.application.endswith(f"_{number:04}")]


def amounts(one: Sample) -> tuple[int, int, int]:
    """(used by the user, limit, headroom) in GB."""
    return one.user_used_mb // GB, one.limit_mb // GB, one.headroom_mb // GB


def test_b4_the_limit_is_flat_and_then_climbs_ahead_of_the_use(traced: Traced) -> None:
    found = [amounts(one) for one in curve(read_run(traced("b4")), 1)]
    assert found[:3] == [(1, 3, 2), (2, 3, 1), (3, 4, 1)]
    assert found[3:-1] == [(used, used + 1, 1) for used in range(4, 20)]
    assert found[-1] == (20, 21, 0), "the limit allows one container more than there is"


def test_b5_large_containers_stick_below_the_guarantee(traced: Traced) -> None:
    found = curve(read_run(traced("b5", "large")), 2)
    assert amounts(found[-1]) == (9, 10, 1), "1 GB is left, and a container needs 4"
    assert {one.limit_mb // GB for one in found} == {10}


def test_b5_small_containers_reach_the_guarantee_and_the_limit_rises(traced: Traced) -> None:
    found = curve(read_run(traced("b5", "small")), 2)
    assert amounts(found[-1]) == (10, 11, 0), "the limit allows 1 GB more, but the cluster is full"


def test_b6_the_last_of_several_users_stays_behind(traced: Traced) -> None:
    timeline = read_run(traced("b6"))
    assert [amounts(curve(timeline, number)[-1])[:2] for number in (2, 3, 4)] == [(5, 5), (5, 5), (2, 5)]


def test_the_curve_is_what_the_application_learns(traced: Traced) -> None:
    timeline = read_run(traced("b4"))
    samples = curve(timeline, 1)
    replies = [one for one in timeline.calls if one.rpc == "allocate" and one.outcome is Outcome.ANSWERED]
    assert len(replies) > 20
    for reply in replies:
        assert reply.replied_ms is not None
        known = [one for one in samples if one.at_ms <= reply.replied_ms]
        assert reply.reply["headroom"]["memory-mb"] == known[-1].headroom_mb


@pytest.mark.slow
def test_a_trace_of_a_workload_does_not_change_the_run(tmp_path: Path) -> None:
    files = EXAMPLES / "b4"
    inputs = ["--conf", files, "--workload", files / "workload.yaml", "--nodes", files / "nodes.yaml"]

    def containers(*options: str) -> object:
        out = str(tmp_path / "out")
        ran = CliRunner().invoke(app, ["simulate", *map(str, inputs), "--until", "30s", "-o", out, *options])
        assert ran.exit_code == 0, ran.output
        return json.loads((tmp_path / "out" / "result.json").read_bytes())["containers"]

    assert containers() == containers("--trace", str(tmp_path / "trace.jsonl"))


def test_the_plot_draws_the_headroom_of_each_application(traced: Traced, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    trace, page = traced("b6"), tmp_path / "plot.html"
    assert CliRunner().invoke(app, ["plot", str(trace), "-o", str(page)]).exit_code == 0
    text = page.read_text()
    assert "Headroom of app 0004: dan in root.b over time: at most 0 MB; use at most 2 GB; limit at most 6 GB" in text
    assert "limit of its user" in text
    assert "other applications" not in text, "no user has two"
    (last,) = (one for one in plot_of_timeline(read_run(trace)).headrooms if one.user == "dan")
    assert last.times_ms[-1] == plot_of_timeline(read_run(trace)).until_ms
