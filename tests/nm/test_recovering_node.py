"""A NodeManager that recovers, with real processes and a fake ResourceManager."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from nm.core.stored_state import RecoveredNode
from nm.launcher.directories import NodeDirectories
from nm.launcher.unknown_files import move_unknown_aside
from nm.shell.recovery_store import FILE_NAME, RecoveryStore
from tests.nm.lone_node import LoneNode, lone_node, tagged
from tests.nm.waiting import until
from yarn.containers import ContainerLaunchContext, ContainerRetryContext
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarn.states import ContainerRetryPolicy, ContainerState, NodeAction

pytestmark = pytest.mark.cluster

SUPERVISED = {"yarn.nodemanager.recovery.enabled": "true", "yarn.nodemanager.recovery.supervised": "true"}


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {
        **SUPERVISED,
        "yarn.nodemanager.address": f"127.0.0.1:{port}",
        "yarn.nodemanager.recovery.dir": str(tmp_path / "recovery"),
    }


def waits_for(gate: Path, code: int = 0) -> ContainerLaunchContext:
    return ContainerLaunchContext((f"while ! test -e {gate}; do sleep 0.05; done; exit {code}",))


async def started(node: LoneNode, launch: ContainerLaunchContext) -> ContainerId:
    container_id = await node.start(launch)
    await node.running(container_id)
    return container_id


@pytest.mark.parametrize("code", [0, 7])
async def test_the_exit_code_of_a_container_outlives_its_node_manager(
    settings: dict[str, str], tmp_path: Path, code: int
) -> None:
    gate = tmp_path / "gate"
    async with lone_node(tmp_path, settings) as node:
        container_id = await started(node, waits_for(gate, code))
    async with lone_node(tmp_path, settings) as node:
        (report,) = node.rm.registrations[0].containers
        assert (report.container_id, report.state) == (container_id, ContainerState.RUNNING)
        assert node.rm.registrations[0].running_applications == (container_id.application_id,)
        gate.touch()
        end = await node.end_of(container_id)
        assert end.exit_status == code
        await node.finish_application()
        await until(lambda: not tagged(node, container_id), "its end")


async def test_a_container_ends_while_no_node_manager_runs(settings: dict[str, str], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with lone_node(tmp_path, settings) as node:
        container_id = await started(node, waits_for(gate, 7))
    gate.touch()
    await until(lambda: not tagged(node, container_id), "its end")
    async with lone_node(tmp_path, settings) as node:
        assert (await node.end_of(container_id)).exit_status == 7
        await node.finish_application()


async def test_a_container_whose_processes_were_all_killed_is_lost(settings: dict[str, str], tmp_path: Path) -> None:
    async with lone_node(tmp_path, settings) as node:
        container_id = await started(node, waits_for(tmp_path / "never"))
    pids = tagged(node, container_id)
    # Stopped first, so that none of them can note how another has ended.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
    await until(lambda: not tagged(node, container_id), "its end")
    async with lone_node(tmp_path, settings) as node:
        assert (await node.end_of(container_id)).exit_status == 154
        await node.finish_application()


async def test_a_recovered_container_is_stopped_for_its_am(settings: dict[str, str], tmp_path: Path) -> None:
    """The attempt's token is accepted, whose key the next NodeManager has from its store."""
    async with lone_node(tmp_path, settings) as node:
        container_id = await started(node, waits_for(tmp_path / "never"))
        token = node.rm.nm_tokens.create(node.attempt, node.node.node_id, "alice")
    async with lone_node(tmp_path, settings) as node:
        am = node.application_master()
        am.use_token(token)
        async with am:
            assert (await am.stop_containers((container_id,))).succeeded == (container_id,)
        assert (await node.end_of(container_id)).exit_status == 143
        await node.finish_application()


async def test_a_failed_container_is_relaunched_after_a_recovery(settings: dict[str, str], tmp_path: Path) -> None:
    gate, noted = tmp_path / "gate", tmp_path / "noted"
    retry = ContainerRetryContext(ContainerRetryPolicy.RETRY_ON_ALL_ERRORS, max_retries=1)
    command = f"echo x >> {noted}; while ! test -e {gate}; do sleep 0.05; done; exit 7"
    async with lone_node(tmp_path, settings) as node:
        container_id = await started(node, ContainerLaunchContext((command,), retry=retry))
        await until(noted.exists, "its start")
    async with lone_node(tmp_path, settings) as node:
        gate.touch()
        assert (await node.end_of(container_id)).exit_status == 7
        assert noted.read_text() == "x\nx\n"
        await node.finish_application()


async def test_a_decommissioned_node_keeps_nothing(settings: dict[str, str], tmp_path: Path) -> None:
    async with lone_node(tmp_path, settings) as node:
        container_id = await started(node, waits_for(tmp_path / "never"))
        node.rm.action = NodeAction.SHUTDOWN
        async with asyncio.timeout(60):
            await node.node.shell.stopped
    assert not tagged(node, container_id)
    assert not (tmp_path / "recovery" / FILE_NAME).exists()


async def test_a_process_of_a_container_that_is_not_stored_is_killed(settings: dict[str, str], tmp_path: Path) -> None:
    async with lone_node(tmp_path, settings) as node:
        container_id = await started(node, waits_for(tmp_path / "never"))
    store = RecoveryStore.open(tmp_path / "recovery")
    store.erase()
    async with lone_node(tmp_path, settings) as node:
        assert node.rm.registrations[0].containers == ()
        assert not tagged(node, container_id)


async def test_an_address_without_a_port_is_refused(settings: dict[str, str], tmp_path: Path) -> None:
    settings["yarn.nodemanager.address"] = "127.0.0.1:0"
    with pytest.raises(YarnException, match="Cannot support recovery with an ephemeral server port"):
        async with lone_node(tmp_path, settings):
            pass


def test_files_that_the_state_does_not_name_are_moved_aside(tmp_path: Path, directories: NodeDirectories) -> None:
    local = tmp_path / "local"
    unknown = [
        "filecache/10/words",
        "filecache/11_tmp/half",
        "usercache/alice/filecache/10/x",
        "usercache/alice/appcache/application_1_0001/container_1_0001_01_000001/tmp",
        "nmPrivate/application_1_0001/container_1_0001_01_000001/launch_container.sh",
    ]
    for name in unknown:
        (local / name).parent.mkdir(parents=True)
        (local / name).write_text("")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "application_1_0009").mkdir()
    (local / "usercache/bob").mkdir()
    (local / "usercache/bob/appcache").symlink_to(tmp_path / "outside")
    moved = move_unknown_aside(directories, RecoveredNode())
    assert len(moved) == 5
    assert not [name for name in unknown if (local / name).exists()]
    assert (tmp_path / "outside" / "application_1_0009").exists()
    assert sorted(move_unknown_aside(directories, RecoveredNode())) == sorted(moved)
