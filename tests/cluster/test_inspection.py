"""`explain`, `watch` and `top` on a real cluster."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios

import pytest

from tests.cluster.conftest import COMMAND, Yarnling, eventually
from tests.cluster.test_command_line import up
from tests.processes import HEARING, running
from yarn.ids import ApplicationId

__all__ = ["up"]

pytestmark = pytest.mark.cluster

TOO_MANY = ["-shell_command", "sleep 600", "-num_containers", "40", "-container_memory", "1024"]
"""Beside the ApplicationMaster, two nodes of 8192 MB have space for only 15 of these."""


@pytest.fixture(scope="module")
def waiting(up: dict[str, object], yarnling: Yarnling) -> ApplicationId:
    """An application that uses the whole cluster and waits for more."""
    submitted = yarnling("submit", "--no-wait", "distributed-shell", *TOO_MANY)
    assert submitted.returncode == 0, submitted.stderr
    app_id = submitted.stdout.split()[0] if submitted.stdout else submitted.stderr.split()[1]

    def refused() -> bool:
        found = json.loads(yarnling("explain", app_id, "--json").stdout)
        return bool(found["asks"]) and any(obstacle["bound"] is not None for obstacle in found["obstacles"])

    eventually(refused, timeout_s=60)
    return ApplicationId.parse(app_id)


def test_explain_names_the_refusal_with_amounts(waiting: ApplicationId, yarnling: Yarnling) -> None:
    found = json.loads(yarnling("explain", str(waiting), "--json").stdout)
    (row,) = found["asks"]
    assert (row["resource_name"], row["capability"]["memory-mb"]) == ("*", 1024)
    assert 0 < row["count"] < 40
    shown = yarnling("explain", str(waiting))
    assert shown.returncode == 0, shown.stderr
    assert f"{row['count']} x 1024 MB anywhere" in shown.stdout
    assert "    waits because the cluster is full: the most free is on " in shown.stdout
    (verdict,) = found["verdicts"]
    assert verdict["cause"] == "NODE_FULL"
    (change,) = verdict["changes"]
    assert change.startswith("with 128 MB more on 127.0.0."), "the AM uses 128 MB"
    assert "    it would get a container with 128 MB more on 127.0.0." in shown.stdout
    assert sum(alike["count"] for alike in verdict["nodes"]) == 2


def test_a_container_is_explained_by_its_id(waiting: ApplicationId, yarnling: Yarnling) -> None:
    container = f"{str(waiting).replace('application', 'container')}_01_000001"
    found = json.loads(yarnling("explain", container, "--json").stdout)
    assert (found["container_id"], found["state"], found["locality"]) == (container, "RUNNING", "OFF_SWITCH")
    shown = yarnling("explain", container)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"{container} of ")
    assert "it was placed on 127.0.0." in shown.stdout
    never = yarnling("explain", f"{container[:-6]}999999")
    assert (never.returncode, never.stdout) == (1, "")
    assert "doesn't exist in RM: it is neither live nor reserved nor one of the last" in never.stderr
    assert yarnling("explain", "container_1").returncode == 2


def test_without_an_id_all_waiting_applications_are_explained(waiting: ApplicationId, yarnling: Yarnling) -> None:
    printed = json.loads(yarnling("explain", "--json").stdout)
    assert [explanation["application_id"] for explanation in printed] == [str(waiting)]
    shown = yarnling("explain")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"{waiting} of ")


def test_an_unknown_application_is_refused_as_elsewhere(up: dict[str, object], yarnling: Yarnling) -> None:
    unknown = yarnling("explain", "application_1_0001")
    assert unknown.returncode == 1
    assert "Application with id 'application_1_0001' doesn't exist in RM." in unknown.stderr
    wrong = yarnling("explain", "app1")
    assert wrong.returncode == 2
    assert "app1" in wrong.stderr


def test_watch_shows_caller_and_callee(up: dict[str, object], yarnling: Yarnling) -> None:
    seen = yarnling("watch", "--count", "5", "--rpc", "nodeHeart*")
    assert seen.returncode == 0, seen.stderr
    lines = seen.stdout.splitlines()
    assert len(lines) == 5
    assert all(" -> ResourceManager nodeHeartbeat " in line for line in lines)
    (first, *_) = [line.split()[1] for line in lines]
    own = yarnling("watch", "--all", "--count", "2", "--json", "--node", first)
    calls = [json.loads(line)["call"] for line in own.stdout.splitlines()[1:]]
    assert [(call["source"], call["target"]) for call in calls] == [(first, "ResourceManager")] * 2
    assert calls[0]["request"]["node_id"] == first


def test_watch_shows_errors(up: dict[str, object], yarnling: Yarnling, environment: dict[str, str]) -> None:
    command = [*COMMAND, "watch", "--errors", "--count", "1", "--json"]
    with running(*command, env=environment, stdout=subprocess.PIPE, text=True) as watching:

        def has_ended() -> bool:
            """Fail a call; the first ones may come before the watcher is connected."""
            yarnling("explain", "application_1_0001")
            return watching.poll() is not None

        eventually(has_ended, timeout_s=60)
        output, _ = watching.communicate()
    _, line = output.splitlines()
    call = json.loads(line)["call"]
    assert (call["rpc"], call["request"]["application_id"]) == ("explain", "application_1_0001")
    assert call["error"].startswith("ApplicationNotFoundException: ")
    assert "reply" not in call
    assert call["source"].startswith("user ")


def test_top_prints_one_frame_in_a_pipe(waiting: ApplicationId, yarnling: Yarnling) -> None:
    shown = yarnling("top")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert "2 of 2 nodes running" in lines[0]
    assert any(line.startswith(f"{waiting} RUNNING default, ") for line in lines)
    assert any(line.startswith("  waits for ") for line in lines)
    printed = json.loads(yarnling("top", "--json").stdout)
    assert [explanation["application_id"] for explanation in printed["waiting"]] == [str(waiting)]


def test_top_on_a_terminal_runs_until_it_is_interrupted(waiting: ApplicationId, environment: dict[str, str]) -> None:
    master, worker = pty.openpty()
    fcntl.ioctl(worker, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    command = [*COMMAND, "top", "--interval", "0.1"]
    variables = {**environment, "TERM": "xterm"}
    with running(*HEARING, *command, env=variables, stdin=worker, stdout=worker, stderr=worker) as process:
        os.close(worker)
        output = b""
        while output.count(b"queue: used / guaranteed") < 3:
            output += os.read(master, 65536)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):
            while output_more := os.read(master, 65536):
                output += output_more
        assert process.wait(timeout=120) == 0
    os.close(master)
    assert "█".encode() in output
