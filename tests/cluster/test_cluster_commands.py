"""The commands that change a cluster, as typed: each changes what `status` shows, or reports why it cannot."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from tests.cluster.applications import shell, until
from tests.cluster.conftest import COMMAND, DEFINITIONS, Yarnling, eventually, gone
from wire.files.hadoop_xml import load_configuration
from yarn.ids import ApplicationId, ContainerId
from yarn.states import ContainerState, FinalApplicationStatus
from yarnling.cluster.blocking import BlockingClient, Portal
from yarnling.cluster.client import Client

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", autouse=True)
def up(yarnling: Yarnling) -> Iterator[dict[str, Any]]:
    """Two nodes, with recovery; a test that removes a node brings it back."""
    small = ("--memory", "1024", "--vcores", "8")
    started = yarnling("up", "--nodes", "2", *small, "--recovery", "--fast", "--detach", "--json", *DEFINITIONS)
    assert started.returncode == 0, started.stderr
    yield json.loads(started.stdout)
    yarnling("down")


def done(yarnling: Yarnling, *arguments: str) -> dict[str, Any]:
    """The JSON output of a command, which must succeed."""
    ran = yarnling(*arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    facts: dict[str, Any] = json.loads(ran.stdout)
    return facts


def refused(yarnling: Yarnling, *arguments: str, status: int = 1) -> str:
    """The error of a command that fails with this exit status (2: a usage error)."""
    ran = yarnling(*arguments)
    assert (ran.returncode, ran.stdout, "Traceback" in ran.stderr) == (status, "", False), ran.stderr
    return ran.stderr


@pytest.fixture(scope="module")
def client(up: dict[str, Any]) -> Iterator[BlockingClient]:
    """A client, to query the ResourceManager without starting a command each time."""
    portal = Portal()
    addresses = {**up["addresses"]}
    conf = load_configuration(Path(up["conf_dir"]))

    async def made() -> Client:
        return Client(addresses, conf=conf, staging_root=Path(up["directory"]) / "staging")

    real = portal.call(made)
    yield BlockingClient(real, portal)
    portal.call(real.close)
    portal.close()


def states(client: BlockingClient) -> dict[str, str]:
    """{node id: state} in the ResourceManager."""
    return {str(node.node_id): node.state.name for node in client.nodes()}


def started(client: BlockingClient, command: str, containers: int) -> ApplicationId:
    """Start a distributed shell with containers of 128 MB, and wait until all of them run."""
    app_id = client.start(shell(command, containers)).application_id
    eventually(lambda: len(running(client, app_id)) == containers + 1, 60.0)
    return app_id


def running(client: BlockingClient, app_id: ApplicationId) -> list[ContainerId]:
    """The running containers of the current attempt, its ApplicationMaster's first."""
    found = client.containers(client.report(app_id).current_attempt_id)
    return sorted(container.container_id for container in found if container.state is ContainerState.RUNNING)


def succeeded(client: BlockingClient, app_id: ApplicationId) -> bool:
    return client.wait(app_id, timeout_s=60).final_status is FinalApplicationStatus.SUCCEEDED


def test_nodes_are_added_and_leave_when_their_work_is_done(
    yarnling: Yarnling, client: BlockingClient, environment: dict[str, str], tmp_path: Path
) -> None:
    (joined,) = done(yarnling, "add-node", "--memory", "512")["nodes"]
    assert (joined["number"], joined["name"]) == (3, "nm-3")
    assert done(yarnling, "status")["cluster"]["nodes"][2]["node_id"] == joined["node_id"]
    sizes = {node["node_id"]: node["capability"] for node in done(yarnling, "status")["nodes"]}
    assert (sizes[joined["node_id"]]["memory-mb"], sizes[joined["node_id"]]["vcores"]) == (512, 8)
    # 17 of 128 MB fill 1024 + 1024 and one is on the third.
    app_id = started(client, until(tmp_path / "go"), 18)
    command = [*COMMAND, "remove-node", "3"]
    with processes.running(*command, env=environment, stderr=subprocess.PIPE, text=True) as removing:
        assert removing.stderr is not None
        assert "nm-3: waiting for " in next(line for line in removing.stderr if "waiting for" in line)
        assert states(client)[joined["node_id"]] == "DECOMMISSIONING"
        assert "nm-3: remove-node is running" in refused(yarnling, "remove-node", "nm-3")
        removing.terminate()
        removing.wait(120)
    eventually(lambda: states(client)[joined["node_id"]] == "RUNNING")
    with processes.running(*command, "--json", env=environment, stdout=subprocess.PIPE) as removing:
        eventually(lambda: states(client)[joined["node_id"]] == "DECOMMISSIONING")
        assert len(running(client, app_id)) == 19, "no container is killed"
        (tmp_path / "go").touch()
        assert removing.stdout is not None
        assert json.loads(removing.stdout.read())["state"] == "DECOMMISSIONED"
        assert removing.wait() == 0
    assert succeeded(client, app_id)
    assert gone(joined["pid"])
    assert "nm-3" in refused(yarnling, "remove-node", "3")
    back = done(yarnling, "restart-node", "3")
    assert states(client)[back["node_id"]] == "RUNNING"
    assert yarnling("remove-node", "3", "--now").stdout == "nm-3 has left.\n"
    assert states(client)[back["node_id"]] == "SHUTDOWN"


def test_containers_of_a_leaving_node_are_killed_at_the_timeout(
    yarnling: Yarnling, client: BlockingClient, tmp_path: Path
) -> None:
    (joined,) = done(yarnling, "add-node", "1", "--memory", "1024")["nodes"]
    app_id = started(client, until(tmp_path / "go"), 18)
    assert done(yarnling, "remove-node", str(joined["number"]), "--timeout", "0")["state"] == "DECOMMISSIONED"
    (tmp_path / "go").touch()
    assert succeeded(client, app_id)


def test_a_node_that_fails_to_start_leaves_nothing(yarnling: Yarnling) -> None:
    before = done(yarnling, "status")
    error = refused(yarnling, "add-node", "2", "--memory", "1")
    assert "nm-" in error
    assert "did not start" in error
    after = done(yarnling, "status")
    assert after["cluster"] == before["cluster"]
    assert refused(yarnling, "add-node", "5000").count("must be") == 1


def test_a_paused_node_is_distinguished_from_a_running_one(
    yarnling: Yarnling, client: BlockingClient, up: dict[str, Any]
) -> None:
    node_id = up["nodes"][1]["node_id"]
    assert done(yarnling, "pause-node", "2")["node_id"] == node_id
    assert "nm-2 is already paused (resume-node 2)" in refused(yarnling, "pause-node", "nm-2")
    assert "nm-2 is paused and cannot leave (resume-node 2 first, or --now)" in refused(yarnling, "remove-node", "2")
    assert done(yarnling, "status")["conditions"][node_id] == "paused"
    assert ", paused" in yarnling("top", "--once").stdout
    eventually(lambda: states(client)[node_id] == "LOST")
    assert "LOST, paused" in yarnling("status").stdout
    assert done(yarnling, "resume-node", node_id)["number"] == 2
    eventually(lambda: states(client)[node_id] == "RUNNING", 60.0)
    assert "nm-2 is not paused (pause-node 2 does that)" in refused(yarnling, "resume-node", "2")


def test_without_proxies_a_node_cannot_be_partitioned(yarnling: Yarnling) -> None:
    for verb in ("partition-node", "heal-node"):
        assert "its connections are direct" in refused(yarnling, verb, "1")


def test_a_killed_node_is_started_again(yarnling: Yarnling, client: BlockingClient, up: dict[str, Any]) -> None:
    assert "nm-1 is running (kill-node 1 or remove-node 1 first)" in refused(yarnling, "restart-node", "1")
    killed = done(yarnling, "kill-node", "1")
    assert killed["pid"] == up["nodes"][0]["process"]["pid"]
    assert done(yarnling, "status")["conditions"][killed["node_id"]] == "ended"
    for verb in ("kill-node", "pause-node", "resume-node", "remove-node"):
        assert "nm-1 (" in refused(yarnling, verb, "1")
    back = done(yarnling, "restart-node", "1")
    assert states(client)[back["node_id"]] == "RUNNING"
    entry = done(yarnling, "status")["cluster"]["nodes"][0]
    assert (entry["node_id"], entry["process"]["pid"]) == (back["node_id"], back["pid"])


def test_a_killed_resource_manager_resumes_its_applications(
    yarnling: Yarnling, client: BlockingClient, tmp_path: Path
) -> None:
    assert "the ResourceManager is running (kill-rm ends it)" in refused(yarnling, "restart-rm")
    app_id = started(client, until(tmp_path / "go"), 2)
    before = running(client, app_id)
    killed = yarnling("kill-rm")
    assert "yarnling restart-rm starts it again, with its applications." in killed.stdout
    assert "is already down" in refused(yarnling, "kill-rm")
    remedy = "is down (restart it: yarnling restart-rm; its log: /"
    for verb in (("run", "true"), ("explain", str(app_id)), ("top", "--once"), ("application", "-list")):
        assert remedy in refused(yarnling, *verb)
    assert "a NodeManager has to register with it (yarnling restart-rm starts it)" in refused(yarnling, "add-node")
    shown = yarnling("status")
    assert (shown.returncode, remedy in shown.stderr, "nm-2" in shown.stdout) == (1, True, True)
    shown = yarnling("status", "--json")
    assert (shown.returncode, json.loads(shown.stdout)["applications"]) == (1, None)
    up_again = yarnling("restart-rm")
    assert up_again.returncode == 0, up_again.stderr
    assert "2 of 2 nodes are back" in up_again.stdout
    assert "it has resumed " in up_again.stdout
    eventually(lambda: running(client, app_id) == before)
    (tmp_path / "go").touch()
    assert succeeded(client, app_id)


def test_an_application_master_and_a_container_are_killed(
    yarnling: Yarnling, client: BlockingClient, tmp_path: Path
) -> None:
    app_id = started(client, until(tmp_path / "go"), 2)
    am, task, _ = running(client, app_id)
    assert done(yarnling, "kill-container", str(task)) == {"container": str(task)}
    eventually(lambda: len(running(client, app_id)) == 2)
    assert f"{task} is not running: it has ended or never existed" in refused(yarnling, "kill-container", str(task))
    killed = done(yarnling, "kill-master", str(app_id))
    assert killed == {"application": str(app_id), "container": str(am)}
    eventually(lambda: len(running(client, app_id)) == 3, 60.0)
    (tmp_path / "go").touch()
    assert succeeded(client, app_id)
    assert f"{app_id} is FINISHED: it has no ApplicationMaster (running: none)" in refused(
        yarnling, "kill-master", str(app_id)
    )
    assert "Invalid ContainerId" in refused(yarnling, "kill-container", "container_x", status=2)
    assert "application_1_0001" in refused(yarnling, "kill-master", "application_1_0001")


def test_without_recovery_a_restart_reports_that_applications_are_lost(yarnling: Yarnling) -> None:
    named = ("--name", "forgetful")
    assert yarnling("up", "--fast", "--detach", *named).returncode == 0
    try:
        lost = "its applications are lost (yarnling up --recovery keeps them)"
        assert lost in yarnling("kill-rm", *named).stdout
        assert "yarnling restart-rm --name forgetful" in refused(yarnling, "run", *named, "true")
        assert lost in yarnling("restart-rm", *named).stdout
        assert yarnling("run", *named, "true").returncode == 0
    finally:
        yarnling("down", *named)
