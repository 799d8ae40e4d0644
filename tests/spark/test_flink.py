"""Flink on a cluster, unmodified: a session, a cluster for one job, and application mode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.clients import TIMEOUT_S
from tests.spark.flink import Flink, hadoop_jars
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(2 * TIMEOUT_S)]

SUMS = {remainder: sum(range(remainder, 1000, 3)) for remainder in range(3)}


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hadoop_jars(tmp_path_factory.mktemp("flink") / "hadoop")


@pytest.fixture(scope="module")
def cluster(jars: Path) -> Iterator[BlockingCluster]:
    settings = {"yarn.scheduler.minimum-allocation-mb": "256"}
    options = ClusterOptions(hadoop_classpath=f"{jars}/*")
    with LocalCluster(3, memory_mb=4096, settings=settings, hadoop=True, options=options) as cluster:
        yield cluster


@pytest.fixture
def flink(cluster: BlockingCluster, jars: Path, tmp_path: Path) -> Flink:
    return Flink(cluster, jars, tmp_path)


@pytest.mark.parametrize(("action", "target"), [("run", "yarn-per-job"), ("run-application", "yarn-application")])
def test_a_job_with_an_application_of_its_own(flink: Flink, cluster: BlockingCluster, action: str, target: str) -> None:
    known = {report.application_id for report in cluster.client.applications()}
    flink.run(action, target)
    (app,) = (report for report in cluster.client.applications() if report.application_id not in known)
    ended = cluster.client.wait(app.application_id, timeout_s=TIMEOUT_S)
    assert (ended.state, ended.final_status) == (YarnApplicationState.FINISHED, FinalApplicationStatus.SUCCEEDED)
    assert ended.type == "Apache Flink"
    assert flink.sums() == SUMS


def test_a_session_runs_jobs_until_it_is_killed(flink: Flink, cluster: BlockingCluster) -> None:
    app_id = flink.start_session()
    for _ in range(2):
        flink.run("run", "yarn-session", f"-Dyarn.application.id={app_id}")
        assert flink.sums() == SUMS
        for file in flink.results.iterdir():
            file.unlink()
    assert cluster.client.report(app_id).state is YarnApplicationState.RUNNING
    cluster.client.kill(app_id)
    assert cluster.client.wait(app_id, timeout_s=60).final_status is FinalApplicationStatus.KILLED
