"""Clients of YARN that scripts/hadoop-clients has installed, and how Spark is started on a cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from yarn.ids import ApplicationId
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.processes import those_that_name

JOBS = Path(__file__).parent / "jobs"
TIMEOUT_S = 400
"""Only guards against hangs: a JVM on a busy machine takes its time."""
EXECUTOR = "YarnCoarseGrainedExecutorBackend"

# Small heaps, no web servers, and Spark's jars read where they are instead of copied for each application.
SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.instances": "2",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.yarn.submit.waitAppCompletion": "true",
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
}


def home_of(client: str) -> Path:
    """The virtual environment of `client` (pyspark-4.3.0); skips the test if there is none, or no Java."""
    home = Path(os.environ.get("YARNLING_CLIENTS") or Path.home() / ".cache" / "yarnling" / "clients") / client
    if not (home / "installed").exists():
        pytest.skip(f"{client} is not installed (scripts/hadoop-clients {client})")
    if shutil.which("java") is None:
        pytest.skip("no Java found (apt-get install openjdk-17-jdk-headless)")
    return home


def package_of(home: Path, name: str) -> Path:
    """The directory of a Python package in the environment `home`."""
    (package,) = home.glob(f"lib/python3*/site-packages/{name}")
    return package


def spark_environment(cluster: BlockingCluster, home: Path) -> dict[str, str]:
    python = str(home / "bin" / "python")
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python, "SPARK_HOME": str(package_of(home, "pyspark"))}
    return {**os.environ, **cluster.hadoop_environment, **own}


class Spark:
    """spark-submit of one version on one cluster."""

    def __init__(self, cluster: BlockingCluster, home: Path, directory: Path) -> None:
        self._cluster = cluster
        self._home = home
        self._directory = directory
        self._jars = f"local:{package_of(home, 'pyspark')}/jars/*"

    def result(self, job: str, mode: str, settings: Mapping[str, str] | None = None) -> object:
        """The output of the job, once spark-submit has exited with status 0."""
        with self.running(job, mode, settings) as submission:
            return submission.result()

    @contextmanager
    def running(self, job: str, mode: str, settings: Mapping[str, str] | None = None) -> Iterator[Submission]:
        """The job while it runs; it is killed at the end if it still does."""
        self._directory.mkdir(parents=True, exist_ok=True)
        output = self._directory / "output.txt"
        every = {**SETTINGS, "spark.yarn.jars": self._jars, **(settings or {})}
        options = [part for key, value in every.items() for part in ("--conf", f"{key}={value}")]
        command = [str(self._home / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode, *options]
        known = {report.application_id for report in self._cluster.client.applications()}
        with output.open("w") as log:
            process = subprocess.Popen(
                [*command, str(JOBS / job), str(self._directory)],
                env=spark_environment(self._cluster, self._home),
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        submission = Submission(self._cluster, process, self._directory, known)
        try:
            yield submission
        finally:
            if process.poll() is None:
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
                process.kill()
            process.wait()


class Submission:
    """A job that spark-submit has started. It writes `result.json` into `directory`."""

    def __init__(
        self,
        cluster: BlockingCluster,
        process: subprocess.Popen[bytes],
        directory: Path,
        known: set[ApplicationId],
    ) -> None:
        self._cluster = cluster
        self._process = process
        self._known = known
        self.directory = directory

    def result(self) -> object:
        status = self._process.wait(timeout=TIMEOUT_S)
        assert status == 0, self.output
        return json.loads((self.directory / "result.json").read_text())

    @property
    def output(self) -> str:
        """The output of spark-submit."""
        return (self.directory / "output.txt").read_text()

    def application(self) -> ApplicationId:
        """Its application, once there is one."""

        def new() -> list[ApplicationId]:
            assert self._process.poll() is None, self.output
            reports = self._cluster.client.applications()
            return [report.application_id for report in reports if report.application_id not in self._known]

        (found,) = self._cluster.until(new, TIMEOUT_S)
        return found

    def executors(self) -> list[psutil.Process]:
        """The JVMs of executors that run."""
        return [process for process in those_that_name(self._cluster.directory.path) if _is_executor(process)]

    def wait_file(self, name: str) -> None:
        """Wait until the job has made the file."""

        def is_there() -> bool:
            assert self._process.poll() is None, self.output
            return (self.directory / name).exists()

        self._cluster.until(is_there, TIMEOUT_S)


def _is_executor(process: psutil.Process) -> bool:
    try:
        command = process.cmdline()
        return command[0].endswith("/java") and any(part.endswith(EXECUTOR) for part in command)
    except (psutil.NoSuchProcess, IndexError):
        return False
