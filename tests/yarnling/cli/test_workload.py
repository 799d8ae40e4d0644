"""`yarnling workload`, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from yarnling.cli.app import app
from yarnling.cli.shared.arguments import UsageException
from yarnling.workload.formats import FORMATS, read_nodes, read_workload

RECORDED = Path(__file__).parents[1] / "workload" / "recorded"
TASK = '{"container.duration.ms": 60000, "container.host": "/r/n1", "count": 3}'
JOB = f'{{"job.id": "j1", "job.user": "ann", "job.queue.name": "etl", "job.start.ms": 0, "job.tasks": [{TASK}]}}'


def yarnling(*words: str | Path) -> str:
    result = CliRunner().invoke(app, ["workload", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    (tmp_path / "jobs.json").write_text(JOB)
    return tmp_path / "jobs.json"


def test_a_trace_is_imported_with_its_nodes(tmp_path: Path, jobs: Path) -> None:
    out, nodes = tmp_path / "w.jsonl", tmp_path / "n.json"
    text = yarnling("import", jobs, "-o", out, "--nodes-out", nodes, "--scale", "2")
    assert "2 applications submitted within 50 s, 6 containers" in text
    assert "n.json: 1 node\n" in text
    assert "<memory:1024, vCores:1> is assumed" in text
    assert "The memory-hours rest on:" in text
    assert "  100.0%  assumed\n          100.0%  sizes of containers that do not say it" in text
    assert [each.name for each in read_workload(out).applications] == ["j1", "j1-copy-1"]
    assert [node.host for node in read_nodes(nodes)] == ["n1"]


def test_a_wrong_file_writes_nothing(tmp_path: Path, jobs: Path) -> None:
    jobs.write_text(JOB.replace("60000", "0"))
    with pytest.raises(UsageException, match=r"jobs.json:1: job 1.job.tasks\[1\] = '0': has no duration"):
        yarnling("import", jobs, "-o", tmp_path / "w.jsonl")
    assert not (tmp_path / "w.jsonl").exists()


def test_a_wrong_place_for_the_output_is_named(tmp_path: Path, jobs: Path) -> None:
    with pytest.raises(UsageException, match="there is no directory"):
        yarnling("import", jobs, "-o", tmp_path / "none" / "w.jsonl")


@pytest.mark.parametrize("link", [None, "symlink_to", "hardlink_to"])
def test_an_import_does_not_overwrite_its_input(tmp_path: Path, jobs: Path, link: str | None) -> None:
    out = jobs
    if link:
        out = tmp_path / "other.json"
        getattr(out, link)(jobs)
    for words in (["-o", out], ["-o", tmp_path / "w.jsonl", "--nodes-out", out]):
        with pytest.raises(UsageException, match="is also an input, and would overwrite it"):
            yarnling("import", jobs, *words)
    assert jobs.read_text() == JOB


def test_an_import_does_not_overwrite_its_nodes(tmp_path: Path, jobs: Path) -> None:
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("nodes: [{host: n1, memory_mb: 1024, vcores: 1}]")
    for words in (["-o", nodes], ["-o", tmp_path / "w.jsonl", "--nodes-out", nodes]):
        with pytest.raises(UsageException, match="is also an input"):
            yarnling("import", jobs, "--nodes", nodes, *words)
    assert "n1" in nodes.read_text()


def test_an_import_writes_two_files(tmp_path: Path, jobs: Path) -> None:
    out = tmp_path / "both"
    with pytest.raises(UsageException, match="--out and --nodes-out are the same file"):
        yarnling("import", jobs, "-o", out, "--nodes-out", tmp_path / "." / "both")
    assert not out.exists()


def test_the_output_may_be_replaced_or_thrown_away(tmp_path: Path, jobs: Path) -> None:
    (tmp_path / "w.jsonl").write_text("before")
    yarnling("import", jobs, "-o", tmp_path / "w.jsonl")
    assert len(read_workload(tmp_path / "w.jsonl").applications) == 1
    yarnling("import", jobs, "-o", "/dev/null", "--nodes-out", "/dev/null")


def test_queues_do_not_overwrite_their_input(tmp_path: Path) -> None:
    (tmp_path / "scheduler.json").write_text("{}")
    with pytest.raises(UsageException, match="--out is also an input"):
        yarnling("queues", tmp_path / "scheduler.json", "-o", tmp_path / "scheduler.json")
    assert (tmp_path / "scheduler.json").read_text() == "{}"


def test_nodes_that_are_left_out_are_listed(tmp_path: Path, jobs: Path) -> None:
    nodes = [
        {
            "id": f"n{number}:1",
            "nodeHostName": f"n{number}",
            "state": state,
            "totalResource": {"memory": 1, "vCores": 1},
        }
        for number, state in enumerate(("RUNNING", "DECOMMISSIONING"))
    ]
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": {"node": nodes}}))
    out = tmp_path / "w.jsonl"
    words = ["--nodes", tmp_path / "nodes.json", "--nodes-out", tmp_path / "n.json"]
    text = yarnling("import", jobs, "-o", out, *words)
    sentence = "1 of 2 nodes are left out: 1 DECOMMISSIONING."
    assert sentence in text
    assert read_workload(out).assumptions[-1].startswith(sentence)


def test_show_prints_queues_users_and_assumptions(jobs: Path) -> None:
    text = yarnling("show", jobs)
    assert "1 application, 3 containers, 0.1 GB-hours, 0.1 vcore-hours" in text
    assert "etl    ann   1             3           3        1,024  1       1m 1m 1m" in text
    assert "A task runs for as long as in the trace" in text


def test_show_prints_json(jobs: Path) -> None:
    shown = json.loads(yarnling("show", jobs, "--json"))
    assert shown["total"]["containers"] == 3
    (user,) = shown["users"]
    assert (user["queue"], user["user"]) == ("etl", "ann")
    assert user["duration_ms"] == {"p50": 60000, "p95": 60000, "most": 60000}


def test_formats_are_listed_and_checked(jobs: Path) -> None:
    assert all(name in yarnling("formats") for name in FORMATS)
    with pytest.raises(UsageException, match=r"slz is not a valid format \(did you mean sls\?"):
        yarnling("show", jobs, "--format", "slz")


def test_the_queues_of_an_answer_become_a_configuration(tmp_path: Path) -> None:
    below = '{"queue": {"queueName": "default", "capacity": 100.0}}'
    (tmp_path / "scheduler.json").write_text(
        f'{{"scheduler": {{"schedulerInfo": {{"queueName": "root", "queues": {below}}}}}}}'
    )
    text = yarnling("queues", tmp_path / "scheduler.json", "-o", tmp_path / "capacity-scheduler.xml")
    assert "1 queue\n" in text
    assert "no queue mappings" in text
    assert "root.default.capacity" in (tmp_path / "capacity-scheduler.xml").read_text()


def test_a_recording_becomes_a_workload_nodes_and_a_configuration(tmp_path: Path) -> None:
    out, nodes, conf = tmp_path / "w.jsonl", tmp_path / "n.json", tmp_path / "conf"
    text = yarnling("import", RECORDED / "2026-11-27.jsonl.gz", "-o", out, "--nodes-out", nodes, "--conf-out", conf)
    assert f"{conf}/capacity-scheduler.xml: as it was when the recording began" in text
    assert "Waits of AMs that were recorded, from submission to launch:\n" in text
    assert "root.ml     10" in text
    assert len(read_nodes(nodes)) == 4
    assert sorted(path.name for path in conf.iterdir()) == ["capacity-scheduler.xml", "yarn-site.xml"]


def test_only_a_recording_has_a_configuration(tmp_path: Path, jobs: Path) -> None:
    with pytest.raises(UsageException, match="only a recording has a configuration for --conf-out"):
        yarnling("import", jobs, "-o", tmp_path / "w.jsonl", "--conf-out", tmp_path / "conf")
    assert not (tmp_path / "w.jsonl").exists()


def test_an_autoscaler_is_not_left_out_of_the_nodes(tmp_path: Path, jobs: Path) -> None:
    nodes, out = tmp_path / "nodes.yaml", tmp_path / "w.jsonl"
    scaling = "{memory: {scale_up_factor: 1, scale_down_factor: 1}}"
    nodes.write_text(f"nodes: [{{host: n, memory: 8GB, vcores: 8, count: 4, scaling: {scaling}}}]")
    with pytest.raises(UsageException, match="an autoscaler cannot be written as single nodes"):
        yarnling("import", jobs, "-o", out, "--nodes", nodes, "--nodes-out", tmp_path / "n.json")
    assert not out.exists()
