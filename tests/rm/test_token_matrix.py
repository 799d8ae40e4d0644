"""Every call of masters and nodes, with every token but the right one: refused, and the RM's state is what it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from tests.rm.served_cluster import SCHEDULER, TRACKER, Cluster, configuration, serving, submit, until
from wire.caller import caller_metadata
from wire.errors import error_of
from wire.json_records import to_json
from wire.protocols import master, tracker
from wire.rpc import Rpc
from wire.tokens import (
    AMRMTokenSecretManager,
    ContainerTokenSecretManager,
    KeyRing,
    NMTokenSecretManager,
    NodeTokenSecretManager,
    new_master_key,
)
from yarn.containers import ContainerTokenIdentifier, Token
from yarn.errors import InvalidToken
from yarn.ids import ApplicationAttemptId, ContainerId, NodeId
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
        "no identifier": Token(b"", foreign.password, foreign.kind, ""),
        "no seal": Token(foreign.identifier, b"", foreign.kind, ""),
        "rubbish": Token(b"\xff\xff", b"\xff", foreign.kind, ""),
    }


@pytest.mark.parametrize("rpc", [*master.RPCS, *tracker.RPCS], ids=lambda rpc: str(rpc.method))
async def test_no_other_token_opens_a_call(cluster: Cluster, rpc: Rpc[Any, Any]) -> None:
    node, client = await cluster.node(), await cluster.client()
    app = await submit(client)
    await node.beat()
    await until(lambda: bool(node.started))
    attempt_id = ApplicationAttemptId(app, 1)
    tokens = _foreign_tokens(attempt_id)
    if rpc in master.RPCS:
        tokens["a node's token"] = cluster.node_tokens.create(node.node_id)
        tokens["an NM token"] = cluster.rm.keys.nodes.create(attempt_id, node.node_id, "ann")
    else:
        tokens["a master's token"] = node.amrm_token()
    before = await _state(cluster)
    address = cluster.addresses[SCHEDULER if rpc in master.RPCS else TRACKER]
    async with grpc.aio.insecure_channel(address) as channel:
        call: Any = channel.unary_unary(rpc.path)
        for name, token in tokens.items():
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(b"", metadata=caller_metadata("ann", token))
            assert isinstance(error_of(caught.value, target="rm", method=rpc.name), InvalidToken), name
    assert await _state(cluster) == before


async def _state(cluster: Cluster) -> object:
    """What clients can see of the RM."""
    client = await cluster.client()
    reports = await client.get_applications(), await client.get_cluster_nodes(), await client.get_queue_info("root")
    return to_json(tuple((report.application_id, report.state, report.progress) for report in reports[0])), reports[1:]
