"""Containers that misuse a real NodeManager: each ends as a whole and says why, and the node goes on.

All run on one node. A fixture starts another container after each test, and its heartbeats must have gone on.
"""

from __future__ import annotations

import os
import resource
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from tests.nm.lone_node import LoneNode, lone_node, tagged
from tests.nm.waiting import until
from yarn.containers import ContainerLaunchContext
from yarn.ids import ContainerId
from yarn.states import ContainerExitStatus

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

PROCESSES = 200
"""The number of processes that a fork bomb makes here; a real one would make all that the user may have."""
LOOP = f"for i in {{1..{PROCESSES}}}"
BOMB = f"{LOOP}; do (sleep 300 & exit); done; exec sleep 300"
BEATS = 5


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_node(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LoneNode]:
    settings = {"yarn.nodemanager.container-monitor.interval-ms": "100"}
    async with lone_node(tmp_path_factory.mktemp("node"), settings) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def node(one_node: LoneNode) -> AsyncIterator[LoneNode]:
    """The node, which must be as good as new after the test."""
    yield one_node
    assert (await one_node.run(run("exit 0"))).exit_status == 0
    await beats(one_node)
    assert len(one_node.rm.registrations) == 1


def run(*commands: str, **variables: str) -> ContainerLaunchContext:
    return ContainerLaunchContext(commands, variables)


def python(text: str) -> ContainerLaunchContext:
    return run(f"exec {sys.executable} -c {shlex.quote(text)}")


async def beats(node: LoneNode) -> None:
    """Wait for some more heartbeats."""
    count = len(node.rm.heartbeats)
    await node.rm.wait_for(lambda: len(node.rm.heartbeats) >= count + BEATS)


async def stop(node: LoneNode, container_id: ContainerId) -> None:
    async with node.application_master() as am:
        assert (await am.stop_containers((container_id,))).succeeded == (container_id,)
    assert (await node.end_of(container_id)).exit_status == -105


# Many processes


async def test_a_fork_bomb_is_ended_whole(node: LoneNode) -> None:
    """Children of children, whose parents have exited; all stay in the process group of the container."""
    container_id = await node.start(run(BOMB), memory_mb=2048)
    await until(lambda: len(tagged(node, container_id)) > PROCESSES, "it has forked")
    await beats(node)
    await stop(node, container_id)
    await until(lambda: tagged(node, container_id) == [], "all are gone")


async def test_a_fork_bomb_in_a_small_container_exceeds_its_memory(node: LoneNode) -> None:
    """Which limit it exceeds first depends on when the monitor looks."""
    end = await node.run(run(BOMB))
    assert end.exit_status in (ContainerExitStatus.KILLED_EXCEEDED_VMEM, ContainerExitStatus.KILLED_EXCEEDED_PMEM)
    assert "memory limit. Current usage: " in end.diagnostics
    await until(lambda: tagged(node, end.container_id) == [], "all are gone")


async def test_the_children_of_a_container_that_exits_are_ended_with_it(node: LoneNode) -> None:
    end = await node.run(run(f"{LOOP}; do (sleep 300 & exit); done; exit 4"), memory_mb=2048)
    assert end.exit_status == 4
    await until(lambda: tagged(node, end.container_id) == [], "all are gone")


async def test_processes_in_sessions_of_their_own_are_ended_with_the_node(tmp_path: Path) -> None:
    """A container's end misses them (Shell.getSignalKillCommand: one process group); the NodeManager's end does not."""
    daemons = f"{LOOP}; do (setsid sh -c '(sleep 300 &)' &); done; exec sleep 300"
    async with lone_node(tmp_path) as node:
        container_id = await node.start(run(daemons))
        await until(lambda: sleeping(node, container_id) == PROCESSES + 1, "all have forked twice")
        await stop(node, container_id)
        await until(lambda: sleeping(node, container_id) == PROCESSES, "the container is gone")
    assert tagged(node, container_id) == []


def sleeping(node: LoneNode, container_id: ContainerId) -> int:
    found = []
    for pid in tagged(node, container_id):
        try:
            found.append(psutil.Process(pid).name())
        except psutil.NoSuchProcess:
            continue
    return found.count("sleep")


async def test_zombies_of_a_container_are_gone_when_it_ends(node: LoneNode) -> None:
    """The monitor meets them, too: it looks ten times a second."""
    container_id = await node.start(
        python(f"import os, time\nfor _ in range({PROCESSES}): os.fork() or os._exit(0)\ntime.sleep(300)")
    )
    launcher = node.node.launcher.real

    def zombies() -> list[psutil.Process]:
        pid = launcher.pid_of(container_id)
        children = psutil.Process(pid).children() if pid is not None else []
        return [child for child in children if child.status() == psutil.STATUS_ZOMBIE]

    await until(lambda: len(zombies()) == PROCESSES, "its children are zombies")
    found = zombies()
    await beats(node)
    await stop(node, container_id)
    await until(lambda: not any(zombie.is_running() for zombie in found), "the zombies are gone")


async def test_heartbeats_go_on_beside_a_container_that_uses_all_processors(node: LoneNode) -> None:
    count = 2 * (os.cpu_count() or 1)
    container_id = await node.start(run(f"for i in {{1..{count}}}; do (while :; do :; done) & done; wait"))
    await until(lambda: len(tagged(node, container_id)) > count, "all spin")
    await beats(node)
    status = await node.status(container_id)
    assert status.exit_status == -1000, "it runs"
    await stop(node, container_id)


# Descriptors


async def test_a_container_without_descriptors_says_so(node: LoneNode) -> None:
    end = await node.run(run("ulimit -n 32; for i in {1..64}; do exec {file}< /dev/null || exit 3; done"))
    assert end.exit_status == 3
    assert "Too many open files" in end.diagnostics


async def test_a_node_without_descriptors_fails_the_container_and_recovers(node: LoneNode) -> None:
    """Its connections are open already, so it still hears of the container and reports its end."""
    container_id = node.container_id()
    request = node.request(run("exit 0"), container_id)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with node.application_master() as am:
        await am.get_container_statuses(())
        free = os.open("/dev/null", os.O_RDONLY)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            assert (await am.start_containers((request,))).succeeded == (container_id,)
            end = await node.end_of(container_id)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert end.exit_status == -1
    assert "Too many open files" in end.diagnostics


# Arguments, output, input, directories


@pytest.mark.parametrize(
    "launch",
    [
        run("true", A="x" * 100_000, B="$A$A"),
        run(f"true {'x' * 200_000}"),
        run("true", A="x" * 100_000, **{f"V{number}": "$A" for number in range(30)}),
    ],
    ids=["a variable", "the command", "all variables"],
)
async def test_a_command_or_environment_above_the_kernels_limits_fails(
    node: LoneNode, launch: ContainerLaunchContext
) -> None:
    end = await node.run(launch)
    assert end.exit_status == 126
    assert "Argument list too long" in end.diagnostics


async def test_output_that_is_not_utf_8_is_quoted_with_replacement_characters(node: LoneNode) -> None:
    """In both files that are quoted: that of the launch script, and the container's own stderr."""
    end = await node.run(run(r"printf 'a\377b' >&2; printf 'c\300d' > <LOG_DIR>/stderr; exit 5"))
    assert end.exit_status == 5
    assert "a�b" in end.diagnostics
    assert "c�d" in end.diagnostics


async def test_a_container_that_reads_its_standard_input_waits_until_it_is_stopped(node: LoneNode) -> None:
    """Its standard input is a pipe that stays open, as Shell.runCommand leaves it, so it waits until it is stopped."""
    container_id = await node.start(run("cat; exit 6"))
    await until(lambda: "cat" in [psutil.Process(pid).name() for pid in tagged(node, container_id)], "it reads")
    await beats(node)
    await stop(node, container_id)


async def test_a_work_directory_that_cannot_be_made_is_named(node: LoneNode) -> None:
    """A file is in the place of the user's directory."""
    user = node.local_dir / "usercache" / "alice"
    aside = user.with_name("aside")
    user.rename(aside)
    user.write_text("a file where a directory should be")
    try:
        end = await node.run(run("exit 0"))
    finally:
        user.unlink()
        aside.rename(user)
    assert end.exit_status == -1
    assert f"{user}/appcache" in end.diagnostics
    assert "a part of it is a symbolic link or a file, not a directory" in end.diagnostics


async def test_a_container_that_locks_its_own_directory_is_cleaned_up(node: LoneNode) -> None:
    end = await node.run(run("mkdir -p a/b && chmod 0 a . && exit 7"))
    assert end.exit_status == 7
    directories = list(node.local_dir.glob(f"usercache/*/appcache/*/{end.container_id}"))
    await until(lambda: not any(os.path.lexists(one) for one in directories), "its directory is deleted")
