"""Hadoop's clients at the ResourceManager: the same scene as over gRPC, who may call, what watchers see."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from rm.core.states import RMAppState
from rm.daemon import ResourceManager
from tests.rm.builders import done, resource_request
from tests.rm.served_cluster import (
    ADDRESSES,
    ADMIN,
    CLIENT,
    SCHEDULER,
    TRACKER,
    Cluster,
    Node,
    configuration,
    serving,
    submit,
    until,
)
from tests.wire.hadoop_rpc.hadoop_client import (
    ADMIN_PROTOCOL,
    CLIENT_PROTOCOL,
    MASTER_PROTOCOL,
    HadoopError,
    connected,
)
from wire.codec.message_codec import MessageCodec
from wire.event_log import read_event_log
from wire.files.json_records import to_json
from wire.generated import yarn_protos_pb2 as yarn_pb
from wire.generated import yarn_service_protos_pb2 as pb
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.inspection import InspectionProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.rpc import Proxy, Rpc
from wire.watching import calls_of
from yarn.applications import ApplicationFilter, ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext, Token
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.protocols.client import KillApplicationRequest, QueueInfoRequest
from yarn.protocols.inspection import ExplainRequest
from yarn.protocols.master import AllocateRequest, FinishApplicationMasterRequest, RegisterApplicationMasterRequest
from yarn.resource import Resource
from yarn.settings.yarnling import EVENT_LOG, WATCH_DIR
from yarn.states import FinalApplicationStatus, YarnApplicationState

HANGS_S = 60
NOBODY = 65534
HADOOP = {"yarn.yarnling.hadoop-rpc.enabled": "true"}
OPEN = {"yarn.yarnling.open-to-local-users": "true"}
YARN_EXCEPTION = "org.apache.hadoop.yarn.exceptions.YarnException"
INVALID_TOKEN = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
Call = Callable[..., Awaitable[Any]]
"""(rpc, request) -> reply."""


def with_hadoop(directory: Path, **more: str) -> Configuration:
    return configuration(directory).overridden(HADOOP | more)


class OverGrpc:
    """Calls as our own clients make them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def client(self) -> Call:
        return _calls_of(await self.cluster.client())

    async def am(self, token: Token) -> Call:
        return _calls_of(await self.cluster.am(token))


def _calls_of(proxy: Proxy) -> Call:
    async def call(rpc: Rpc[Any, Any], request: object = None) -> Any:
        return await proxy.call(rpc, request)

    return call


class OverHadoop:
    """Calls as Hadoop's clients make them."""

    def __init__(self, cluster: Cluster, stack: AsyncExitStack) -> None:
        self.cluster = cluster
        self._stack = stack

    async def client(self) -> Call:
        address = self.cluster.addresses[CLIENT]
        return (await self._stack.enter_async_context(connected(address, CLIENT_PROTOCOL, user="ann"))).call

    async def am(self, token: Token) -> Call:
        address = self.cluster.addresses[SCHEDULER]
        return (await self._stack.enter_async_context(connected(address, MASTER_PROTOCOL, token=token))).call


async def scene(way: OverGrpc | OverHadoop, node: Node) -> list[object]:
    """An application from its submission to its end; returns what its client and its AM saw."""
    client = await way.client()
    seen: list[object] = []

    async def see(call: Call, rpc: Rpc[Any, Any], request: object = None) -> Any:
        try:
            reply = await call(rpc, request)
        except (YarnException, HadoopError) as error:
            reply = _named(error)
        seen.append((rpc.name, reply))
        return reply

    new = await see(client, ApplicationClientProtocol.get_new_application)
    app: ApplicationId = new.application_id
    context = ApplicationSubmissionContext(app, ContainerLaunchContext(("sleep 1",)), Resource(1024, 1))
    await see(client, ApplicationClientProtocol.submit_application, context)
    await node.beat()
    await until(lambda: len(node.started) == 1)
    attempt_id = ApplicationAttemptId(app, 1)
    await until(lambda: "LAUNCHED" in str(way.cluster.rm.core.context.apps[app].attempts[attempt_id].state))
    am = await way.am(node.amrm_token())
    master = ApplicationMasterProtocol
    await see(am, master.allocate, AllocateRequest(0))  # refused: not registered
    await see(am, master.register_application_master, RegisterApplicationMasterRequest("here", 1, "http://here"))
    reply = await see(am, master.allocate, AllocateRequest(0, asks=(resource_request(2, 512),)))
    am_runs = node.running(ContainerId(attempt_id, 1))
    for _ in range(2):
        await node.beat(am_runs)
    reply = await see(am, master.allocate, AllocateRequest(reply.response_id))
    first, second = (container.id for container in reply.allocated)
    await node.beat(am_runs, node.running(first), node.running(second))
    await node.beat(am_runs, done(first, 7, "seven"), node.running(second))
    reply = await see(am, master.allocate, AllocateRequest(reply.response_id, releases=(second,)))
    await see(client, ApplicationClientProtocol.get_application_report, app)
    await see(client, ApplicationClientProtocol.get_containers, attempt_id)
    await see(client, ApplicationClientProtocol.get_queue_info, QueueInfoRequest("default", True, True, True))
    await see(client, ApplicationClientProtocol.get_resource_profiles)
    await see(client, ApplicationClientProtocol.get_application_report, ApplicationId(1, 1))
    await see(am, master.finish_application_master, FinishApplicationMasterRequest(FinalApplicationStatus.SUCCEEDED))
    await node.beat(done(ContainerId(attempt_id, 1), 0))
    await until(lambda: way.cluster.rm.core.context.apps[app].state is RMAppState.FINISHED)
    await see(client, ApplicationClientProtocol.force_kill_application, KillApplicationRequest(app))
    await see(client, ApplicationClientProtocol.get_applications, ApplicationFilter())
    await see(client, ApplicationClientProtocol.get_cluster_metrics)
    return seen


async def played(directory: Path, *, over_hadoop: bool) -> tuple[str, str]:
    """The replies that the scene's callers saw, and the RM's event log; both without times, ports and secrets."""
    directory.mkdir()
    log = directory / "events.jsonl"
    async with (
        asyncio.timeout(HANGS_S),
        serving(with_hadoop(directory, **{EVENT_LOG.key: str(log)})) as cluster,
        AsyncExitStack() as stack,
    ):
        node = await cluster.node()
        way = OverHadoop(cluster, stack) if over_hadoop else OverGrpc(cluster)
        seen = await scene(way, node)
        hidden = {str(cluster.rm.cluster_timestamp): "START", str(node.node_id.port): "PORT"}
    _, steps = read_event_log(log)
    events = [to_json((step.event, step.effects)) for step in steps if type(step.event).__name__ != "Tick"]
    return _masked(json.dumps([to_json(each) for each in seen], indent=1), hidden), _masked(
        json.dumps(events, indent=1), hidden
    )


def _masked(text: str, hidden: dict[str, str]) -> str:
    for value, name in hidden.items():
        text = text.replace(value, name)
    # Tokens contain times and ids of keys; a key's id is any number, a short one too.
    text = re.sub(r'"[A-Za-z0-9+/]{40,}={0,2}"', '"TOKEN"', text)
    text = re.sub(r'(_seconds)": \d+', r'\1": "TIME"', text)
    text = re.sub(r'(_key_id)": \d+', r'\1": "KEY"', text)
    return re.sub(r"\b\d{8,}\b", "NUMBER", text)


async def test_the_same_scene_has_the_same_events_over_both(tmp_path: Path) -> None:
    over_grpc = await played(tmp_path / "grpc", over_hadoop=False)
    over_hadoop = await played(tmp_path / "hadoop", over_hadoop=True)
    assert over_hadoop[0] == over_grpc[0]
    assert over_hadoop[1] == over_grpc[1]
    assert "FINISHED" in over_grpc[0]
    assert over_grpc[1].count("RegisterApplicationMaster") > 0


# Placement constraints, in messages that have all fields which Hadoop's clients set

NEXT_TO_HBASE = yarn_pb.PlacementConstraintProto(
    simpleConstraint=yarn_pb.SimplePlacementConstraintProto(scope="node", minCardinality=1, maxCardinality=9)
)
CONSTRAINED_REGISTRATION = pb.RegisterApplicationMasterRequestProto(
    host="here",
    placement_constraints=[
        yarn_pb.PlacementConstraintMapEntryProto(allocation_tags=["spark"], placement_constraint=NEXT_TO_HBASE)
    ],
)
TWO_OF_A_GB = yarn_pb.ResourceSizingProto(numAllocations=2, resources=yarn_pb.ResourceProto(memory=1024))
CONSTRAINED_ALLOCATE = pb.AllocateRequestProto(
    response_id=0,
    scheduling_requests=[
        yarn_pb.SchedulingRequestProto(
            priority=yarn_pb.PriorityProto(priority=1),
            allocationTags=["spark"],
            resourceSizing=TWO_OF_A_GB,
            placementConstraint=NEXT_TO_HBASE,
        )
    ],
)


def sends(rpc: Rpc[Any, Any], message: Message) -> Rpc[Any, Any]:
    """The RPC with this message as its request."""
    codec = MessageCodec(type(message), lambda _, out: out.CopyFrom(message), lambda proto: proto)
    changed = Rpc(rpc.name, codec, rpc.reply)
    changed.service, changed.method = rpc.service, rpc.method
    return changed


@pytest.mark.parametrize("over_hadoop", [False, True], ids=["grpc", "hadoop"])
async def test_placement_constraints_are_refused_and_change_nothing(tmp_path: Path, over_hadoop: bool) -> None:
    """DisabledPlacementProcessor refuses them at registration and in allocate."""
    master = ApplicationMasterProtocol
    async with (
        asyncio.timeout(HANGS_S),
        serving(with_hadoop(tmp_path)) as cluster,
        AsyncExitStack() as stack,
    ):
        node = await cluster.node()
        app = await submit(await cluster.client())
        await node.beat()
        await until(lambda: len(node.started) == 1)
        attempt = ApplicationAttemptId(app, 1)
        await until(lambda: "LAUNCHED" in str(cluster.rm.core.context.apps[app].attempts[attempt].state))
        way = OverHadoop(cluster, stack) if over_hadoop else OverGrpc(cluster)
        am = await way.am(node.amrm_token())
        refused = [
            await _refusal(am, sends(master.register_application_master, CONSTRAINED_REGISTRATION)),
            await _refusal(am, master.allocate, AllocateRequest(0)),
        ]
        await am(master.register_application_master, RegisterApplicationMasterRequest("here", 1, ""))
        refused.append(await _refusal(am, sends(master.allocate, CONSTRAINED_ALLOCATE)))
        assert (await am(master.allocate, AllocateRequest(0))).response_id == 1
    cannot = (
        f"for application={attempt}, but the configured yarn.resourcemanager.placement-constraints.handler cannot "
        "handle placement constraints. Rejecting this"
    )
    assert refused[0] == (
        YARN_EXCEPTION,
        "Found non empty placement constraints map in RegisterApplicationMasterRequest "
        f"{cannot} registerApplicationMaster operation",
    )
    assert refused[1][0].endswith(".ApplicationMasterNotRegisteredException"), "the refusal has registered nothing"
    assert refused[2] == (
        YARN_EXCEPTION,
        f"Found non empty SchedulingRequest in AllocateRequest {cannot} allocate operation",
    )


async def _refusal(call: Call, rpc: Rpc[Any, Any], request: object = None) -> tuple[str, str]:
    """The refusal of a call: (Java class, message)."""
    try:
        await call(rpc, request)
    except (YarnException, HadoopError) as error:
        return _named(error)
    pytest.fail(f"{rpc.name} is not refused")


def _named(error: YarnException | HadoopError) -> tuple[str, str]:
    if isinstance(error, YarnException):
        return error.java_class, error.message
    _, java_class, message, _ = error.seen
    return java_class, message


# Who may call

PLAIN_CLIENT = """
import asyncio, json, os, sys
from tests.wire.hadoop_rpc.hadoop_client import HadoopError, connected
target, protocol, method, uid = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
if uid != os.getuid():
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
async def main():
    said = ["closed", ""]
    try:
        async with connected(target, protocol, user="root") as client:
            try:
                await client.send(method, b"")
                said = ["OK", ""]
            except HadoopError as error:
                said = list(error.args)
    except* (ConnectionError, asyncio.IncompleteReadError):
        pass
    return said
print(json.dumps([os.getuid(), *asyncio.run(main())]))
"""
USERS = pytest.mark.parametrize(
    "uid",
    [
        pytest.param(os.getuid(), id="own"),
        pytest.param(
            NOBODY, id="nobody", marks=pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
        ),
    ],
)
CALLS = pytest.mark.parametrize(
    ("address", "protocol", "method"),
    [(CLIENT, CLIENT_PROTOCOL, "getNewApplication"), (ADMIN, ADMIN_PROTOCOL, "refreshUserToGroupsMappings")],
    ids=["client", "admin"],
)


async def _called(target: str, protocol: str, method: str, uid: int) -> tuple[str, str]:
    """(Java class, message) of the refusal, or ("OK", ""), for a process of another user."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PLAIN_CLIENT, target, protocol, method, str(uid), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    caller_uid, java_class, text = json.loads(output)
    assert caller_uid == uid
    return java_class, text


@USERS
@CALLS
async def test_only_the_owner_may_call_without_a_token(
    tmp_path: Path, address: str, protocol: str, method: str, uid: int
) -> None:
    """The name `root` is all that another user has: the kernel says whose process calls."""
    async with asyncio.timeout(HANGS_S), serving(with_hadoop(tmp_path)) as cluster:
        java_class, text = await _called(cluster.addresses[address], protocol, method, uid)
    assert (java_class, text) == ("OK" if uid == os.getuid() else "closed", "")


@USERS
async def test_an_open_cluster_accepts_every_local_caller(tmp_path: Path, uid: int) -> None:
    async with asyncio.timeout(HANGS_S), serving(with_hadoop(tmp_path, **OPEN)) as cluster:
        target = cluster.addresses[CLIENT]
        assert await _called(target, CLIENT_PROTOCOL, "getNewApplication", uid) == ("OK", "")


async def test_an_open_cluster_knows_local_grpc_callers_behind_the_listener(tmp_path: Path) -> None:
    async with (
        serving(with_hadoop(tmp_path, **OPEN)) as cluster,
        ApplicationClientProtocol(cluster.addresses[CLIENT], user="ann") as proxy,
    ):
        assert (await proxy.get_new_application()).application_id.id == 1


async def test_a_grpc_caller_still_needs_the_token(tmp_path: Path) -> None:
    async with (
        serving(with_hadoop(tmp_path)) as cluster,
        ApplicationClientProtocol(cluster.addresses[CLIENT], user="root") as proxy,
    ):
        with pytest.raises(YarnException, match="no YarnlingClientToken"):
            await proxy.get_new_application()


async def test_an_am_needs_its_token(tmp_path: Path) -> None:
    async with asyncio.timeout(HANGS_S), serving(with_hadoop(tmp_path)) as cluster:
        target = cluster.addresses[SCHEDULER]
        with pytest.raises(BaseExceptionGroup):
            async with connected(target, MASTER_PROTOCOL, user="root") as client:
                await client.call(ApplicationMasterProtocol.allocate, AllocateRequest(0))
        token = Token(b"forged", b"", "YARN_AM_RM_TOKEN", "")
        with pytest.raises(HadoopError) as caught:
            async with connected(target, MASTER_PROTOCOL, token=token):
                pass
    assert caught.value.seen[1] == INVALID_TOKEN
    assert "identifier cannot be read" in caught.value.seen[2]


async def test_what_is_not_hadoops_is_not_served_to_its_clients(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(HANGS_S),
        serving(with_hadoop(tmp_path)) as cluster,
        connected(cluster.addresses[CLIENT]) as client,
    ):
        for protocol in (MASTER_PROTOCOL, ADMIN_PROTOCOL, "org.apache.hadoop.ha.HAServiceProtocol"):
            with pytest.raises(HadoopError, match=f"Unknown protocol: {protocol}"):
                await client.send("any", b"", protocol)
        with pytest.raises(HadoopError, match="Unknown method explain"):
            await client.call(InspectionProtocol.explain, ExplainRequest(ApplicationId(1, 1)))


async def test_the_resource_trackers_port_stays_as_it_is(tmp_path: Path) -> None:
    async with asyncio.timeout(HANGS_S), serving(with_hadoop(tmp_path)) as cluster:
        host, port = cluster.addresses[TRACKER].split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"hrpc\x09\x00\x00")
        data = await reader.read()
        assert b"hrpc" not in data
        assert data[3:4] == b"\4", "a SETTINGS frame of HTTP/2"
        writer.close()
        assert (await cluster.node()).registration is not None
    assert len(ADDRESSES) == 4


async def test_off_only_grpc_is_there(tmp_path: Path) -> None:
    async with asyncio.timeout(HANGS_S), serving(configuration(tmp_path)) as cluster:
        with pytest.raises(BaseExceptionGroup):
            async with connected(cluster.addresses[CLIENT]) as client:
                await client.call(ApplicationClientProtocol.get_cluster_metrics)


# Restart, watchers


async def test_calls_are_watched(tmp_path: Path) -> None:
    conf = with_hadoop(tmp_path, **{WATCH_DIR.key: str(tmp_path / "watch")})
    async with asyncio.timeout(HANGS_S), serving(conf) as cluster:
        lines = calls_of(tmp_path / "watch", "ResourceManager")
        async with asyncio.TaskGroup() as tasks:
            reading: asyncio.Task[Any] = tasks.create_task(anext(lines))  # type: ignore[arg-type]
            watch: Any = cluster.rm._watch
            await until(lambda: watch._watchers)
            async with connected(cluster.addresses[CLIENT], user="bob") as client:
                await client.call(ApplicationClientProtocol.get_cluster_metrics)
            call = await reading
        await lines.aclose()  # type: ignore[attr-defined]
    assert (call["rpc"], call["from"], call["to"]) == ("getClusterMetrics", "user bob", "ResourceManager")
    assert call["error"] is None


async def test_a_client_and_an_am_go_on_after_a_restart(tmp_path: Path) -> None:
    """The ports, the AM's token and the attempt are the same; the AM is asked to register again."""
    store = {
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.yarnling.state-store-file": str(tmp_path / "store.sqlite"),
    }
    conf = with_hadoop(tmp_path, **store)
    async with asyncio.timeout(HANGS_S):
        async with serving(conf) as cluster, AsyncExitStack() as stack:
            way = OverHadoop(cluster, stack)
            client = await way.client()
            node = await cluster.node()
            new = await client(ApplicationClientProtocol.get_new_application)
            app = new.application_id
            context = ApplicationSubmissionContext(app, ContainerLaunchContext(("sleep 1",)), Resource(1024, 1))
            await client(ApplicationClientProtocol.submit_application, context)
            await node.beat()
            await until(lambda: len(node.started) == 1)
            token = node.amrm_token()
            am = await way.am(token)
            await am(
                ApplicationMasterProtocol.register_application_master, RegisterApplicationMasterRequest("h", 1, "")
            )
            addresses = cluster.addresses
        again = conf.overridden(addresses)
        async with _restarted(again) as rm, AsyncExitStack() as stack:
            cluster.rm, way = rm, OverHadoop(cluster, stack)
            client = await way.client()
            report = await client(ApplicationClientProtocol.get_application_report, app)
            assert report.current_attempt_id == ApplicationAttemptId(app, 1)
            assert report.state is not YarnApplicationState.FAILED
            am = await way.am(token)
            with pytest.raises(HadoopError) as caught:
                await am(ApplicationMasterProtocol.allocate, AllocateRequest(0))
            assert caught.value.seen[1].endswith(".ApplicationMasterNotRegisteredException")


@asynccontextmanager
async def _restarted(conf: Configuration) -> AsyncIterator[ResourceManager]:
    rm = ResourceManager(conf)
    async with rm.running():
        yield rm


async def test_nodes_have_no_attributes(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(HANGS_S),
        serving(with_hadoop(tmp_path)) as cluster,
        connected(cluster.addresses[CLIENT]) as client,
    ):
        for method in ("getClusterNodeAttributes", "getNodesToAttributes", "getAttributesToNodes"):
            assert await client.send(method, b"") == b""
