"""yarnling simulate --workload: the summary, the files of the report, wrong arguments, and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.yarnling.whatif.small_clusters import TWO_QUEUES, application, group, nodes
from yarn.errors import YarnException
from yarnling.cli import app as app_module
from yarnling.cli.app import app, main
from yarnling.cli.shared.arguments import UsageException
from yarnling.cli.simulate_workload import interruptible, parse_duration
from yarnling.whatif.result_file import read_result
from yarnling.workload.model import NodeChange, NodeEvent, NodeSchedule, Workload, WorkloadNodes
from yarnling.workload.nodes_file import write_nodes
from yarnling.workload.workload_file import write_workload

SETTINGS = [text for key, value in TWO_QUEUES.items() for text in ("-D", f"{key}={value}")]


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """A workload of two queues, its nodes, and the configuration."""
    workload, machines = tmp_path / "day.jsonl", tmp_path / "nodes.yaml"
    full = application(group(9, 120, memory_mb=1024), name="full", deadline_ms=1000)
    write_workload(Workload((full, application(group(1, 5), name="small", queue="adhoc", at_s=5))), workload)
    write_nodes(WorkloadNodes(nodes()), machines)
    return ["simulate", "--workload", str(workload), "--nodes", str(machines), "--until", "30m", *SETTINGS]


def test_the_summary_says_what_happened(arguments: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "out"), "--hash"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("day: day.jsonl under the default configuration; 2 nodes (8 GB, 16 vcores)")
    assert any(line.split()[:3] == ["root.etl", "1", "10"] for line in lines)
    assert any("a container of full (root.etl, ann): waits because" in line for line in lines)
    assert len(lines[-1]) == 64
    written = read_result(tmp_path / "out" / "result.json")
    assert written.trace == lines[-1]
    assert [one.state for one in written.applications] == ["FINISHED", "FINISHED"]
    assert (tmp_path / "out" / "report.html").exists()


def test_the_summary_as_json(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, [*arguments, "--json", "--seed", "5"])
    found = json.loads(result.stdout)
    assert (found["complete"], found["seed"]) == (True, 5)
    assert {queue["name"]: queue["missed"] for queue in found["queues"]} == {"root.etl": 1, "root.adhoc": 0}


def test_nodes_of_an_answer_that_are_left_out_are_an_assumption(arguments: list[str]) -> None:
    total = {"memory": 4096, "vCores": 8}
    reported = [
        {"id": f"n{number}:1", "nodeHostName": f"n{number}", "state": state, "totalResource": total}
        for number, state in enumerate(("RUNNING", "RUNNING", "DECOMMISSIONING"))
    ]
    Path(arguments[4]).write_text(json.dumps({"nodes": {"node": reported}}))
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    sentence, *_ = found["assumptions"]
    assert sentence.startswith("1 of 3 nodes are left out: 1 DECOMMISSIONING.")


def test_nodes_change_as_their_file_says(arguments: list[str]) -> None:
    """All leave, so no application can end."""
    events = tuple(NodeEvent(60_000, node.host, NodeChange.LEAVE) for node in nodes())
    write_nodes(WorkloadNodes(nodes(), schedule=NodeSchedule(events)), Path(arguments[4]))
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert any(sentence.startswith("Nodes change (leave 2)") for sentence in found["assumptions"])
    assert found["cluster"]["finished"] == 0
    assert (found["nodes"]["least"], found["nodes"]["most"]) == (0, 2)


def test_changes_that_cannot_be_are_refused(arguments: list[str]) -> None:
    events = (NodeEvent(5_000, "h1", NodeChange.LOST), NodeEvent(9_000, "h1", NodeChange.DRAIN))
    write_nodes(WorkloadNodes(nodes(), schedule=NodeSchedule(events)), Path(arguments[4]))
    with pytest.raises(UsageException, match="node h1, drain at 9 s: it is not there after lost"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_how_far_it_is_can_be_read_in_a_log(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yarnling.cli.shared.output.PROGRESS_LINE_S", 0.0)
    result = CliRunner().invoke(app, [*arguments, "--json"])
    line = r"day.jsonl: 00:01 of 00:30 simulated, \d+ of 12 containers \(\d+ containers/s\), about [\d.]+ m?s left\n"
    assert re.search(line, result.stderr), result.stderr
    assert json.loads(result.stdout)


def test_the_warnings_that_are_not_shown_are_said_to_be_in_the_report(arguments: list[str], tmp_path: Path) -> None:
    """Six warnings; five are shown. They are not all about what a real cluster does otherwise."""
    settings = {
        "yarn.resourcemanager.ha.enabled": "true",
        "yarn.federation.enabled": "true",
        "yarn.timeline-service.enabled": "true",
        "yarn.resourcemanager.placement-constraints.handler": "scheduler",
        "yarn.scheduler.configuration.store.class": "zk",
    }
    more = [text for key, value in settings.items() for text in ("-D", f"{key}={value}")]
    printed = CliRunner().invoke(app, [*arguments, *more]).stdout
    assert "\nWarnings\n" in printed
    assert "  and 1 more (-o DIR writes a report that has all)\n" in printed
    with_report = CliRunner().invoke(app, [*arguments, *more, "-o", str(tmp_path / "out")]).stdout
    assert "  and 1 more (the report has all)\n" in with_report
    assert "there is no timeline service" in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize(("limit", "status", "word"), [("1 h", 0, "holds"), ("1 s", 1, "does not hold")])
def test_the_exit_status_says_if_expectations_hold(
    limit: str, status: int, word: str, arguments: list[str], tmp_path: Path
) -> None:
    expect = tmp_path / "expect.yaml"
    expect.write_text(f"expect: ['queue etl: longest wait < {limit}', no application is refused]")
    result = CliRunner().invoke(app, [*arguments, "--expect", str(expect)])
    assert result.exit_code == status
    assert f"{word} queue etl: longest wait < {limit} (" in " ".join(result.stdout.split())
    found = json.loads(CliRunner().invoke(app, [*arguments, "--expect", str(expect), "--json"]).stdout)
    assert [one["holds"] for one in found["expectations"]] == [not status, True]


def test_an_expectation_that_cannot_be_judged_has_a_warning_beside_it(arguments: list[str], tmp_path: Path) -> None:
    expect = tmp_path / "expect.yaml"
    expect.write_text("expect: [no application misses its deadline]")
    arguments[arguments.index("30m")] = "1s"
    result = CliRunner().invoke(app, [*arguments, "--expect", str(expect)])
    words = " ".join(result.stdout.split())
    assert "holds no application misses its deadline (0) warning: 1 of 1 application with a deadline cannot be" in words


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--until", "soon"), "--until soon: must be a time of more than 0 and at most 31d (write for example 24h"),
        (("--until", "0"), "--until 0: must be a time of more than 0 and at most 31d"),
        (("--queue-map", "a"), "--queue-map a: must be OLD=NEW"),
        (("--expect", "empty.yaml"), "empty.yaml: is empty (write `expect: ...` into the file)"),
        (("--queue-map", "hr=etl"), "no application of the workload is in queue hr"),
        (("--queue-map", "etl=sales"), "queue sales does not exist"),
        (("--queue-map", "etl=etlx"), "--queue-map etl=root.etl; similar leaf queues: root.etl)"),
        (("--queue-map", "etl=zzz"), "--queue-map etl=root.adhoc; leaf queues: root.adhoc, root.etl)"),
        (("--expect", "before.yaml"), "compares with a run before (remove it, or use yarnling simulate compare)"),
        (("-o", "before.yaml"), "before.yaml: this is a file, not a directory (name another directory)"),
        (("-o", "before.yaml/out"), "before.yaml: this is a file, not a directory"),
        (("--expect", "unknown.yaml"), "there is no queue elt (did you mean etl?"),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    arguments: list[str],
    more: tuple[str, ...],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("before.yaml").write_text("expect: ['queue etl: p95 wait not worse than before']")
    Path("empty.yaml").touch()
    Path("unknown.yaml").write_text("expect: ['queue elt: p95 wait < 1 h']")
    monkeypatch.setattr(sys, "argv", ["yarnling", *arguments, *more])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert problem in " ".join(capsys.readouterr().err.split())


def test_the_faults_of_all_inputs_are_reported_together(tmp_path: Path) -> None:
    files = {option: tmp_path / f"{option}.yaml" for option in ("conf", "workload", "nodes", "expect")}
    named = [text for option, path in files.items() for text in (f"--{option}", str(path))]
    with pytest.raises(UsageException) as refused:
        CliRunner().invoke(app, ["simulate", *named, "--until", "1", "-D", "x"], catch_exceptions=False)
    lines = refused.value.message.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["--until 1", "-D x", *map(str, files.values())]


def test_names_in_expectations_are_checked_before_the_run(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yarnling.cli.simulate_workload.run_what_if", lambda *_: pytest.fail("it was simulated"))
    expect = tmp_path / "expect.yaml"
    expect.write_text("expect: ['queue elt: p95 wait < 1 h', 'user nobody: p95 wait < 1 h']")
    with pytest.raises(UsageException, match=r"there is no queue elt(?s:.*)there is no user nobody"):
        CliRunner().invoke(app, [*arguments, "--expect", str(expect)], catch_exceptions=False)


def test_the_directory_of_the_report_is_checked_before_the_run(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yarnling.cli.simulate_workload.run_what_if", lambda *_: pytest.fail("it was simulated"))
    with pytest.raises(UsageException, match="not a directory"):
        CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "day.jsonl")], catch_exceptions=False)


@pytest.mark.parametrize("option", [["--conf", "."], ["--nodes=app.py"], ["--queue-map", "a=b"], ["--expect", "f"]])
def test_options_of_a_workload_without_one_say_what_is_missing(
    option: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(app_module.__file__).parent)
    result = CliRunner().invoke(app, ["simulate", *option])
    assert result.exit_code == 2
    assert "Missing option '--workload'" in result.stderr


def test_plans_and_workloads_refuse_a_negative_seed_alike() -> None:
    for options in (["kill-node"], ["--workload", __file__, "--nodes", __file__]):
        result = CliRunner().invoke(app, ["simulate", *options, "--seed", "-1"])
        assert result.exit_code == 2
        assert "should be greater than or equal to 0" in result.stderr


def test_options_of_plans_alone_leave_the_default_command() -> None:
    result = CliRunner().invoke(app, ["simulate", "--random", "--sed", "1"])
    assert "No such option: --sed" in result.stderr


@pytest.mark.parametrize(
    ("text", "expected_ms"), [("24h", 86_400_000), ("30m", 1_800_000), ("1.5min", 90_000), ("2d", 172_800_000)]
)
def test_times_have_units(text: str, expected_ms: int) -> None:
    assert parse_duration(text) == expected_ms


@pytest.mark.parametrize("text", ["24", "0h", "32d", "-1h", ""])
def test_other_texts_are_no_times(text: str) -> None:
    with pytest.raises(YarnException):
        parse_duration(text)


def test_the_first_interrupt_is_noted_and_the_second_one_raises() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interruptible() as is_interrupted:
        assert not is_interrupted()
        os.kill(os.getpid(), signal.SIGINT)
        assert is_interrupted()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupted_run_is_incomplete(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yarnling.whatif.sampling.Sampler.sample", lambda self: os.kill(os.getpid(), signal.SIGINT))
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 130
    assert "INCOMPLETE: interrupted after" in result.stdout
