"""Exit statuses of our own verbs: 2 for a wrong command line or input, 3 for a fault of ours, 1 for other errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from yarnling.cli.app import main
from yarnling.cli.hadoop.verbs import ELSEWHERE

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture(autouse=True)
def no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def status_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["yarnling", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch"],
        ["status", "--nosuch"],
        ["logs"],
        ["logs", "application_x"],
        ["logs", "application_1_1", "--container", "x"],
        ["explain", "x"],
        ["watch", "--app", "x"],
        ["kill-master", "x"],
        ["kill-container", "x"],
        ["status", "--name", "../x"],
        ["down", "--name", "../x"],
        ["kill-rm", "--name", ".."],
        ["config", "--name", "../x"],
        ["config", "-D", "nonsense"],
        ["config", "-D", "yarn.nodemanager.resource.memory-mb=lots"],
        ["config", "--conf", "/nowhere/at/all"],
        ["up", "--conf", "/nowhere/at/all"],
        ["up", "-D", "nonsense"],
        ["up", "--name", "a/b"],
        ["run", "--timeout", "-1", "true"],
        ["submit", "distributed-shell"],
        ["submit", "distributed-shell", "-nosuch"],
        ["remove-node", "1", "--now", "--timeout", "3"],
        ["chaos"],
        ["chaos", "nosuch"],
        ["chaos", "kill-node", "--random"],
        ["simulate", "nosuch"],
        ["simulate", "step", "nosuch"],
        ["lesson", "nosuch"],
        ["lesson", "1", "-o", "x.png"],
        ["quiz", "nosuch"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_exits_with_2(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(monkeypatch, *arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_fault_of_yarnling_exits_with_3(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(name: str) -> None:
        raise IndexError(name)

    monkeypatch.setattr("yarnling.cli.simulate.find_plan", fail)
    assert status_of(monkeypatch, "simulate", "kill-node") == 3
    assert "IndexError" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["run", "true"],
        ["kill-node", "7"],
        ["logs", "application_1_0001"],
        ["explain", "application_1_0001"],
        ["submit", "distributed-shell", "-shell_command", "true"],
    ],
    ids=" ".join,
)
def test_other_errors_exit_with_1(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(monkeypatch, *arguments) == 1
    assert capsys.readouterr().err.startswith("yarnling: ")


HADOOPS = [
    *("classpath", "daemonlog", "envvars", "fs2cs", "globalpolicygenerator", "jar", "nodeattributes", "nodemanager"),
    *("proxyserver", "registrydns", "resourcemanager", "router", "routeradmin", "scmadmin", "sharedcachemanager"),
    *("schedulerconf", "timelinereader", "timelineserver"),
]


@pytest.mark.parametrize("verb", HADOOPS)
def test_a_verb_that_only_hadoop_has_is_refused_with_an_alternative(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(monkeypatch, verb, "-a", "--option", "words") == 2
    assert capsys.readouterr().err == f"yarnling: `yarn {verb}` is not available: {ELSEWHERE[verb]}\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minimal_master", "submit_minimal_master", "submit_node_master"])
@pytest.mark.parametrize("arguments", [[], ["x"], ["build", "x"], ["0"], ["build", "-1"]], ids=" ".join)
def test_an_example_with_wrong_arguments_prints_its_usage(name: str, arguments: list[str]) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2, ran.stderr
    assert ran.stderr.startswith("usage: ")
    assert "Traceback" not in ran.stderr
