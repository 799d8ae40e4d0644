"""Hadoop's own MapReduce on yarnling: reduces fetch from our shuffle service, and `yarn logs` reads our logs."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.conftest import eventually
from wire.files.hadoop_xml import to_xml
from yarn.ids import ApplicationId
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.containers import ContainerLog
from yarnling.cluster.local_cluster import LocalCluster

toolchain = pytest.importorskip("tests.hadoop.toolchain")

pytestmark = [pytest.mark.hadoop, pytest.mark.cluster, pytest.mark.timeout(600)]
SETTINGS = {
    "yarn.yarnling.hadoop-rpc.enabled": "true",
    "yarn.log-aggregation-enable": "true",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
}
JOB_SECONDS = 400


class Job(NamedTuple):
    """A job that has ended, and the class path with which clients call its cluster."""

    application_id: ApplicationId
    output: str
    log: str
    counts: Counter[str]
    expected: Counter[str]
    class_path: str


def run_java(class_path: str, main: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [toolchain.java(), *toolchain.SMALL_JVM.split(), "-cp", class_path, main, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=JOB_SECONDS)


@pytest.fixture(scope="module")
def jars() -> Path:
    try:
        found: Path = toolchain.jars("mapreduce")
    except toolchain.JavaMissing as missing:
        pytest.skip(str(missing))
    return found


@pytest.fixture(scope="module")
def cluster(jars: Path) -> Iterator[BlockingCluster]:
    os.environ.setdefault("JAVA_HOME", str(Path(toolchain.java()).resolve().parent.parent))
    with LocalCluster(nodes=2, memory_mb=4096, settings=SETTINGS) as started:
        yield started


@pytest.fixture(scope="module")
def job(cluster: BlockingCluster, jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """WordCount over three files of the cluster's file system, with two reduces."""
    path = tmp_path_factory.mktemp("mapreduce")
    files = cluster.directory.files
    (files / "in").mkdir()
    expected: Counter[str] = Counter()
    for number in range(3):
        words = [f"w{(number + 1) * index % 499}" for index in range(30_000)]
        expected.update(words)
        (files / "in" / f"{number}.txt").write_text("\n".join(words) + "\n")
    classes = toolchain.compiled("mapreduce", path, *jars.glob("*.jar"))
    subprocess.run(["jar", "cf", path / "job.jar", "-C", classes, "."], check=True)
    class_path = f"{write_conf(cluster, path, jars)}:{path / 'job.jar'}:{jars}/*"
    ran = run_java(class_path, "WordCount", "/in", "/out", 2)
    assert ran.returncode == 0, ran.stderr
    counts: Counter[str] = Counter()
    for part in (files / "out").glob("part-r-*"):
        counts.update({word: int(count) for word, count in map(str.split, part.read_text().splitlines())})
    (report,) = cluster.client.applications()
    return Job(report.application_id, ran.stdout, ran.stderr, counts, expected, class_path)


def write_conf(cluster: BlockingCluster, path: Path, jars: Path) -> Path:
    """The configuration of a client: the cluster's, and what MapReduce needs."""
    conf = path / "conf"
    conf.mkdir()
    for name in ("core-site.xml", "yarn-site.xml", "log4j.properties"):
        (conf / name).write_bytes((cluster.directory.conf / name).read_bytes())
    mapred = {
        "mapreduce.framework.name": "yarn",
        "mapreduce.jobhistory.address": "",
        "mapreduce.application.classpath": f"{jars}/*",
        **toolchain.SMALL_JOBS,
    }
    (conf / "mapred-site.xml").write_text(to_xml(mapred))
    return conf


def test_the_client_logs_the_jobs_id_and_its_progress(job: Job) -> None:
    """With the log4j.properties of the cluster. mrjob learns the job's id from this log."""
    number = f"{job.application_id}".removeprefix("application_")
    assert f"Running job: job_{number}" in job.log
    assert "map 100% reduce 100%" in job.log


def test_the_counts_are_right(job: Job) -> None:
    assert job.counts == job.expected


def test_the_job_leaves_nothing_outside_of_the_clusters_directory(job: Job, cluster: BlockingCluster) -> None:
    """Its staging directory is Hadoop's default, in the cluster's file system."""
    staging = cluster.directory.files / "tmp" / "hadoop-yarn" / "staging"
    assert [path.name for path in staging.glob("*/.staging")] == [".staging"]
    assert not list(staging.glob("*/.staging/*")), job.log


def test_each_reduce_fetched_every_map_at_the_first_try(job: Job) -> None:
    assert job.output.splitlines() == ["SHUFFLED_MAPS 6", "FAILED_SHUFFLE 0"]


def test_hadoops_logs_are_those_of_our_command(job: Job, cluster: BlockingCluster) -> None:
    def aggregated() -> list[ContainerLog]:
        found = cluster.client.logs(job.application_id)
        return found if all(log.is_aggregated for log in found) else []

    logs = eventually(aggregated)
    shown = run_java(job.class_path, "org.apache.hadoop.yarn.client.cli.LogsCLI", "-applicationId", job.application_id)
    assert shown.returncode == 0, shown.stderr
    pattern = re.compile(r"^Container: (\S+) on \S+\nLogAggregationType: AGGREGATED\n=+\nLogType:(\S+)\n", re.M)
    assert sorted(pattern.findall(shown.stdout)) == sorted((str(log.container_id), log.name) for log in logs)
    for log in logs:
        assert f"LogLength:{log.size}\nLogContents:\n{log.text()}\nEnd of LogType:{log.name}\n" in shown.stdout
