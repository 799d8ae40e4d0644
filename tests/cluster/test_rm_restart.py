"""kill -9 of the ResourceManager while applications run, and another one on the same store: nothing runs twice."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from rm.core.events import StateLoaded
from rm.core.stored_state import RMState
from tests.am.programs.mapreduce.test_on_cluster import MAPS, books, counting, gate, three_maps_done
from tests.am.programs.on_cluster import Cluster, counts_in, plain_counts
from tests.cluster.applications import shell
from tests.cluster.heartbeats import HeartbeatLog
from wire.event_log import earlier_log, read_event_log
from wire.files.json_records import to_json
from yarn.errors import ApplicationNotFoundException
from yarn.settings.resourcemanager import RECOVERY_ENABLED, WORK_PRESERVING_RECOVERY_ENABLED
from yarn.settings.yarnling import EVENT_LOG
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.cluster.launcher import DaemonFailed
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

__all__ = ["books", "gate"]

pytestmark = [pytest.mark.cluster, pytest.mark.case("I4")]
DEADLINE_S = 60.0
SETTINGS = {
    RECOVERY_ENABLED.key: "true",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
}


def local(directory: Path, **settings: str) -> LocalCluster:
    return LocalCluster(
        3,
        memory_mb=2048,
        vcores=16,
        fast=True,
        settings={**SETTINGS, **settings},
        options=ClusterOptions(directory=directory / "cluster"),
    )


@pytest_asyncio.fixture
async def three(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with local(tmp_path) as it:
        yield Cluster(it, tmp_path / "staging", HeartbeatLog(tmp_path / "events"))


def noting(file: Path, gate: Path) -> str:
    """A command that writes its container's id to `file` and waits for the gate; a second start writes it twice."""
    return f"echo $CONTAINER_ID >> {file}; while ! test -e {gate}; do sleep 0.2; done; echo over >> {file}.over; true"


async def lines_of(file: Path, count: int) -> list[str]:
    async with asyncio.timeout(DEADLINE_S):
        while not file.exists() or len(file.read_text().split()) < count:  # noqa: ASYNC110  files set no event
            await asyncio.sleep(0.02)
    return file.read_text().split()


async def restart(it: Cluster) -> None:
    await it.local.kill_rm()
    await it.local.restart_rm()


async def test_a_distributed_shell_continues_through_a_restart(three: Cluster, tmp_path: Path) -> None:
    noted, gate = tmp_path / "noted", tmp_path / "open"
    app = await three.submit(shell(noting(noted, gate), 4))
    before = await lines_of(noted, 4)
    await restart(three)
    report = await three.client.report(app)
    assert report.state in (YarnApplicationState.ACCEPTED, YarnApplicationState.RUNNING)
    gate.touch()
    report = await three.client.wait(app, timeout_s=DEADLINE_S)
    assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
    assert Counter(noted.read_text().split()) == Counter(before)
    assert len(await lines_of(Path(f"{noted}.over"), 4)) == 4


async def test_containers_requested_during_a_restart_are_allocated_after_it(three: Cluster, tmp_path: Path) -> None:
    """Half of the containers run when the RM is killed; the others are requested again, and have the new epoch."""
    noted, gate = tmp_path / "noted", tmp_path / "open"
    app = await three.submit(shell(noting(noted, gate), 60))
    before = set(await lines_of(noted, 10))
    await restart(three)
    gate.touch()
    report = await three.client.wait(app, timeout_s=DEADLINE_S)
    assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
    lines = noted.read_text().split()
    assert len(lines) == len(set(lines)) >= 60
    assert before < set(lines)
    assert any("_e01_" in name for name in lines)
    assert len(await lines_of(Path(f"{noted}.over"), 60)) >= 60


async def test_a_word_count_is_correct_after_two_restarts(
    three: Cluster, books: list[Path], tmp_path: Path, gate: object
) -> None:
    app = await three.submit(counting(books, tmp_path / "out", pause=gate.pause))  # type: ignore[attr-defined]
    await three.until_job(app, three_maps_done)
    await restart(three)
    gate.open()  # type: ignore[attr-defined]
    await restart(three)
    report = await three.client.wait(app, timeout_s=DEADLINE_S)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    assert report.current_attempt_id.attempt == 1
    assert counts_in(tmp_path / "out") == plain_counts(books)
    assert three.job_status(app)["maps"]["SUCCEEDED"] == MAPS


async def test_a_resource_manager_killed_during_recovery_recovers_at_the_next_start(
    three: Cluster, tmp_path: Path
) -> None:
    noted, gate = tmp_path / "noted", tmp_path / "open"
    app = await three.submit(shell(noting(noted, gate), 1))
    # An AM that was stored but not launched fails only when it expires, after as long as a test waits.
    await lines_of(noted, 1)
    await three.local.kill_rm()

    async def start_and_fail() -> None:
        with pytest.raises(DaemonFailed, match="SIGKILL"):
            await three.local.restart_rm()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(start_and_fail())
        await asyncio.sleep(0)
        await three.local.kill_rm()
    await three.local.restart_rm()
    gate.touch()
    report = await three.client.wait(app, timeout_s=DEADLINE_S)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED


async def test_the_ports_of_a_killed_resource_manager_stay_reserved(three: Cluster) -> None:
    ports = [int(address.rpartition(":")[2]) for address in three.local.addresses.values()]
    await three.local.kill_rm()
    for port in ports:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    await three.local.restart_rm()
    assert await three.local.wait_nodes(3)


async def test_each_start_of_the_resource_manager_can_be_replayed(tmp_path: Path) -> None:
    """Each start has its own event log; the state loaded from the store is an event in it."""
    events = tmp_path / "events"
    events.mkdir()
    async with local(tmp_path, **{EVENT_LOG.key: str(events)}) as cluster:
        three = Cluster(cluster, tmp_path / "staging", HeartbeatLog(tmp_path / "unused"))
        for _ in range(3):
            app = await three.submit(shell("true", 1))
            await three.client.wait(app, timeout_s=DEADLINE_S)
            await restart(three)
    log = events / "resourcemanager.jsonl"
    loaded = [replayed(earlier_log(log, number)) for number in range(4)]
    assert [len(state.applications) for state in loaded] == [3, 2, 1, 0]


def replayed(log: Path) -> RMState:
    """The state that the ResourceManager loaded. Checks that a replay of its events gives the recorded effects."""
    start, steps = read_event_log(log)
    core = start.core()
    states = []
    for step in steps:
        states += [step.event.state] if isinstance(step.event, StateLoaded) else []
        effects = core.handle(step.event, step.now_ms)
        assert to_json(tuple(effects)) == to_json(step.effects), step.event
    (state,) = states
    return state  # type: ignore[no-any-return]


async def test_a_finished_application_is_known_after_a_restart(three: Cluster) -> None:
    app = await three.submit(shell("true", 1))
    before = await three.client.wait(app, timeout_s=DEADLINE_S)
    await restart(three)
    after = await three.client.report(app)
    assert (after.state, after.final_status, after.finish_time_ms) == (
        before.state,
        before.final_status,
        before.finish_time_ms,
    )


async def test_without_work_preserving_recovery_a_restart_starts_a_new_attempt(tmp_path: Path) -> None:
    noted, gate = tmp_path / "noted", tmp_path / "open"
    async with local(tmp_path, **{WORK_PRESERVING_RECOVERY_ENABLED.key: "false"}) as it:
        three = Cluster(it, tmp_path / "staging", HeartbeatLog(tmp_path / "events"))
        app = await three.submit(shell(noting(noted, gate), 2))
        before = set(await lines_of(noted, 2))
        await restart(three)
        gate.touch()
        report = await three.client.wait(app, timeout_s=DEADLINE_S)
        assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 2)
        assert len(set(noted.read_text().split()) - before) == 2


async def test_without_recovery_applications_are_unknown_after_a_restart(tmp_path: Path) -> None:
    async with local(tmp_path, **{RECOVERY_ENABLED.key: "false"}) as it:
        three = Cluster(it, tmp_path / "staging", HeartbeatLog(tmp_path / "events"))
        app = await three.submit(shell("true", 1))
        await three.client.wait(app, timeout_s=DEADLINE_S)
        await restart(three)
        with pytest.raises(ApplicationNotFoundException):
            await three.client.report(app)
