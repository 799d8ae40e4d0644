"""`yarnling simulate step`, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from yarn.errors import YarnException
from yarnling.cli.app import app
from yarnling.cli.shared.arguments import UsageException


def step(*words: str | Path) -> str:
    result = CliRunner().invoke(app, ["simulate", "step", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_the_steps_are_printed_up_to_a_time() -> None:
    text = step("allocate", "--print", "--at", "2.6s")
    assert "   27  2.514 s  RM\nallocate from AM ann arrives: response id 0; requests 6 x 1024 MB" in text
    assert " + allocates ann-am (1024 MB) on n1: 7168 MB are free there now" in text
    assert "2.807 s" not in text


def test_the_steps_of_a_run_with_changes_are_printed_as_json() -> None:
    found = json.loads(step("8", "--json", "--at", "140", "--change", "120: kill n2", "--change", "130: start n2"))
    assert [one["number"] for one in found] == list(range(1, 141))
    assert [one["title"] for one in found if one["place"] == "you"] == ["kill n2", "start n2"]
    assert found[120]["title"] == "kill n2"


def test_a_page_is_written_and_contradictions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert "Written: " in step("register", "-o", path, "--at", "2s")
    assert 30_000 < path.stat().st_size < 200_000
    with pytest.raises(UsageException, match=r"cannot write .txt here"):
        step("register", "-o", tmp_path / "page.txt")
    with pytest.raises(YarnException, match="leave out --web, --print and --json"):
        step("register", "-o", path, "--print")
    with pytest.raises(UsageException, match="is not a time in seconds"):
        step("register", "-o", path, "--at", "xs")


def test_without_a_terminal_a_pipe_or_a_browser_is_named() -> None:
    with pytest.raises(YarnException, match="stepping needs a terminal: use --print for a pipe, or --web"):
        step("allocate")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("no-such-plan", "--print"), "no-such-plan"),
        (("--nodes", "n.yaml", "--print"), "belong to --workload"),
        (("--workload", "w.jsonl", "--print"), "--workload needs --nodes"),
        (("storm", "--workload", "w.jsonl", "--print"), "give either storm or --workload"),
        (("8", "--print", "--change", "kill n2"), "is not STEP:CHANGE"),
        (("8", "--print", "--change", "5: dance"), "is not a change"),
        (("8", "--print", "--change", "20: kill n2", "--change", "20: start n2"), "must come after step 20"),
        (("8", "--print", "--at", "30", "--change", "20: kill n3"), "there is no node n3"),
        (("8", "--print", "--at", "x"), "is not a whole number"),
        (("8", "--print", "--at", "xs"), "is not a time in seconds"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], problem: str) -> None:
    with pytest.raises(UsageException, match=problem):
        step(*words)


def test_a_workload_is_stepped_through(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.json"
    task = '{"container.duration.ms": 5000, "container.host": "/r/n1", "count": 3}'
    trace.write_text(
        f'{{"job.id": "j1", "job.user": "ann", "job.queue.name": "default", "job.start.ms": 0, "job.tasks": [{task}]}}'
    )
    workload, nodes = tmp_path / "w.jsonl", tmp_path / "n.json"
    imported = CliRunner().invoke(
        app, ["workload", "import", str(trace), "-o", str(workload), "--nodes-out", str(nodes)]
    )
    assert imported.exit_code == 0, imported.output
    text = step("--workload", workload, "--nodes", nodes, "--print", "--at", "10s")
    assert "allocates j1-am" in text
    released = step("--workload", workload, "--nodes", nodes, "--release", "3.5.0", "--print", "--at", "10s")
    assert "allocates j1-am" in released
    assert released != text
