"""skein and dask-yarn on a cluster, unmodified. Both upload files into the cluster's file system."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hadoop import toolchain
from tests.spark.clients import JOBS, TIMEOUT_S, home_of
from yarn.states import FinalApplicationStatus
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = [pytest.mark.spark, pytest.mark.hadoop, pytest.mark.cluster, pytest.mark.timeout(2 * TIMEOUT_S)]


@pytest.fixture(scope="module")
def home() -> Path:
    return home_of("dask-yarn-0.9")


@pytest.fixture(scope="module")
def jars() -> Path:
    """Hadoop's classes with a log4j, which skein calls."""
    return toolchain.jars_or_skip("mapreduce")


@pytest.fixture(scope="module")
def cluster(home: Path, jars: Path) -> Iterator[BlockingCluster]:
    settings = {"yarn.scheduler.minimum-allocation-mb": "128"}
    options = ClusterOptions(hadoop_classpath=f"{jars}/*")
    with LocalCluster(2, memory_mb=4096, settings=settings, hadoop=True, options=options) as started:
        yield started


@pytest.fixture
def environment(cluster: BlockingCluster, jars: Path, tmp_path: Path) -> dict[str, str]:
    """That of a client. skein asks the command `yarn classpath --glob` for Hadoop's classes."""
    command = tmp_path / "bin" / "yarn"
    command.parent.mkdir()
    class_path = toolchain.class_path_of(cluster.directory.conf, *sorted(jars.glob("*.jar")))
    command.write_text(f"#!/bin/sh\necho '{class_path}'\n")
    command.chmod(0o755)
    own = {"PATH": f"{command.parent}:{os.environ['PATH']}", "SKEIN_CONFIG": str(tmp_path / "skein")}
    return {**os.environ, **cluster.hadoop_environment, **own}


def run(home: Path, environment: dict[str, str], job: str, argument: str) -> str:
    done = subprocess.run(
        [home / "bin" / "python", "-W", "ignore", JOBS / job, argument],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_containers_of_skein_get_the_files_that_were_uploaded(
    cluster: BlockingCluster, home: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    run(home, environment, "skein_services.py", str(tmp_path))
    assert [path.read_text() for path in tmp_path.glob("container_*")] == ["to be or not to be\n"] * 2
    report = next(report for report in cluster.client.applications() if report.name == "copies")
    assert report.final_status is FinalApplicationStatus.SUCCEEDED
    (staging,) = cluster.directory.files.glob("user/*/.skein")
    assert not list(staging.iterdir())


@pytest.mark.parametrize("mode", ["remote", "local"])
def test_workers_of_dask_add_up_squares(home: Path, environment: dict[str, str], mode: str) -> None:
    assert run(home, environment, "squares.py", mode) == "285\n"
