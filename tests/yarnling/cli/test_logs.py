"""`yarnling logs`: the output of containers; the NodeManager's own files only on request."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from tests.yarnling.test_clean_up import state
from yarn.errors import ApplicationNotFoundException, InvalidArgumentException, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarnling.cli import logs
from yarnling.cli.hadoop import logs as hadoop_logs
from yarnling.cli.hadoop.logs import LOGS, _matcher
from yarnling.cli.hadoop.verb import Given, Invocation
from yarnling.cli.logs import show
from yarnling.cli.options.cluster import LogsOptions
from yarnling.cluster.client import Client
from yarnling.cluster.containers import ContainerLog
from yarnling.cluster.processes import ProcessIdentity
from yarnling.cluster.state import NodeEntry

APP = ApplicationId(1, 1)
CONTAINER = ContainerId(ApplicationAttemptId(APP, 1), 1)
FILES = {
    "directory.info": "ls -l",
    "launch_container.sh": "#!/bin/bash",
    "prelaunch.err": "",
    "prelaunch.out": "Setting up env variables",
    "stderr": "",
    "stdout": "hello",
}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The container's log directory on the only node of the cluster."""
    node = NodeEntry(1, "nm-1", "127.0.0.2:1", ProcessIdentity(1, 0.0), (str(tmp_path / "logs"),))
    monkeypatch.setattr(logs, "find_cluster", lambda name: replace(state(tmp_path), nodes=(node,)))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "yarn-site.xml").write_text("<configuration/>")
    made = tmp_path / "logs" / str(APP) / str(CONTAINER)
    made.mkdir(parents=True)
    for name, text in FILES.items():
        (made / name).write_text(text)
    return made


def shown(out: str) -> list[str]:
    return [line.split()[2] for line in out.splitlines() if line.startswith("==>")]


def test_only_output_is_printed_and_other_files_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    show(LogsOptions(application=str(APP)))
    out, err = capsys.readouterr()
    assert shown(out) == ["stderr", "stdout"]
    left_out = "directory.info, launch_container.sh, prelaunch.err, prelaunch.out"
    assert err == f"Not shown: {left_out} (show all with --all, one with --file)\n"


def test_an_error_before_the_start_of_a_container_is_printed(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "prelaunch.err").write_text("ln: failed")
    show(LogsOptions(application=str(APP)))
    assert shown(capsys.readouterr().out) == ["prelaunch.err", "stderr", "stdout"]


def test_all_files_and_files_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    show(LogsOptions(application=str(APP), every=True))
    out, err = capsys.readouterr()
    assert (shown(out), err) == (list(FILES), "")
    show(LogsOptions(application=str(APP), file=["launch_container.sh"]))
    assert capsys.readouterr() == (f"==> {CONTAINER} launch_container.sh <==\n#!/bin/bash\n", "")


def test_for_a_missing_file_the_existing_ones_are_listed() -> None:
    with pytest.raises(YarnException, match=r"no log file nosuch \(found: directory.info, .* stdout\)"):
        show(LogsOptions(application=str(APP), file=["nosuch"]))
    with pytest.raises(YarnException, match="application_1_0002: no logs in"):
        show(LogsOptions(application="application_1_0002"))


@pytest.mark.parametrize(
    ("names", "patterns", "matching"),
    [
        ([], [], list(FILES)),
        (["ALL"], [], list(FILES)),
        (["*"], [], list(FILES)),
        (["stdout", "stderr"], [], ["stderr", "stdout"]),
        ([], ["std.*"], ["stderr", "stdout"]),
        ([], [".*"], list(FILES)),
        ([], ["out"], []),
    ],
)
def test_hadoops_options_for_names_and_patterns(names: list[str], patterns: list[str], matching: list[str]) -> None:
    """As in LogsCLI, -log_files takes exact names, "ALL" or "*", and -log_files_pattern regular expressions for whole
    names.
    """
    assert [name for name in FILES if _matcher(names, patterns)(name)] == matching


def test_a_pattern_that_is_not_a_regular_expression_is_refused() -> None:
    with pytest.raises(InvalidArgumentException, match="-log_files_pattern"):
        _matcher([], ["("])


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({}, ["127.0.0.2:1", "LogLength:5", "hello"]),
        ({"show_container_log_info": ()}, ["127.0.0.2:1", f"{'stdout':>30}\t{5:>30}"]),
        ({"json": ()}, ["127.0.0.2:1", '"text": "hello"']),
    ],
)
async def test_hadoops_form_reads_logs_that_move_since_they_were_found(
    options: dict[str, tuple[str, ...]],
    parts: list[str],
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A log that is gone is left out."""
    deleted = directory.parent / "deleted"
    found = iter([[deleted / "stdout", deleted / "stderr"], *[[directory / "stdout"]] * 2])
    monkeypatch.setattr(
        hadoop_logs, "find_all_logs", lambda *_: [ContainerLog(CONTAINER, path) for path in next(found)]
    )

    class NoApplication:
        async def report(self, app_id: ApplicationId) -> None:
            raise ApplicationNotFoundException(str(app_id))

    given = Given({"applicationId": (str(APP),), **options}, ())
    assert await LOGS.run(Invocation(given, logs.find_cluster(""), cast(Client, NoApplication()), "")) == 0
    out = capsys.readouterr().out
    assert [part for part in parts if part not in out] == []
    assert "stderr" not in out
