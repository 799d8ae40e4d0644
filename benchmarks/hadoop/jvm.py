"""Runs a case on Hadoop's CapacityScheduler, in a JVM of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from benchmarks.hadoop.cases import Case
from tests.hadoop import toolchain

HERE = Path(__file__).resolve().parent
PASSES = 8
"""The number of times that a JVM repeats the case: the first pass, then those that are warm."""

# Hadoop's INFO log has several lines for each container, which would cost more than placing it.
_LOG4J = """\
log4j.rootLogger=ERROR,stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.logger.org.apache.hadoop.yarn.server.resourcemanager.RMAuditLogger=OFF
"""


class HadoopPasses(NamedTuple):
    """The measurements of a JVM. `containers` of the first pass: (application, container, node).

    `cpu_s` and `process_cpu_s` have a value for each pass: the CPU time of the thread that handles the heartbeats, and
    that of the whole JVM with its compiler and garbage collector.
    """

    cpu_s: list[float]
    process_cpu_s: list[float]
    containers: list[tuple[int, int, int]]


class Hadoop:
    """The compiled Java program. Its classes are in the directory `work`."""

    def __init__(self, work: Path) -> None:
        """Raises JavaMissing if there is no JDK, or if Hadoop's jars cannot be fetched."""
        jars = toolchain.jars("minicluster")
        # An absolute path takes the place of the directory with the tests' sources.
        classes = toolchain.compiled(str(HERE), work / "classes", jars / "*")
        (work / "log4j.properties").write_text(_LOG4J)
        path = toolchain.class_path_of(work, classes, jars / "*")
        # Without the flags of the tests: they leave out the better compiler.
        self._command = [toolchain.java(), *toolchain.OPENED, "-cp", path, "hadoop.SchedulerBenchmark"]
        self._work = work

    def run(self, case: Case, passes: int = PASSES) -> HadoopPasses:
        """Run the case in a new JVM."""
        done = subprocess.run(
            self._command,
            cwd=self._work,
            input=_properties(case, passes, self._work),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"SchedulerBenchmark ended with {done.returncode}:\n{done.stderr[-5000:]}")
        return read_passes(done.stdout)


def _properties(case: Case, passes: int, work: Path) -> str:
    """The case as java.util.Properties. Hadoop writes the attributes of nodes below `work`."""
    properties = {
        "passes": passes,
        "nodes": case.nodes,
        "node_memory_mb": case.node.memory_mb,
        "node_vcores": case.node.vcores,
        "queues": case.queues,
        "applications": case.applications,
        "containers": case.containers,
        "heartbeats": case.heartbeats,
        "stirred": str(case.stirred).lower(),
        "yarn.node-attribute.fs-store.root-dir": (work / "node-attributes").as_uri(),
        **case.configuration,
    }
    return "".join(f"{key}={value}\n" for key, value in properties.items())


def read_passes(output: str) -> HadoopPasses:
    """The output of the Java program."""
    passes = HadoopPasses([], [], [])
    for line in output.splitlines():
        match line.split():
            case ["pass", cpu_s, process_cpu_s]:
                passes.cpu_s.append(float(cpu_s))
                passes.process_cpu_s.append(float(process_cpu_s))
            case ["container", application, container, node]:
                passes.containers.append((int(application), int(container), int(node)))
            case _:
                raise RuntimeError(f"SchedulerBenchmark printed {line!r}")
    passes.containers.sort()
    return passes
