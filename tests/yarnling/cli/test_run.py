"""The output of containers: complete lines as they appear, the rest at the end.  The ApplicationMaster's is left out.

The ResourceManager has been restarted here, so the id of the ApplicationMaster's container follows no pattern.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn.applications import ApplicationAttemptReport
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.states import YarnApplicationAttemptState
from yarnling.cli.run import ContainerOutput
from yarnling.cluster.client import Client

APP = ApplicationId(1, 1)
ATTEMPT = ApplicationAttemptId(APP, 1)
FIRST, AM = (ContainerId(ATTEMPT, 3 << 40 | number) for number in (1, 2))
ADDRESSES = {"yarn.resourcemanager.address": "127.0.0.1:9"}


class FakeClient(Client):
    """A client that reports the attempts which the test has added to `known`."""

    def __init__(self, log_dir: Path) -> None:
        super().__init__(ADDRESSES, log_dirs=[log_dir])
        self.known: list[ApplicationAttemptReport] = []

    async def attempts(self, app_id: ApplicationId | str) -> tuple[ApplicationAttemptReport, ...]:
        return tuple(self.known)


def write(log_dir: Path, container: ContainerId, name: str, text: str) -> None:
    directory = log_dir / str(APP) / str(container)
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / name).open("a") as file:
        file.write(text)


async def test_complete_lines_are_printed_at_once_and_the_rest_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = FakeClient(tmp_path)
    output = ContainerOutput(client, APP)
    await output.print_new()
    write(tmp_path, AM, "stdout", "of the AM\n")
    write(tmp_path, FIRST, "stdout", "one\x0b\x1c\u2028still one\n\ntw")
    write(tmp_path, FIRST, "prelaunch.out", "of the node\n")
    await output.print_new()
    assert capsys.readouterr().out == ""
    client.known.append(ApplicationAttemptReport(ATTEMPT, YarnApplicationAttemptState.RUNNING, AM))
    await output.print_new()
    assert capsys.readouterr().out == f"{FIRST} | one\x0b\x1c\u2028still one\n{FIRST} | \n"
    write(tmp_path, FIRST, "stdout", "o")
    write(tmp_path, FIRST, "stderr", "late")
    await output.print_new()
    assert capsys.readouterr() == ("", "")
    await output.print_rest()
    assert capsys.readouterr() == (f"{FIRST} | two\n", f"{FIRST} | late\n")
    await output.print_rest()
    assert capsys.readouterr() == ("", "")
