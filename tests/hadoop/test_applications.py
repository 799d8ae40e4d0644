"""Unmodified applications of Hadoop's world on a cluster: a DAG of Tez, and DistributedShell."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hadoop import toolchain
from wire.files.hadoop_xml import to_xml
from yarn.applications import ApplicationReport
from yarn.states import FinalApplicationStatus
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = [pytest.mark.hadoop, pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(900)]

CALL_S = 600
"""Only guards against hangs: a JVM on a busy machine takes its time."""
SETTINGS = {"yarn.scheduler.minimum-allocation-mb": "256", "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9"}
SMALL_JVM = (
    f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx400m {' '.join(toolchain.OPENED).replace('s java', 's=java')}"
)


def jars_of(name: str) -> Path:
    try:
        found: Path = toolchain.jars(name)
    except toolchain.JavaMissing as missing:
        pytest.skip(str(missing))
    return found


@contextmanager
def cluster_with(jars: Path, settings: Mapping[str, str] | None = None) -> Iterator[BlockingCluster]:
    """Two nodes whose containers have these jars on their class path."""
    os.environ.setdefault("JAVA_HOME", str(Path(toolchain.java()).resolve().parent.parent))
    options = ClusterOptions(hadoop_classpath=f"{jars}/*")
    every = {**SETTINGS, **(settings or {})}
    with LocalCluster(nodes=2, memory_mb=4096, settings=every, hadoop=True, options=options) as cluster:
        yield cluster


def run(
    cluster: BlockingCluster, jars: Path, main: str, *arguments: object, more: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a client's main class to its end. `more`: a directory with further files of configuration."""
    class_path = toolchain.class_path_of(cluster.directory.conf, *([more] if more else []), jars / "*")
    command = toolchain.command(class_path, main, *arguments)
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=CALL_S
    )


def ended(cluster: BlockingCluster) -> ApplicationReport:
    """The newest application, once its AM has unregistered: a client may end before that."""
    newest = max(report.application_id for report in cluster.client.applications())
    return cluster.client.wait(newest)


def configured(directory: Path, name: str, values: Mapping[str, str]) -> Path:
    directory.mkdir()
    (directory / name).write_text(to_xml(values))
    return directory


def test_a_dag_of_tez_counts_words_and_orders_them(tmp_path: Path) -> None:
    """OrderedWordCount: three vertices, so containers are used again and data is shuffled twice."""
    jars = jars_of("tez")
    words = [f"w{index % 7 * (index % 3)}" for index in range(3_000)]
    (tmp_path / "in").mkdir()
    for part in range(2):
        (tmp_path / "in" / f"{part}.txt").write_text("\n".join(words[part::2]) + "\n")
    tez = {
        "tez.ignore.lib.uris": "true",
        "tez.use.cluster.hadoop-libs": "true",
        "tez.staging-dir": (tmp_path / "staging").as_uri(),
        "tez.am.resource.memory.mb": "512",
        "tez.am.launch.cmd-opts": SMALL_JVM,
        "tez.task.resource.memory.mb": "512",
        "tez.task.launch.cmd-opts": SMALL_JVM,
        "tez.runtime.io.sort.mb": "64",
    }
    conf = configured(tmp_path / "conf", "tez-site.xml", tez)
    with cluster_with(jars) as cluster:
        main = "org.apache.tez.examples.OrderedWordCount"
        ran = run(cluster, jars, main, (tmp_path / "in").as_uri(), (tmp_path / "out").as_uri(), 2, more=conf)
        assert ran.returncode == 0, ran.stderr
        report = ended(cluster)
    assert (report.type, report.final_status) == ("TEZ", FinalApplicationStatus.SUCCEEDED)
    lines = [
        line.split() for part in sorted((tmp_path / "out").glob("part-*")) for line in part.read_text().splitlines()
    ]
    assert {word: int(count) for word, count in lines} == Counter(words)
    assert [int(count) for _, count in lines] == sorted(Counter(words).values())


def test_distributed_shell_runs_a_command_in_each_container(tmp_path: Path) -> None:
    """Hadoop's own client and ApplicationMaster, not yarnling's application of that name."""
    jars = jars_of("distributedshell")
    with cluster_with(jars) as cluster:
        (jar,) = jars.glob("hadoop-yarn-applications-distributedshell-*.jar")
        arguments = ["-jar", jar, "-shell_command", f"touch {tmp_path}/ran-$CONTAINER_ID", "-num_containers", 3]
        sizes = ["-container_memory", 256, "-master_memory", 512]
        ran = run(cluster, jars, "org.apache.hadoop.yarn.applications.distributedshell.Client", *arguments, *sizes)
        assert ran.returncode == 0, ran.stderr
        assert ended(cluster).final_status is FinalApplicationStatus.SUCCEEDED
    numbers = sorted(int(path.name.rpartition("_")[2]) for path in tmp_path.glob("ran-container_*"))
    assert numbers == [2, 3, 4]
