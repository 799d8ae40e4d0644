"""The `yarn` commands of other versions of Hadoop, from 2.10 on, on a cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hadoop import toolchain
from yarn.applications import ApplicationSubmissionContext
from yarn.ids import ApplicationId
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = [pytest.mark.hadoop, pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(900)]

CLI = "org.apache.hadoop.yarn.client.cli."


@pytest.fixture(scope="module")
def cluster() -> Iterator[BlockingCluster]:
    with LocalCluster(nodes=2, hadoop=True) as started:
        yield started


@pytest.fixture(scope="module", params=["2.10.2", "3.3.6", "3.4.2", "3.5.0"])
def jars(request: pytest.FixtureRequest) -> Path:
    return toolchain.jars_or_skip(f"commands-{request.param}")


@pytest.fixture
def application(cluster: BlockingCluster) -> ApplicationId:
    """An application that waits for an ApplicationMaster outside of the cluster."""
    app_id = cluster.client.new_application().application_id
    cluster.client.submit(ApplicationSubmissionContext(app_id, name="waits", unmanaged_am=True))
    return app_id


def test_commands_show_and_kill_an_application(
    cluster: BlockingCluster, application: ApplicationId, jars: Path
) -> None:
    def printed(main: str, *words: str) -> str:
        command = toolchain.command(toolchain.class_path_of(cluster.directory.conf, jars / "*"), CLI + main, *words)
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    nodes = printed("NodeCLI", "-list", "-all")
    assert "Total Nodes:2" in nodes
    assert all(str(node.node_id) in nodes for node in cluster.client.nodes())
    assert "State : RUNNING" in printed("QueueCLI", "-status", "default")
    listed = printed("ApplicationCLI", "application", "-list", "-appStates", "ALL")
    assert str(application) in listed
    assert f"Killing application {application}" in printed("ApplicationCLI", "application", "-kill", str(application))
    assert "State : KILLED" in printed("ApplicationCLI", "application", "-status", str(application))
