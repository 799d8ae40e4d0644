"""The files of a seed of lab 3: faulty configuration, jobs, nodes, what people say, and the answer to fill in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from wire.files.hadoop_xml import to_xml
from yarnling.labs.mistake.cluster import AM_MB, GPU, MACHINE, LabCluster, is_of_queues
from yarnling.labs.mistake.complaints import Complaint
from yarnling.labs.mistake.planted import LabCase
from yarnling.whatif.run import what_if_configuration
from yarnling.workload.model import WorkloadNodes
from yarnling.workload.nodes_file import write_nodes
from yarnling.workload.workload_file import write_workload

CONF, WORKLOAD, NODES, ANSWER, README, TASKS = (
    *("conf", "workload.jsonl", "nodes.json"),
    *("answer.yaml", "README.md", "tasks.yaml"),
)


def write_case(case: LabCase, complaints: Sequence[Complaint], directory: Path) -> None:
    """Write the files into a directory, which is made. Raises OSError."""
    conf = directory / CONF
    conf.mkdir(parents=True, exist_ok=True)
    of_queues = {key: value for key, value in case.settings.items() if is_of_queues(key)}
    others = {key: value for key, value in case.settings.items() if not is_of_queues(key)}
    (conf / "capacity-scheduler.xml").write_text(to_xml(of_queues), encoding="utf-8")
    (conf / "yarn-site.xml").write_text(to_xml(others), encoding="utf-8")
    write_workload(case.cluster.workload, directory / WORKLOAD)
    nodes = case.cluster.nodes(what_if_configuration(None, case.settings).conf)
    write_nodes(WorkloadNodes(nodes), directory / NODES)
    (directory / README).write_text(_readme(case.cluster, complaints, directory), encoding="utf-8")
    (directory / TASKS).write_text(_tasks(case.cluster), encoding="utf-8")
    answer = directory / ANSWER
    if not answer.exists():
        answer.write_text(_answer(case.cluster), encoding="utf-8")


def _answer(cluster: LabCluster) -> str:
    return f"""\
# Lab 3, find the mistake. Fill in the values; judge them: yarnling lab mistake FILE
name: ""                # yours
seed: {cluster.seed}
key: ""                 # the key that is wrong: of a queue as user-limit-factor, of the cluster whole: yarn....
queue: ""               # its queue, as root.{cluster.names.production}; empty for a key of the cluster
value: ""               # the value that mends the cluster
evidence: ""            # which application or node shows it, and what did YARN show of it?
"""


def command_of(seconds: int) -> str:
    """The command of a task on real processes, where its container is emulated by the table of `tasks.yaml`."""
    return f"work {seconds}"


def _tasks(cluster: LabCluster) -> str:
    """The table of emulated containers: AMs are processes, tasks are not."""
    lines = []
    for seconds in sorted({job.seconds for job in cluster.jobs}):
        match = f"{{command: '{command_of(seconds)}( |$)'}}"
        lines.append(f"  - {{match: {match}, stages: [{{lasts: {seconds}s, memory: 60%, cpu: 80%}}]}}\n")
    rules = "".join(lines)
    return f"rules:\n  - {{match: {{kind: master}}, run: real}}\n{rules}"


def _readme(cluster: LabCluster, complaints: Sequence[Complaint], directory: Path) -> str:
    environment = Environment(
        loader=PackageLoader("yarnling.labs.mistake", "."),
        autoescape=False,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("readme.md.jinja").render(
        cluster=cluster,
        names=cluster.names,
        complaints=complaints,
        machine=MACHINE,
        gpu=GPU,
        am_mb=AM_MB,
        at=directory,
        conf=CONF,
        workload=WORKLOAD,
        nodes=NODES,
        answer=ANSWER,
    )
