"""The distributed shell on real processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from am.programs.distributed_shell.client import DistributedShell, parse
from tests.am.programs.on_cluster import DEADLINE_S, Cluster, cluster, until
from yarn.ids import ApplicationAttemptId
from yarn.states import FinalApplicationStatus, YarnApplicationAttemptState, YarnApplicationState

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

RUNNING = frozenset({YarnApplicationState.RUNNING})


def shell(command: str, *options: str, count: int) -> DistributedShell:
    return parse(["-shell_command", command, *options, "-num_containers", str(count)])


@pytest_asyncio.fixture
async def three_nodes(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path, nodes=3) as it:
        yield it


@pytest.mark.case("I1")
async def test_the_round_trip(three_nodes: Cluster) -> None:
    """Each container prints its number, between the submission and the unregistration."""
    submission = shell("echo", "-shell_args", "$GREETING", "$YARN_SHELL_ID", "-shell_env", "GREETING=hello", count=3)
    application_id = await three_nodes.submit(submission)
    report = await three_nodes.end_of(application_id)
    assert (report.state, report.final_status) == (YarnApplicationState.FINISHED, FinalApplicationStatus.SUCCEEDED)
    assert report.progress == 1.0
    assert await three_nodes.stdouts(application_id) == ["hello 1\n", "hello 2\n", "hello 3\n"]
    await until(lambda: not (three_nodes.staging_root / str(application_id)).exists())


async def test_an_am_checks_its_invariants_if_its_cluster_does(three_nodes: Cluster) -> None:
    application_id = await three_nodes.submit(shell("true", count=1))
    await three_nodes.end_of(application_id)
    am_logs = [log.path.read_text() for log in three_nodes.client.logs(application_id) if log.name == "stderr"]
    assert any("checking invariants after each step (yarn.yarnling.check-invariants)" in log for log in am_logs)


async def test_a_script_is_shipped_with_its_files(three_nodes: Cluster, tmp_path: Path) -> None:
    script, words = tmp_path / "count.sh", tmp_path / "words.txt"
    script.write_text('echo "$1: $(wc -w < words.txt)"\n')
    words.write_text("one two three\n")
    submission = parse(["-shell_script", str(script), "-shell_args", "words", "-localize_files", str(words)])
    application_id = await three_nodes.submit(submission)
    assert (await three_nodes.end_of(application_id)).final_status is FinalApplicationStatus.SUCCEEDED
    assert await three_nodes.stdouts(application_id) == ["words: 3\n"]


async def test_failed_containers_fail_the_application_with_the_counts(three_nodes: Cluster) -> None:
    report = await three_nodes.run(shell("exit 3", count=2))
    assert report.final_status is FinalApplicationStatus.FAILED
    assert "desired = 2, completed = 2, allocated = 2, failed = 2" in report.diagnostics


@pytest.mark.case("I3")
async def test_after_a_killed_am_there_is_another_attempt(three_nodes: Cluster) -> None:
    application_id = await three_nodes.submit(shell("exec sleep 1", count=2))
    await three_nodes.client.wait(application_id, states=RUNNING, timeout_s=60)
    await three_nodes.local.kill_master(application_id)
    report = await three_nodes.end_of(application_id)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    assert report.current_attempt_id.attempt == 2


@pytest.mark.case("I3")
async def test_containers_are_kept_across_attempts(three_nodes: Cluster, tmp_path: Path) -> None:
    """With keep-containers the second AM adopts the containers of the first, so no container says hello twice."""
    script, gate = tmp_path / "hello.sh", tmp_path / "gate"
    script.write_text(f"echo hello\nwhile [ ! -e {gate} ]; do sleep 0.05; done\n")
    keep = "-keep_containers_across_application_attempts"
    submission = parse(["-shell_script", str(script), "-num_containers", "2", keep])
    application_id = await three_nodes.submit(submission)

    async def both_have_started() -> bool:
        return await three_nodes.stdouts(application_id) == ["hello\n"] * 2

    await three_nodes.local.until(both_have_started)
    await until(lambda: len(three_nodes.heartbeats.running()) == 3)
    await three_nodes.local.kill_master(application_id)
    await until_registered(three_nodes, ApplicationAttemptId(application_id, 2))
    gate.touch()
    report = await three_nodes.end_of(application_id)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    assert report.current_attempt_id.attempt == 2
    assert await three_nodes.stdouts(application_id) == ["hello\n"] * 2


@pytest.mark.case("I2")
async def test_containers_of_a_lost_node_run_elsewhere(three_nodes: Cluster) -> None:
    """A container that ends with -100 is requested again, so the application ends with all containers completed."""
    application_id = await three_nodes.submit(shell("exec sleep 1", count=4))
    report = await three_nodes.client.wait(application_id, states=RUNNING, timeout_s=60)
    await until_containers(three_nodes, report.current_attempt_id, 5)
    victim = await three_nodes.node_of_am(application_id) % 3 + 1
    await three_nodes.local.kill_node(victim)
    report = await three_nodes.end_of(application_id)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    assert report.current_attempt_id.attempt == 1


async def until_containers(it: Cluster, attempt_id: ApplicationAttemptId, count: int) -> None:
    """Wait until the attempt has this many containers."""
    async with asyncio.timeout(DEADLINE_S):
        while len(await it.client.containers(attempt_id)) < count:  # noqa: ASYNC110  the RM must be asked
            await asyncio.sleep(0.01)


async def until_registered(it: Cluster, attempt_id: ApplicationAttemptId) -> None:
    """Wait until the attempt's AM has registered."""
    async with asyncio.timeout(DEADLINE_S):
        while not any(  # noqa: ASYNC110  the RM must be asked
            report.attempt_id == attempt_id and report.state is YarnApplicationAttemptState.RUNNING
            for report in await it.client.attempts(attempt_id.application_id)
        ):
            await asyncio.sleep(0.01)
