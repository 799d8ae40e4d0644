"""Timelines of simulated runs: the arrows are the calls of the trace, and the page and the plots show them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from yarnling.cli.app import app
from yarnling.cli.shared.arguments import UsageException
from yarnling.report.plot_page import plot_page, plot_svg
from yarnling.report.spans import SpanKind
from yarnling.run.reader import read_run
from yarnling.run.records import Outcome, What
from yarnling.timeline.plot_data import MEASURED, plot_of_timeline

RPCS = {"NodeHeartbeat": "nodeHeartbeat", "Allocate": "allocate", "RegisterNode": "registerNodeManager"}
"""{class of an event of the ResourceManager's core: its call}."""


def traced(plan: str, directory: Path) -> Path:
    """The trace of a run of a ready-made plan."""
    path = directory / f"{plan}.jsonl"
    ran = CliRunner().invoke(app, ["simulate", plan, "--seed", "1", "--trace", str(path)])
    assert ran.exit_code == 0, ran.output
    return path


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return traced("kill-node", tmp_path_factory.mktemp("kill-node"))


def test_the_arrows_are_the_calls_of_the_trace(killed: Path) -> None:
    lines = [json.loads(line) for line in killed.read_text().splitlines()]
    steps = [line for line in lines if isinstance(line, list)]
    handled = Counter(
        (RPCS[name], at_ms)
        for at_ms, host, event, _ in steps
        if host == "rm" and (name := event["$"].rpartition(".")[2]) in RPCS
    )
    timeline = read_run(killed)
    arrived = [one for one in timeline.calls if one.arrived_ms is not None and one.rpc in RPCS.values()]
    assert {rpc for rpc, _ in handled} == set(RPCS.values())
    assert not handled - Counter((one.rpc, one.arrived_ms) for one in arrived), "each call that is handled has arrived"
    assert not Counter((one.rpc, one.arrived_ms) for one in arrived) - handled, "each call that arrives is handled"
    changes = [effect for *_, effects in steps for effect in effects if effect["$"].endswith(".StateChanged")]
    assert len(timeline.changes) == len(changes)
    (fault,) = timeline.faults
    assert (fault.kind, fault.hosts) == ("kill-node", ("nm-1",))
    assert any(one.outcome is Outcome.UNREACHABLE and one.target == "nm-1" for one in timeline.calls)


@pytest.mark.slow
def test_a_trace_does_not_change_the_run(killed: Path, tmp_path: Path) -> None:
    def hash_of(*options: str) -> str:
        return CliRunner().invoke(app, ["simulate", "kill-node", "--seed", "1", "--hash", *options]).output.split()[-1]

    assert hash_of() == hash_of("--trace", str(tmp_path / "again.jsonl"))
    assert (tmp_path / "again.jsonl").read_bytes() == killed.read_bytes()


def test_each_container_is_allocated_once_and_plotted_once(killed: Path) -> None:
    timeline = read_run(killed)
    allocated = Counter(one.container for one in timeline.decisions if one.what is What.ALLOCATED)
    assert set(allocated.values()) == {1}
    launched = {one.subject for one in timeline.changes if one.kind == "NMContainer" and one.target == "RUNNING"}
    assert launched <= set(allocated)
    plot = plot_of_timeline(timeline)
    assert len(plot.spans) == len(allocated)
    assert all(0 <= span.from_ms <= span.until_ms <= plot.until_ms for span in plot.spans)


def test_containers_go_on_when_the_resource_manager_restarts(tmp_path: Path) -> None:
    timeline = read_run(traced("kill-rm", tmp_path))
    allocated = Counter(one.container for one in timeline.decisions if one.what is What.ALLOCATED)
    released = Counter(one.container for one in timeline.decisions if one.what is What.RELEASED)
    assert set(allocated.values()) == {1}
    assert allocated == released, "each is released, once, because the cluster has drained"
    (fault, *_) = timeline.faults
    before = {one.container for one in timeline.decisions if one.at_ms < fault.from_ms}
    after = {one.container for one in timeline.decisions if one.what is What.RELEASED and one.at_ms > fault.from_ms}
    assert before & after, "containers lived through the restart"


@pytest.mark.slow
def test_reservations_refusals_and_preemptions_have_reasons(tmp_path: Path) -> None:
    timeline = read_run(traced("contention", tmp_path))
    reasons = {what: {one.reason for one in timeline.decisions if one.what is what} for what in What}
    assert any("user max-capacity limit" in reason for reason in reasons[What.REFUSED])
    assert "killed: GUARANTEE for root.prod" in reasons[What.PREEMPTED]
    spans = plot_of_timeline(timeline).spans
    assert any(span.kind is SpanKind.RESERVATION for span in spans)
    assert any(span.is_preempted for span in spans)


@pytest.mark.slow
def test_the_commands_write_pages_and_pictures(killed: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page, picture, plot = tmp_path / "page.html", tmp_path / "picture.svg", tmp_path / "plot.html"
    drawn = ["timeline", str(killed), "-o", str(page), "--svg", str(picture), "--from", "2", "--to", "3"]
    for arguments in (
        drawn,
        ["plot", str(killed), "-o", str(plot)],
        ["plot", str(killed), "-o", f"{tmp_path}/plot.svg"],
    ):
        ran = CliRunner().invoke(app, arguments)
        assert ran.exit_code == 0, ran.output
    assert "startContainers: c0005_000002" in picture.read_text()
    assert "Containers by node" in plot.read_text()
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")


def test_a_plot_marks_its_moments(killed: Path) -> None:
    pytest.importorskip("matplotlib")
    plot = plot_of_timeline(read_run(killed))
    texts = [mark.text for mark in plot.marks]
    assert "node NM-1 is lost" in texts
    assert [mark.kind for mark in plot.marks if mark.is_opening] == ["placed"]
    page = plot_page(plot, MEASURED)
    number = texts.index("node NM-1 is lost")
    assert f'<li id="moment-{number}"><a href="#moment-{number}">6.000 s <b>lost</b> node NM-1 is lost</a></li>' in page
    assert f"body:has(#moment-{number}:target) .mark-{number} " in page
    pictures = page.count("<svg")
    assert page.count(f'class="mark mark-{number}"') == pictures > 4
    assert "mark-" not in plot_svg(plot, MEASURED)


def test_a_timeline_needs_somewhere_to_go(killed: Path) -> None:
    ran = CliRunner().invoke(app, ["timeline", str(killed)])
    assert ran.exit_code != 0
    assert "say where to write" in str(ran.exception)


@pytest.mark.parametrize(
    "arguments",
    [
        ["plot", "-o", "x.png"],
        ["timeline", "--svg", "part.png"],
        ["timeline", "-o", "page.pdf"],
        ["timeline", "-o", "page.html", "--rpc", "nosuch"],
        ["timeline", "-o", "page.html", "--from", "50", "--to", "3"],
        ["traffic", "--from", "50", "--to", "3"],
        ["traffic", "--app", "nosuch"],
    ],
    ids=" ".join,
)
def test_a_file_of_another_format_or_a_selection_of_nothing_is_a_wrong_command_line(
    killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(app, [arguments[0], str(killed), *arguments[1:]])
    assert isinstance(ran.exception, UsageException)
    assert not list(tmp_path.iterdir())


def test_a_trace_is_of_one_run(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["simulate", "kill-node", "--runs", "2", "--trace", str(tmp_path / "x")])
    assert ran.exit_code != 0
    assert "--trace writes one run to its file" in str(ran.exception)
