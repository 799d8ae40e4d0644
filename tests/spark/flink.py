"""Flink as scripts/hadoop-clients installs it, with the command line of its distribution."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.spark.clients import JOBS, TIMEOUT_S, home_of, package_of
from yarnling.cluster.blocking import BlockingCluster

HADOOP_JARS = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "commons-logging-*.jar")
"""Flink brings no classes of Hadoop; these come with pyspark 3.5."""

# Options that the distribution's own config.yaml has for Java 17, which the Python package lacks.
_JAVA_17 = " ".join(
    [
        "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
        *(
            f"--add-opens=java.base/{name}=ALL-UNNAMED"
            for name in (
                "java.lang",
                "java.net",
                "java.io",
                "java.nio",
                "sun.nio.ch",
                "java.lang.reflect",
                "java.text",
                "java.time",
                "java.util",
                "java.util.concurrent",
                "java.util.concurrent.atomic",
                "java.util.concurrent.locks",
            )
        ),
    ]
)
_CONFIGURATION = f"""
env.java.opts.all: "{_JAVA_17}"
jobmanager.memory.process.size: 800m
taskmanager.memory.process.size: 1000m
taskmanager.numberOfTaskSlots: 2
taskmanager.memory.network.min: 64m
taskmanager.memory.network.max: 64m
"""
_LOGGING = """
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c - %m%n
"""


def hadoop_jars(directory: Path) -> Path:
    """A directory with the classes of Hadoop that Flink needs."""
    source = package_of(home_of("pyspark-3.5.9"), "pyspark") / "jars"
    directory.mkdir()
    for pattern in HADOOP_JARS:
        (jar,) = source.glob(pattern)
        (directory / jar.name).symlink_to(jar)
    return directory


class Flink:
    """Flink's command line on one cluster; `directory` is for its configuration and for the results of jobs."""

    def __init__(self, cluster: BlockingCluster, jars: Path, directory: Path) -> None:
        if shutil.which("javac") is None:
            pytest.skip("no javac found (apt-get install openjdk-17-jdk-headless)")
        self._home = package_of(home_of("apache-flink-libraries-1.20.5"), "pyflink")
        # As Flink's own scripts put it together.
        self._class_path = f"{self._home}/lib/*:{jars}/*:{cluster.hadoop_environment['HADOOP_CONF_DIR']}"
        self._environment = {
            **os.environ,
            **cluster.hadoop_environment,
            "FLINK_CONF_DIR": str(directory / "conf"),
            "FLINK_LIB_DIR": str(self._home / "lib"),
            "FLINK_OPT_DIR": str(self._home / "opt"),
            "FLINK_PLUGINS_DIR": str(self._home / "plugins"),
            "HADOOP_CLASSPATH": f"{jars}/*",
        }
        self._directory = directory
        self.results = directory / "results"
        self.results.mkdir()
        self._configure(directory / "conf")
        self._compile()

    def run(self, action: str, target: str, *options: str) -> str:
        """Run the job by `flink run` or `flink run-application`; what it printed. It must exit with status 0."""
        arguments = [action, "-t", target, *options, "-c", "Sums", str(self._directory / "sums.jar")]
        return self._call("org.apache.flink.client.cli.CliFrontend", *arguments, str(self.results))

    def start_session(self) -> str:
        """Start a session; the id of its application."""
        printed = self._call("org.apache.flink.yarn.cli.FlinkYarnSessionCli", "--detached")
        found = re.search(r"application_\d+_\d+", printed)
        assert found, printed
        return found[0]

    def sums(self) -> dict[int, int]:
        """{remainder: sum}, as the job has written them."""
        files = self.results.glob("sum-*")
        return {int(file.name.removeprefix("sum-")): int(file.read_text() or 0) for file in files}

    def _call(self, main_class: str, *arguments: str) -> str:
        log = f"-Dlog4j.configurationFile=file:{self._directory}/conf/log4j.properties"
        command = ["java", "-Xmx256m", *_JAVA_17.split(), log, "-cp", self._class_path, main_class, *arguments]
        output = self._directory / "output.txt"
        with output.open("w") as file:
            process = subprocess.Popen(
                command, env=self._environment, cwd=self._directory, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
        try:
            status = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        assert status == 0, output.read_text()
        return output.read_text()

    def _configure(self, conf: Path) -> None:
        conf.mkdir()
        (conf / "config.yaml").write_text(_CONFIGURATION)
        (conf / "log4j.properties").write_text(_LOGGING)

    def _compile(self) -> None:
        classes = self._directory / "classes"
        subprocess.run(
            ["javac", "-nowarn", "-cp", f"{self._home}/lib/*", "-d", classes, JOBS / "Sums.java"],
            check=True,
            capture_output=True,
        )
        subprocess.run(["jar", "cf", self._directory / "sums.jar", "-C", classes, "."], check=True)
