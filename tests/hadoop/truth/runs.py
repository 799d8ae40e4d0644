"""The true runs: what each has as its workload, configuration, nodes and accidents.

A true run is Hadoop's own ResourceManager in real time (recorder.py). The same workload and configuration are then
simulated, and both are compared (judge.py). Workloads are drawn once, from the summary of their name in workloads/,
and kept beside it, so that another way of drawing does not change them.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from yarn.java.versions import HADOOP_VERSION
from yarn.resource import Resource
from yarn.settings.release import RELEASE
from yarnling.workload.defaults import Defaults
from yarnling.workload.formats import read_workload
from yarnling.workload.model import (
    NodeChange,
    NodeEvent,
    TaskGroup,
    Workload,
    WorkloadApplication,
    WorkloadNode,
)
from yarnling.workload.workload_file import parse_workload_lines, write_workload

HERE = Path(__file__).resolve().parent
WORKLOADS = HERE / "workloads"
CONFIGURATIONS = HERE / "conf"
RECORDINGS = HERE / "recordings"
DRAW_SEED = 21
CS = "yarn.scheduler.capacity."
GPU = "gpu"


def hosts(count: int) -> tuple[str, ...]:
    """Loopback addresses, one for each node: a NodeManager listens on its own."""
    return tuple(f"127.0.{1 + number // 250}.{1 + number % 250}" for number in range(count))


class TrueRun(Struct, frozen=True):
    """A run to record and to simulate.

    `workload`: the name of its file. `configuration`: the name of its directory, to which `settings` are added.
    `labelled`: so many nodes, the last ones, have the label GPU. `release`: of Hadoop. `minutes`: how long it takes.
    """

    name: str
    about: str
    workload: str
    configuration: str
    settings: Mapping[str, str] = {}
    node_count: int = 20
    labelled: int = 0
    losses: tuple[NodeEvent, ...] = ()
    minutes: float = 5
    release: str = HADOOP_VERSION

    @property
    def simulated_settings(self) -> Mapping[str, str]:
        """The settings of the simulation of this run."""
        return {**self.settings, RELEASE.key: self.release}

    @property
    def nodes(self) -> tuple[WorkloadNode, ...]:
        first_labelled = self.node_count - self.labelled
        return tuple(
            WorkloadNode(host, Resource(32768, 16), label=GPU if number >= first_labelled else "")
            for number, host in enumerate(hosts(self.node_count))
        )


FAIR = {f"{CS}root.{queue}.ordering-policy": "fair" for queue in ("etl", "adhoc", "ml")}
LABELS = {
    "yarn.node-labels.enabled": "true",
    f"{CS}root.accessible-node-labels.gpu.capacity": "100",
    f"{CS}root.ml.accessible-node-labels": GPU,
    f"{CS}root.ml.accessible-node-labels.gpu.capacity": "100",
    f"{CS}root.etl.accessible-node-labels": " ",
    f"{CS}root.adhoc.accessible-node-labels": " ",
}
LOST_AT_MS = 60_000

RUNS = (
    TrueRun("quick-starts", "110 % load; AMs start in 200 ms, tasks at once", "quick", "before", minutes=8),
    TrueRun("overload-before", "110 % load, before the change of examples/what-if/move-capacity", "overload", "before"),
    TrueRun("overload-after", "the same workload, after the change", "overload", "after"),
    TrueRun("steady", "70 % load", "steady", "before", minutes=4),
    TrueRun("preemption", "production takes its guarantee back", "preemption", "preemption"),
    TrueRun(
        "asynchronous",
        "110 % load, asynchronous scheduling",
        "overload",
        "before",
        {f"{CS}schedule-asynchronously.enable": "true"},
    ),
    TrueRun("fair", "110 % load, applications in fair order", "overload", "before", FAIR),
    TrueRun(
        "labels-locality", "70 % load, a label and preferred hosts", "labels", "before", LABELS, labelled=4, minutes=5
    ),
    TrueRun(
        "lost-node",
        "70 % load, a node is lost",
        "steady",
        "before",
        {"yarn.nm.liveness-monitor.expiry-interval-ms": "20000"},
        losses=(NodeEvent(LOST_AT_MS, hosts(20)[6], NodeChange.LOST),),
    ),
    TrueRun("release-3.5.0", "110 % load, Hadoop 3.5.0 with its defaults", "overload", "before", release="3.5.0"),
    TrueRun("hundred-nodes", "70 % load of 100 nodes", "hundred", "before", node_count=100, minutes=4),
)


def workload_of(run: TrueRun) -> Workload:
    """The workload of a run, drawn if it has not been kept yet."""
    kept = WORKLOADS / f"{run.workload}.jsonl.gz"
    if not kept.exists():
        drawn = read_workload(WORKLOADS / f"{run.workload}.yaml", defaults=Defaults(seed=DRAW_SEED))
        _keep(_located(drawn, run) if run.labelled else drawn, kept)
    return parse_workload_lines(gzip.decompress(kept.read_bytes()).decode(), str(kept))


def _keep(workload: Workload, kept: Path) -> None:
    plain = kept.with_suffix("")
    write_workload(workload, plain)
    kept.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    plain.unlink()


def _located(workload: Workload, run: TrueRun) -> Workload:
    """The workload with two preferred hosts for each five maps, as an input of blocks has."""
    random = Random(DRAW_SEED)
    wanted = [node.host for node in run.nodes if not node.label]

    def parts(group: TaskGroup) -> list[TaskGroup]:
        if group.name != "map":
            return [group]
        durations = [group.durations_ms[start : start + 5] for start in range(0, len(group.durations_ms), 5)]
        return [replace(group, durations_ms=some, hosts=tuple(random.sample(wanted, 2))) for some in durations]

    def split(application: WorkloadApplication) -> WorkloadApplication:
        groups: list[TaskGroup] = []
        for group in application.groups:
            groups += [
                replace(part, after=len(groups) - 1 if group.after is not None else None) for part in parts(group)
            ]
        return replace(application, groups=tuple(groups))

    return replace(workload, applications=tuple(map(split, workload.applications)))
