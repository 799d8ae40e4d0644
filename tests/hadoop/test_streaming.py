"""Streaming on a cluster: as Hadoop's own command, and through mrjob, which calls `hadoop` for each step."""

from __future__ import annotations

import os
import stat
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hadoop import toolchain
from tests.hadoop.test_applications import CALL_S, cluster_with, ended, jars_of
from tests.spark.clients import home_of
from yarn.states import FinalApplicationStatus
from yarnling.cluster.blocking import BlockingCluster

pytestmark = [pytest.mark.hadoop, pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(900)]

WORDS = [f"w{index % 7 * (index % 3)}" for index in range(3_000)]
COMMAND = """\
#!/bin/sh
case $1 in
    version) main=org.apache.hadoop.util.VersionInfo ;;
    fs) main=org.apache.hadoop.fs.FsShell ;;
    jar) main=org.apache.hadoop.util.RunJar ;;
esac
shift
exec {java} -cp '{class_path}' $main "$@"
"""
"""The parts of Hadoop's own `hadoop` script that streaming and mrjob use; Maven serves jars only."""
JOB = """\
from mrjob.job import MRJob


class WordCount(MRJob):
    def mapper(self, _, line):
        yield line.strip(), 1

    def combiner(self, word, counts):
        yield word, sum(counts)

    def reducer(self, word, counts):
        yield word, sum(counts)


if __name__ == "__main__":
    WordCount.run()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[BlockingCluster]:
    with cluster_with(jars_of("streaming"), toolchain.SMALL_JOBS) as started:
        yield started


@pytest.fixture
def hadoop(cluster: BlockingCluster, tmp_path: Path) -> Path:
    """The `hadoop` command, for this cluster."""
    class_path = toolchain.class_path_of(cluster.directory.conf, jars_of("streaming") / "*")
    command = tmp_path / "hadoop"
    command.write_text(COMMAND.format(java=" ".join([toolchain.java(), *toolchain.FLAGS]), class_path=class_path))
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return command


@pytest.fixture
def words(tmp_path: Path) -> Path:
    file = tmp_path / "words.txt"
    file.write_text("\n".join(WORDS) + "\n")
    return file


@pytest.fixture(scope="module")
def streaming_jar() -> Path:
    (jar,) = jars_of("streaming").glob("hadoop-streaming-*.jar")
    return jar


def test_shell_commands_map_and_reduce(
    cluster: BlockingCluster, hadoop: Path, streaming_jar: Path, words: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    paths = ["-input", words.as_uri(), "-output", output.as_uri()]
    programs = ["-mapper", "cat", "-reducer", "uniq -c", "-numReduceTasks", "2"]
    _ran([str(hadoop), "jar", str(streaming_jar), *paths, *programs])
    lines = [line.split() for part in output.glob("part-*") for line in part.read_text().splitlines()]
    assert {word: int(count) for count, word in lines} == Counter(WORDS)
    assert ended(cluster).final_status is FinalApplicationStatus.SUCCEEDED


def test_mrjob_runs_a_job(
    cluster: BlockingCluster, hadoop: Path, streaming_jar: Path, words: Path, tmp_path: Path
) -> None:
    python = home_of("mrjob-0.7.4") / "bin" / "python"
    (tmp_path / "job.py").write_text(JOB)
    options = {
        "hadoop-bin": str(hadoop),
        "hadoop-streaming-jar": str(streaming_jar),
        "hadoop-tmp-dir": (tmp_path / "tmp").as_uri(),
        "python-bin": str(python),
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    ran = _ran([str(python), str(tmp_path / "job.py"), "-r", "hadoop", "--no-conf", *flags, str(words)])
    lines = [line.split("\t") for line in ran.stdout.splitlines()]
    assert {word.strip('"'): int(count) for word, count in lines} == Counter(WORDS)
    assert "Running job: job_" in ran.stderr, "mrjob has found the job's id in the client's log"
    assert ended(cluster).final_status is FinalApplicationStatus.SUCCEEDED


def _ran(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HADOOP_LOG_DIR": os.devnull}
    ran = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=CALL_S,
        env=environment,
    )
    assert ran.returncode == 0, ran.stderr
    return ran
