"""Hadoop's RPC over real connections: the same services as over gRPC, its errors, and who calls."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from pathlib import Path

import pytest

from tests.wire.hadoop_rpc.hadoop_client import (
    ADMIN_PROTOCOL,
    CLIENT_PROTOCOL,
    MASTER_PROTOCOL,
    NM_PROTOCOL,
    PREAMBLE_SIMPLE,
    FrameSource,
    HadoopError,
    call_frame,
    connected,
    context_frame,
)
from tests.wire.hadoop_rpc.serving import OWN, serving_both
from tests.wire.random_records import random_value, record_types
from tests.wire.serving import Recorder, target
from wire import local_peer
from wire.caller import Caller
from wire.generated.hadoop_rpc_pb2 import RpcResponseHeaderProto
from wire.hadoop_authentication import ByToken
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.inspection import InspectionProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.rpc import Proxy
from wire.tokens import AMRMTokenSecretManager, KeyRing, new_master_key
from yarn.errors import AccessControlException, ApplicationNotFoundException, InvalidToken, RemoteError, YarnException
from yarn.faults import ConfigurationException
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.nodes import ClusterMetrics

HANGS_S = 60
ATTEMPT = ApplicationAttemptId(ApplicationId(1_700_000_000_000, 1), 1)
ERROR, FATAL = RpcResponseHeaderProto.ERROR, RpcResponseHeaderProto.FATAL
COUNTS = ClusterMetrics(3)
METRICS = ApplicationClientProtocol.get_cluster_metrics
JAVA_NAMES: tuple[tuple[type[Proxy], str], ...] = (
    (ApplicationClientProtocol, CLIENT_PROTOCOL),
    (ApplicationMasterProtocol, MASTER_PROTOCOL),
    (ContainerManagementProtocol, NM_PROTOCOL),
    (ResourceManagerAdministrationProtocol, ADMIN_PROTOCOL),
)


@pytest.mark.parametrize(("protocol", "java_name"), JAVA_NAMES)
async def test_every_call_brings_its_request_and_its_reply(
    protocol: type[Proxy], java_name: str, tmp_path: Path
) -> None:
    rng = random.Random(7)
    requests, replies = {}, {}
    for rpc in protocol.rpcs:
        requests[rpc.method], replies[rpc.method] = (random_value(rng, kind) for kind in record_types(rpc))
    recorder = Recorder(replies)
    async with (
        serving_both(protocol.rpcs, recorder, tmp_path) as server,
        connected(target(server), java_name) as client,
    ):
        for rpc in protocol.rpcs:
            data = await client.send(rpc.name, rpc.request.encode(requests[rpc.method]))
            assert data == rpc.reply.encode(replies[rpc.method])
    assert [(name, request) for name, _, request in recorder.calls] == list(requests.items())
    caller = recorder.calls[0][1]
    assert caller.user == "ann"
    assert caller.token == OWN
    assert caller.peer.startswith("ipv4:127.0.0.1:")


async def test_a_client_that_begins_with_sasl_is_served_too(tmp_path: Path) -> None:
    recorder = Recorder({"get_cluster_metrics": COUNTS})
    async with (
        serving_both(ApplicationClientProtocol.rpcs, recorder, tmp_path) as server,
        connected(target(server), sasl=True) as client,
    ):
        assert await client.call(METRICS) == COUNTS


async def test_a_caller_is_who_its_token_says(tmp_path: Path) -> None:
    manager = AMRMTokenSecretManager(KeyRing(new_master_key()))
    recorder = Recorder({})
    async with (
        serving_both(
            ApplicationMasterProtocol.rpcs,
            recorder,
            tmp_path,
            authentication=ByToken(manager.token_of),
            authenticate=lambda caller: manager.check(caller.token),
        ) as server,
        connected(target(server), MASTER_PROTOCOL, token=manager.create(ATTEMPT)) as client,
    ):
        with pytest.raises(HadoopError):  # the recorder has no reply
            await client.send("finishApplicationMaster", b"\x18\x01")
        manager.keys.current = new_master_key()
        with pytest.raises(HadoopError, match="unknown or has expired"):
            await client.send("finishApplicationMaster", b"\x18\x01")
    ((_, caller, _),) = recorder.calls
    assert caller.verified.attempt_id == ATTEMPT


async def test_a_wrong_token_is_refused_with_the_connection(tmp_path: Path) -> None:
    manager = AMRMTokenSecretManager(KeyRing(new_master_key()))
    other = AMRMTokenSecretManager(KeyRing(new_master_key()))
    async with serving_both(
        ApplicationMasterProtocol.rpcs, Recorder({}), tmp_path, authentication=ByToken(manager.token_of)
    ) as server:
        with pytest.raises(HadoopError) as caught:
            async with connected(target(server), MASTER_PROTOCOL, token=other.create(ATTEMPT)):
                pass
    status, java_class, _, detail = caught.value.seen
    assert (status, detail) == (FATAL, RpcResponseHeaderProto.FATAL_UNAUTHORIZED)
    assert java_class == "org.apache.hadoop.security.token.SecretManager$InvalidToken"


async def test_simple_at_a_port_for_tokens_is_refused_before_the_connection_is_closed(tmp_path: Path) -> None:
    """The client is still sending its context and a call: closing at once would fail that, and hide the refusal."""
    by_token = ByToken(AMRMTokenSecretManager(KeyRing(new_master_key())).token_of)
    call = call_frame(0, MASTER_PROTOCOL, "allocate", b"x" * 10_000_000)
    async with (
        asyncio.timeout(HANGS_S),
        serving_both(ApplicationMasterProtocol.rpcs, Recorder({}), tmp_path, authentication=by_token) as server,
    ):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            await asyncio.to_thread(client.sendall, PREAMBLE_SIMPLE + context_frame("ann") + call)
            client.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=client)
            header, _ = await FrameSource(reader).next()
            assert header.errorMsg == "SIMPLE authentication is not enabled.  Available:[TOKEN]"
            assert await reader.read() == b""
            writer.close()


# Errors


@pytest.mark.parametrize(
    ("error", "java_class", "text"),
    [
        (
            ApplicationNotFoundException("no application_1_0001"),
            "org.apache.hadoop.yarn.exceptions.ApplicationNotFoundException",
            "no application_1_0001",
        ),
        (AccessControlException("not you\né"), "org.apache.hadoop.security.AccessControlException", "not you\né"),
        (InvalidToken("old"), "org.apache.hadoop.security.token.SecretManager$InvalidToken", "old"),
        (ConfigurationException("wrong"), ConfigurationException.java_class, "wrong"),
        (YarnException("so"), "org.apache.hadoop.yarn.exceptions.YarnException", "so"),
        (
            ZeroDivisionError("oops"),
            "java.io.IOException",
            "ZeroDivisionError in getClusterMetrics; the server's log has the traceback",
        ),
        (RemoteError("a bug below"), "java.io.IOException", "a bug below"),
    ],
)
async def test_an_error_has_its_java_class_and_keeps_the_connection(
    error: Exception, java_class: str, text: str, tmp_path: Path
) -> None:
    recorder = Recorder({"get_cluster_metrics": error})
    async with (
        serving_both(ApplicationClientProtocol.rpcs, recorder, tmp_path) as server,
        connected(target(server)) as client,
    ):
        for _ in range(2):
            with pytest.raises(HadoopError) as caught:
                await client.call(METRICS)
            assert caught.value.seen == (ERROR, java_class, text, RpcResponseHeaderProto.ERROR_APPLICATION)


async def test_what_is_not_served_is_refused_in_hadoops_words(tmp_path: Path) -> None:
    async with (
        serving_both(InspectionProtocol.rpcs, Recorder({}), tmp_path) as server,
        connected(target(server)) as client,
    ):
        with pytest.raises(HadoopError) as caught:
            await client.send("getClusterMetrics", b"")
        assert caught.value.seen == (
            ERROR,
            "org.apache.hadoop.ipc.RpcNoSuchProtocolException",
            f"Unknown protocol: {CLIENT_PROTOCOL}",
            RpcResponseHeaderProto.ERROR_NO_SUCH_PROTOCOL,
        )
    recorder = Recorder({"get_cluster_metrics": COUNTS})
    async with (
        serving_both(ApplicationClientProtocol.rpcs, recorder, tmp_path) as server,
        connected(target(server)) as client,
    ):
        with pytest.raises(HadoopError) as caught:
            await client.send("getDelegationToken", b"")
        assert caught.value.seen == (
            ERROR,
            "org.apache.hadoop.ipc.RpcNoSuchMethodException",
            f"Unknown method getDelegationToken called on {CLIENT_PROTOCOL} protocol.",
            RpcResponseHeaderProto.ERROR_NO_SUCH_METHOD,
        )
        with pytest.raises(HadoopError, match="Unknown protocol: x"):
            await client.send("m", b"", "x")
        await client.call(METRICS)


async def test_a_request_that_cannot_be_read_is_an_illegal_argument(tmp_path: Path) -> None:
    recorder = Recorder({"get_cluster_metrics": COUNTS})
    async with (
        serving_both(ApplicationClientProtocol.rpcs, recorder, tmp_path) as server,
        connected(target(server)) as client,
    ):
        with pytest.raises(HadoopError) as caught:
            await client.send("getApplicationReport", b"\xff\xff\xff")
        status, java_class, text, detail = caught.value.seen
        assert (status, java_class, detail) == (ERROR, "java.lang.IllegalArgumentException", 1)
        assert text == "3 bytes cannot be read as GetApplicationReportRequestProto"
        await client.call(METRICS)
    assert [call[0] for call in recorder.calls] == ["get_cluster_metrics"]


async def test_callers_are_checked_before_their_message_is_read(tmp_path: Path) -> None:
    def refuse(caller: Caller[None]) -> None:
        raise InvalidToken("nobody")

    async with (
        serving_both(ApplicationClientProtocol.rpcs, Recorder({}), tmp_path, authenticate=refuse) as server,
        connected(target(server)) as client,
    ):
        with pytest.raises(HadoopError, match="nobody"):
            await client.send("getApplicationReport", b"\xff\xff\xff")


# Who calls


@pytest.mark.parametrize(("user_id", "token"), [(0, OWN), (os.geteuid(), OWN), (54321, None), (None, None)])
async def test_only_the_owners_processes_need_no_token(
    user_id: int | None, token: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = []

    def user_id_of_peer(ours: socket.socket) -> int | None:
        looked_up.append((ours.getpeername(), ours.getsockname()))
        return user_id

    monkeypatch.setattr(local_peer, "user_id_of_peer", user_id_of_peer)
    recorder = Recorder({"get_cluster_metrics": COUNTS})
    async with (
        serving_both(ApplicationClientProtocol.rpcs, recorder, tmp_path, admits_all_users=True) as server,
        connected(target(server)) as client,
    ):
        here = client.writer.get_extra_info("sockname")
        await asyncio.gather(*(client.call(METRICS) for _ in range(5)))
    assert looked_up == [(here, ("127.0.0.1", server.port))], "once per connection"
    assert {call[1].token for call in recorder.calls} == {token}
