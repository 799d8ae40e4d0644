"""Containers' output: whole lines as they come, the rest at the end, nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarnling.cli.container_output import GrowingOutput
from yarnling.client import Client

APP = ApplicationId(1, 1)
MASTER, FIRST = (ContainerId(ApplicationAttemptId(APP, 1), number) for number in (1, 2))
ADDRESSES = {"yarn.resourcemanager.address": "127.0.0.1:9"}


def write(log_dir: Path, container: ContainerId, name: str, text: str) -> None:
    directory = log_dir / str(APP) / str(container)
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / name).open("a") as file:
        file.write(text)


async def test_lines_as_they_come_and_the_rest_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = GrowingOutput(Client(ADDRESSES, log_dirs=[tmp_path]), APP)
    output.print_new()
    write(tmp_path, MASTER, "stdout", "of the master\n")
    write(tmp_path, FIRST, "stdout", "one\x0b\x1c\u2028still one\n\ntw")
    write(tmp_path, FIRST, "prelaunch.out", "of the node\n")
    output.print_new()
    assert capsys.readouterr().out == f"{FIRST} | one\x0b\x1c\u2028still one\n{FIRST} | \n"
    write(tmp_path, FIRST, "stdout", "o")
    write(tmp_path, FIRST, "stderr", "late")
    output.print_new()
    assert capsys.readouterr() == ("", "")
    output.print_rest()
    assert capsys.readouterr() == (f"{FIRST} | two\n", f"{FIRST} | late\n")
    output.print_rest()
    assert capsys.readouterr() == ("", "")
