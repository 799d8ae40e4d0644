"""Runs the scenes in java/scenes: on Hadoop's own cluster, to record them, and on yarnling's, to compare.

    scripts/record-hadoop                  makes recordings/*.jsonl anew
    scripts/record-hadoop NodeScenes.lost  prints one scene, recorded now

A scene writes a JSON line for each step. Both clusters have the configuration in conf/.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.hadoop import toolchain
from yarn.settings.logs import AGGREGATION_ENABLED
from yarn.settings.nodemanager import AUX_SERVICES
from yarn.settings.resourcemanager import NODES_EXCLUDE_PATH
from yarn.states import DecommissionType
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import LocalCluster

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "recordings"
NODES = 2
TOPICS = {
    "base": (
        "SubmissionScenes",
        "ApplicationScenes",
        "ClusterScenes",
        "MasterScenes",
        "ContainerScenes",
        "NodeScenes",
        "DecommissionScenes",
        "RestartScenes",
        "RestartOfMasterScenes",
        "RestartOfClientScenes",
    ),
    "preemption": ("PreemptionScenes",),
}
"""Which topics are played with which configuration, in this order: those that disturb the cluster last."""

Steps = list[tuple[str, Any]]
"""The steps that a scene saw: (step, value)."""


def record(work: Path, configuration: str, topics: Iterable[str]) -> dict[str, Steps]:
    """Play scenes on Hadoop's own cluster."""
    client, servers = toolchain.jars("client"), toolchain.jars("minicluster")
    classes = toolchain.compiled("scenes", work / "classes", client / "*")
    mini = toolchain.compiled("mini", work / "mini", servers / "*", classes)
    conf = HERE / "conf" / configuration
    run = work / "run"
    run.mkdir()
    for file in conf.iterdir():
        (run / file.name).write_bytes(file.read_bytes())
    (work / "log4j.properties").write_text(LOG4J)
    path = toolchain.class_path_of(run, work, classes, mini, servers / "*")
    command = toolchain.command(
        path, "scenes.Driver", "mini", conf, work / "saw.jsonl", *topics, flags=toolchain.OPENED
    )
    with (work / "driver.log").open("w") as log:
        played = subprocess.run(command, cwd=run, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
    if played.returncode != 0:
        raise RuntimeError(f"the driver ended with {played.returncode}:\n{(work / 'driver.log').read_text()[-5000:]}")
    return read(work / "saw.jsonl")


def play(work: Path, configuration: str, topics: Iterable[str]) -> dict[str, Steps]:
    """Play scenes on yarnling's cluster."""
    client = toolchain.jars("client")
    classes = toolchain.compiled("scenes", work / "classes", client / "*")
    conf = HERE / "conf" / configuration
    excluded = work / "excluded"
    excluded.touch()
    settings = {
        "yarn.yarnling.hadoop-rpc.enabled": "true",
        NODES_EXCLUDE_PATH.key: str(excluded),
        # as on the recorded cluster
        AUX_SERVICES.key: "",
        AGGREGATION_ENABLED.key: "false",
    }
    with LocalCluster(nodes=NODES, memory_mb=4096, vcores=4, conf=conf, settings=settings) as cluster:
        client_conf = client_configuration(
            work / "client-conf", (conf / "yarn-site.xml").read_text(), cluster.addresses
        )
        path = toolchain.class_path_of(classes, client / "*")
        command = toolchain.command(path, "scenes.Driver", "remote", client_conf, work / "saw.jsonl", *topics)
        status = _drive(command, work, acts(cluster, excluded))
    if status != 0:
        raise RuntimeError(f"the driver ended with {status}:\n{(work / 'driver.log').read_text()[-5000:]}")
    return read(work / "saw.jsonl")


def client_configuration(directory: Path, site: str, addresses: Mapping[str, str]) -> Path:
    """A directory with what a client of Hadoop's needs to find the cluster: `site`, and its addresses."""
    directory.mkdir(exist_ok=True)
    properties = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>\n" for key, value in addresses.items()
    )
    (directory / "yarn-site.xml").write_text(site.replace("</configuration>", f"{properties}</configuration>"))
    return directory


def _drive(command: list[str], work: Path, act: Callable[[list[str]], str]) -> int:
    """Run the driver; each line that it prints is an act on the cluster, and is answered."""
    with (
        (work / "driver.log").open("w") as log,
        subprocess.Popen(
            command, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as driver,
    ):
        assert driver.stdin
        assert driver.stdout
        try:
            for line in driver.stdout:
                try:
                    answer = f"ok {act(line.split())}"
                except Exception as failure:  # the driver's scene fails with it
                    answer = repr(failure).replace("\n", " ")
                driver.stdin.write(answer + "\n")
                driver.stdin.flush()
            return driver.wait()
        finally:
            driver.kill()


def acts(cluster: BlockingCluster, excluded: Path) -> Callable[[list[str]], str]:
    """The actions of scenes on the cluster, by name."""

    def restart_rm() -> None:
        cluster.kill_rm()
        cluster.restart_rm()

    def decommission(number: str, seconds: str) -> None:
        excluded.write_text(cluster.node(int(number)).place.host + "\n")
        kind = DecommissionType.NORMAL if seconds == "0" else DecommissionType.GRACEFUL
        cluster.client.refresh_nodes(kind, None if seconds == "0" else int(seconds))

    def keep(_: str) -> None:
        excluded.write_text("")
        cluster.client.refresh_nodes()

    def recommission(number: str) -> None:
        cluster.until(lambda: not cluster.node(int(number)).alive)
        keep(number)

    def number_of(node_id: str) -> int:
        return next((number for number, node in enumerate(cluster.nodes, 1) if str(node.id) == node_id), 0)

    by_name: dict[str, Callable[..., object]] = {
        "restart-rm": restart_rm,
        "kill-node": lambda number: cluster.kill_node(int(number)),
        "stop-node": lambda number: cluster.remove_node(int(number)),
        "start-node": lambda number: cluster.restart_node(int(number)),
        "decommission": decommission,
        "keep": keep,
        "recommission": recommission,
        "number-of": number_of,
    }

    def act(words: list[str]) -> str:
        result = by_name[words[0]](*words[1:])
        return str(result) if isinstance(result, int) else ""

    return act


def read(path: Path) -> dict[str, Steps]:
    """{scene: its steps} of a file that the driver wrote."""
    scenes: dict[str, Steps] = {}
    for line in path.read_text().splitlines():
        found = json.loads(line)
        scenes.setdefault(found["scene"], []).append((found["step"], found["saw"]))
    return scenes


def write(path: Path, scenes: Mapping[str, Steps]) -> None:
    lines = [
        json.dumps({"scene": scene, "step": step, "saw": saw}, sort_keys=False)
        for scene, steps in scenes.items()
        for step, saw in steps
    ]
    path.write_text("\n".join(lines) + "\n")


LOG4J = """\
log4j.rootLogger=WARN,stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %c{1} %m%n
log4j.logger.org.apache.hadoop.yarn.server.resourcemanager.RMAuditLogger=OFF
"""


def main() -> None:
    """Record all scenes, or print those named."""
    wanted = sys.argv[1:]
    for configuration, topics in TOPICS.items():
        chosen = [name for name in wanted if name.split(".")[0] in topics] if wanted else list(topics)
        if not chosen:
            continue
        with tempfile.TemporaryDirectory() as work:
            scenes = record(Path(work), configuration, chosen)
        failed = [name for name, steps in scenes.items() if any(step == "the scene failed" for step, _ in steps)]
        for name in failed:
            sys.stderr.write(f"{name} failed: {scenes[name][-1][1]}\n")
        if wanted:
            write(Path("/dev/stdout"), scenes)
        elif failed:
            sys.exit(1)
        else:
            for topic in topics:
                own = {name: steps for name, steps in scenes.items() if name.startswith(f"{topic}.")}
                write(RECORDINGS / f"{topic}.jsonl", own)


if __name__ == "__main__":
    main()
