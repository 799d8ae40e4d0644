"""Hadoop's ResourceManager in a JVM: built once with Maven, then driven line by line.

The build is kept outside the checkout, in a folder named after what it was made from, so that a change of the driver
is a new build and two checkouts do not disturb each other.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.conformance.scenario import Json, Scenario
from yarn.java.versions import HADOOP_VERSION

SOURCES = Path(__file__).resolve().parent
BUILDS = Path(os.environ.get("YARNLING_ORACLE_BUILDS", Path.home() / ".cache" / "yarnling" / "oracle"))

_JVM_OPTIONS = (
    "-Xmx1g",
    # One of several small JVMs: it must not use every core for garbage collection or compilation.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:CICompilerCount=1",
    # Hadoop accesses these by reflection.
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
)

ANSWER_SECONDS_MAX = 90
"""A step that takes longer counts as one after which Hadoop does not come to rest (the driver waits 40 s)."""

_CLOSE_SECONDS_MAX = 60

JVMS_MAX = 3
"""JVMs that are kept for different releases and lists of resource types; each takes some 300 MB."""

REQUEST_SHOWN_MAX = 200


class OracleError(Exception):
    """The driver cannot be built or has died. The message says what to do."""


def build(release: str = HADOOP_VERSION) -> Path:
    """Build the driver for a release of Hadoop unless that is done; its folder.

    Needs a JDK (17 or newer), Maven, and Maven Central once.
    """
    folder = BUILDS / f"{_fingerprint()}-{release}"
    classpath = folder / "classpath"
    if classpath.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / "classpath.unfinished"
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={unfinished}"]
    properties = [f"-Dfolder={folder}", f"-Dhadoop={release}"]
    command = ["mvn", "-q", "-B", "-f", str(SOURCES / "pom.xml"), *properties, *goals]
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise OracleError("mvn is not on the PATH (install Maven and a JDK of 17 or newer)") from error
    except subprocess.CalledProcessError as error:
        raise OracleError(f"Maven ended with {error.returncode}; what it said stands above") from error
    unfinished.rename(classpath)
    return folder


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*")):
        if path.suffix in (".java", ".xml"):
            digest.update(f"{path.relative_to(SOURCES)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class Hadoop:
    """Records scenarios, one at a time. Used as a context; `record` may be called again and again.

    Hadoop keeps the first list of resource types that it reads in static fields, so each list has a JVM of its own; so
    has each release.
    """

    def __init__(self) -> None:
        self._jvms: dict[tuple[str, str], subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def record(self, scenario: Scenario) -> Iterator[Json]:
        """The lines of the scenario's recording, as Hadoop gives them. Raises OracleError if the JVM dies."""
        kind = (scenario.release, scenario.configuration.get("yarn.resource-types", ""))
        jvm = self._running(kind)
        first = _ask(jvm, {"conf": scenario.configuration})
        yield {**scenario.header, **first}
        if "error" in first:
            return
        for step in scenario.steps:
            answer = _ask(jvm, step)
            if "hang" in answer:
                _end(self._jvms.pop(kind))
                yield {"hang": True, "at": step}
                return
            yield {"step": step, **answer}
            if step["op"] == "restart_rm" and "error" in answer["reply"]:
                return

    def close(self) -> None:
        """End the JVMs; the next `record` starts another."""
        while self._jvms:
            _, jvm = self._jvms.popitem()
            _end(jvm)

    def _running(self, kind: tuple[str, str]) -> subprocess.Popen[str]:
        if kind not in self._jvms:
            if len(self._jvms) == JVMS_MAX:
                oldest = next(iter(self._jvms))
                _end(self._jvms.pop(oldest))
            self._jvms[kind] = _spawn(build(kind[0]))
        return self._jvms[kind]


def _spawn(folder: Path) -> subprocess.Popen[str]:
    hosts = folder / "hosts"
    # Look up hosts in files only: a scenario's hosts do not resolve, and DNS takes seconds to answer that.
    hosts.write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
    classpath = f"{folder / 'classes'}{os.pathsep}{(folder / 'classpath').read_text()}"
    options = [*_JVM_OPTIONS, f"-Djdk.net.hosts.file={hosts}", "-cp", classpath]
    return subprocess.Popen(
        ["java", *options, "conformance.Driver"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
    )


def _ask(jvm: subprocess.Popen[str], request: dict[str, Any]) -> Json:
    assert jvm.stdin
    assert jvm.stdout
    jvm.stdin.write(json.dumps(request) + "\n")
    jvm.stdin.flush()
    deadline = threading.Timer(ANSWER_SECONDS_MAX, jvm.kill)
    deadline.start()
    try:
        line = jvm.stdout.readline()
    finally:
        deadline.cancel()
    if line:
        answer: Json = json.loads(line)
        return answer
    if jvm.wait() == -signal.SIGKILL:
        return {"hang": True}
    raise OracleError(f"the JVM ended with {jvm.returncode} at {json.dumps(request)[:REQUEST_SHOWN_MAX]}")


def _end(jvm: subprocess.Popen[str]) -> None:
    assert jvm.stdin
    assert jvm.stdout
    try:
        jvm.stdin.close()
        jvm.wait(_CLOSE_SECONDS_MAX)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        jvm.kill()
        jvm.wait()
    jvm.stdout.close()
