"""The command line on real clusters: output, exit statuses, and what is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.cluster.conftest import COMMAND, DEFINITIONS, Yarnling, eventually, gone, names
from tests.processes import HEARING, running
from yarn.ids import ApplicationId

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def up(yarnling: Yarnling) -> Iterator[dict[str, object]]:
    """The state, as printed by `up --json`, of a detached cluster of two nodes that `down` stops."""
    started = yarnling("up", "--nodes", "2", "--fast", "--detach", "--json", *DEFINITIONS)
    assert started.returncode == 0, started.stderr
    state: dict[str, object] = json.loads(started.stdout)
    yield state
    ended = yarnling("down")
    assert (ended.returncode, ended.stdout) == (0, "Cluster default has stopped.\n")
    directory = Path(str(state["directory"]))
    assert not directory.exists()
    assert not names(directory)


def test_up_prints_where_the_cluster_is(up: dict[str, object], environment: dict[str, str]) -> None:
    state_file = Path(environment["XDG_RUNTIME_DIR"]) / "yarnling" / "default.json"
    assert stat.S_IMODE(state_file.stat().st_mode) == 0o600
    assert json.loads(state_file.read_text())["directory"] == up["directory"]
    assert (Path(str(up["conf_dir"])) / "yarn-site.xml").exists()


def test_a_second_cluster_with_the_same_name_is_refused(up: dict[str, object], yarnling: Yarnling) -> None:
    again = yarnling("up", "--detach")
    assert again.returncode == 1
    assert "a cluster 'default' is up" in again.stderr
    assert "yarnling down" in again.stderr


def test_status_prints_text_and_json(up: dict[str, object], yarnling: Yarnling) -> None:
    shown = yarnling("status")
    assert shown.stdout.count("RUNNING") >= 3
    status = json.loads(yarnling("status", "--json").stdout)
    assert [node["state"] for node in status["nodes"]] == ["RUNNING", "RUNNING"]
    assert status["root"]["path"] == "root"


def test_run_prints_the_output_of_each_container_and_exits_with_the_largest_status(
    up: dict[str, object], yarnling: Yarnling
) -> None:
    ran = yarnling("run", "-n", "2", "--", 'echo "it costs \\$5 in $YARN_SHELL_ID"; echo late >&2; exit $YARN_SHELL_ID')
    assert ran.returncode == 2
    assert [line.partition(" | ")[2] for line in sorted(ran.stdout.splitlines())] == [
        "it costs $5 in 1",
        "it costs $5 in 2",
    ]
    assert ran.stdout.startswith("container_")
    assert "| late" in ran.stderr


def test_run_prints_json(up: dict[str, object], yarnling: Yarnling) -> None:
    ran = yarnling("run", "--json", "printf", "%s\\n", "two words")
    assert ran.returncode == 0, ran.stderr
    (container,) = json.loads(ran.stdout)["containers"]
    assert (container["exit_status"], container["stdout"], container["stderr"]) == (0, "two words\n", "")
    assert container["container_id"].startswith("container_")


def test_a_missing_command_exits_with_127_as_in_a_shell(up: dict[str, object], yarnling: Yarnling) -> None:
    ran = yarnling("run", "no-such-command-anywhere")
    assert ran.returncode == 127
    assert "not found" in ran.stderr


@pytest.mark.case("H1")
def test_an_operator_changes_the_resources_of_a_node(up: dict[str, object], yarnling: Yarnling) -> None:
    def capability(node_id: str) -> dict[str, int]:
        nodes = json.loads(yarnling("status", "--json").stdout)["nodes"]
        (found,) = [node["capability"] for node in nodes if str(node["node_id"]) == node_id]
        return dict(found)

    node_id = str(json.loads(yarnling("status", "--json").stdout)["nodes"][0]["node_id"])
    before = capability(node_id)
    changed = yarnling("rmadmin", "-updateNodeResource", node_id, "4096", "3")
    assert (changed.returncode, changed.stderr) == (0, "")
    assert capability(node_id) == {"memory-mb": 4096, "vcores": 3}
    amounts = (str(before["memory-mb"]), str(before["vcores"]))
    assert yarnling("rmadmin", "-updateNodeResource", node_id, *amounts).returncode == 0
    assert capability(node_id) == before


def test_submit_with_hadoops_options_and_logs(up: dict[str, object], yarnling: Yarnling) -> None:
    submitted = yarnling("submit", "distributed-shell", "-shell_command", "echo from the shell", "-num_containers", "2")
    assert submitted.returncode == 0, submitted.stderr
    app_id = submitted.stderr.split()[1]
    hint = submitted.stderr.splitlines()[-1]
    assert hint == f"Show its output: yarnling logs {app_id} --file stdout"
    shown = yarnling(*hint.split()[4:])
    assert shown.stdout.count("from the shell") == 2
    assert yarnling("logs", "application_1_0001").returncode == 1


def test_watch_shows_state_changes_of_the_resource_manager_and_of_nodes(
    up: dict[str, object], yarnling: Yarnling, environment: dict[str, str]
) -> None:
    wanted = {("RMApp", "RUNNING"), ("RMAppAttempt", "RUNNING"), ("NMContainer", "RUNNING"), ("RMApp", "KILLED")}
    command = [*COMMAND, "watch", "--json"]
    with running(*command, env=environment, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        lines = (json.loads(line) for line in watching.stdout)
        next(lines)  # the header
        next(lines)  # it is connected, to one of the daemons at least: the first application may begin too early
        while wanted:
            submitted = yarnling("submit", "--no-wait", "distributed-shell", "-shell_command", "sleep 60")
            app_id = ApplicationId.parse(submitted.stdout)
            for change in (line["change"] for line in lines if "change" in line):
                what = (change.get("kind"), change.get("target"))
                wanted.discard(what)
                if what[0] == "RMApp" and change["subject"] == str(app_id):
                    if what[1] == "RUNNING":
                        yarnling("application", "-kill", str(app_id))
                    elif what[1] == "KILLED":
                        break
        watching.terminate()
    assert not wanted


def test_submit_runs_a_map_reduce(up: dict[str, object], yarnling: Yarnling, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b a\n")
    output = tmp_path / "counts"
    counting = ["-wordcount", "-input", str(tmp_path / "text"), "-output", str(output)]
    submitted = yarnling("submit", "--json", "mapreduce", *counting)
    assert submitted.returncode == 0, submitted.stderr
    assert json.loads(submitted.stdout)["final_status"] == "SUCCEEDED"
    assert (output / "part-r-00000").read_text() == "a\t2\nb\t1\n"
    again = yarnling("submit", "mapreduce", *counting)
    assert again.returncode == 2
    assert "already exists" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["submit", "--no-wait", "distributed-shell"], 2, "no command: give -shell_command or -shell_script"),
        (["run", "--queue", "nowhere", "true"], 1, "unknown queue: nowhere (submit to a leaf queue: default)"),
        (["run", "--queue", "root", "true"], 1, "(submit to a leaf queue: default)"),
        (["run", "--memory", "999999", "true"], 1, "memory of 999999 MB, at most 8192 in this cluster (request less: "),
        (["run", "--vcores", "1000", "true"], 1, "vcores 1000, at most 4 in this cluster (request less: "),
        (["run", "--timeout", "-1", "true"], 2, "--timeout -1: must be above 0"),
        (
            ["submit", "distributed-shell", "-shell_command", "true", "-container_memory", "999999"],
            0,
            "distributed-shell: a container with memory of 999999 MB, at most 8192 in this cluster: cut to that",
        ),
        (["kill-node", "7"], 1, "node 7: the cluster default has nm-1, nm-2"),
        (["logs", "application_x"], 2, "Invalid ApplicationId: 'application_x'"),
        (["status", "--name", "other"], 1, "no cluster 'other' is up (start one: yarnling up --detach --name other)"),
        (["up", "--name", "../up"], 2, "--name '../up'"),
        (
            ["up", "--name", "other", "--conf", "/nowhere/at/all"],
            2,
            "/nowhere/at/all: No such file or directory (name a",
        ),
        (["up", "-D", "nonsense"], 2, "-D nonsense: must be KEY=VALUE"),
        (["config", "-D", "yarn.nodemanager.resource.memory-mb=lots"], 2, "'lots'"),
    ],
)
def test_wrong_input_is_reported_in_one_line(
    up: dict[str, object], yarnling: Yarnling, arguments: list[str], status: int, message: str
) -> None:
    ran = yarnling(*arguments)
    assert (ran.returncode, "Traceback" in ran.stderr) == (status, False), ran.stderr
    assert message in ran.stderr


def test_kill_node_makes_the_node_lost(up: dict[str, object], yarnling: Yarnling) -> None:
    assert yarnling("kill-node", "nm-2").returncode == 0

    def states() -> list[str]:
        return sorted(node["state"] for node in json.loads(yarnling("status", "--json").stdout)["nodes"])

    eventually(lambda: states() == ["LOST", "RUNNING"], 20.0)
    again = yarnling("kill-node", "nm-2")
    assert (again.returncode, "has already ended" in again.stderr) == (1, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_a_foreground_cluster(environment: dict[str, str], number: signal.Signals) -> None:
    command = [*COMMAND, "up", "--nodes", "2", "--fast", "--name", "front", "--json", *DEFINITIONS]
    with running(*HEARING, *command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = ""
        while not printed.endswith("\n}\n"):
            line = process.stdout.readline()
            assert line, "it exited before it was ready"
            printed += line
        directory = json.loads(printed)["directory"]
        process.send_signal(number)
        assert process.wait(120) == 0
    assert not Path(directory).exists()
    assert not names(Path(directory))
    assert not (Path(environment["XDG_RUNTIME_DIR"]) / "yarnling" / "front.json").exists()


def test_a_killed_supervisor_leaves_no_processes_and_its_stale_state_file_is_ignored(
    yarnling: Yarnling, environment: dict[str, str]
) -> None:
    started = yarnling("up", "--fast", "--detach", "--json", "--name", "killed")
    assert started.returncode == 0, started.stderr
    state = json.loads(started.stdout)
    os.kill(state["supervisor"]["pid"], signal.SIGKILL)
    eventually(lambda: all(gone(node["process"]["pid"]) for node in state["nodes"]))
    eventually(lambda: not Path(state["directory"]).exists())
    asked = yarnling("status", "--name", "killed")
    assert (asked.returncode, "was killed" in asked.stderr) == (1, True)
    assert yarnling("down", "--name", "killed").stdout.endswith("no processes remained.\n")
    assert yarnling("up", "--fast", "--detach", "--name", "killed").returncode == 0
    ended = yarnling("down", "--name", "killed", "--json")
    assert (ended.returncode, json.loads(ended.stdout)) == (0, {"name": "killed", "killed": None})


def test_the_failure_of_a_cluster_is_explained_until_the_next_start(
    yarnling: Yarnling, environment: dict[str, str]
) -> None:
    started = yarnling("up", "--fast", "--detach", "--json", "--name", "broken")
    assert started.returncode == 0, started.stderr
    state = json.loads(started.stdout)
    fork_server = psutil.Process(state["rm"]["pid"]).ppid()
    os.kill(fork_server, signal.SIGKILL)
    eventually(lambda: gone(state["supervisor"]["pid"]), 60.0)
    for verb in ("status", "down"):
        message = yarnling(verb, "--name", "broken").stderr
        assert "no cluster 'broken' is up (start one: yarnling up --detach --name broken)" in message
        assert f"the fork server, process {fork_server}, was killed by SIGKILL" in message
        (log,) = re.findall(r"\(its logs: (.*)\)", message)
        assert stat.S_IMODE(Path(log).stat().st_mode) == 0o600
        assert "INFO yarnling.rm.daemon ready" in Path(log).read_text()
    assert yarnling("up", "--fast", "--detach", "--name", "broken").returncode == 0
    assert not Path(log).exists()
    assert yarnling("down", "--name", "broken").returncode == 0
    assert "fork server" not in yarnling("status", "--name", "broken").stderr


def test_a_foreground_cluster_that_fails_says_why(environment: dict[str, str], tmp_path: Path) -> None:
    command = [*COMMAND, "up", "--fast", "--name", "front", "--directory", str(tmp_path / "cluster"), *DEFINITIONS]
    with running(*HEARING, *command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        assert up.stderr is not None
        next(line for line in up.stdout if line.startswith("Ready."))
        (fork_server,) = psutil.Process(up.pid).children()
        fork_server.kill()
        message = up.stderr.read()
        assert up.wait(120) == 1
    assert f"the fork server, process {fork_server.pid}, was killed by SIGKILL" in message
    assert f"(its logs: {tmp_path}/cluster/fork-server.log, {tmp_path}/cluster/logs)" in message
    assert "Traceback" not in message


def test_up_reports_why_a_node_is_unhealthy(yarnling: Yarnling) -> None:
    started = yarnling("up", "--fast", "--detach", "--name", "ill", "-D", "yarn.nodemanager.local-dirs=/proc/nolocal")
    try:
        assert started.returncode == 0, started.stderr
        assert started.stdout.startswith("1 NodeManager is up; ")
        assert "UNHEALTHY: 1/1 local-dirs" in started.stderr
        assert "UNHEALTHY: 1/1 local-dirs" in yarnling("status", "--name", "ill").stdout
    finally:
        yarnling("down", "--name", "ill")


def sleepers(directory: Path) -> int:
    """The number of processes of containers that sleep."""
    count = 0
    for process in names(directory):
        with contextlib.suppress(psutil.NoSuchProcess):
            count += process.name() == "sleep"
    return count


def test_down_cleans_up_after_a_killed_supervisor_and_fork_server(yarnling: Yarnling) -> None:
    started = yarnling("up", "--fast", "--detach", "--json", "--name", "both", *DEFINITIONS)
    assert started.returncode == 0, started.stderr
    state = json.loads(started.stdout)
    directory = Path(state["directory"])
    sleeps = "setsid sleep 600 & sleep 600"
    submitted = yarnling("submit", "--name", "both", "--no-wait", "distributed-shell", "-shell_command", sleeps)
    assert submitted.returncode == 0, submitted.stderr
    eventually(lambda: sleepers(directory) == 2, 60.0)
    supervisor = psutil.Process(state["supervisor"]["pid"])
    (fork_server,) = supervisor.children()
    supervisor.suspend()
    fork_server.kill()
    supervisor.kill()
    eventually(lambda: all(gone(node["process"]["pid"]) for node in state["nodes"]))
    assert sleepers(directory) > 0
    ended = yarnling("down", "--name", "both")
    assert (ended.returncode, "had already died" in ended.stdout) == (0, True), ended.stderr
    assert not names(directory)
    assert not directory.exists()


def test_a_failure_to_write_output_is_reported(environment: dict[str, str]) -> None:
    line = "yarnling config --all"
    for redirection, status, message in ((">/dev/full", 1, "No space left on device"), (">&-", 0, "")):
        shell = f"{sys.executable} -m {line} {redirection}"
        ran = subprocess.run(["bash", "-c", shell], check=False, env=environment, capture_output=True, text=True)
        assert (ran.returncode, "Traceback" in ran.stderr) == (status, False), ran.stderr
        assert message in ran.stderr


def test_an_application_is_killed_when_the_reader_of_its_output_is_gone(
    up: dict[str, object], environment: dict[str, str]
) -> None:
    command = [*COMMAND, "run", "while echo line; do sleep 0.05; done"]
    with running(*command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        app_id = process.stdout.readline().decode().partition(" ")[0].replace("container", "application")[:-10]
        process.stdout.close()
        assert process.wait(120) == 1
    shown = subprocess.run([*COMMAND, "status", "--json"], check=True, env=environment, capture_output=True, text=True)
    states = {app["application_id"]: app["state"] for app in json.loads(shown.stdout)["applications"]}
    assert states[app_id] == "KILLED"


def test_hadoops_verbs_print_json(up: dict[str, object], yarnling: Yarnling) -> None:
    nodes = json.loads(yarnling("node", "-list", "-json").stdout)
    assert {node["state"] for node in nodes} == {"RUNNING"}
    node = json.loads(yarnling("node", "-status", nodes[0]["node_id"], "-json").stdout)
    assert (node["node_id"], node["capability"]) == (nodes[0]["node_id"], nodes[0]["capability"])
    assert json.loads(yarnling("queue", "-status", "default", "-json").stdout)["path"] == "root.default"
    unknown = yarnling("application", "-status", "application_1_0001", "-json")
    assert (unknown.returncode, json.loads(unknown.stdout)) == (255, None)
    killed = yarnling("application", "-kill", "application_1_0001", "-json")
    assert (killed.returncode, json.loads(killed.stdout)) == (255, {"application_1_0001": "unknown"})
    assert json.loads(yarnling("rmadmin", "-refreshQueues", "-json").stdout) == {"command": "refreshQueues"}
    assert json.loads(yarnling("cluster", "-lnl", "-json").stdout) == []
    assert json.loads(yarnling("version", "--json").stdout)["hadoop"] == "3.4.1"
