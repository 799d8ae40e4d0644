"""The ends of containers, compared with a real NodeManager: same commands, same exit statuses, same diagnostics.

The facts are in golden/exits.json, the texts without what is of one run only (golden_text.py). All cases run at once on
one node, so that the whole takes as long as the longest.

Not here, and why:
  reInitializeContainer (2), restartContainer, rollback and commit (2): these RPCs are not served yet
  released by the AM, running or never started (-100): the RM says it, not the NM
  started twice: NMClient refuses the second call itself; the NM's own refusal is in test_container_service.py
  application killed by its user with a task running: the RM's texts
  200 MB in 128 MB with memory.enforced left at its default: Hadoop's default leaves it to cgroups; here the default
      is to look (test_monitor.py has both)
  a link name that leaves the directory: Hadoop makes the link, here the start is refused (the last test)
  AM cases with kill, lifetime, waiting, failApplicationAttempt: the RM's texts
Compared in part: an archive that is none has the status, and says it in our words (Hadoop names the shell pipe that it
unpacks with; nothing here does); process trees are compared without their numbers.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from tests.nm.golden_text import neutral
from tests.nm.lone_node import WAIT_S, LoneNode, lone_node
from yarn.containers import ContainerLaunchContext, ContainerRetryContext, ContainerStatus, LocalResource
from yarn.ids import ContainerId
from yarn.states import (
    ContainerRetryPolicy,
    LocalResourceType,
    LocalResourceVisibility,
    SignalContainerCommand,
)

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

GOLDEN = json.loads((Path(__file__).parent / "golden" / "exits.json").read_text())
HELLO_MS = 1_795_222_138_381

OUTSIDE = "link name that leaves the directory"
NOT_HERE = (
    "reInitializeContainer",
    "rollback with",
    "restartContainer",
    "released by",
    "started twice",
    "left at its default",
    OUTSIDE,
)
CASES = [case for case in GOLDEN["tasks"] if not any(part in case["case"] for part in NOT_HERE)] + GOLDEN["masters"]
IN_OUR_WORDS = ("archive that is no archive",)

Action = Callable[[LoneNode, ContainerId], Awaitable[None]]


async def _stop(node: LoneNode, container_id: ContainerId) -> None:
    await node.running(container_id)
    await _command_runs(node, container_id)
    async with node.application_master() as am:
        assert (await am.stop_containers((container_id,))).succeeded == (container_id,)


def _signal(command: SignalContainerCommand) -> Action:
    async def order(node: LoneNode, container_id: ContainerId) -> None:
        await node.running(container_id)
        await _command_runs(node, container_id)
        node.rm.orders = {
            "containers_to_signal": (*node.rm.orders.get("containers_to_signal", ()), (container_id, command))
        }

    return order


async def _dump_and_let_go(node: LoneNode, container_id: ContainerId) -> None:
    """Wait until the diagnostics contain the signal, which has no effect, then let the command run to its end."""
    await _signal(SignalContainerCommand.OUTPUT_THREAD_DUMP)(node, container_id)
    async with asyncio.timeout(WAIT_S):
        while "Sent signal" not in (await node.status(container_id)).diagnostics:  # noqa: ASYNC110  it has no event
            await asyncio.sleep(0.01)
    _gate(node).touch()


def _gate(node: LoneNode) -> Path:
    return node.directory / "go"


ACTIONS: dict[str, Action] = {
    "stopContainer": _stop,
    "changed its session, stopContainer": _stop,
    "signal GRACEFUL_SHUTDOWN": _signal(SignalContainerCommand.GRACEFUL_SHUTDOWN),
    "signal FORCEFUL_SHUTDOWN": _signal(SignalContainerCommand.FORCEFUL_SHUTDOWN),
    "signal OUTPUT_THREAD_DUMP": _dump_and_let_go,
}


async def _command_runs(node: LoneNode, container_id: ContainerId) -> None:
    """Wait until the command sleeps, which every golden command does after setting its traps."""
    async with asyncio.timeout(WAIT_S):
        launcher = node.node.shell.parts.launcher  # type: ignore[union-attr]
        while not _sleeps(launcher.pid_of(container_id)):  # noqa: ASYNC110  another process's doing has no event
            await asyncio.sleep(0.01)


def _sleeps(pid: int | None) -> bool:
    """True if the process or one of its descendants is `sleep`."""
    try:
        process = psutil.Process(pid) if pid is not None else None
        return process is not None and "sleep" in [one.name() for one in (process, *process.children(recursive=True))]
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="module", autouse=True)
def quit_ignored() -> Iterator[None]:
    """Ignore SIGQUIT, as Hadoop's daemons do, which are started in the background. Containers inherit this."""
    before = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGQUIT, before)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the cases use as resources, with their modification times."""
    directory = tmp_path_factory.mktemp("sources")
    os.chmod(directory, 0o755)
    for name, content, mode, time_ms in (
        ("hello.txt", b"hello\n", 0o644, HELLO_MS),
        ("secret.txt", b"x\n", 0o600, 1_795_222_488_421),
        ("broken.tgz", b"this is no tgz\n", 0o644, 1_795_222_488_422),
    ):
        file = directory / name
        file.write_bytes(content)
        file.chmod(mode)
        os.utime(file, ns=(time_ms * 1_000_000, time_ms * 1_000_000))
    return directory


Ends = dict[str, tuple[ContainerId, ContainerStatus]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ran(tmp_path_factory: pytest.TempPathFactory, sources: Path) -> AsyncIterator[tuple[LoneNode, Ends]]:
    """Run all cases and return the results."""
    settings = {
        "yarn.nodemanager.container-retry-minimum-interval-ms": "100",
        "yarn.nodemanager.container-monitor.interval-ms": "1000",
    }
    environ = {"HADOOP_HOME": "/opt/hadoop", "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}
    directory = tmp_path_factory.mktemp("node")
    async with lone_node(directory, settings, environ) as node:
        async with asyncio.TaskGroup() as tasks:
            running = {case["case"]: tasks.create_task(_run(node, case, sources)) for case in CASES}
        yield node, {name: task.result() for name, task in running.items()}


async def _run(node: LoneNode, case: dict[str, Any], sources: Path) -> tuple[ContainerId, ContainerStatus]:
    container_id = await node.start(_launch(case["launch"], sources, _gate(node)))
    for part, action in ACTIONS.items():
        if part in case["case"]:
            await action(node, container_id)
            break
    return container_id, await node.end_of(container_id)


def _launch(launch: dict[str, Any], sources: Path, gate: Path) -> ContainerLaunchContext:
    command = launch["cmd"]
    # Hadoop's command slept for eight seconds, only so that the signal came first.
    waits = f"until test -e {gate}; do sleep 0.02; done;"
    commands = tuple(command) if isinstance(command, list) else (command.replace("sleep 8;", waits),)
    retry = launch.get("retry")
    return ContainerLaunchContext(
        commands,
        launch.get("env", {}),
        {link: _resource(resource, sources) for link, resource in launch.get("resources", {}).items()},
        retry=ContainerRetryContext(
            ContainerRetryPolicy[retry["policy"]], frozenset(retry.get("codes", ())), retry["max"], retry["interval"]
        )
        if retry
        else ContainerRetryContext(),
    )


def _resource(resource: dict[str, Any], sources: Path) -> LocalResource:
    return LocalResource(
        resource["uri"].replace("${SRC_DIR}", str(sources)),
        resource["size"],
        resource["ts"],
        LocalResourceType[resource.get("type", "FILE")],
        LocalResourceVisibility[resource.get("vis", "APPLICATION")],
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
async def test_a_container_ends_as_in_hadoop(case: dict[str, Any], ran: tuple[LoneNode, Ends], sources: Path) -> None:
    node, ends = ran
    _, status = ends[case["case"]]
    assert status.exit_status == case["status"]
    if case["case"] in IN_OUR_WORDS:
        assert "broken.tgz" in status.diagnostics
        return
    ours, theirs = _comparable(status.diagnostics, node, sources), _comparable(case["diagnostics"], node, sources)
    assert ours == theirs


@pytest.mark.parametrize("case", [case for case in CASES if case["logs"]], ids=lambda case: case["case"])
async def test_a_container_leaves_hadoops_logs(case: dict[str, Any], ran: tuple[LoneNode, Ends], sources: Path) -> None:
    node, ends = ran
    container_id, _ = ends[case["case"]]
    logs = node.logs_of(container_id)
    found = {name: _comparable((logs / name).read_text(), node, sources) for name in case["logs"]}
    assert found == {name: _comparable(text, node, sources) for name, text in case["logs"].items()}


def _comparable(text: str, node: LoneNode, sources: Path) -> str:
    directories = {str(node.local_dir): "${LOCAL_DIR}", str(node.log_dir): "${LOG_DIR}", str(sources): "${SRC_DIR}"}
    text = neutral(text, directories)
    # bash prints this if TERM arrives during its `sleep 0.05`, which is nearly always the case.
    text = re.sub(r"^Terminated\n", "", text, flags=re.MULTILINE)
    # The names of the processes in the process tree, without their order and numbers.
    text = re.sub(r"pid=\d+,", "pid=<pid>,", text)
    text = re.sub(r"running \d+B beyond", "running <n>B beyond", text)
    text = re.sub(r"\d+(\.\d)? ([MG])B of (\d+(\.\d)?) MB", r"<n> \2B of \3 MB", text)
    text = re.sub(r"\t\|- \d+ \d+ \d+ \d+ (\(\w+\)) \d+ \d+ \d+ \d+ ", r"\t|- <numbers> \1 ", text)
    # `head` fills `tail` beyond the limit; on a busy machine the look that finds it so meets both.
    text = re.sub(r"^\t\|- <numbers> \(head\) [^\n]*\n", "", text, flags=re.MULTILINE)
    tree = re.compile(r"(?:\t\|- <numbers>[^\n]*\n)+")
    return tree.sub(lambda match: "".join(sorted(match[0].splitlines(keepends=True))), text)


async def test_a_link_that_leaves_the_work_directory_is_refused(
    ran: tuple[LoneNode, Ends], sources: Path, tmp_path: Path
) -> None:
    """The one golden case with a deliberate difference: Hadoop made a link beside the work directory."""
    (case,) = (case for case in GOLDEN["tasks"] if case["case"] == OUTSIDE)
    node, _ = ran
    container_id = node.container_id()
    response = await node.start_all((node.request(_launch(case["launch"], sources, tmp_path), container_id),))
    assert "invalid link name '../a.txt'" in response.failed[container_id].message
