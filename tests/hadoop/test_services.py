"""A YARN service from `yarn app -launch` to `-stop`, without an API server and without ZooKeeper."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hadoop import toolchain
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = [pytest.mark.hadoop, pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(900)]

SERVICE = "sleepers"
COMPONENT = {
    "name": "sleeper",
    "number_of_containers": 2,
    "launch_command": "sleep 900",
    "resource": {"cpus": 1, "memory": "128"},
}
STABLE_S = 400
NO_ZOOKEEPER = {"hadoop.registry.zk.retry.times": "1", "hadoop.registry.zk.connection.timeout.ms": "1000"}
"""Otherwise the service's ApplicationMaster waits for one for a minute."""


@pytest.fixture(scope="module")
def jars() -> Path:
    return toolchain.jars_or_skip("services")


@pytest.fixture(scope="module")
def cluster(jars: Path) -> Iterator[BlockingCluster]:
    settings = {"yarn.scheduler.minimum-allocation-mb": "128", **NO_ZOOKEEPER}
    options = ClusterOptions(hadoop_classpath=f"{jars}/*")
    with LocalCluster(2, memory_mb=4096, settings=settings, hadoop=True, options=options) as started:
        yield started


class YarnApp:
    """The command `yarn app` on one cluster. The script of Hadoop's distribution sets service.libdir."""

    def __init__(self, cluster: BlockingCluster, jars: Path) -> None:
        self._class_path = toolchain.class_path_of(cluster.directory.conf, jars / "*")
        self._flags = (f"-Dservice.libdir={jars}",)

    def __call__(self, *words: object) -> str:
        ran = self.run(*words)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        main = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
        command = toolchain.command(self._class_path, main, "app", *words, flags=self._flags)
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def status(self) -> dict[str, Any]:
        shown = self("-status", SERVICE)
        found: dict[str, Any] = json.loads(shown[shown.index("{") :])
        return found

    def containers(self) -> list[str]:
        """The states of the containers; none until the service is stable."""
        status = self.status()
        if status["state"] != "STABLE":
            return []
        return [container["state"] for component in status["components"] for container in component["containers"]]


def test_a_service_becomes_stable_grows_and_ends(cluster: BlockingCluster, jars: Path, tmp_path: Path) -> None:
    definition = tmp_path / "service.json"
    definition.write_text(json.dumps({"name": SERVICE, "version": "1", "components": [COMPONENT]}))
    app = YarnApp(cluster, jars)
    app("-launch", SERVICE, definition)
    cluster.until(lambda: app.containers() == ["READY"] * 2, STABLE_S)
    app("-flex", SERVICE, "-component", COMPONENT["name"], 3)
    cluster.until(lambda: app.containers() == ["READY"] * 3, STABLE_S)
    (report,) = cluster.client.applications()
    assert report.type == "yarn-service"

    files = cluster.directory.files
    assert [path.name for path in files.glob("yarn-services/*/*.tar.gz")] == ["service-dep.tar.gz"]
    assert [path.name for path in files.glob("user/*/.yarn/services/*")] == [SERVICE]
    app("-stop", SERVICE)
    cluster.client.wait(report.application_id, timeout_s=60)
    assert app.status()["state"] == "STOPPED"
    assert "Could not delete zk node" in app.run("-destroy", SERVICE).stderr, "its last step"
    assert not list(files.glob("user/*/.yarn/services/*"))
