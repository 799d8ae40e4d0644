"""Mission cases I1 to I3 on real processes: a successful run, a killed NodeManager, a killed AM."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from nm.core.events import ContainerExited, StartContainers
from rm.core.events import Allocate, FinishApplicationMaster, RegisterApplicationMaster, SubmitApplication
from tests.cluster.applications import (
    am_of,
    kill_container,
    shell,
    tasks_of,
    until,
    wait_tasks,
)
from tests.cluster.conftest import QUICK, SOON_LOST_S, eventually
from tests.cluster.heartbeats import HeartbeatLog
from wire.event_log import read_event_log
from yarn.states import FinalApplicationStatus, NodeState, YarnApplicationState
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster

SUCCEEDED = FinalApplicationStatus.SUCCEEDED


@pytest.mark.case("I1")
def test_a_distributed_shell_runs_to_its_end(tmp_path: Path) -> None:
    """The client submits, the RM launches the AM; the AM registers, requests and starts containers, and unregisters."""
    settings = {**QUICK, "yarn.yarnling.event-log": str(tmp_path)}
    with LocalCluster(2, settings=settings, fast=True) as cluster:
        client = cluster.client
        report = client.start(shell("echo hello from $YARN_SHELL_ID", 3))
        ended = client.wait(report.application_id, timeout_s=60)
        assert (ended.state, ended.final_status) == (YarnApplicationState.FINISHED, SUCCEEDED)
        assert ended.progress == 1.0
        am = am_of(client, report.application_id)
        stdout = {log.container_id: log.text() for log in client.logs(report.application_id) if log.name == "stdout"}
        assert sorted(text for container, text in stdout.items() if container != am) == [
            "hello from 1\n",
            "hello from 2\n",
            "hello from 3\n",
        ]
    _, steps = read_event_log(tmp_path / "resourcemanager.jsonl")
    events = [type(step.event) for step in steps]
    expected = [SubmitApplication, RegisterApplicationMaster, Allocate, FinishApplicationMaster]
    assert [events.index(kind) for kind in expected] == sorted(events.index(kind) for kind in expected)
    on_nodes: Counter[type] = Counter()
    for log in tmp_path.glob("nodemanager-*.jsonl"):
        on_nodes.update(type(step.event) for step in read_event_log(log)[1])
    assert on_nodes[ContainerExited] == 4, "the AM and its three tasks"
    assert on_nodes[StartContainers] >= 2, "the RM starts the AM, the AM starts the tasks"


@pytest.mark.case("I2")
def test_containers_of_a_killed_node_manager_are_lost_and_the_application_goes_on(
    cluster: BlockingCluster, tmp_path: Path
) -> None:
    """The node is LOST after its expiry, its containers are reported to their AM, and the application finishes."""
    client, go = cluster.client, tmp_path / "go"
    report = client.start(shell(until(go), 6))
    tasks = wait_tasks(client, report, 6)
    hosts = {task.node_id for task in tasks}
    am_host = next(c.node_id for c in client.containers(report.current_attempt_id) if c not in tasks)
    victim = next(node for node in cluster.nodes if node.id in hosts - {am_host})
    lost = {task.container_id for task in tasks if task.node_id == victim.id}
    assert lost
    cluster.kill_node(victim.place.number)
    eventually(lambda: victim.id in {node.node_id for node in client.nodes(frozenset({NodeState.LOST}))}, SOON_LOST_S)

    def replaced() -> bool:
        now = tasks_of(client, report)
        return len(now) == 6 and not lost & {task.container_id for task in now}

    eventually(replaced, 60.0)
    go.touch()
    ended = client.wait(report.application_id, timeout_s=60)
    assert (ended.final_status, ended.current_attempt_id.attempt) == (SUCCEEDED, 1)
    cluster.restart_node(victim.place.number)
    eventually(lambda: client.metrics().active == 4)


@pytest.mark.case("I3")
def test_a_killed_am_is_retried_up_to_the_limit(cluster: BlockingCluster, tmp_path: Path) -> None:
    client = cluster.client
    report = client.start(shell(until(tmp_path / "never"), 1))
    for attempt in (1, 2):
        eventually(lambda: client.report(report.application_id).current_attempt_id.attempt == attempt)  # noqa: B023
        wait_tasks(client, report, 1)
        am = am_of(client, report.application_id)
        assert am is not None
        kill_container(am)
    ended = client.wait(report.application_id, timeout_s=60)
    assert ended.state is YarnApplicationState.FAILED
    assert "failed 2 times due to AM Container for" in ended.diagnostics
    assert "exitCode: 137" in ended.diagnostics


@pytest.mark.case("I3")
def test_the_next_attempt_of_a_killed_am_gets_the_kept_containers(tmp_path: Path) -> None:
    """Only containers reported as running are kept, so the kill waits for those heartbeats."""
    go, heartbeats = tmp_path / "go", HeartbeatLog(tmp_path / "events")
    with LocalCluster(2, settings={**QUICK, **heartbeats.settings}, fast=True) as cluster:
        client = cluster.client
        report = client.start(shell(until(go), 3, keep_containers=True))
        tasks = {task.container_id for task in wait_tasks(client, report, 3)}
        eventually(lambda: tasks <= heartbeats.running())
        am = am_of(client, report.application_id)
        assert am is not None
        kill_container(am)
        eventually(lambda: client.report(report.application_id).current_attempt_id.attempt == 2)
        eventually(lambda: client.report(report.application_id).state is YarnApplicationState.RUNNING)
        go.touch()
        ended = client.wait(report.application_id, timeout_s=60)
        assert (ended.final_status, ended.current_attempt_id.attempt) == (SUCCEEDED, 2)
        ran = {log.container_id for log in client.logs(report.application_id)}
        assert {container for container in ran if container.sequence > 1} == tasks, "nothing was started twice"
