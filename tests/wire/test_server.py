"""Servers and proxies over real gRPC on loopback."""

from __future__ import annotations

import logging
import os
import random
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from tests.wire.random_records import PROTOCOLS, random_value, record_types
from tests.wire.serving import NODE, Recorder, anybody, serving, socket_dir, target
from wire.address import Address
from wire.caller import Caller, caller_metadata
from wire.errors import ERROR_KEY
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.pack import PackTrackerProtocol
from wire.protocols.tracker import ResourceTracker
from wire.rpc import Proxy, Rpc
from wire.server import RpcServer
from wire.tokens import AMRMTokenSecretManager, KeyRing, NodeTokenSecretManager, new_master_key
from yarn.applications import ApplicationFilter
from yarn.containers import ContainerLaunchContext, Token
from yarn.errors import (
    AccessControlException,
    InvalidArgumentException,
    InvalidResourceRequestException,
    InvalidToken,
    RemoteError,
    YarnException,
    YARNFeatureNotEnabledException,
)
from yarn.faults import ConfigurationException
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.protocols.container_management import StartContainerRequest, StartContainersResponse
from yarn.protocols.master import AllocateRequest, AllocateResponse
from yarn.protocols.tracker import MasterKey, RegisterNodeManagerRequest, RegisterNodeManagerResponse
from yarn.resource import Resource
from yarn.states import NodeAction

ATTEMPT = ApplicationAttemptId(ApplicationId(1_700_000_000_000, 1), 1)


@pytest.mark.parametrize("protocol", [protocol for protocol in PROTOCOLS if protocol is not PackTrackerProtocol])
async def test_every_call_brings_its_request_and_its_reply(protocol: type[Proxy]) -> None:
    rng = random.Random(7)
    requests, replies = {}, {}
    for rpc in protocol.rpcs:
        requests[rpc.method], replies[rpc.method] = (random_value(rng, kind) for kind in record_types(rpc))
    recorder = Recorder(replies)
    async with serving(protocol.rpcs, recorder) as server, protocol(target(server), user="ann") as caller:
        for rpc in protocol.rpcs:
            request = requests[rpc.method]
            reply = await getattr(caller, rpc.method)(*(() if request is None else (request,)))
            assert rpc.reply.encode(reply) == rpc.reply.encode(replies[rpc.method])
    assert [(name, request) for name, _, request in recorder.calls] == list(requests.items())
    assert {call[1].user for call in recorder.calls} == {"ann"}


# Errors


async def test_an_error_arrives_under_its_class() -> None:
    refusal = InvalidResourceRequestException("Invalid resource request!\nsecond line é")
    async with (
        serving(ApplicationClientProtocol.rpcs, Recorder({"get_new_application": refusal})) as server,
        ApplicationClientProtocol(target(server)) as proxy,
    ):
        with pytest.raises(InvalidResourceRequestException) as caught:
            await proxy.get_new_application()
    assert caught.value.message == refusal.message
    assert caught.value.definite


async def test_all_faults_of_a_configuration_arrive() -> None:
    text = "\n".join(f"queue root.q{n}: capacity 60, must be less (edit root.q{n}.capacity)" for n in range(300))
    async with (
        serving(
            ResourceManagerAdministrationProtocol.rpcs, Recorder({"refresh_queues": ConfigurationException(text)})
        ) as server,
        ResourceManagerAdministrationProtocol(target(server)) as proxy,
    ):
        with pytest.raises(ConfigurationException) as caught:
            await proxy.refresh_queues()
    assert "root.q0:" in caught.value.message
    assert "root.q299:" in caught.value.message


async def test_a_bug_is_logged_with_its_trace_and_the_server_lives_on(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder({"get_new_application": KeyError("lost"), "get_applications": ()})
    async with (
        serving(ApplicationClientProtocol.rpcs, recorder) as server,
        ApplicationClientProtocol(target(server)) as proxy,
    ):
        with pytest.raises(RemoteError, match="KeyError in getNewApplication") as caught:
            await proxy.get_new_application()
        assert not caught.value.definite
        assert await proxy.get_applications(ApplicationFilter()) == ()
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert "rpc=getNewApplication" in record.getMessage()


async def test_a_call_that_the_server_does_not_have_had_no_effect() -> None:
    async with (
        serving(ResourceManagerAdministrationProtocol.rpcs, Recorder({})) as server,
        ApplicationClientProtocol(target(server)) as proxy,
    ):
        with pytest.raises(YARNFeatureNotEnabledException, match="does not support this call"):
            await proxy.get_new_application()


# Who may call


async def test_a_caller_without_the_right_token_gets_nowhere() -> None:
    """No token, one of an expired key, one of another cluster: nothing is applied."""
    masters = AMRMTokenSecretManager(KeyRing(new_master_key()))
    expired = masters.create(ATTEMPT)
    masters.keys.roll()
    masters.keys.activate_next()
    foreign = AMRMTokenSecretManager(KeyRing(new_master_key())).create(ATTEMPT)
    recorder = Recorder({"allocate": AllocateResponse(1, Resource(0, 0), 0)})
    good = masters.create(ATTEMPT)
    async with serving(ApplicationMasterProtocol.rpcs, recorder, lambda caller: masters.check(caller.token)) as server:
        for token in (None, expired, foreign):
            async with ApplicationMasterProtocol(target(server), token=token) as proxy:
                with pytest.raises(InvalidToken):
                    await proxy.allocate(AllocateRequest(0))
        assert recorder.calls == []
        async with ApplicationMasterProtocol(target(server), token=expired) as proxy:
            proxy.use_token(good)
            await proxy.allocate(AllocateRequest(0))
    ((_, caller, _),) = recorder.calls
    assert caller.verified.attempt_id == ATTEMPT


async def test_a_caller_is_checked_before_its_message_is_read() -> None:
    nodes = NodeTokenSecretManager(b"s" * 32)
    async with serving(ResourceTracker.rpcs, Recorder({}), lambda caller: nodes.check(caller.token)) as server:
        assert await _raw_error(server, ResourceTracker.node_heartbeat, b"\xff\xff", ()) is InvalidToken
        metadata = caller_metadata(token=nodes.create(NODE))
        assert (
            await _raw_error(server, ResourceTracker.node_heartbeat, b"\xff\xff", metadata) is InvalidArgumentException
        )


async def _raw_error(
    server: RpcServer, rpc: Rpc[Any, Any], request: bytes, metadata: tuple[tuple[str, str | bytes], ...]
) -> type[YarnException]:
    from wire.errors import error_of

    async with grpc.aio.insecure_channel(target(server)) as channel:
        call: Any = channel.unary_unary(rpc.path)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(request, metadata=metadata)
    assert any(key == ERROR_KEY for key, _ in caught.value.trailing_metadata())
    return type(error_of(caught.value, target="t", method=rpc.name))


async def test_malformed_messages_are_refused_and_nothing_is_applied() -> None:
    rng = random.Random(1)
    recorder = Recorder({})
    async with (
        serving(ApplicationMasterProtocol.rpcs, recorder) as server,
        grpc.aio.insecure_channel(target(server)) as channel,
    ):
        call: Any = channel.unary_unary(ApplicationMasterProtocol.finish_application_master.path)
        for _ in range(50):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(b"\xff" + rng.randbytes(rng.randint(0, 40)))
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert recorder.calls == []


# Addresses


async def test_a_port_in_use_names_key_and_remedy() -> None:
    async with serving(ResourceManagerAdministrationProtocol.rpcs, Recorder({})) as server:
        second = RpcServer(Address("127.0.0.1", server.port, "yarn.resourcemanager.address"), socket_dir())
        with pytest.raises(YarnException) as caught:
            await second.start()
    assert f"yarn.resourcemanager.address = 127.0.0.1:{server.port}" in caught.value.message
    assert "stop the process that uses it" in caught.value.message


async def test_a_server_listens_on_loopback_only_unless_configured_otherwise() -> None:
    with pytest.raises(YarnException, match="can be reached from other machines"):
        await RpcServer(Address("0.0.0.0", 0, "k"), socket_dir()).start()
    server = RpcServer(Address("0.0.0.0", 0, "k"), socket_dir(), beyond_loopback=True)
    assert await server.start() > 0
    await server.stop(0)


async def test_an_unknown_host_is_reported() -> None:
    with pytest.raises(YarnException, match=r"cannot listen on k = no[.]such[.]host[.]invalid:0: unknown host"):
        await RpcServer(Address("no.such.host.invalid", 0, "k"), socket_dir()).start()


async def test_localhost_is_a_host_as_well() -> None:
    server = RpcServer(Address("localhost", 0), socket_dir())
    assert await server.start() > 0
    await server.stop(0)


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6 here")
async def test_ipv6_is_written_in_brackets() -> None:
    server = RpcServer(Address("[::1]", 0), socket_dir())
    server.add(ResourceManagerAdministrationProtocol.rpcs, Recorder({}), anybody)
    try:
        port = await server.start()
    except YarnException as error:
        pytest.skip(f"IPv6 has no loopback here: {error.message}")
    async with ResourceManagerAdministrationProtocol(f"[::1]:{port}") as proxy:
        await proxy.refresh_queues()
    await server.stop(0)


# Watching


class Watcher:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, object]] = []

    def received(self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object) -> None:
        self.seen.append(("<", rpc.name, request))

    def answered(
        self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object, outcome: object, elapsed_ms: float
    ) -> None:
        assert elapsed_ms >= 0
        self.seen.append((">", rpc.name, outcome))


async def test_each_call_can_be_watched(caplog: pytest.LogCaptureFixture) -> None:
    watcher = Watcher()
    caplog.set_level(logging.DEBUG, "yarnling.wire.dispatch")
    recorder = Recorder({"get_applications": AccessControlException("not you")})
    async with (
        serving(ApplicationClientProtocol.rpcs, recorder, observers=(watcher,)) as server,
        ApplicationClientProtocol(target(server), user="ann") as proxy,
    ):
        with pytest.raises(AccessControlException):
            await proxy.get_applications(ApplicationFilter())
    assert watcher.seen[0] == ("<", "getApplications", ApplicationFilter())
    assert isinstance(watcher.seen[1][2], AccessControlException)
    lines = [record.getMessage() for record in caplog.records if record.name == "yarnling.wire.dispatch"]
    assert lines[0].startswith("< getApplications peer=ipv4:127.0.0.1:")
    assert "user=ann" in lines[0]
    assert lines[1].startswith("> getApplications")


async def test_no_secret_gets_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """At DEBUG every message is logged, without keys, signatures and credentials."""
    # A cluster in this process, of another test, leaves its packages at INFO.
    caplog.set_level(logging.DEBUG, logger="yarnling.wire")
    key = MasterKey(1, b"CANARY")
    token = Token(b"identifier", b"CANARY", "kind", "service")
    welcome = RegisterNodeManagerResponse(NodeAction.NORMAL, 1, key, key)
    start = StartContainerRequest(ContainerLaunchContext(("c",), tokens=b"CANARY"), token)
    request = RegisterNodeManagerRequest(NODE, 1, Resource(1, 1))
    async with (
        serving(ResourceTracker.rpcs, Recorder({"register_node_manager": welcome})) as tracker_server,
        serving(
            ContainerManagementProtocol.rpcs, Recorder({"start_containers": StartContainersResponse()})
        ) as node_server,
        ResourceTracker(target(tracker_server), token=token) as node,
        ContainerManagementProtocol(target(node_server), token=token) as master_proxy,
    ):
        await node.register_node_manager(request)
        await master_proxy.start_containers((start,))
    assert "< startContainers" in caplog.text
    assert "> registerNodeManager" in caplog.text
    assert "CANARY" not in caplog.text


# Starting by fork


FORK = """
import asyncio, os, pkgutil, sys
from pathlib import Path
import wire, rm, wire.codec, wire.protocols
for package in (wire, wire.codec, wire.protocols):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        __import__(module.name)
import rm.daemon
assert len(os.listdir("/proc/self/task")) == 1, "importing must not start threads"

from wire.address import Address
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.server import RpcServer

class Handler:
    async def refresh_queues(self, caller, request): return None

async def talk():
    server = RpcServer(Address("127.0.0.1", 0), Path(sys.argv[1]))
    server.add((ResourceManagerAdministrationProtocol.refresh_queues,), Handler(), lambda caller: None)
    port = await server.start()
    async with ResourceManagerAdministrationProtocol(f"127.0.0.1:{port}") as proxy:
        await proxy.refresh_queues()
    await server.stop(0)

for _ in range(3):
    pid = os.fork()
    if pid == 0:
        asyncio.run(talk())
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
print("forked")
"""


@pytest.mark.slow
def test_a_process_that_imported_everything_can_fork() -> None:
    """The fork server's condition: nothing of gRPC exists before the fork."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(socket_dir())],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=root,
        env={**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "false"},
        check=False,
    )
    assert done.stdout == "forked\n", done.stderr
