"""Spark on a cluster, unmodified: both deploy modes, an executor that is killed, executors that come and go."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.spark.clients import TIMEOUT_S, Spark, home_of
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(2 * TIMEOUT_S)]

KILLED = "Exit status: 137"
"""The line that Spark's AM logs of an executor whose container the ResourceManager reports with 128 + SIGKILL."""
COUNTS = {
    "words": {"to": 200, "be": 200, "or": 100, "not": 100, "that": 100, "is": 100},
    "sums": [sum(range(bucket, 1000, 3)) for bucket in range(3)],
}
SUMS = {"buckets": 4, "sums": {str(bucket): sum(range(bucket, 400, 4)) for bucket in range(4)}}


@pytest.fixture(params=["pyspark-4.3.0", "pyspark-3.5.9"])
def spark(request: pytest.FixtureRequest, cluster: BlockingCluster, tmp_path: Path) -> Spark:
    """Each version of Spark in turn."""
    return Spark(cluster, home_of(request.param), tmp_path)


@pytest.mark.parametrize("mode", ["cluster", "client"])
def test_counts_are_right(spark: Spark, cluster: BlockingCluster, mode: str) -> None:
    with spark.running("counts.py", mode) as submission:
        app_id = submission.application()
        assert submission.result() == COUNTS
    report = cluster.client.wait(app_id, timeout_s=60)
    assert (report.state, report.final_status) == (YarnApplicationState.FINISHED, FinalApplicationStatus.SUCCEEDED)
    assert report.type == "SPARK"


def test_python_comes_from_a_packed_environment(cluster: BlockingCluster, tmp_path: Path) -> None:
    """An archive of `venv-pack` has links: `lib64`, and one to the machine's Python. The job runs in the archive's."""
    packed = home_of("venv-pack-0.2.0")
    archive = tmp_path / "env.tar.gz"
    subprocess.run([packed / "bin" / "venv-pack", "-q", "-p", packed, "-o", archive], check=True)
    python = "./environment/bin/python"
    settings = {
        "spark.yarn.dist.archives": f"{archive}#environment",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": python,
        "spark.executorEnv.PYSPARK_PYTHON": python,
    }
    spark = Spark(cluster, home_of("pyspark-3.5.9"), tmp_path)
    prefixes = spark.result("prefixes.py", "cluster", settings)
    assert isinstance(prefixes, list)
    assert len(prefixes) >= 2
    assert all(prefix.endswith(("/env.tar.gz", "/environment")) for prefix in prefixes), prefixes


def test_an_executor_that_is_killed_is_replaced(spark: Spark, cluster: BlockingCluster) -> None:
    with spark.running("interrupted.py", "cluster") as submission:
        app_id = submission.application()
        submission.wait_file("first-stage")
        before = cluster.until(lambda: len(found := submission.executors()) == 2 and found, TIMEOUT_S)
        assert before
        os.kill(before[0].pid, 9)
        killed = before[0].pid

        def replaced() -> bool:
            pids = {process.pid for process in submission.executors()}
            return len(pids) == 2 and killed not in pids

        cluster.until(replaced, TIMEOUT_S)
        (submission.directory / "go").touch()
        assert submission.result() == SUMS
    logs = cluster.client.logs(app_id)
    # The AM, two executors, and the one that replaced the killed one.
    assert len({log.container_id for log in logs}) == 4
    assert any(KILLED in log.text() for log in logs if log.name == "stderr")


def test_executors_come_and_go_with_the_work(spark: Spark, cluster: BlockingCluster) -> None:
    """Dynamic allocation with shuffle tracking, which needs no shuffle service on the nodes."""
    settings = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.timeout": "2s",
        "spark.dynamicAllocation.initialExecutors": "1",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": "3",
        "spark.dynamicAllocation.executorIdleTimeout": "2s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        "spark.executor.instances": "1",
    }

    with spark.running("bursts.py", "cluster", settings) as submission:
        for burst in (1, 2):
            cluster.until(lambda: len(submission.executors()) == 3, TIMEOUT_S)
            (submission.directory / f"enough-{burst}").touch()
            submission.wait_file(f"done-{burst}")
            cluster.until(lambda: len(submission.executors()) == 1, TIMEOUT_S)
            (submission.directory / f"go-{burst}").touch()
        sums = [[bucket, sum(range(bucket, 30, 3))] for bucket in range(3)]
        assert submission.result() == [sums, sums]


def test_a_job_outlives_the_resource_manager_on_packed_nodes(tmp_path: Path) -> None:
    """The AM registers again with the restarted RM, and its executors run on."""
    settings = {"yarn.resourcemanager.recovery.enabled": "true", "yarn.scheduler.minimum-allocation-mb": "256"}
    home = home_of("pyspark-4.3.0")
    with LocalCluster(3, memory_mb=4096, settings=settings, hadoop=True, options=ClusterOptions(pack=3)) as cluster:
        with Spark(cluster, home, tmp_path / "job").running("interrupted.py", "cluster") as submission:
            app_id = submission.application()
            submission.wait_file("first-stage")
            before = {process.pid for process in submission.executors()}
            cluster.kill_rm()
            cluster.restart_rm()
            cluster.wait_containers(app_id, 2, timeout_s=TIMEOUT_S)
            (submission.directory / "go").touch()
            assert submission.result() == SUMS
            logs = cluster.client.logs(app_id)
        report = cluster.client.wait(app_id, timeout_s=60)
    assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
    assert len(before) == 2
    assert len({log.container_id for log in logs}) == 3
