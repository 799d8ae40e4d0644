"""Hadoop's own clients and ApplicationMaster with two ResourceManagers: they go on to the one that is active."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hadoop import toolchain
from tests.hadoop.test_mapreduce import SETTINGS, run_java, write_conf
from yarn.ids import ApplicationAttemptId
from yarn.settings.resourcemanager import ADMIN_ADDRESS
from yarn.states import YarnApplicationState
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = [pytest.mark.hadoop, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

SETTLE = {"yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "1000"}
RMADMIN = "org.apache.hadoop.yarn.client.cli.RMAdminCLI"
YARN = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
FILES = 6


@pytest.fixture(scope="module")
def jars() -> Path:
    return toolchain.jars_or_skip("mapreduce")


@pytest.fixture(scope="module")
def cluster(jars: Path) -> Iterator[BlockingCluster]:
    os.environ.setdefault("JAVA_HOME", str(Path(toolchain.java()).resolve().parent.parent))
    options = ClusterOptions(rms=2)
    with LocalCluster(nodes=2, memory_mb=2048, settings={**SETTINGS, **SETTLE}, options=options) as started:
        yield started


@pytest.fixture(scope="module")
def class_path(cluster: BlockingCluster, jars: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("failover")
    classes = toolchain.compiled("mapreduce", path, *jars.glob("*.jar"))
    subprocess.run(["jar", "cf", path / "job.jar", "-C", classes, "."], check=True)
    return f"{write_conf(cluster, path, jars)}:{path / 'job.jar'}:{jars}/*"


def test_rmadmin_knows_the_state_of_each(cluster: BlockingCluster, class_path: str) -> None:
    assert run_java(class_path, RMADMIN, "-getServiceState", "rm1").stdout == "active\n"
    assert run_java(class_path, RMADMIN, "-getServiceState", "rm2").stdout == "standby\n"
    assert run_java(class_path, RMADMIN, "-checkHealth", "rm2").returncode == 0
    refused = run_java(class_path, RMADMIN, "-transitionToActive", "rm2")
    assert refused.returncode == 255
    assert "Automatic failover is enabled" in refused.stderr


def test_a_job_lives_through_a_failover(cluster: BlockingCluster, class_path: str) -> None:
    """The ApplicationMaster registers again with the other ResourceManager, and the client follows the job there."""
    files = cluster.directory.files
    (files / "in").mkdir()
    for number in range(FILES):
        (files / "in" / f"{number}.txt").write_text("a b\n" * 20_000)
    command = toolchain.command(class_path, "WordCount", "/in", "/out", 1)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
        (report, *_) = cluster.until(cluster.client.applications, 120)
        cluster.client.wait(report.application_id, states=frozenset({YarnApplicationState.RUNNING}), timeout_s=120)
        cluster.wait_containers(report.application_id, 1, 120)
        cluster.kill_rm()
        _, log = client.communicate(timeout=500)
    assert client.returncode == 0, log
    assert (files / "out" / "part-r-00000").read_text().split() == ["a", "120000", "b", "120000"]
    final = cluster.client.report(report.application_id)
    assert (final.state, final.current_attempt_id) == (
        YarnApplicationState.FINISHED,
        ApplicationAttemptId(report.application_id, 1),
    )
    listed = run_java(class_path, YARN, "application", "-list", "-appStates", "ALL").stdout
    assert f"{report.application_id}" in listed
    states = run_java(class_path, RMADMIN, "-getAllServiceState").stdout.splitlines()
    dead, active = (cluster.addresses[f"{ADMIN_ADDRESS.key}.{rm_id}"].rpartition(":")[2] for rm_id in ("rm1", "rm2"))
    assert f":{dead} " in states[0]
    assert "Failed to connect" in states[0]
    assert states[1] == f"{f'localhost:{active}':<50} {'active':<10}"
