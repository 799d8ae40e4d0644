"""Asynchronous scheduling in processes: containers come from walks over the nodes, and the log of the run replays."""

from __future__ import annotations

from pathlib import Path

import pytest

from rm.daemon import ResourceManagerStart
from tests.cluster.conftest import QUICK
from wire.event_log import read_event_log
from wire.files.json_records import to_json
from yarn.machine import Tick
from yarn.settings.yarnling import CHECK_INVARIANTS, EVENT_LOG
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster


def test_walks_place_containers_and_the_log_replays(tmp_path: Path) -> None:
    settings = {
        **QUICK,
        "yarn.scheduler.capacity.schedule-asynchronously.enable": "true",
        CHECK_INVARIANTS.key: "true",
        EVENT_LOG.key: str(tmp_path),
    }
    with LocalCluster(2, memory_mb=4096, settings=settings, fast=True) as cluster:
        assert cluster.warnings == ()
        result = cluster.run("true", containers=4)
        assert result.succeeded
    start, steps = read_event_log(tmp_path / "resourcemanager.jsonl")
    assert isinstance(start, ResourceManagerStart)
    core, ticks = start.core(), 0
    for step in steps:
        ticks += isinstance(step.event, Tick) and bool(step.effects)
        assert to_json(tuple(core.handle(step.event, step.now_ms))) == to_json(step.effects), step.event
    assert ticks > 0
