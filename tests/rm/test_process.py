"""The ResourceManager as a process of its own: ready line, signals, failed starts, event log."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from rm.daemon import STORE_FAILED, ResourceManagerStart
from rm.shell.sqlite_store import SQLiteStateStore
from tests.processes import running_in_loop
from tests.rm.builders import done, resource_request
from tests.rm.served_cluster import ADMIN, CLIENT, SOON_S, Node, configuration, submit, until
from tests.rm.served_cluster import Cluster as ServedCluster
from wire.event_log import read_event_log
from wire.files.json_records import to_json
from wire.garbage_collection import DAEMON_THRESHOLDS
from yarn.configuration import Configuration
from yarn.errors import ServerUnavailable
from yarn.protocols.client import KillApplicationRequest
from yarn.protocols.master import (
    AllocateRequest,
    FinishApplicationMasterRequest,
    RegisterApplicationMasterRequest,
)
from yarn.settings.resourcemanager import RECOVERY_ENABLED
from yarn.settings.yarnling import STATE_STORE_FILE
from yarn.states import FinalApplicationStatus, YarnApplicationState

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[2]
START_S = 120.0


def write_files(directory: Path, conf: Configuration) -> None:
    properties = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in conf.values().items()
    )
    (directory / "yarn-site.xml").write_text(f"<configuration>{properties}</configuration>")


class Process:
    """`python -m rm`. `facts` is its ready line."""

    def __init__(self, process: asyncio.subprocess.Process, facts: dict[str, Any]) -> None:
        self.process = process
        self.facts = facts

    @property
    def addresses(self) -> dict[str, str]:
        addresses: dict[str, str] = self.facts["addresses"]
        return addresses

    async def stop(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        async with asyncio.timeout(SOON_S):
            return await self.process.wait()


def daemon(directory: Path, *options: str) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    command = [sys.executable, "-m", "rm", "--conf", str(directory), *options]
    return running_in_loop(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)


@asynccontextmanager
async def running(directory: Path, *options: str) -> AsyncIterator[Process]:
    async with daemon(directory, *options) as process:
        assert process.stdout is not None
        async with asyncio.timeout(START_S):
            line = await process.stdout.readline()
        assert line, (await process.communicate())[1].decode()
        yield Process(process, json.loads(line))


async def refusal(directory: Path, *options: str, status: int = 2) -> str:
    """The standard error of a daemon that fails to start."""
    async with daemon(directory, *options) as process, asyncio.timeout(START_S):
        out, err = await process.communicate()
    assert process.returncode == status, err.decode()
    assert out == b""
    return err.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_the_resource_manager_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    write_files(tmp_path, configuration(tmp_path))
    async with running(tmp_path) as rm:
        assert rm.facts["role"] == "resourcemanager"
        assert rm.facts["pid"] == rm.process.pid
        assert await rm.stop(number) == 0


async def test_all_faults_of_the_configuration_files_are_reported_at_once(tmp_path: Path) -> None:
    conf = configuration(tmp_path).overridden(
        {
            "yarn.am.liveness-monitor.expiry-interval-ms": "soon",
            "yarn.scheduler.capacity.root.default.capacity": "130",
            "yarn.resourcemanager.address": "nowhere",
        }
    )
    write_files(tmp_path, conf)
    stderr = await refusal(tmp_path)
    for key in ("yarn.am.liveness-monitor.expiry-interval-ms = 'soon'", "yarn.resourcemanager.address = 'nowhere'"):
        assert key in stderr
    assert "Traceback" not in stderr


async def test_a_port_in_use_is_reported_with_its_key(tmp_path: Path) -> None:
    write_files(tmp_path, configuration(tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        stderr = await refusal(tmp_path, "-D", f"{ADMIN}=127.0.0.1:{port}")
    assert stderr.startswith(f"resourcemanager: cannot listen on {ADMIN} = 127.0.0.1:{port}: the port is in use")
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("yarn.yarnling.cluster-secret-file", "/nowhere/secret", "No such file or directory"),
        ("yarn.yarnling.event-log", "/dev/full", "No space left on device"),
        (CLIENT, "0.0.0.0:0", "can be reached from other machines"),
    ],
)
async def test_the_reason_for_a_failed_start_is_reported(tmp_path: Path, key: str, value: str, problem: str) -> None:
    write_files(tmp_path, configuration(tmp_path))
    stderr = await refusal(tmp_path, "-D", f"{key}={value}")
    assert f"{key} = {value}" in stderr
    assert problem in stderr
    assert "Traceback" not in stderr


async def test_a_damaged_state_store_has_its_own_exit_status(tmp_path: Path) -> None:
    store = tmp_path / "state.sqlite"
    recovery = {RECOVERY_ENABLED.key: "true", STATE_STORE_FILE.key: str(store)}
    write_files(tmp_path, configuration(tmp_path).overridden(recovery, "test"))
    with closing(SQLiteStateStore.open(store, "store")) as opened:
        opened.raise_epoch()
    content = store.read_bytes()
    store.write_bytes(content.replace(b"epoch", b"epoxy"))
    stderr = await refusal(tmp_path, status=STORE_FAILED)
    assert f"{STATE_STORE_FILE.key} = {store}: the file is damaged: " in stderr
    assert "move state.sqlite and state.sqlite-journal away to start without its applications" in stderr
    assert "Traceback" not in stderr


SERVES = """
import asyncio, gc, os, signal, sys
from pathlib import Path
from rm.daemon import serve
from wire.files.hadoop_xml import load_configuration

def ready(facts):
    print(gc.get_threshold()[0], flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

async def main():
    stop = asyncio.Event() if "stop" in sys.argv else None
    if stop is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    return await serve(load_configuration(Path(sys.argv[1]), {}), ready, stop=stop)

sys.exit(asyncio.run(main()))
"""


@pytest.mark.parametrize("guest", [False, True])
async def test_a_process_of_its_own_collects_garbage_rarely(tmp_path: Path, guest: bool) -> None:
    """Inside another process it leaves the collector alone."""
    write_files(tmp_path, configuration(tmp_path))
    arguments = [sys.executable, "-P", "-c", SERVES, str(tmp_path), *(["stop"] if guest else [])]
    process = await asyncio.create_subprocess_exec(
        *arguments, cwd=ROOT, stdout=-1, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    async with asyncio.timeout(START_S):
        out, _ = await process.communicate()
    assert process.returncode == 0
    assert int(out) == (gc.get_threshold()[0] if guest else DAEMON_THRESHOLDS[0])


async def test_the_event_log_replays_into_the_same_effects(tmp_path: Path) -> None:
    """Two nodes, an application that succeeds, one that is killed, a refused call: recorded, killed -9, replayed."""
    log = tmp_path / "events"
    conf = configuration(tmp_path, yarn__yarnling__event_log=str(log))
    write_files(tmp_path, conf)
    async with running(tmp_path) as rm:
        await _live_a_little(rm, conf)
        os.kill(rm.process.pid, signal.SIGKILL)
    start, steps = read_event_log(log)
    assert isinstance(start, ResourceManagerStart)
    core = start.core()
    kinds = set()
    for step in steps:
        kinds.add(type(step.event).__name__)
        effects = core.handle(step.event, step.now_ms)
        assert to_json(tuple(effects)) == to_json(step.effects), step.event
    assert kinds >= {
        "Allocate",
        "FinishApplicationMaster",
        "GetNewApplication",
        "KillApplication",
        "AMLaunched",
        "NodeHeartbeat",
        "RegisterApplicationMaster",
        "RegisterNode",
        "SubmitApplication",
    }


async def _live_a_little(rm: Process, conf: Configuration) -> None:
    async with AsyncExitStack() as stack:
        cluster = ServedCluster(rm.addresses, conf, stack)
        nodes = [await cluster.node("127.0.0.2"), await cluster.node("127.0.0.3")]
        client = await cluster.client()
        app = await submit(client, tokens=b"HDTS\x00\x00\x00")
        home = await _beat_until_started(nodes)
        master_container = home.started[0].identifier.container_id
        am = await cluster.am(home.amrm_token())
        await am.register_application_master(RegisterApplicationMasterRequest("here"))
        await am.allocate(AllocateRequest(0, asks=(resource_request(3),)))
        for node in nodes:
            await node.beat(*([node.running(master_container)] if node is home else []))
        reply = await am.allocate(AllocateRequest(1))
        assert reply.allocated
        killed = await submit(client)
        await client.force_kill_application(KillApplicationRequest(killed))
        finish = FinishApplicationMasterRequest(FinalApplicationStatus.SUCCEEDED)
        while not (await am.finish_application_master(finish)).is_unregistered:
            continue
        await home.beat(done(master_container))
        async with asyncio.timeout(SOON_S):
            while (await client.get_application_report(app)).state is not YarnApplicationState.FINISHED:
                continue


async def _beat_until_started(nodes: list[Node]) -> Node:
    for node in nodes:
        await node.beat()
    await until(lambda: any(node.started for node in nodes))
    return next(node for node in nodes if node.started)


async def test_callers_notice_the_exit_of_the_resource_manager(tmp_path: Path) -> None:
    conf = configuration(tmp_path)
    write_files(tmp_path, conf)
    async with running(tmp_path) as rm, AsyncExitStack() as stack:
        cluster = ServedCluster(rm.addresses, conf, stack)
        client = await cluster.client()
        await client.get_cluster_metrics()
        assert await rm.stop(signal.SIGTERM) == 0
        with pytest.raises(ServerUnavailable):
            await client.get_cluster_metrics()
