"""The cluster on which Hadoop's command line was recorded: its queues and the states of its applications."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from wire.files.hadoop_xml import read_file, to_xml
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.retry import RetryPolicy
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ANY, Container, ContainerLaunchContext, ResourceRequest, Token
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.nodes import NodeReport
from yarn.protocols.container_management import StartContainerRequest
from yarn.protocols.master import (
    AllocateRequest,
    FinishApplicationMasterRequest,
    RegisterApplicationMasterRequest,
)
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus, YarnApplicationAttemptState, YarnApplicationState
from yarnling.cli.shared.connection import connect
from yarnling.cluster.client import Client

PROJECT = Path(__file__).resolve().parent.parent.parent
NAME = "golden"
USER = "alice"
RACK = "/default-rack"
PAGE = "http://example.org/history/1"
TASK = Resource(256, 1)
TOO_LARGE = Resource(1024, 4)
"""The size of a container that is reserved. A reservation counts as used, which explains the recorded use of the
queues."""
TASK_COMMAND = ContainerLaunchContext(("trap '' QUIT; echo hello 1><LOG_DIR>/stdout; sleep 900",))
WAIT_S = 60.0
RETRY = RetryPolicy(max_wait_ms=10_000, interval_ms=100)

_ROOT = "yarn.scheduler.capacity.root"
_QUEUES = {
    "root.queues": "default,dev,limited,few,stopped",
    "root.default.capacity": "50",
    "root.dev.capacity": "20",
    "root.dev.maximum-capacity": "80",
    "root.dev.queues": "a,b",
    "root.dev.a.capacity": "60",
    "root.dev.b.capacity": "40",
    "root.dev.b.user-limit-factor": "100",
    "root.limited.capacity": "10",
    "root.few.capacity": "10",
    "root.stopped.capacity": "10",
    "root.stopped.state": "STOPPED",
    "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    "maximum-am-resource-percent": "1",
}
SETTINGS = {
    **{f"yarn.scheduler.capacity.{key}": value for key, value in _QUEUES.items()},
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.maximum-allocation-mb": "1024",
    "yarn.scheduler.maximum-allocation-vcores": "4",
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",
}
THEIRS = {
    "<FINISHED BEFORE>": "1795222023200_0053",
    "<FINISHED>": "1795222023200_0056",
    "<FAILED>": "1795222023200_0057",
    "<RUNNING>": "1795222023200_0058",
    "<MANAGED>": "1795222023200_0059",
    "<NODE 1>": "localhost:45454",
    "<NODE 2>": "localhost:45455",
}
"""{name: its value in the recording}. Numbers of applications are also those of their attempts and containers."""

LABEL_SETTINGS = {
    **SETTINGS,
    "yarn.node-labels.enabled": "true",
    "yarn.admin.acl": "yarn",
    "yarn.scheduler.capacity.root.queues": "default,lab,private",
    "yarn.scheduler.capacity.root.default.capacity": "60",
    "yarn.scheduler.capacity.root.lab.capacity": "20",
    "yarn.scheduler.capacity.root.lab.accessible-node-labels": "gpu",
    "yarn.scheduler.capacity.root.private.capacity": "20",
}
LABEL_THEIRS = {"<NODE 1>": "localhost:45454", "<NODE 2>": "127.0.0.2:45455"}
"""The nodes on which labels were recorded."""

RM_WEB = "localhost:8088"
"""The web server of the recording's ResourceManager. Ours has no web proxy, and shows N/A instead of links to it."""
NM_WEB = ("localhost:8042", "localhost:28042", "127.0.0.2:28042")
"""The web servers of the recording's NodeManagers."""

EDITS: dict[str, Callable[[dict[str, str]], dict[str, str] | str]] = {
    "capacities of root's children sum to 120": lambda values: {**values, f"{_ROOT}.default.capacity": "70"},
    "running queue root.dev taken out of the list of queues": lambda values: {
        **values,
        f"{_ROOT}.queues": "default,limited,few,stopped",
    },
    "state of a queue set to NONSENSE": lambda values: {**values, f"{_ROOT}.few.state": "NONSENSE"},
    "the file is not XML": lambda values: "this is not XML",
    "maximum-capacity below capacity": lambda values: {**values, f"{_ROOT}.few.maximum-capacity": "5"},
    "queue default set to STOPPED while it has an application": lambda values: {
        **values,
        f"{_ROOT}.default.state": "STOPPED",
    },
    "the last refresh": lambda values: values,
    "the good file restored": lambda values: values,
    "root.default.state=RUNNING written out": lambda values: {**values, f"{_ROOT}.default.state": "RUNNING"},
}
"""{what was done to the queues' file before a recorded invocation: its values or its text, out of the good values}."""


class ConfigurationFile:
    """The cluster's queue file."""

    def __init__(self) -> None:
        state, _ = connect(NAME, USER)
        self._path = Path(state.conf_dir) / "capacity-scheduler.xml"
        self._values = dict(read_file(self._path).values())

    def edit(self, what: str) -> None:
        """Change the good file to what it was before the recorded invocation."""
        edited = EDITS[what](self._values)
        self._path.write_text(edited if isinstance(edited, str) else to_xml(edited))


@contextmanager
def golden_cluster(settings: Mapping[str, str] = SETTINGS) -> Iterator[None]:
    """Two nodes of 2,048 MB and 4 vcores, in processes of their own, found by the name NAME."""
    definitions = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
    _yarnling("up", "--nodes", "2", "--memory", "2048", "--vcores", "4", "--detach", "--name", NAME, *definitions)
    try:
        yield
    finally:
        _yarnling("down", "--name", NAME)


def _yarnling(*arguments: str) -> None:
    command = [sys.executable, "-m", "yarnling", *arguments]
    subprocess.run(command, cwd=PROJECT, env=dict(os.environ), check=True, capture_output=True, timeout=170)


async def node_names() -> dict[str, str]:
    """{name in LABEL_THEIRS: its value here}."""
    _, client = connect(NAME, USER)
    async with client:
        first, second = sorted(str(node.node_id) for node in await client.nodes())
        return {"<NODE 1>": first, "<NODE 2>": second}


async def play() -> dict[str, str]:
    """Create the recorded applications: two that finished, one that failed, one that runs, one whose AM waits.

    {name in THEIRS: what it is here}.
    """
    state, client = connect(NAME, USER)
    scheduler = state.addresses["yarn.resourcemanager.scheduler.address"]
    async with client:
        first, second = sorted(await client.nodes(), key=lambda node: node.node_id)
        finished = [await _finished(client, scheduler) for _ in range(2)]
        failed = await _failed(client)
        running = await _running(client, scheduler, (first, second))
        managed = await _managed(client, first)
        names = {
            "<FINISHED BEFORE>": _number(finished[0]),
            "<FINISHED>": _number(finished[1]),
            "<FAILED>": _number(failed),
            "<RUNNING>": _number(running),
            "<MANAGED>": _number(managed),
            "<NODE 1>": str(first.node_id),
            "<NODE 2>": str(second.node_id),
        }
        await _shows(client, dict.fromkeys((first.node_id, second.node_id), 0) | {first.node_id: 2, second.node_id: 1})
        return names


async def _unmanaged(client: Client, **fields: object) -> tuple[ApplicationId, Token]:
    new = await client.new_application()
    submission = ApplicationSubmissionContext(new.application_id, unmanaged_am=True, **fields)  # type: ignore[arg-type]
    await client.submit(submission)
    async with asyncio.timeout(WAIT_S):
        while (report := await client.report(new.application_id)).am_rm_token is None:  # noqa: ASYNC110  no event is set by another process
            await asyncio.sleep(0.02)
    return new.application_id, report.am_rm_token


async def _finished(client: Client, scheduler: str) -> ApplicationId:
    app_id, token = await _unmanaged(client, name="finished-one", type="golden", tags=frozenset({"blue"}))
    async with ApplicationMasterProtocol(scheduler, token=token) as rm:
        await rm.register_application_master(RegisterApplicationMasterRequest("localhost", -1))
        request = FinishApplicationMasterRequest(FinalApplicationStatus.SUCCEEDED, "all done", PAGE)
        while not (await rm.finish_application_master(request)).is_unregistered:  # noqa: ASYNC110  no event is set by another process
            await asyncio.sleep(0.02)
    await client.wait(app_id, timeout_s=WAIT_S)
    return app_id


async def _failed(client: Client) -> ApplicationId:
    new = await client.new_application()
    launch = ContainerLaunchContext(("exit 1",))
    await client.submit(
        ApplicationSubmissionContext(
            new.application_id, launch, Resource(128, 1), name="failed-one", queue="root.dev.a", max_app_attempts=1
        )
    )
    await client.wait(new.application_id, states=frozenset({YarnApplicationState.FAILED}), timeout_s=WAIT_S)
    return new.application_id


async def _running(client: Client, scheduler: str, nodes: tuple[NodeReport, NodeReport]) -> ApplicationId:
    """Run a container on each node, and reserve a container on the second node that fits on neither."""
    app_id, token = await _unmanaged(client, name="running-one", queue="root.dev.b")
    async with ApplicationMasterProtocol(scheduler, token=token) as rm:
        await rm.register_application_master(RegisterApplicationMasterRequest("localhost", -1))
        response_id = 0
        for node in nodes:
            asks = _pinned(node.node_id, TASK)
            containers: tuple[Container, ...] = ()
            async with asyncio.timeout(WAIT_S):
                while not containers:
                    reply = await rm.allocate(AllocateRequest(response_id, progress=0.5, asks=asks))
                    response_id, containers, asks = reply.response_id, reply.allocated, ()
                    tokens = {entry.node_id: entry.token for entry in reply.nm_tokens}
                    await asyncio.sleep(0.02)
            await _start(containers[0], tokens[node.node_id])
        # On the second node, so that the first one has space for another application's AM.
        asks = _pinned(nodes[1].node_id, TOO_LARGE, priority=9)
        await rm.allocate(AllocateRequest(response_id, progress=0.5, asks=asks))
    return app_id


async def _start(container: Container, nm_token: Token | None) -> None:
    assert container.token is not None
    async with ContainerManagementProtocol(str(container.node_id), token=nm_token, retry=RETRY) as node:
        reply = await node.start_containers((StartContainerRequest(TASK_COMMAND, container.token),))
    assert reply.succeeded == (container.id,)


def _pinned(node_id: NodeId, size: Resource, priority: int = 1) -> tuple[ResourceRequest, ...]:
    """The resource requests for one container on this host and nowhere else."""
    return (
        ResourceRequest(priority, node_id.host, size, 1),
        ResourceRequest(priority, RACK, size, 1, relax_locality=False),
        ResourceRequest(priority, ANY, size, 1, relax_locality=False),
    )


async def _managed(client: Client, node: NodeReport) -> ApplicationId:
    new = await client.new_application()
    launch, size = ContainerLaunchContext(("sleep 900",)), Resource(128, 1)
    await client.submit(
        ApplicationSubmissionContext(
            new.application_id, launch, size, name="managed-one", am_requests=_pinned(node.node_id, size)
        )
    )
    attempt_id = ApplicationAttemptId(new.application_id, 1)
    async with asyncio.timeout(WAIT_S):
        while (await client.attempt(attempt_id)).state is not YarnApplicationAttemptState.LAUNCHED:  # noqa: ASYNC110  no event is set by another process
            await asyncio.sleep(0.02)
    return new.application_id


async def _shows(client: Client, containers: dict[NodeId, int]) -> None:
    """Wait until the nodes have these containers, and the reservation counts."""
    async with asyncio.timeout(WAIT_S):
        while True:
            nodes = {node.node_id: node.containers for node in await client.nodes()}
            root = await client.queue("root")
            if nodes == containers and root.current_capacity > 0.8:
                return
            await asyncio.sleep(0.02)


def _number(app_id: ApplicationId) -> str:
    return str(app_id).removeprefix("application_")


def recorded(name: str) -> list[dict[str, object]]:
    """The invocations of one recording, and what Hadoop answered."""
    path = Path(__file__).parent / "golden" / f"{name}.json"
    entries: list[dict[str, object]] = json.loads(path.read_text())
    return entries
