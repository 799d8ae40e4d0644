"""Timelines of the event logs of a cluster of processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from am.programs.distributed_shell.client import parse
from wire.watching import calls_of, sockets
from yarn.settings.yarnling import WATCH_DIR
from yarnling.cli.app import app
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.run.reader import read_run
from yarnling.run.records import LOST, Outcome, Role, What
from yarnling.run.watched import watched
from yarnling.run.writer import RunWriter
from yarnling.timeline.traffic import traffic_of

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


async def test_event_logs_show_who_called_whom(tmp_path: Path) -> None:
    settings = {"yarn.yarnling.event-log": str(tmp_path)}
    async with LocalCluster(nodes=2, fast=True, settings=settings) as cluster:
        job = await cluster.client.start(parse(["-shell_command", "true", "-num_containers", "3"]))
        await cluster.client.wait(job.application_id)
    timeline = read_run(tmp_path)
    assert timeline.notes == (), "the log could be replayed"
    assert [(one.role, one.title) for one in timeline.lifelines] == [
        (Role.CLIENT, "client"),
        (Role.AM, "AM 0001"),
        (Role.RM, "RM"),
        (Role.NM, "NM-1"),
        (Role.NM, "NM-2"),
    ]
    starts = [one for one in timeline.calls if one.rpc == "startContainers"]
    assert sum(one.source == "rm" for one in starts) == 1, "the ResourceManager starts the AM, and the AM the others"
    heartbeats = [one for one in timeline.calls if one.rpc == "nodeHeartbeat" and one.outcome is Outcome.ANSWERED]
    assert heartbeats
    for one in heartbeats:
        assert one.arrived_ms is not None
        assert one.over_ms is not None
        assert one.sent_ms <= one.arrived_ms
    assert not [one for one in timeline.calls if one.outcome in LOST and one.rpc != "nodeHeartbeat"]
    allocated = {one.container for one in timeline.decisions if one.what is What.ALLOCATED}
    started = {one.subject for one in timeline.changes if one.kind == "NMContainer" and one.target == "RUNNING"}
    assert len(allocated) >= 4
    assert started <= allocated
    (application,) = traffic_of(timeline).applications
    assert {one.container for one in application.containers} == allocated
    assert all(one.tally.calls["startContainers"] >= 1 for one in application.containers)


async def test_a_recording_has_the_bytes_of_each_container(tmp_path: Path) -> None:
    directory = tmp_path / "watch"
    async with LocalCluster(nodes=1, fast=True, settings={WATCH_DIR.key: str(directory)}) as cluster:
        lines: list[str] = []
        writer = RunWriter(lines.append, "watched")
        is_watched = asyncio.Event()

        async def record(name: str) -> None:
            async for line in calls_of(directory, name):
                writer.record(watched(line))
                is_watched.set()

        async with asyncio.TaskGroup() as tasks:
            recording = [tasks.create_task(record(name)) for name in sockets(directory)]
            await is_watched.wait()
            job = await cluster.client.start(parse(["-shell_command", "true", "-num_containers", "3"]))
            await cluster.client.wait(job.application_id)
            for task in recording:
                task.cancel()
    recorded = tmp_path / "calls.jsonl"
    recorded.write_text("".join(lines))
    traffic = traffic_of(read_run(recorded))
    (application,) = traffic.applications
    assert len(application.containers) == 4
    assert all(one.tally.bytes["startContainers"] > 100 for one in application.containers), "each has a launch context"
    parts = application.tally.all_bytes + traffic.others.all_bytes
    assert parts == pytest.approx(
        sum(
            line["call"].get("request_bytes", 0) + line["call"].get("reply_bytes", 0)
            for line in map(json.loads, lines)
            if "call" in line
        )
    )


PLAN = """
about: A node and the ResourceManager are killed while applications run.
cluster: {nodes: 3}
work: [{program: tasks, tasks: 8, seconds: 0.5, applications: 2, users: "ann, bob"}]
faults:
  - {fault: kill-node, node: 2, at: 0.5, for: 0.5}
  - {fault: kill-rm, at: 2, for: 0.5}
lasts: 3
"""


@pytest.mark.soak
def test_a_chaos_run_of_processes_is_a_timeline_with_its_faults(tmp_path: Path) -> None:
    plan, kept, page = tmp_path / "plan.yaml", tmp_path / "kept", tmp_path / "page.html"
    plan.write_text(PLAN)
    command = [sys.executable, "-m", "yarnling", "chaos", str(plan), "--seed", "1", "--keep", str(kept)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (run,) = kept.iterdir()
    timeline = read_run(run)
    assert timeline.notes == (), "the log could be replayed, over the restart too"
    assert {(fault.kind, fault.hosts) for fault in timeline.faults} == {("kill-node", ("nm-2",)), ("kill-rm", ("rm",))}
    assert all(
        timeline.from_ms < fault.from_ms < (fault.until_ms or 0) < timeline.until_ms for fault in timeline.faults
    )
    for node in ("nm-1", "nm-2", "nm-3"):
        arrived = [one.arrived_ms for one in timeline.calls if one.source == node and one.arrived_ms is not None]
        assert arrived == sorted(arrived), "one connection keeps the order of what is sent on it"
    faulty = [(fault.from_ms, fault.until_ms or 0, fault.hosts) for fault in timeline.faults]
    for lost in (one for one in timeline.calls if one.outcome in LOST):
        ended_ms = lost.over_ms or lost.sent_ms
        # The ResourceManager stops AMs on a killed node once it is LOST, which is after the fault.
        is_clean_up = lost.rpc == "stopContainers"
        assert any(
            from_ms <= ended_ms
            and (is_clean_up or lost.sent_ms <= until_ms)
            and {lost.source, lost.target} & set(hosts)
            for from_ms, until_ms, hosts in faulty
        ), f"{lost.rpc} of {lost.source} was lost without a fault"
    allocated = Counter(one.container for one in timeline.decisions if one.what is What.ALLOCATED)
    assert set(allocated.values()) == {1}
    drawn = CliRunner().invoke(app, ["timeline", str(run), "-o", str(page)])
    assert drawn.exit_code == 0, drawn.output
    assert "kill-rm" in page.read_text()
