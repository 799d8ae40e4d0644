"""Every call to every port of the RM, with every token but the right one: refused, and the RM's state is unchanged."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from tests.rm.served_cluster import (
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
from wire.caller import caller_metadata
from wire.errors import error_of
from wire.files.json_records import to_json
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.inspection import InspectionProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.pack import PackTokenSecretManager, PackTrackerProtocol
from wire.protocols.tracker import ResourceTracker
from wire.rpc import Rpc
from wire.tokens import (
    AMRMTokenSecretManager,
    ClientTokenSecretManager,
    ContainerTokenSecretManager,
    KeyRing,
    NMTokenSecretManager,
    NodeTokenSecretManager,
    new_master_key,
)
from yarn.applications import ApplicationFilter
from yarn.containers import CLIENT_KIND, ContainerTokenIdentifier, Token
from yarn.errors import InvalidToken
from yarn.ids import ApplicationAttemptId, ContainerId, NodeId
from yarn.protocols.client import QueueInfoRequest
from yarn.protocols.pack import Pack
from yarn.resource import Resource

NODE = NodeId("127.0.0.2", 1)
OTHER_CLUSTER = b"the secret of another cluster..."


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with serving(configuration(tmp_path)) as served:
        yield served


def _foreign_tokens(attempt_id: ApplicationAttemptId) -> dict[str, Token | None]:
    """Tokens of all kinds by the keys of another cluster, one cut short, and none at all."""
    foreign = AMRMTokenSecretManager(KeyRing(new_master_key())).create(attempt_id)
    promise = ContainerTokenIdentifier(ContainerId(attempt_id, 1), NODE, "ann", Resource(1, 1), 1 << 60, 0, 0, 0, 0)
    return {
        "none": None,
        "AMRM token of another cluster": foreign,
        "NM token of another cluster": NMTokenSecretManager(KeyRing(new_master_key())).create(attempt_id, NODE, "ann"),
        "container token": ContainerTokenSecretManager(KeyRing(new_master_key())).create(promise),
        "node token of another cluster": NodeTokenSecretManager(OTHER_CLUSTER).create(NODE),
        "pack token of another cluster": PackTokenSecretManager(OTHER_CLUSTER).create(Pack(NODE, 2)),
        "client token of another cluster": ClientTokenSecretManager(OTHER_CLUSTER).create(),
        "client token without a seal": Token(b"", b"", CLIENT_KIND, ""),
        "no identifier": Token(b"", foreign.password, foreign.kind, ""),
        "no seal": Token(foreign.identifier, b"", foreign.kind, ""),
        "rubbish": Token(b"\xff\xff", b"\xff", foreign.kind, ""),
    }


SERVED: dict[tuple[Rpc[Any, Any], ...], tuple[str, str]] = {
    ApplicationClientProtocol.rpcs: (CLIENT, "client token"),
    InspectionProtocol.rpcs: (CLIENT, "client token"),
    ResourceManagerAdministrationProtocol.rpcs: (ADMIN, "client token"),
    ApplicationMasterProtocol.rpcs: (SCHEDULER, "AMRM token"),
    ResourceTracker.rpcs: (TRACKER, "node token"),
    PackTrackerProtocol.rpcs: (TRACKER, "pack token"),
}
"""{the calls of a protocol: the address that serves it, the token that it takes}."""


@pytest.mark.parametrize("rpc", [rpc for rpcs in SERVED for rpc in rpcs], ids=lambda rpc: f"{rpc.method}")
async def test_each_call_accepts_only_its_own_token(cluster: Cluster, rpc: Rpc[Any, Any]) -> None:
    node, submitter = await cluster.node(), await cluster.client()
    app = await submit(submitter)
    await node.beat()
    await until(lambda: bool(node.started))
    attempt_id = ApplicationAttemptId(app, 1)
    address, wanted = next(served for rpcs, served in SERVED.items() if rpc in rpcs)
    tokens = {**_foreign_tokens(attempt_id), **_own_tokens(cluster, node)}
    del tokens[wanted]
    before = await _state(cluster)
    async with grpc.aio.insecure_channel(cluster.addresses[address]) as channel:
        call: Any = channel.unary_unary(rpc.path)
        for name, token in tokens.items():
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                # Not a message of any call: the token is refused before the message is parsed.
                await call(b"\xff", metadata=caller_metadata("ann", token))
            assert isinstance(error_of(caught.value, target="rm", method=rpc.name), InvalidToken), name
    assert await _state(cluster) == before


def _own_tokens(cluster: Cluster, node: Node) -> dict[str, Token | None]:
    """Tokens of this cluster, each of which opens one protocol."""
    amrm_token = node.amrm_token()
    attempt_id = ApplicationAttemptId(node.started[-1].identifier.container_id.application_id, 1)
    return {
        "client token": cluster.client_token,
        "AMRM token": amrm_token,
        "node token": cluster.node_tokens.create(node.node_id),
        "pack token": PackTokenSecretManager(cluster.secret).create(Pack(node.node_id, 2)),
        "NM token": cluster.rm.keys.nodes.create(attempt_id, node.node_id, "ann"),
    }


async def _state(cluster: Cluster) -> object:
    """The state of the RM that clients can see."""
    client = await cluster.client()
    reports = (
        await client.get_applications(ApplicationFilter()),
        await client.get_cluster_nodes(frozenset()),
        await client.get_queue_info(QueueInfoRequest("root")),
    )
    return to_json(tuple((report.application_id, report.state, report.progress) for report in reports[0])), reports[1:]
