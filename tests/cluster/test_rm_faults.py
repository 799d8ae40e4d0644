"""A ResourceManager with a full disk, one that is stalled, and one without a store: what continues and what ends."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from pathlib import Path

import psutil
import pytest

from tests.cluster.applications import shell
from tests.cluster.test_rm_restart import DEADLINE_S, lines_of, local, noting
from yarn.errors import ApplicationNotFoundException, YarnException
from yarn.ids import ApplicationId
from yarn.settings.resourcemanager import RECOVERY_ENABLED
from yarn.states import FinalApplicationStatus, NodeState, YarnApplicationState
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.cluster.processes import those_that_name

pytestmark = pytest.mark.cluster


async def submitted(cluster: LocalCluster, directory: Path, command: str, containers: int) -> ApplicationId:
    new = await cluster.client.new_application()
    await cluster.client.submit(shell(command, containers).build(new.application_id, directory / "staging"))
    return new.application_id


def limit_files(cluster: LocalCluster, bytes_max: int) -> None:
    """Limit the size of the ResourceManager's files, so that its writes fail as on a full disk."""
    psutil.Process(cluster.rm.pid).rlimit(resource.RLIMIT_FSIZE, (bytes_max, resource.RLIM_INFINITY))


async def test_a_full_disk_refuses_new_applications_and_keeps_running_ones(tmp_path: Path) -> None:
    """A running application ends, and its end is reported once it has been stored."""
    noted, gate = tmp_path / "noted", tmp_path / "open"
    async with local(tmp_path) as cluster:
        app = await submitted(cluster, tmp_path, noting(noted, gate), 2)
        await lines_of(noted, 2)
        limit_files(cluster, 1)
        for _ in range(2):
            with pytest.raises(
                YarnException, match=r"yarn.yarnling.state-store-file = .*: .* \(free some space, or name a file"
            ):
                await submitted(cluster, tmp_path, "true", 1)
        gate.touch()
        await lines_of(Path(f"{noted}.over"), 2)
        nodes = await cluster.client.nodes(frozenset({NodeState.RUNNING}))
        assert len(nodes) == 3
        assert (await cluster.client.report(app)).state is YarnApplicationState.RUNNING
        limit_files(cluster, resource.RLIM_INFINITY)
        report = await cluster.client.wait(app, timeout_s=DEADLINE_S)
        assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
        later = await submitted(cluster, tmp_path, "true", 1)
        await cluster.client.wait(later, timeout_s=DEADLINE_S)
        assert cluster.rm.exit_status is None


QUICK_EXPIRY = {
    # Divided by twenty: six seconds, and eight, because an AM has to start in that time.
    "yarn.nm.liveness-monitor.expiry-interval-ms": "120000",
    "yarn.am.liveness-monitor.expiry-interval-ms": "160000",
}
STALLED_S = 11.0
"""Longer than both expiries by more than a third of them, the interval of the liveness monitors."""


@pytest.mark.slow
async def test_a_resource_manager_stalled_longer_than_all_expiries_expires_nothing(tmp_path: Path) -> None:
    """The RM gets SIGSTOP, and SIGCONT when the last heartbeats of all nodes and AMs are older than their expiry."""
    noted, gate = tmp_path / "noted", tmp_path / "open"
    async with local(tmp_path, **QUICK_EXPIRY) as cluster:
        app = await submitted(cluster, tmp_path, noting(noted, gate), 3)
        await lines_of(noted, 3)
        os.kill(cluster.rm.pid, signal.SIGSTOP)
        await asyncio.sleep(STALLED_S)
        os.kill(cluster.rm.pid, signal.SIGCONT)
        gate.touch()
        report = await cluster.client.wait(app, timeout_s=DEADLINE_S)
        assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
        metrics = await cluster.client.metrics()
        assert (metrics.active, metrics.lost) == (3, 0)
        log = cluster.rm.log_file.read_text()
        assert "to=LOST" not in log
        assert "event=EXPIRE" not in log
        assert "the ResourceManager was stalled for" in log


# Without a store


async def test_without_a_store_all_running_applications_end(tmp_path: Path) -> None:
    """Nodes have to register again, containers are orphans, and AMs are refused as unknown."""
    noted, gate = tmp_path / "noted", tmp_path / "open"
    async with local(tmp_path, **{RECOVERY_ENABLED.key: "false"}) as cluster:
        app = await submitted(cluster, tmp_path, noting(noted, gate), 4)
        await lines_of(noted, 4)
        daemons = {node.daemon.pid for node in cluster.nodes}
        await cluster.kill_rm()
        await cluster.restart_rm()
        await cluster.wait_nodes(3)

        def nothing_but_daemons() -> bool:
            own = daemons | {cluster.rm.pid, psutil.Process(cluster.rm.pid).ppid()}
            return not [process for process in those_that_name(cluster.directory.path) if process.pid not in own]

        await cluster.until(nothing_but_daemons, DEADLINE_S)
        with pytest.raises(ApplicationNotFoundException):
            await cluster.client.report(app)
        assert all(node.alive for node in cluster.nodes)
        again = await submitted(cluster, tmp_path, "true", 4)
        report = await cluster.client.wait(again, timeout_s=DEADLINE_S)
        assert report.final_status is FinalApplicationStatus.SUCCEEDED
