"""Output for people: names are printed without markup, with control characters escaped; and JSON for programs."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

import pytest
from msgspec import structs
from rich.console import Console, RenderableType

from wire.files.hadoop_xml import to_xml
from wire.files.plain_json import plain
from yarn.applications import ApplicationReport
from yarn.errors import InvalidArgumentException, YarnException
from yarn.faults import FAULTS_COUNTED
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.nodes import NodeHealth, NodeReport
from yarn.queues import QueueInfo, QueueStatistics
from yarn.resource import NONE, Resource
from yarn.states import FinalApplicationStatus, NodeState, QueueState, YarnApplicationState
from yarnling.cli import config
from yarnling.cli.config import print_key_notices, report
from yarnling.cli.shared.arguments import UsageException
from yarnling.cli.shared.output import (
    ProgressLines,
    live,
    print_error,
    terminal,
    without_dead_pages,
    without_page_hint,
)
from yarnling.cluster.configuration import compose
from yarnling.cluster.snapshot import ClusterSnapshot, application_table, cluster_tables, node_table, queue_table
from yarnling.report.escapes import in_line, shown

EVIL = "[/x] [bold]:smile: \x1b[2J\x9b1m\u202e\udcff\a"
TAMED = "[/x] [bold]:smile: \\x1b[2J\\x9b1m\\u202e\\udcff\\x07"


def drawn(part: RenderableType) -> str:
    console = terminal()
    with console.capture() as capture:
        console.print(part, crop=False)
    return capture.get()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_long_run_prints_a_line_every_minute_where_its_bar_cannot_be_seen(is_terminal: bool) -> None:
    times_s = iter([0.0, 59.0, 60.0, 61.0, 125.0, 126.0])
    console = Console(file=io.StringIO(), force_terminal=is_terminal)
    lines = ProgressLines(console, lambda: next(times_s))
    for number in range(5):
        lines.show(lambda number=number: f"{number} of 5\n")  # type: ignore[misc]  # called at once
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == ("" if is_terminal else "1 of 5\\x0a\n3 of 5\\x0a\n")


def test_control_characters_are_escaped() -> None:
    assert shown(f"two\nlines\t{EVIL}") == f"two\nlines\t{TAMED}"
    assert in_line("two\nlines\tß日") == "two\\x0alines\\x09ß日"


def test_values_of_a_configuration_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    report(
        None, ["foo.bar=[/x]", "foo.baz=[memory=8192,vcores=8]", f"foo.evil={EVIL}"], None, every=True, as_json=False
    )
    out = capsys.readouterr().out
    assert out.count("\tunknown\t") == 3
    assert "[/x]" in out
    assert "[memory=8192,vcores=8]" in out
    assert TAMED in out


def test_warnings_of_a_configuration_are_not_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {
        "yarn.scheduler.capacity.root.queues": "[/x]",
        "yarn.scheduler.capacity.root.[/x].capacity": "100",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "2000",
    }
    (tmp_path / "capacity-scheduler.xml").write_text(to_xml(values))
    report(tmp_path, [], None, every=False, as_json=False)
    assert "warning: capacity-scheduler.xml" in capsys.readouterr().err
    print_key_notices(compose(tmp_path, {"foo.evil": EVIL}))
    assert ascii(EVIL) in capsys.readouterr().err


def test_names_of_applications_queues_and_nodes_are_not_markup() -> None:
    app_id = ApplicationId(1, 1)
    app = ApplicationReport(app_id, EVIL, EVIL, EVIL, YarnApplicationState.RUNNING, ApplicationAttemptId(app_id, 1))
    assert drawn(application_table((app,))).count(TAMED) == 3
    queue = QueueInfo(EVIL, f"root.{EVIL}", QueueState.RUNNING, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, QueueStatistics())
    assert drawn(queue_table(queue)).count(TAMED) == 1
    node = NodeReport(NodeId("127.0.0.2", 1), NodeState.RUNNING, "", EVIL, NONE, Resource(1, 1), 0, NodeHealth())
    assert drawn(node_table((node,))).count(TAMED) == 1


def test_control_characters_in_an_error_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(InvalidArgumentException(f"queue {EVIL}:\nunknown"))
    assert capsys.readouterr().err == f"yarnling: queue {TAMED}:\nunknown\n"


def test_a_long_list_of_faults_has_their_number_first_and_last(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"key{number}: no" for number in range(FAULTS_COUNTED)]
    print_error(UsageException("\n".join(lines)), are_faults=True)
    assert capsys.readouterr().err == "yarnling: key0: no\n" + "\n".join([*lines[1:], ""])
    print_error(UsageException("\n".join([*lines, "warning: key: odd"])), are_faults=True)
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == f"yarnling: {FAULTS_COUNTED} errors and 1 warnings"
    assert shown[1:-1] == [*lines, "warning: key: odd"]
    assert shown[-1] == f"{shown[0]}, listed above"
    print_error(YarnException("\n".join([*lines, "more"])))
    assert "errors" not in capsys.readouterr().err, "an application's diagnostics are not counted as errors"


def test_the_health_report_of_an_unhealthy_node_is_shown() -> None:
    node = NodeReport(
        NodeId("127.0.0.2", 1), NodeState.UNHEALTHY, "", "/r", NONE, NONE, 0, NodeHealth(False, "1/1 local-dirs [\x1b]")
    )
    root = QueueInfo("root", "root", QueueState.RUNNING, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, QueueStatistics())
    assert "127.0.0.2:1 UNHEALTHY: 1/1 local-dirs [\\x1b]" in drawn(cluster_tables(ClusterSnapshot((node,), root, ())))


@pytest.mark.parametrize(
    "dead",
    [
        "http://localhost:8088/proxy/application_1795371927619_0001/",
        "https://rm.example.org:8090/cluster/app/application_1795371927619_0001",
        "127.0.0.2:0",
        "http://127.0.0.2:0",
        "http://127.0.0.2:0/node/containerlogs/container_1795371927619_0001_01_000001/alice",
    ],
)
def test_an_address_where_no_server_listens_is_not_shown(dead: str) -> None:
    assert live(dead) == "N/A"


@pytest.mark.parametrize(
    "own", ["http://localhost:4040/jobs", "http://127.0.0.1:80", "N/A", "", "http://master/proxy/x"]
)
def test_the_tracking_url_of_an_am_is_shown(own: str) -> None:
    assert live(own) == own


PAGE = "http://localhost:8088/cluster/app/application_1_0001"
SEE = f"For more detailed output, check the application tracking page: {PAGE} Then click on links to the logs."
FAILED = f"exit status 1\n{SEE}\n. Failing the application."


def test_diagnostics_do_not_refer_to_a_page_that_does_not_exist() -> None:
    assert without_page_hint(FAILED) == "exit status 1\n. Failing the application."
    assert without_dead_pages(FAILED) == FAILED.replace(PAGE, "N/A")
    assert without_page_hint(FAILED, "localhost:8089") == without_page_hint(FAILED), "pages of another cluster"


def test_a_page_that_the_resource_manager_serves_is_shown() -> None:
    assert live(PAGE, "localhost:8088") == PAGE
    assert without_page_hint(FAILED, "localhost:8088") == without_dead_pages(FAILED, "localhost:8088") == FAILED
    assert live("http://localhost:8088/proxy/application_1_0001/", "localhost:8088") == "N/A", "there is no web proxy"


def narrow(width: int, part: RenderableType) -> list[str]:
    """The lines of `part` on a terminal of that width."""
    console = Console(width=width, force_terminal=True, color_system=None, highlight=False)
    with console.capture() as capture:
        console.print(part, crop=False)
    return [line.rstrip() for line in capture.get().splitlines()]


def long_application() -> ApplicationReport:
    app_id = ApplicationId(1795371547683, 12)
    return ApplicationReport(
        app_id, "alice", "root.engineering.nightly", "count words", YarnApplicationState.FINISHED,
        ApplicationAttemptId(app_id, 1), final_status=FinalApplicationStatus.SUCCEEDED,
    )  # fmt: skip


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100])
def test_no_word_of_a_list_is_split_on_a_narrow_terminal(width: int) -> None:
    app = long_application()
    text = "\n".join(narrow(width, application_table((app,))))
    for word in (str(app.application_id), "alice", "root.engineering.nightly", "FINISHED", "SUCCEEDED", "words"):
        assert word in text.split(), f"{word} is not whole at {width} columns:\n{text}"


def test_a_table_that_does_not_fit_has_several_lines_for_each_row() -> None:
    app = long_application()
    assert len(narrow(140, application_table((app,)))) == 3
    lines = narrow(80, application_table((app,)))
    assert lines == [
        "application_1795371547683_0012",
        "  User: alice  Name: count words  Queue: root.engineering.nightly",
        "  State: FINISHED  Outcome: SUCCEEDED  Progress: 0%  Containers: 0",
    ]


def test_nodes_of_an_ordinary_cluster_fit_a_terminal_of_80_columns() -> None:
    node = NodeReport(
        NodeId("127.0.0.10", 36217), NodeState.RUNNING, "", "/default-rack", NONE, Resource(8192, 8), 8, NodeHealth()
    )
    lines = narrow(80, node_table((node,)))
    assert lines[0].split()[0] == "Node"
    assert lines[-1].split()[:2] == ["127.0.0.10:36217", "RUNNING"]


def test_a_line_in_a_pipe_is_never_wrapped() -> None:
    app = long_application()
    deep = structs.replace(app, queue="root." + ".".join(["q" * 60] * 6))
    assert any(deep.queue in line for line in drawn(application_table((deep,))).splitlines())


LONG_KEY = "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"


def test_a_configuration_in_a_pipe_is_a_line_for_each_key(capsys: pytest.CaptureFixture[str]) -> None:
    definitions = [f"{LONG_KEY}=95.0", "yarn.acl.enabled=true", "yarn.http.policy=HTTP_ONLY", "foo.bar=a\tb\nc"]
    report(None, definitions, None, every=False, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert f"{LONG_KEY}=95.0\tread\toverride" in lines
    assert "yarn.http.policy=HTTP_ONLY\tignored\toverride" in lines
    assert "foo.bar=a\\x09b\\x0ac\tunknown\toverride" in lines
    assert all(line.count("\t") in (2, 3) for line in lines)
    report(None, [], None, every=True, as_json=False)
    assert f"{LONG_KEY}=100.0\tread\tLocalCluster" in capsys.readouterr().out.splitlines()


def test_an_unknown_key_in_a_pipe_names_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    report(None, ["yarn.nodemanager.resource.memry-mb=1"], None, every=False, as_json=False)
    expected = "yarn.nodemanager.resource.memry-mb=1\tunknown\toverride\tperhaps yarn.nodemanager.resource.memory-mb"
    assert expected in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_configuration_on_a_terminal_keeps_keys_and_values_whole(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        config, "terminal", lambda: Console(width=width, force_terminal=True, color_system=None, highlight=False)
    )
    value = "/a/directory/that/is/rather/long"
    report(None, [f"{LONG_KEY}=95.0", f"yarn.nodemanager.local-dirs={value}"], None, every=False, as_json=False)
    words = capsys.readouterr().out.split()
    assert {LONG_KEY, "95.0", "yarn.nodemanager.local-dirs", value} <= set(words)


def test_a_broken_pipe_is_raised_as_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default rich exits the process, even in a task of an event loop, which then prints a traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", buffering=1) as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        with pytest.raises(BrokenPipeError):
            terminal().print("a line")
        monkeypatch.undo()
        with contextlib.suppress(BrokenPipeError):
            pipe.close()


# JSON


def test_a_record_as_json() -> None:
    node = NodeReport(
        NodeId("127.0.0.2", 7),
        NodeState.RUNNING,
        "",
        "/default-rack",
        Resource(0, 0),
        Resource(1024, 2, (("gpu", 1),)),
        3,
        NodeHealth(),
        labels=frozenset({"b", "a"}),
    )
    form = plain(node)
    assert form["node_id"] == "127.0.0.2:7"
    assert form["state"] == "RUNNING"
    assert form["capability"] == {"memory-mb": 1024, "vcores": 2, "gpu": 1}
    assert form["labels"] == ["a", "b"]
    assert form["health"]["healthy"] is True
    assert form["update_type"] is None


def test_ids_may_be_keys_and_items() -> None:
    app_id = ApplicationId(1_700_000_000_000, 1)
    assert plain({app_id: [app_id]}) == {str(app_id): [str(app_id)]}


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(TypeError, match="object cannot be written as JSON"):
        plain(object())
