"""Changes of the scheduler's configuration by REST and by `yarn schedulerconf`: what is asked, and Hadoop's answers.

    scripts/record-hadoop --scheduler-conf     asks Hadoop's ResourceManager and writes recordings/scheduler-conf.json

A scene is a configuration and steps: requests, commands, restarts of the ResourceManager, and looks at the directory of
the store. yarnling is asked the same, without Java except for the commands.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.hadoop import toolchain
from tests.hadoop.scheduler_conf_scenes import SCENES, Command, Files, Request, Restart, Scene, Step
from wire.files.hadoop_xml import to_xml

HERE = Path(__file__).resolve().parent
RECORDING = HERE / "recordings" / "scheduler-conf.json"
FIRST_PORT = 18030
"""Ports of the recorded ResourceManager; below the range of ports that clients get."""
START_S = 120.0
RM_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
STORE = "/store/"
"""Stands in recordings for the directory of the store."""


def addresses() -> dict[str, str]:
    names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    return {f"yarn.resourcemanager.{name}": f"127.0.0.1:{FIRST_PORT + at}" for at, name in enumerate(names)}


class HadoopRM:
    """Hadoop's ResourceManager in a JVM of its own, with one scene's configuration."""

    def __init__(self, scene: Scene, work: Path) -> None:
        self.conf, self.store = work / "conf", work / "store"
        self.conf.mkdir()
        self.addresses = addresses()
        site = {"fs.defaultFS": "file:///", **self.addresses, **scene.site(self.store)}
        (self.conf / "core-site.xml").write_text(to_xml({"fs.defaultFS": "file:///"}))
        (self.conf / "yarn-site.xml").write_text(to_xml(site))
        (self.conf / "capacity-scheduler.xml").write_text(to_xml(scene.queues))
        (self.conf / "log4j.properties").write_text("log4j.rootLogger=WARN,out\n" + APPENDER)
        self._log = (work / "rm.log").open("w")

    @contextmanager
    def running(self) -> Iterator[None]:
        jars = toolchain.jars("minicluster")
        path = toolchain.class_path_of(self.conf, jars / "*")
        command = toolchain.command(path, RM_CLASS, flags=toolchain.OPENED)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)
        try:
            self._wait(process)
            yield
        finally:
            process.terminate()
            process.wait()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if ask(self.addresses, Request("GET", "/info"))["status"] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.3)
        raise RuntimeError(f"the ResourceManager did not start; see {self._log.name}")


APPENDER = """log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.Target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c: %m%n
"""


def ask(where: Mapping[str, str], request: Request) -> dict[str, Any]:
    """The answer to a request: status, content type and body."""
    connection = http.client.HTTPConnection(where["yarn.resourcemanager.webapp.address"], timeout=60)
    try:
        connection.request(request.method, request.target, request.data, request.headers)
        answer = connection.getresponse()
        kind = answer.getheader("Content-Type")
        return {"status": answer.status, "contentType": kind, "body": answer.read().decode()}
    finally:
        connection.close()


def run_command(conf: Path, command: Command) -> dict[str, Any]:
    """The output of one of Hadoop's commands, without its log."""
    path = toolchain.class_path_of(conf, toolchain.jars("mapreduce") / "*")
    words = toolchain.command(path, f"org.apache.hadoop.yarn.client.cli.{command.main}", *command.words)
    ran = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HADOOP_USER_NAME": command.user},
    )
    return {"status": ran.returncode, "stdout": ran.stdout, "stderr": _said(ran.stderr)}


def _said(stderr: str) -> list[str]:
    """The lines that are neither of the log nor of a stack."""
    return [line for line in stderr.splitlines() if line and not re.match(r"\d{4}-|\s|Caused by", line)]


def listed(store: Path) -> dict[str, Any]:
    """The files of the store, times as the number of the file, and the version as it is written."""
    names = sorted(each.name for each in store.iterdir() if not each.name.endswith(".crc"))
    numbered = [re.sub(r"\.\d{13}", ".TIME", name) for name in names]
    return {"files": numbered, "version": (store / "ConfigVersion").read_bytes().hex()}


def record(scene: Scene, work: Path) -> list[dict[str, Any]]:
    """The answers of Hadoop to the steps of a scene."""
    rm, steps = HadoopRM(scene, work), list(scene.steps)
    seen: list[dict[str, Any]] = []
    while True:
        with rm.running():
            while steps and not isinstance(steps[0], Restart):
                seen.append(answer(steps.pop(0), rm))
        if not steps:
            return seen
        steps.pop(0)
        seen.append({"step": "restart"})


def answer(step: Step, rm: HadoopRM) -> dict[str, Any]:
    if isinstance(step, Request):
        return {"step": str(step), "sent": step.data, **ask(rm.addresses, step)}
    if isinstance(step, Command):
        return {"step": str(step), **run_command(rm.conf, step)}
    assert isinstance(step, Files)
    return {"step": "files", **listed(rm.store)}


def main() -> None:
    wanted = sys.argv[1:]
    recorded = json.loads(RECORDING.read_text()) if RECORDING.exists() else {}
    for scene in SCENES:
        if wanted and scene.name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as work:
            try:
                recorded[scene.name] = json.loads(json.dumps(record(scene, Path(work))).replace(work, ""))
            except Exception:
                sys.stderr.write((Path(work) / "rm.log").read_text()[-4000:])
                raise
        sys.stdout.write(f"{scene.name}: {len(recorded[scene.name])} steps\n")
    RECORDING.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
