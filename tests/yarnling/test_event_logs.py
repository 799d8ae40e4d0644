"""Event logs of a whole cluster of processes, replayed into fresh cores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from am.programs.distributed_shell.client import parse
from nm.core import NodeManagerCore
from nm.shell.node_manager import NodeCoreStart as NodeStart
from rm.daemon import ResourceManagerStart
from wire.event_log import LoggedStep, read_event_log
from wire.files.json_records import to_json
from yarn.states import FinalApplicationStatus
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


class Core(Protocol):
    def handle(self, event: Any, now_ms: int) -> list[Any]: ...


def core_of(start: object) -> Core:
    """A core like the one whose log begins with `start`."""
    if isinstance(start, ResourceManagerStart):
        return start.core()
    assert isinstance(start, NodeStart)
    return NodeManagerCore(start.node_id, start.facts, start.settings)


def replay(core: Core, steps: Iterator[LoggedStep]) -> set[str]:
    """Replay the steps. Each must have the recorded effects. Returns the kinds of events in the log."""
    kinds = set()
    for step in steps:
        kinds.add(type(step.event).__name__)
        assert to_json(tuple(core.handle(step.event, step.now_ms))) == to_json(step.effects), step.event
    return kinds


async def test_logs_of_a_run_replay_into_the_same_effects(tmp_path: Path) -> None:
    """Two applications run, one of them on a node that is killed with -9.

    The logs of the RM and of every node are replayed.
    """
    settings = {
        "yarn.yarnling.event-log": str(tmp_path),
        "yarn.nm.liveness-monitor.expiry-interval-ms": "20000",
    }
    async with LocalCluster(nodes=2, fast=True, settings=settings) as cluster:
        short = await cluster.client.start(parse(["-shell_command", "true", "-num_containers", "3"]))
        await cluster.client.wait(short.application_id)
        long = await cluster.client.start(parse(["-shell_command", "sleep 1", "-num_containers", "4"]))
        await cluster.kill_node(2)
        report = await cluster.client.wait(long.application_id)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED
    logs = sorted(tmp_path.glob("*.jsonl"))
    assert len(logs) == 3
    for log in logs:
        start, steps = read_event_log(log)
        kinds = replay(core_of(start), steps)
        assert len(kinds) > 5, f"{log} has too few kinds of events"
