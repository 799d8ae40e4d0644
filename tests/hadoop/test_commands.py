"""Hadoop's own `yarn` commands print the same on yarnling's cluster as yarnling's verbs, with the same exit status."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from typing import NamedTuple

import pytest

from tests.cluster import command_line, golden_scene
from tests.hadoop import toolchain
from tests.hadoop.scenes import client_configuration
from yarnling.cli.shared.connection import connect

pytestmark = [pytest.mark.hadoop, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]

USER = golden_scene.USER
ATTEMPT = "appattempt_<RUNNING>_000001"
COMMANDS = (
    "application -list",
    "application -list -appStates ALL",
    "application -list -appStates FINISHED,FAILED",
    "application -status application_<FINISHED>",
    "application -status application_<RUNNING>",
    "application -status application_1234567890123_0001",
    "applicationattempt -list application_<RUNNING>",
    f"applicationattempt -status {ATTEMPT}",
    "applicationattempt -status appattempt_1234567890123_0001_000001",
    f"container -list {ATTEMPT}",
    "container -status container_<RUNNING>_01_000099",
    "node -list",
    "node -list -all",
    "node -list -states LOST",
    "node -status <NODE_1>",
    "node -status nowhere:1",
    "queue -status default",
    "queue -status root.dev",
    "queue -status nosuch",
    "cluster --list-node-labels",
    "rmadmin -refreshQueues",
    "rmadmin -refreshNodes",
    "rmadmin -getGroups alice",
    "application -updatePriority 3 -appId application_<RUNNING>",
    "application -movetoqueue application_<RUNNING> -queue default",
    "application -movetoqueue application_<RUNNING> -queue nosuch",
    "application -kill application_1234567890123_0001",
)


class Printed(NamedTuple):
    status: int
    output: str


@pytest.fixture(scope="module")
def names(client_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A cluster with applications in several states: {name in COMMANDS: its value}."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("state")))
        patch.setenv("YARNLING_NAME", golden_scene.NAME)
        settings = {**golden_scene.SETTINGS, "yarn.yarnling.hadoop-rpc.enabled": "true"}
        with golden_scene.golden_cluster(settings):
            yield asyncio.run(golden_scene.play())


class Hadoop:
    """A JVM for all commands (java/commands/Commands.java)."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def run(self, words: list[str]) -> Printed:
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write("\t".join(words) + "\n")
            self._process.stdin.flush()
            status, out, _ = self._process.stdout.readline().split()
        except (BrokenPipeError, ValueError):
            raise AssertionError(
                f"the JVM ended with status {self._process.wait(60)} at {words}:\n{self._log.read_text()[-4000:]}"
            ) from None
        return Printed(int(status), "" if out == "=" else base64.b64decode(out).decode())


@pytest.fixture(scope="module")
def hadoop(names: dict[str, str], client_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    work = tmp_path_factory.mktemp("commands")
    classes = toolchain.compiled("commands", work / "classes", client_jars / "*")
    state, _ = connect(golden_scene.NAME, USER)
    client_configuration(work, "<configuration></configuration>", state.addresses)
    command = toolchain.command(toolchain.class_path_of(work, classes, client_jars / "*"), "commands.Commands")
    environment = {**os.environ, "HADOOP_USER_NAME": USER}
    with (
        (work / "log").open("w") as log,
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=log, text=True, env=environment) as process,
    ):
        yield Hadoop(process, work / "log")
        process.stdin.close()  # type: ignore[union-attr]


def ours(words: list[str]) -> Printed:
    done = command_line.run(*words, environment={**os.environ, "HADOOP_USER_NAME": USER})
    return Printed(done.returncode, done.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_prints_the_same(command: str, names: dict[str, str], hadoop: Hadoop) -> None:
    words = [_with(names, word) for word in command.split()]
    theirs = hadoop.run(words)
    status, output = ours(words)
    assert (_neutral(output), status) == (_neutral(theirs.output), theirs.status)


def test_an_application_is_killed_once(names: dict[str, str], hadoop: Hadoop) -> None:
    kill = ["application", "-kill", f"application_{names['<MANAGED>']}"]
    assert hadoop.run(kill) == Printed(0, f"Killing application {kill[-1]}\n")
    assert hadoop.run(kill) == ours(kill) == Printed(0, f"Application {kill[-1]} has already finished \n")


def _with(names: dict[str, str], word: str) -> str:
    for name, value in names.items():
        word = word.replace(name.replace(" ", "_"), value).replace(name, value)
    return word


def _neutral(text: str) -> str:
    """Without amounts that grow while an application runs, and the order of rows, which has no rule in Hadoop.

    Where a cluster has no web servers, yarnling prints N/A for their addresses, Hadoop prints where they would be.
    """
    text = re.sub(r"http://\S+|\S+:0(?=\s)", "N/A", text)
    text = re.sub(r" *\t *", "\t", text)
    text = re.sub(r"\d+ MB-seconds, \d+ vcore-seconds", "<used>", text)
    text = re.sub(r"Last-Health-Update : .*", "Last-Health-Update : <time>", text)
    text = re.sub(r"(Utilization by \w+ : ).*", r"\1<use>", text)
    lines = text.splitlines()
    return "\n".join([*lines[:2], *sorted(lines[2:])]) if text.startswith("Total") else text
