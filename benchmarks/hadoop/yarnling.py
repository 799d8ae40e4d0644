"""Runs a case on yarnling's core: python -m benchmarks.hadoop.yarnling CASE prints what it measured as JSON.

Each case runs both ways in turns: with heartbeats that go through the whole core, as in benchmarks/core.py, and with
heartbeats that go to the scheduler only, as in Hadoop's program. There, events of the scheduler for applications are
queued in the measured time and handled afterwards, or never.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TypedDict

from benchmarks.core import request_containers
from benchmarks.core_driver import CoreDriver, cpu_s
from benchmarks.hadoop.cases import CASES, Case
from benchmarks.reject import reach_limits, rejecting_cpu_s
from yarn.containers import ContainerStatus
from yarnling.cli.version import scheduler_is_compiled

PASSES = 2
"""The number of times that a process runs the case each way."""

WAYS = (False, True)
"""Through the core, then to the scheduler only."""


class YarnlingPasses(TypedDict):
    """The measurements of a process: seconds of CPU of each pass, and (application, container, node) of the first."""

    is_compiled: bool
    core_cpu_s: list[float]
    scheduler_cpu_s: list[float]
    containers: list[tuple[int, int, int]]


class SchedulerDriver(CoreDriver):
    """A driver whose heartbeats go to the scheduler only, once `skips_core` is set."""

    skips_core = False

    def beat(self, containers: Sequence[ContainerStatus] = ()) -> None:
        if self.skips_core:
            self.core.scheduler.node_update(self.next_node(), (), (), self.now_ms)
        else:
            super().beat(containers)


def run(case: Case) -> YarnlingPasses:
    """All passes of the case, both ways."""
    passes = YarnlingPasses(
        is_compiled=scheduler_is_compiled(),
        core_cpu_s=[],
        scheduler_cpu_s=[],
        containers=[],
    )
    for _ in range(PASSES):
        for skips_core in WAYS:
            cluster = SchedulerDriver(case.nodes, case.configuration, case.node)
            passes["scheduler_cpu_s" if skips_core else "core_cpu_s"].append(_cpu_s(cluster, case, skips_core))
            passes["containers"] = passes["containers"] or cluster.containers()
    return passes


def _cpu_s(cluster: SchedulerDriver, case: Case, skips_core: bool) -> float:
    """The seconds of CPU of a pass."""
    if case.heartbeats:
        reach_limits(cluster, case.queues, case.applications)
        cluster.skips_core = skips_core
        return rejecting_cpu_s(cluster, case.heartbeats, stirred=case.stirred)
    request_containers(cluster, case.queues, case.applications, case.work)
    cluster.skips_core = skips_core
    return cpu_s(lambda: cluster.beat_until_placed(case.work))


if __name__ == "__main__":
    print(json.dumps(run(CASES[sys.argv[1]])))
