"""The cluster's file system as Hadoop's `hadoop fs` uses it, and NodeManagers that localize its files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hadoop import toolchain
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext, LocalResource
from yarn.states import LocalResourceVisibility
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = [pytest.mark.hadoop, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster(client_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingCluster]:
    """A cluster whose directory has a blank in its name."""
    path = tmp_path_factory.mktemp("a cluster")
    with LocalCluster(nodes=1, hadoop=True, options=ClusterOptions(directory=path)) as started:
        yield started


def hadoop_fs(cluster: BlockingCluster, jars: Path, *words: object) -> str:
    class_path = toolchain.class_path_of(cluster.directory.conf, jars / "*")
    command = toolchain.command(class_path, "org.apache.hadoop.fs.FsShell", *words)
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_file_that_was_put_is_localized(cluster: BlockingCluster, client_jars: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("to be or not to be\n")
    hadoop_fs(cluster, client_jars, "-mkdir", "-p", "/data")
    hadoop_fs(cluster, client_jars, "-put", f"file://{tmp_path}/words.txt", "/data/words.txt")
    assert "viewfs://yarnling/data/words.txt" in hadoop_fs(cluster, client_jars, "-ls", "viewfs://yarnling/data")
    assert hadoop_fs(cluster, client_jars, "-cat", "/data/words.txt") == "to be or not to be\n"
    put = cluster.directory.files / "data" / "words.txt"
    modified_ms = put.stat().st_mtime_ns // 1_000_000

    app_id = cluster.client.new_application().application_id
    public = LocalResourceVisibility.PUBLIC
    words = LocalResource("viewfs://yarnling/data/words.txt", 19, modified_ms, visibility=public)
    command = f"cp words.txt {tmp_path}/copied"
    launch = ContainerLaunchContext((command,), local_resources={"words.txt": words})
    cluster.client.submit(ApplicationSubmissionContext(app_id, am_container=launch))
    report = cluster.client.wait(app_id, timeout_s=60)
    assert (tmp_path / "copied").read_text() == "to be or not to be\n", report.diagnostics


def test_a_relative_path_is_in_the_users_directory(cluster: BlockingCluster, client_jars: Path) -> None:
    hadoop_fs(cluster, client_jars, "-touchz", "empty")
    assert len(list((cluster.directory.files / "user").glob("*/empty"))) == 1
