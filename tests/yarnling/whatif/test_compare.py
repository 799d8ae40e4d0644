"""The comparison of two configurations: what matters, who gains and who pays, its page and its command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from tests.yarnling.whatif.outcomes import HOUR, MINUTE, application, container, result, sample
from tests.yarnling.whatif.small_clusters import write_configuration, write_workload_of_a_queue
from yarn.resource import MEMORY_MB, VCORES, Resource
from yarnling.cli.app import app
from yarnling.cli.compare import _run_all
from yarnling.cli.shared.arguments import UsageException
from yarnling.report.page import html_of
from yarnling.whatif.compare import ChangeVerdict, Comparison, compare
from yarnling.whatif.compare_report import comparison_page
from yarnling.whatif.compare_words import NO_DIFFERENCE, findings, headline, tiles
from yarnling.whatif.containers import End
from yarnling.whatif.figures import Figures, figures_of
from yarnling.whatif.measures import CLUSTER, Scope
from yarnling.whatif.parallel import Outcome, run_all
from yarnling.whatif.result import QueueSample, WhatIfResult
from yarnling.whatif.result_file import encode_result, read_result
from yarnling.whatif.run import HowFar, RunOptions
from yarnling.whatif.sides import Experiment, SideRun, run_once, runs_of
from yarnling.workload.formats import read_node_list
from yarnling.workload.model import (
    NodeChange,
    NodeEvent,
    NodeSchedule,
    TaskGroup,
    Workload,
    WorkloadApplication,
    WorkloadNode,
)
from yarnling.workload.nodes_file import write_nodes

ETL = Scope("queue", "root.etl")


def outcome(etl_min: float = 12, adhoc_min: float = 2, preempted: int = 0, **others: object) -> WhatIfResult:
    """Ten containers in each of etl (ann) and adhoc (bob), some of adhoc's preempted."""
    apps = [application(user="ann"), application(user="bob", queue="root.adhoc")]
    containers = [container(0, round(etl_min * MINUTE), app=0) for _ in range(10)]
    ends = [End.PREEMPTED] * preempted + [End.COMPLETED] * (10 - preempted)
    containers += [container(0, round(adhoc_min * MINUTE), app=1, end=end) for end in ends]
    samples = [sample(0, name, 100, 200, 400) for name in ("root", "root.etl", "root.adhoc")]
    return result(apps, containers, samples, **others)


def runs(*etl_min: float, **others: float) -> list[Figures]:
    return [figures_of(outcome(minutes, **others)) for minutes in etl_min]  # type: ignore[arg-type]


def found(comparison: Comparison, scope: Scope, measure: str) -> ChangeVerdict | None:
    differences = (*comparison.differences, *comparison.noise)
    return next((each.verdict for each in differences if each.scope == scope and each.measure.name == measure), None)


def test_the_headline_says_who_gains_who_pays_and_what_matters_most() -> None:
    comparison = compare(runs(12, adhoc_min=9), runs(41, adhoc_min=2, preempted=6))
    assert headline(comparison) == (
        "Shorter waits in adhoc, longer waits in etl: adhoc waits p95 9 min -> 2 min; etl waits p95 12 min -> 41 min; "
        "6 containers preempted, were 0."
    )
    assert [each.scope.name for each in comparison.payers("queue")] == ["root.etl"]
    assert [each.scope.name for each in comparison.gainers("user")] == ["bob"]
    [etl] = comparison.payers("queue")
    assert (etl.before_ms, etl.after_ms, etl.total_ms) == (12 * MINUTE, 41 * MINUTE, 290 * MINUTE)


def test_users_are_named_if_a_change_is_between_users_of_one_queue() -> None:
    def shared(ann_min: int, bob_min: int) -> Figures:
        apps = [application(user="ann"), application(user="bob")]
        return figures_of(result(apps, [container(0, ann_min * MINUTE), container(0, bob_min * MINUTE, app=1)]))

    comparison = compare([shared(2, 30)], [shared(25, 7)])
    assert headline(comparison) == (
        "Shorter waits for bob, longer waits for ann: ann waits 2 min -> 25 min on average; "
        "bob waits 30 min -> 7 min on average."
    )


def test_nothing_is_said_below_the_threshold() -> None:
    assert headline(compare(runs(12), runs(12))) == NO_DIFFERENCE
    assert found(compare(runs(12), runs(13)), ETL, "p95 wait") is None
    assert found(compare(runs(12), runs(13), threshold=0.05), ETL, "p95 wait") is ChangeVerdict.WORSE
    assert found(compare(runs(0.01), runs(0.05)), ETL, "p95 wait") is None, "2.4 s: some heartbeats"


def test_it_says_that_few_seeds_tell_little() -> None:
    """With one seed, an effect cannot be told from chance."""
    assert findings(compare(runs(12), runs(41)))[0].startswith("one seed of each side: some of this may be chance")
    assert "--seeds 5" in findings(compare(runs(12, 13), runs(41, 42)))[0]
    assert not any("chance" in each for each in findings(compare(runs(12, 13, 14), runs(41, 42, 43))))
    assert not findings(compare(runs(12), runs(12))), "nothing differs"


def test_a_difference_within_the_spread_of_seeds_is_noise() -> None:
    comparison = compare(runs(10, 12, 20), runs(15, 16, 17))
    assert found(comparison, ETL, "p95 wait") is ChangeVerdict.NOISE
    assert "within the spread between seeds" in findings(comparison)[-1]
    assert not comparison.payers("queue")
    assert found(compare(runs(10, 11, 12), runs(15, 16, 17)), ETL, "p95 wait") is ChangeVerdict.WORSE


def test_use_is_neither_better_nor_worse() -> None:
    fuller = outcome()
    emptier = result(fuller.applications, fuller.containers, [sample(0, "root", 50, 200, 400)])  # type: ignore[arg-type]
    comparison = compare([figures_of(fuller)], [figures_of(emptier)])
    assert found(comparison, CLUSTER, "use") is ChangeVerdict.OTHER
    assert headline(comparison) == "cluster: use 50 % -> 25 %."


def test_a_difference_of_use_alone_is_the_headline() -> None:
    full, less = (
        [figures_of(result([], [], [sample(0, name, used, 200, 400) for name, used in uses]))]
        for uses in (
            [("root", 100), ("root.etl", 60), ("root.ml", 40)],
            [("root", 100), ("root.etl", 20), ("root.ml", 80)],
        )
    )
    assert headline(compare(full, less)) == "etl: use 30 % -> 10 %."


def test_both_sides_are_measured_in_one_resource_type() -> None:
    """Before the change only memory is compared; after it also vcores, of which more are used."""
    amounts = Resource(100, 90), *[Resource(0, 0)] * 2, Resource(1000, 100), Resource(1000, 100)
    samples = [QueueSample(0, name, *amounts, 1, 0) for name in ("root", "root.etl")]
    cluster = Resource(1000, 100)
    sides = (
        result([], [], samples, cluster=cluster),
        result([], [], samples, cluster=cluster, counted=(MEMORY_MB, VCORES)),
    )
    comparison = compare([figures_of(sides[0])], [figures_of(sides[1])])
    assert [side[0].measured for side in (comparison.before, comparison.after)] == [VCORES, VCORES]
    assert not comparison.differences
    page = html_of(comparison_page(comparison, sides, ()))
    assert "90 vcores on average" in page
    assert "100 vcores on average" not in page


def test_queues_of_one_side_are_named() -> None:
    after = figures_of(outcome(leaf_queues=("root.etl", "root.adhoc", "root.new")))
    comparison = compare([figures_of(outcome(leaf_queues=("root.etl", "root.adhoc")))], [after])
    assert findings(comparison) == ("only after the change: queue root.new",)


def test_it_says_on_which_side_applications_were_not_submitted() -> None:
    late = application(state="NOT_SUBMITTED", submitted_ms=3 * HOUR, am_started_ms=None, ended_ms=None)
    cut, whole = figures_of(result([application(), late], [])), figures_of(result([application()], []))
    said = "1 of 2 applications was not submitted before the end"
    assert f"before the change, {said}" in findings(compare([cut], [whole]))
    assert f"after the change, {said}" in findings(compare([whole], [cut]))
    assert said in findings(compare([cut], [cut]))


def test_tiles_have_the_figures_of_both_sides() -> None:
    comparison = compare(runs(12), runs(41, preempted=6))
    found_tiles = {tile.label: (tile.value, tile.note, tile.is_bad) for tile in tiles(comparison)}
    assert found_tiles["p95 wait"] == ("41 min", "was 12 min", True)
    assert found_tiles["preempted containers"] == ("6", "was 0", True)
    assert found_tiles["missed deadlines"] == ("0", "was 0", False)


# The command


@pytest.fixture
def sides(tmp_path: Path) -> tuple[str, str]:
    paths = [tmp_path / "before.json", tmp_path / "after.json"]
    for path, outcome_of in zip(paths, (outcome(12), outcome(41, preempted=6)), strict=True):
        path.write_bytes(encode_result(outcome_of))
    return str(paths[0]), str(paths[1])


def invoke(*arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["simulate", "compare", *arguments])
    if isinstance(answer.exception, UsageException):
        return 2, answer.exception.message
    return answer.exit_code, answer.stdout


def test_two_results_are_compared(sides: tuple[str, str]) -> None:
    status, out = invoke(*sides)
    assert status == 0
    assert out.startswith("Longer waits in etl: etl waits p95 12 min -> 41 min; 6 containers preempted, were 0.")
    assert re.search("queue etl +p95 wait +12 min +41 min +worse", out)


@pytest.mark.parametrize(("limit", "status", "word"), [("50 min", 0, "holds"), ("20 min", 1, "does not hold")])
def test_the_exit_status_says_if_expectations_hold(
    limit: str, status: int, word: str, sides: tuple[str, str], tmp_path: Path
) -> None:
    expect = tmp_path / "expect.yaml"
    expect.write_text(f"expect:\n  - queue etl: p95 wait < {limit}\n  - queue adhoc: p95 wait not worse than before\n")
    found_status, out = invoke(*sides, "--expect", str(expect))
    assert found_status == status
    assert f"{word} " in out
    assert f"queue etl: p95 wait < {limit} (41 min)" in out
    answer = json.loads(invoke(*sides, "--expect", str(expect), "--json")[1])
    assert answer["expectations"][0]["holds"] is (status == 0)
    assert answer["differences"][0]["verdict"] == "worse"


def test_the_report_is_written(sides: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yarnling.whatif.report.has_matplotlib", lambda: False)
    monkeypatch.setattr("yarnling.whatif.compare_report.has_matplotlib", lambda: False)
    status, out = invoke(*sides, "-o", str(tmp_path / "out"))
    assert status == 0
    assert f"Report: {tmp_path / 'out' / 'compare.html'}" in out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"before", "after", "compare.html"}
    # A directory with a result is a side too.
    assert invoke(str(tmp_path / "out" / "before"), str(tmp_path / "out" / "after"))[0] == 0


def test_an_interrupted_run_is_not_compared(sides: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "part.json").write_bytes(encode_result(outcome(is_complete=False)))
    status, message = invoke(sides[0], str(tmp_path / "part.json"))
    assert (status, message.partition(": ")[2]) == (
        2,
        "the simulation was interrupted (run it to its end to compare it)",
    )


def test_results_of_different_workloads_are_compared_with_a_warning(sides: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "other.json").write_bytes(encode_result(outcome(workload="other.yaml")))
    answer = CliRunner().invoke(app, ["simulate", "compare", sides[0], str(tmp_path / "other.json")])
    assert answer.exit_code == 0
    assert "warning: the sides have different workloads, tonight.yaml and other.yaml" in answer.stderr


def test_how_far_both_sides_are_can_be_read_in_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(runs: Sequence[SideRun], report: Callable[[int, HowFar], None]) -> list[Outcome]:
        report(1, HowFar(5 * 60_000, 3_600_000, 0, 1))
        return []

    monkeypatch.setattr("yarnling.cli.shared.output.PROGRESS_LINE_S", 0.0)
    monkeypatch.setattr("yarnling.cli.compare.run_all", run)
    _run_all([SideRun(title, {}, Workload(()), (), RunOptions(), keeps_result=False) for title in ("before", "after")])
    assert capsys.readouterr().err == "before: 00:00, after: 00:05 of 01:00 simulated\n"


def test_the_directory_of_the_reports_is_checked_before_the_runs(
    sides: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yarnling.cli.compare._run_all", lambda _: pytest.fail("it was simulated"))
    (tmp_path / "f").touch()
    status, message = invoke(*sides, "-o", str(tmp_path / "f"))
    assert (status, "f: this is a file, not a directory" in message) == (2, True)


def test_bad_input_is_refused_with_all_faults(sides: tuple[str, str], tmp_path: Path) -> None:
    status, message = invoke(str(tmp_path), sides[1], "--seeds", "2")
    assert status == 2
    starts = ["--workload", "--nodes", "--seeds:", f"{tmp_path}:"]
    assert [line.partition(" ")[0] for line in message.splitlines()] == starts
    expect = tmp_path / "expect.yaml"
    expect.write_text("expect:\n  - queue elt: p95 wait < 1 s\n  - user eve: p95 wait < 1 s\n")
    status, message = invoke(*sides, "--expect", str(expect))
    assert status == 2
    assert "there is no queue elt" in message
    assert "there is no user eve" in message


def test_names_in_expectations_are_checked_before_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue that only the second side has may be named."""
    monkeypatch.setattr("yarnling.cli.compare._run_all", lambda _: pytest.fail("it was simulated"))
    example = Path("examples/what-if/move-capacity")
    after = tmp_path / "after"
    after.mkdir()
    text = (example / "before" / "capacity-scheduler.xml").read_text()
    (after / "capacity-scheduler.xml").write_text(text.replace("adhoc,ml<", "adhoc,new<").replace(".ml.", ".new."))
    expect = tmp_path / "expect.yaml"
    expect.write_text("expect:\n  - queue new: p95 wait < 1 s\n  - queue nwe: p95 wait < 1 s\n")
    files = ["--workload", str(example / "workload.yaml"), "--nodes", str(example / "nodes.yaml")]
    queue_map = ["--queue-map-after", "ml=new"]
    status, message = invoke(str(example / "before"), str(after), *files, *queue_map, "--expect", str(expect))
    assert status == 2
    assert "there is no queue nwe" in message
    assert "there is no queue new" not in message


def test_the_faults_of_both_sides_and_of_all_files_are_reported_together(tmp_path: Path) -> None:
    """Each fault of a configuration has its directory: the names of its files are the same on both sides."""
    directories = [tmp_path / name for name in ("before", "after")]
    for directory in directories:
        directory.mkdir()
        (directory / "capacity-scheduler.xml").write_text("<configuration>")
    files = [tmp_path / name for name in ("expect", "work", "nodes")]
    options = ["--expect", str(files[0]), "--workload", str(files[1]), "--nodes", str(files[2]), "--until", "1"]
    status, message = invoke(*map(str, directories), *options)
    assert status == 2
    expected = [f"{files[0]}: cannot", "--until 1: must", f"{files[1]}: cannot", f"{files[2]}: cannot"]
    expected += [f"{directory}: capacity-scheduler.xml:1: malformed" for directory in directories]
    assert [line[: len(start)] for line, start in zip(message.splitlines(), expected, strict=True)] == expected


def test_a_workload_that_fits_neither_side_is_refused_for_both(experiment: list[str]) -> None:
    status, message = invoke(*experiment, "--queue-map", "default=x")
    assert status == 2
    for directory in experiment[:2]:
        assert f"{directory}: queue x does not exist" in message


@pytest.fixture
def experiment(tmp_path: Path) -> list[str]:
    """Two configurations with the queues default and other, and the options that name a small workload for `default`.

    The second one gives `default` a small maximum.
    """
    root = "yarn.scheduler.capacity.root."
    for name, maximum in (("before", 100), ("after", 40)):
        keys = {
            "queues": "default,other",
            "default.capacity": 40,
            "other.capacity": 60,
            "default.maximum-capacity": maximum,
            "default.user-limit-factor": 5,
        }
        write_configuration(tmp_path / name, {f"{root}{key}": value for key, value in keys.items()})
    return [str(tmp_path / "before"), str(tmp_path / "after"), *write_workload_of_a_queue(tmp_path, "5m")]


@pytest.mark.slow
def test_two_configurations_are_run_with_several_seeds(experiment: list[str]) -> None:
    """The queue that gets a small maximum pays, with each seed."""
    status, out = invoke(*experiment, "--seeds", "2", "--json")
    assert status == 0
    answer = json.loads(out)
    assert answer["headline"].startswith("Longer waits in default: ")
    assert {each["unit"] for each in answer["differences"]} >= {"ms", "fraction"}
    maximum = "yarn.scheduler.capacity.root.default.maximum-capacity"
    assert answer["changes"] == [{"what": maximum, "before": "100", "after": "40"}]


@pytest.mark.slow
def test_a_queue_that_is_renamed_is_mapped_on_the_second_side(experiment: list[str]) -> None:
    """The applications of `default` move to `other`, which has no small maximum."""
    status, out = invoke(*experiment, "--queue-map-after", "default=other", "--json")
    assert status == 0
    assert "queue root.other" in {each["scope"] for each in json.loads(out)["balances"]}


@pytest.mark.parametrize(("option", "side"), [("--queue-map", "before"), ("--queue-map-after", "after")])
def test_the_remedy_for_a_target_that_does_not_exist_maps_the_queue_of_the_workload(
    experiment: list[str], option: str, side: str
) -> None:
    """Another target for the queue that was mapped, with the option of that side, and no option for the target."""
    status, message = invoke(*experiment, option, "default=sales")
    assert status == 2
    assert "queue sales does not exist" in " ".join(message.split())
    assert f"{option} default=root.default" in " ".join(message.split()), side
    assert "sales=" not in message


def test_a_mapping_of_the_second_side_that_maps_nothing_is_named_by_its_option(experiment: list[str]) -> None:
    status, message = invoke(*experiment, "--queue-map-after", "hr=default")
    assert status == 2
    assert "--queue-map-after: no application of the workload is in queue hr" in " ".join(message.split())


@pytest.mark.slow
def test_the_answer_has_the_warnings_of_both_sides(experiment: list[str]) -> None:
    """Without them an answer about smaller containers than those of the workload would look like one about these."""
    largest = ("-D", "yarn.scheduler.maximum-allocation-mb=512", "-D", "yarn.scheduler.minimum-allocation-mb=256")
    status, out = invoke(*experiment, *largest, "--until", "10s")
    assert status == 0
    _, warnings = out.split("\nWarnings\n")
    (line,) = [line for line in warnings.splitlines() if "are larger than the largest" in line]
    assert "they get <memory:512, vCores:4> (raise yarn.scheduler.maximum-allocation-mb or -vcores)" in line
    status, out = invoke(*experiment, *largest, "--until", "10s", "--json")
    assert any("are larger than the largest" in warning for warning in json.loads(out)["warnings"])


def test_strict_refuses_what_a_side_asks_of_hadoop_in_vain(experiment: list[str]) -> None:
    more = ["-D", "yarn.resourcemanager.ha.enabled=true"]
    status, message = invoke(*experiment, *more, "--strict")
    assert status == 2
    assert "yarn.resourcemanager.ha.enabled" in message


def test_the_runs_of_both_sides_have_the_changes_of_the_nodes(experiment: list[str], tmp_path: Path) -> None:
    nodes = Path(experiment[experiment.index("--nodes") + 1])
    listed = read_node_list(nodes)
    events = tuple(NodeEvent(1_000, node.host, NodeChange.LEAVE) for node in listed.nodes)
    write_nodes(replace(listed, schedule=NodeSchedule(events)), nodes)
    assert invoke(*experiment, "--json", "-o", str(tmp_path / "out"))[0] == 0
    for side in ("before", "after"):
        found = read_result(tmp_path / "out" / side / "result.json")
        assert any(text.startswith("Nodes change (leave ") for text in found.assumptions)
        assert not any(one.end is End.COMPLETED for one in found.containers)


@pytest.mark.slow
def test_runs_in_processes_of_their_own_have_the_same_outcomes(experiment: list[str]) -> None:
    tasks = WorkloadApplication("a", 0, "ann", "default", (TaskGroup(Resource(1024, 1), (30_000,) * 9),))
    nodes = (WorkloadNode("h1", Resource(4096, 4), "/r0"),)
    what = Experiment("w", Workload((tasks,)), nodes, (1, 2), HOUR, {})
    runs = [run for directory in experiment[:2] for run in runs_of(Path(directory), what)]
    times: set[tuple[int, int]] = set()
    found = run_all(runs, lambda number, how_far: times.add((number, how_far.until_ms)))
    assert [figures for figures, _ in found] == [run_once(run, lambda _: True)[0] for run in runs]
    assert [result.seed for _, result in found if result is not None] == [1, 1]
    assert times == {(number, HOUR) for number in range(4)}
