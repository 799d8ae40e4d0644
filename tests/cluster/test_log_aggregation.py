"""Log aggregation in a cluster: logs are shown wherever they are, and none is shown twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.applications import shell
from tests.cluster.conftest import DEFINITIONS, QUICK, Yarnling, eventually
from yarn.ids import ApplicationId
from yarn.states import LogAggregationStatus
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster
ON = "yarn.log-aggregation-enable"
LINES = 300_000
COMMAND = f"seq 1 {LINES}"
"""A container that writes two megabytes, which are more than one chunk of an aggregated log."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingCluster]:
    conf = tmp_path_factory.mktemp("conf")
    # A file's remote directory belongs to another cluster.
    (conf / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.nodemanager.remote-app-log-dir</name><value>hdfs://nn/app-logs</value>"
        "</property></configuration>"
    )
    with LocalCluster(nodes=2, conf=conf, settings={**QUICK, ON: "true"}, fast=True) as started:
        yield started


@pytest.fixture(scope="module")
def application(cluster: BlockingCluster) -> ApplicationId:
    """An application with two containers, which has ended and is aggregated."""
    app_id = cluster.client.start(shell(COMMAND, 2)).application_id
    cluster.client.wait(app_id)
    eventually(lambda: len(found := cluster.client.logs(app_id)) > 2 and all(log.is_aggregated for log in found))
    return app_id


def test_the_remote_directory_is_in_the_clusters(cluster: BlockingCluster, application: ApplicationId) -> None:
    root = cluster.directory.path / "remote-logs"
    files = [path for path in root.rglob("*") if path.is_file()]
    assert 1 <= len(files) <= 2
    assert all(path.parent.name == str(application) for path in files)
    assert {path.name for path in files} <= {str(node.id).replace(":", "_") for node in cluster.nodes}


def test_the_client_reads_aggregated_logs(cluster: BlockingCluster, application: ApplicationId) -> None:
    logs = [log for log in cluster.client.logs(application) if log.container_id.number > 1]
    stdout, other = (log for log in logs if log.name == "stdout")
    assert stdout.text() == other.text()
    assert stdout.size == sum(len(f"{number}\n") for number in range(1, LINES + 1))
    assert stdout.text(14) == f"{LINES - 1}\n{LINES}\n"
    assert stdout.read(0, 4) == b"1\n2\n"


def test_the_rm_reports_that_the_logs_are_aggregated(cluster: BlockingCluster, application: ApplicationId) -> None:
    eventually(lambda: cluster.client.report(application).log_aggregation is LogAggregationStatus.SUCCEEDED)


def test_commands_show_aggregated_logs(yarnling: Yarnling, tmp_path: Path) -> None:
    started = yarnling("up", "--nodes", "1", "--fast", "--detach", "--json", *DEFINITIONS, "-D", f"{ON}=true")
    assert started.returncode == 0, started.stderr
    try:
        remote = Path(json.loads(started.stdout)["directory"]) / "remote-logs"
        ran = yarnling("run", "echo", "hello")
        assert (ran.returncode, ran.stdout.partition(" | ")[2]) == (0, "hello\n")
        app_id = eventually(lambda: next((path.name for path in remote.glob("*/*/*/*")), ""))
        eventually(lambda: list((remote.parent / "nm-1" / "userlogs").glob("*/*")) == [])
        shown = yarnling("logs", "-applicationId", app_id, "-log_files", "stdout")
        assert shown.returncode == 0, shown.stderr
        blocks = re.findall(r"^Container: (\S+) on (\S+)\nLogAggregationType: AGGREGATED\n(=+)\n", shown.stdout, re.M)
        assert len({container for container, _, _ in blocks}) == len(blocks) == 2
        assert {node for _, node, _ in blocks} == {path.name for path in remote.glob("*/*/*/*/*")}
        assert "LogType:stdout\n" in shown.stdout
        assert "LogLength:6\nLogContents:\nhello\n" in shown.stdout
        assert "hello" in yarnling("logs", app_id).stdout
    finally:
        yarnling("down")
