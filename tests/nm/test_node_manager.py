"""A NodeManager with real processes: kills, orphans, disks, orders of the RM, and a clean end."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from nm.core import NodeManagerCore
from nm.core.effects import Effect
from nm.core.events import ContainerExited, Event, ShutDown, UnregisterCompleted
from nm.daemon import hosting
from nm.launcher.processes import stat_of
from nm.shell.host_environment import DirectoriesInUse
from nm.shell.node_host import NodeHost
from nm.shell.node_manager import NodeCoreStart
from tests.nm.lone_node import (
    ATTEMPT,
    LoneNode,
    fake_resource_manager,
    lone_node,
    lone_nodes,
    node_configuration,
    tagged,
)
from tests.nm.waiting import until
from tests.processes import running
from wire.event_log import read_event_log
from wire.protocols.container_management import ContainerManagementProtocol
from wire.tokens import ContainerTokenSecretManager, KeyRing, MasterKey, NMTokenSecretManager, new_master_key
from yarn.containers import ContainerLaunchContext, ContainerRetryContext, LocalResource
from yarn.errors import InvalidToken, YarnException
from yarn.ids import ApplicationAttemptId, ContainerId, NodeId
from yarn.protocols.container_management import StartContainerRequest
from yarn.states import ContainerRetryPolicy, ContainerState, LocalResourceType, NodeAction

pytestmark = pytest.mark.cluster


def run(*commands: str) -> ContainerLaunchContext:
    return ContainerLaunchContext(commands)


def sessions(node: LoneNode, container_id: ContainerId) -> set[int]:
    """The sessions of a container's processes: the wrapper's, the container's own, and those that children made.

    A process that is exiting has none: the kernel reports 0 or -1.
    """
    found = (stat_of(pid) for pid in tagged(node, container_id))
    return {stat.session for stat in found if stat is not None and stat.session > 0}


async def stop(node: LoneNode, container_id: ContainerId) -> None:
    async with node.application_master() as am:
        assert (await am.stop_containers((container_id,))).succeeded == (container_id,)


# The end of the node


async def test_a_stopped_node_leaves_no_process_no_port_no_lock(tmp_path: Path) -> None:
    """Processes that left their session or ignore TERM are killed too, and the node has unregistered."""
    async with lone_node(tmp_path) as node:
        stubborn = await node.start(run("trap '' TERM; while true; do sleep 1; done"))
        escaped = await node.start(run("setsid sleep 301 & sleep 60"))
        for container_id in (stubborn, escaped):
            await node.running(container_id)
        await until(lambda: len(sessions(node, escaped)) == 3, "the container has a child in another session")
    assert tagged(node, stubborn) == tagged(node, escaped) == []
    assert node.rm.unregistered == [node.node.node_id]
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*node.node.node_id)
    assert sorted(os.listdir(tmp_path / "local" / "nmPrivate")) == []
    async with lone_node(tmp_path):
        pass


async def test_a_stopping_node_ends_its_containers_once_it_is_unregistered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[type] = []
    async with lone_node(tmp_path) as node:
        await node.running(await node.start(run("sleep 60")))
        handle = node.node.core.handle

        def noted(event: Event, now_ms: int) -> list[Effect]:
            heard.append(type(event))
            return handle(event, now_ms)

        monkeypatch.setattr(node.node.core, "handle", noted)
    assert heard.index(ShutDown) < heard.index(UnregisterCompleted) < heard.index(ContainerExited)


async def test_a_node_that_the_rm_shuts_down_ends_its_containers(tmp_path: Path) -> None:
    async with lone_node(tmp_path) as node:
        container_id = await node.start(run("sleep 60"))
        await node.running(container_id)
        node.rm.action = NodeAction.SHUTDOWN
        async with asyncio.timeout(60):
            assert await asyncio.shield(node.node.shell.stopped) == ""
        await until(lambda: tagged(node, container_id) == [], "the container is gone")
    assert node.rm.unregistered == []


async def test_a_node_that_the_rm_does_not_know_registers_again_with_its_containers(tmp_path: Path) -> None:
    async with lone_node(tmp_path) as node:
        container_id = await node.start(run("sleep 60"))
        await node.running(container_id)
        node.rm.action = NodeAction.RESYNC
        await node.rm.wait_for(lambda: len(node.rm.registrations) == 2)
        (status,) = node.rm.registrations[1].containers
        assert (status.container_id, status.state) == (container_id, ContainerState.RUNNING)
        await stop(node, container_id)
        assert (await node.end_of(container_id)).exit_status == -105


# Kills


async def test_orphans_in_the_process_group_of_an_exited_container_are_ended(tmp_path: Path) -> None:
    async with lone_node(tmp_path) as node:
        end = await node.run(run("(trap '' TERM; sleep 300 & wait) & sleep 0.2; exit 0"))
        assert end.exit_status == 0
        await until(lambda: tagged(node, end.container_id) == [], "the children are gone")


async def test_a_child_that_left_its_session_survives_its_container_as_in_hadoop(tmp_path: Path) -> None:
    async with lone_node(tmp_path) as node:
        container_id = await node.start(run("setsid sleep 301 & sleep 60"))
        await until(lambda: len(sessions(node, container_id)) == 3, "the child has its own session")
        await stop(node, container_id)
        await node.end_of(container_id)
        await until(lambda: not node.node.launcher.real.launched, "KILL was sent to its process group")
        (survivor,) = tagged(node, container_id)
        found = stat_of(survivor)
        assert found is not None
        assert found.session == survivor
    assert tagged(node, container_id) == []


async def test_a_container_can_be_stopped_at_any_moment_of_its_launch(tmp_path: Path) -> None:
    """A container is stopped 20 times, with growing delays. It always ends with -105, and no process is left."""
    async with lone_node(tmp_path) as node:
        for delay_ms in range(20):
            container_id = await node.start(run("sleep 60"))
            await asyncio.sleep(delay_ms / 1000)
            await stop(node, container_id)
            end = await node.end_of(container_id)
            assert end.exit_status == -105, end
            await until(lambda gone=container_id: tagged(node, gone) == [], "the container is gone")


async def test_another_process_with_the_old_id_of_a_container_is_not_signalled(tmp_path: Path) -> None:
    """The pid file names a process that is not the wrapper's child, so this process is not signalled."""
    with running("sleep", "30", start_new_session=True) as other:
        async with lone_node(tmp_path) as node:
            container_id = await node.start(run("sleep 60"))
            await node.running(container_id)
            launched = node.node.shell.parts.launcher.real.launched[container_id]  # type: ignore[union-attr]
            real = launched.pid or int(Path(launched.prepared.pid_file).read_text())
            launched.pid = None
            Path(launched.prepared.pid_file).write_text(f"{other.pid}\n")
            await stop(node, container_id)
            await until(lambda: len(launched.pending_signals) == 2, "TERM and KILL wait for a process to signal")
            assert other.poll() is None
            os.killpg(real, signal.SIGKILL)
            await node.end_of(container_id)


# Starts


async def test_many_containers_start_at_once(tmp_path: Path) -> None:
    async with lone_node(tmp_path) as node:
        ids = [node.container_id() for _ in range(40)]
        response = await node.start_all(tuple(node.request(run("exit 0"), container_id) for container_id in ids))
        assert response.succeeded == tuple(ids)
        for container_id in ids:
            assert (await node.end_of(container_id)).exit_status == 0


async def test_a_relaunched_container_finds_its_files_and_new_links(tmp_path: Path) -> None:
    """A second launch in the same directory finds its files and the link to a directory."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "inside").write_text("x")
    archive = shutil.make_archive(str(tmp_path / "data"), "gztar", tmp_path / "tree")
    changed_ms = os.stat(archive).st_mtime_ns // 1_000_000
    resource = LocalResource(f"file:{archive}", 1, changed_ms, LocalResourceType.ARCHIVE)
    launch = ContainerLaunchContext(
        ("[ -e once ] && ls -d link/* > <LOG_DIR>/stdout; touch once; exit 3",),
        local_resources={"link": resource},
        retry=ContainerRetryContext(ContainerRetryPolicy.RETRY_ON_ALL_ERRORS, max_retries=1),
    )
    settings = {"yarn.nodemanager.container-retry-minimum-interval-ms": "10"}
    async with lone_node(tmp_path, settings) as node:
        end = await node.run(launch)
        assert end.exit_status == 3
        assert (node.logs_of(end.container_id) / "stdout").read_text() == "link/inside\n"


async def test_tokens_are_required_and_must_be_signed_by_the_rm(tmp_path: Path) -> None:
    """Missing and forged tokens and tokens of another node are refused.

    A wrong signature of one token refuses the whole call.
    """
    async with lone_node(tmp_path) as node:
        container_id = node.container_id()
        request = node.request(run("true"), container_id)
        attempt, name = node.attempt, node.node.node_id
        forger = KeyRing(new_master_key())
        for token in (
            None,
            NMTokenSecretManager(forger).create(attempt, name, "alice"),
            node.rm.nm_tokens.create(attempt, NodeId("127.0.0.1", 1), "alice"),
        ):
            async with ContainerManagementProtocol(str(name), token=token) as am:
                with pytest.raises(InvalidToken):
                    await am.start_containers((request,))
        known = node.rm.container_tokens.signing_key()
        assert known is not None
        guessed = ContainerTokenSecretManager(KeyRing(MasterKey(known.key_id, b"guess")))
        forged = guessed.sign(node.rm.container_tokens.check(request.token))
        with pytest.raises(InvalidToken, match=f"Invalid container token used for starting container on : {name}"):
            await node.start_all((StartContainerRequest(request.launch_context, forged),))
        assert node.node.core.containers == {}
        other = ApplicationAttemptId(attempt.application_id._replace(id=99), 1)
        token = node.rm.nm_tokens.create(other, name, "bob")
        async with ContainerManagementProtocol(str(name), token=token) as am:
            response = await am.start_containers((request,))
        assert "Unauthorized request to start container." in response.failed[container_id].message


# Disks


async def test_a_disk_that_cannot_be_written_is_left_out_and_the_other_one_is_used(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("a file where a directory should be")
    settings = {
        "yarn.nodemanager.local-dirs": f"{tmp_path}/broken,{tmp_path}/local",
        "yarn.nodemanager.log-dirs": f"{tmp_path}/logs",
    }
    async with lone_node(tmp_path, settings) as node:
        for _ in range(3):
            assert (await node.run(run("pwd > <LOG_DIR>/stdout"))).exit_status == 0
        health = node.rm.registrations[0].health
    assert health.healthy
    assert health.report.startswith(f"1/2 local-dirs have errors:  [ {tmp_path}/broken : Not a directory: ")


async def test_a_node_with_only_bad_disks_is_unhealthy_and_its_containers_end_with_minus_101(tmp_path: Path) -> None:
    settings = {"yarn.nodemanager.disk-health-checker.interval-ms": "50"}
    async with lone_node(tmp_path, settings) as node:
        assert (await node.run(run("true"))).exit_status == 0
        logs = tmp_path / "logs"
        shutil.rmtree(logs)
        logs.write_text("the disk is gone")
        await node.rm.wait_for(lambda: not node.rm.heartbeats[-1].health.healthy)
        assert node.rm.heartbeats[-1].health.report.startswith("1/1 log-dirs have errors:  [ ")
        end = await node.run(run("true"))
        assert end.exit_status == -101
        assert "Most of the disks failed. 1/1 log-dirs have errors:  [ " in end.diagnostics
        logs.unlink()
        await node.rm.wait_for(lambda: node.rm.heartbeats[-1].health.healthy)
        assert (await node.run(run("true"))).exit_status == 0


async def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    """With a limit of 0 % use every disk counts as full."""
    key = "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"
    async with lone_node(tmp_path, {key: "0"}) as node:
        health = node.rm.registrations[0].health
        end = await node.run(run("true"))
    assert not health.healthy
    assert f"[ {tmp_path}/local : used space above threshold of 0.0% ] ; 1/1 log-dirs" in health.report
    assert end.exit_status == -101


# Errors at the start


@pytest.mark.parametrize("part", [".", "127.0.0.1"], ids=["alone", "in a pack"])
async def test_containers_that_a_killed_node_manager_started_are_not_started_again(tmp_path: Path, part: str) -> None:
    """The new NM knows them from the private directories of the killed one, and ignores directories
    with other names.
    """
    started = ContainerId(ATTEMPT, 1)
    for name in (str(started), "notes"):
        (tmp_path / "local" / part / "nmPrivate" / str(ATTEMPT.application_id) / name).mkdir(parents=True)
    packed = {"yarn.yarnling.pack": "1" if part == "." else "2"}
    async with lone_nodes(tmp_path, packed) as nodes:
        node = nodes[0]
        refused, other = node.container_id(), node.container_id()
        response = await node.start_all((node.request(run("true"), refused), node.request(run("true"), other)))
        assert response.succeeded == (other,)
        assert "Attempt to relaunch the same container" in response.failed[started].message


async def test_two_nodes_cannot_share_a_directory(tmp_path: Path) -> None:
    async with lone_node(tmp_path) as node:
        container_id = await node.start(run("sleep 60"))
        await node.running(container_id)
        with pytest.raises(DirectoriesInUse, match=r"yarn\.nodemanager\.local-dirs: another NodeManager uses"):
            async with lone_node(tmp_path):
                pass
        assert tagged(node, container_id) != []


async def test_a_node_that_cannot_start_names_the_reason(tmp_path: Path) -> None:
    async with fake_resource_manager(tmp_path) as (_, port):
        taken = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        taken_port = taken.sockets[0].getsockname()[1]
        for settings, match in (
            ({"yarn.nodemanager.address": f"127.0.0.1:{taken_port}"}, r"yarn\.nodemanager\.address = .*port is in use"),
            ({"yarn.nodemanager.address": "10.255.255.1:0"}, r"yarn\.nodemanager\.address"),
            ({"yarn.yarnling.cluster-secret-file": str(tmp_path / "none")}, r"cluster-secret-file = .*No such file"),
            ({"yarn.nodemanager.resource.memory-mb": "-7"}, r"yarn\.nodemanager\.resource\.memory-mb = '-7'"),
        ):
            conf = node_configuration(tmp_path, port, settings)
            with pytest.raises(YarnException, match=match):
                async with NodeHost.start(hosting(conf), {}, asyncio.Event()):
                    pytest.fail("it started")
        taken.close()
        await taken.wait_closed()


async def test_a_node_with_another_clusters_secret_is_refused(tmp_path: Path) -> None:
    async with fake_resource_manager(tmp_path) as (rm, port):
        (tmp_path / "other").write_bytes(b"x" * 32)
        (tmp_path / "other").chmod(0o600)
        conf = node_configuration(tmp_path, port, {"yarn.yarnling.cluster-secret-file": str(tmp_path / "other")})
        async with NodeHost.start(hosting(conf), {}, asyncio.Event()) as host:
            assert not await host.wait_registered()
            assert "secret of another cluster" in await host.stopped
        assert rm.registrations == []


async def test_a_node_that_cannot_reach_the_rm_ends_after_the_configured_wait(tmp_path: Path) -> None:
    async with fake_resource_manager(tmp_path) as (_, port):
        pass
    settings = {
        "yarn.resourcemanager.connect.max-wait.ms": "200",
        "yarn.resourcemanager.connect.retry-interval.ms": "50",
    }
    async with NodeHost.start(hosting(node_configuration(tmp_path, port, settings)), {}, asyncio.Event()) as host:
        assert not await host.wait_registered()
        assert f"127.0.0.1:{port} cannot be reached" in await host.stopped


# The event log


async def test_a_recorded_run_replayed_into_a_new_core_gives_the_same_effects(tmp_path: Path) -> None:
    log = tmp_path / "events"
    async with lone_node(tmp_path, {"yarn.yarnling.event-log": str(log)}) as node:
        await node.run(run("exit 0"))
        await node.run(run("echo oops >&2; exit 42"))
        container_id = await node.start(run("sleep 60"))
        await node.running(container_id)
        await stop(node, container_id)
        await node.end_of(container_id)
        await node.finish_application()
    start, steps = read_event_log(log)
    assert isinstance(start, NodeCoreStart)
    core = NodeManagerCore(start.node_id, start.facts, start.settings)
    count = 0
    for step in steps:
        assert tuple(core.handle(step.event, step.now_ms)) == step.effects
        count += 1
    assert count > 20


async def test_variables_that_bash_acts_on_reach_only_the_containers_command(tmp_path: Path) -> None:
    """BASH_ENV names a file that each bash runs first.

    The node's own scripts, which write the process id, must not run it.
    """
    (tmp_path / "first").write_text(f'echo "$0 $*" >> {tmp_path}/ran\n')
    async with lone_node(tmp_path) as node:
        end = await node.run(ContainerLaunchContext(("exit 7",), {"BASH_ENV": str(tmp_path / "first")}))
        assert end.exit_status == 7
    assert len((tmp_path / "ran").read_text().splitlines()) == 1


async def test_an_attack_by_names_and_values_has_no_effect_outside(tmp_path: Path) -> None:
    """The three attacks are a link that leads outside, a link name with shell code, and a value with shell code."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "link").symlink_to("kept")
    file = tmp_path / "file"
    file.touch()
    resource = LocalResource(f"file:{file}", 0, file.stat().st_mtime_ns // 1_000_000)
    touch = f"touch {outside}/f"
    async with lone_node(tmp_path) as node:
        up = "../" * 8
        for link in (f"{up}{outside}/link", f"q'\n{touch}\n'", f"{outside}/made"):
            container_id = node.container_id()
            launch = ContainerLaunchContext(("true",), local_resources={link: resource})
            response = await node.start_all((node.request(launch, container_id),))
            assert "invalid link name" in response.failed[container_id].message
        values = {"A": f"`{touch}`", "B": f'";{touch};"', "C": f"$({touch})"}
        named = {"$(touch f)": resource}
        end = await node.run(ContainerLaunchContext(("ls > <LOG_DIR>/stdout",), values, named))
        assert end.exit_status == 0, end.diagnostics
        assert set(named) <= set((node.logs_of(end.container_id) / "stdout").read_text().splitlines())
    assert os.listdir(outside) == ["link"]


async def test_a_node_can_listen_on_another_host_than_its_name(tmp_path: Path) -> None:
    """With yarn.nodemanager.bind-host, AMs may call a proxy at the same port (ContainerManagerImpl)."""
    async with lone_node(tmp_path, {"yarn.nodemanager.bind-host": "127.0.0.9"}) as node:
        node_id = node.node.node_id
        assert node_id.host == "127.0.0.1"
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(node_id.host, node_id.port)
        _, writer = await asyncio.open_connection("127.0.0.9", node_id.port)
        writer.close()


async def test_nodes_of_a_pack_listen_where_they_are_called(tmp_path: Path) -> None:
    settings = {"yarn.nodemanager.bind-host": "127.0.0.9", "yarn.yarnling.pack": "2"}
    with pytest.raises(YarnException, match=r"bind-host = 127.0.0.9: each node of a pack listens on its own address"):
        async with lone_node(tmp_path, settings):
            pass
