"""Hadoop's AMs at a NodeManager, and at each node of a pack: containers over Hadoop's RPC, beside gRPC."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.nm.lone_node import WAIT_S, LoneNode, lone_node, lone_nodes
from tests.wire.hadoop_rpc.hadoop_client import NM_PROTOCOL, HadoopError, connected
from wire.protocols.container_management import ContainerManagementProtocol
from wire.tokens import new_master_key
from yarn.containers import ContainerLaunchContext, Token
from yarn.ids import ContainerId, NodeId

pytestmark = pytest.mark.cluster

HADOOP = {"yarn.yarnling.hadoop-rpc.enabled": "true"}
PACK_OF_3 = {"yarn.yarnling.pack": "3", "yarn.nodemanager.hostname": "127.0.0.71"}
TOKEN_REFUSED = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
START = ContainerManagementProtocol.start_containers
STATUSES = ContainerManagementProtocol.get_container_statuses


def nm_token(node: LoneNode, node_id: NodeId | None = None) -> Token:
    return node.rm.nm_tokens.create(node.attempt, node_id or node.node.node_id, "alice")


async def started(node: LoneNode, command: str) -> ContainerId:
    """A container that was started over Hadoop's RPC."""
    container_id = node.container_id()
    async with connected(str(node.node.node_id), NM_PROTOCOL, token=nm_token(node)) as am:
        response = await am.call(START, (node.request(ContainerLaunchContext((command,)), container_id),))
    assert response.succeeded == (container_id,), response.failed
    return container_id


async def test_an_am_starts_and_stops_containers(tmp_path: Path) -> None:
    async with asyncio.timeout(WAIT_S), lone_node(tmp_path, HADOOP) as node:
        ends = await node.end_of(await started(node, "exit 7"))
        assert ends.exit_status == 7
        sleeping = await started(node, "sleep 60")
        await node.running(sleeping)
        async with connected(str(node.node.node_id), NM_PROTOCOL, token=nm_token(node)) as am:
            (status,) = (await am.call(STATUSES, (sleeping,))).statuses
            assert status.container_id == sleeping
            await am.call(ContainerManagementProtocol.stop_containers, (sleeping,))
        assert (await node.end_of(sleeping)).exit_status == -105
        assert (await node.run(ContainerLaunchContext(("exit 3",)))).exit_status == 3, "over gRPC"


async def test_only_tokens_of_this_node_are_accepted(tmp_path: Path) -> None:
    async with asyncio.timeout(WAIT_S), lone_node(tmp_path, HADOOP) as node:
        address = str(node.node.node_id)
        forged = replace(nm_token(node), password=b"x" * 32)
        with pytest.raises(HadoopError) as caught:
            async with connected(address, NM_PROTOCOL, token=forged):
                pass
        assert caught.value.seen[1] == TOKEN_REFUSED
        elsewhere = nm_token(node, NodeId("127.0.0.99", 1))
        async with connected(address, NM_PROTOCOL, token=elsewhere) as am:
            with pytest.raises(HadoopError, match="is not valid for"):
                await am.call(STATUSES, ())


async def test_an_attempt_keeps_its_token_when_keys_change(tmp_path: Path) -> None:
    """The node remembers the key of an attempt that has started a container (NMTokenSecretManagerInNM)."""
    async with asyncio.timeout(WAIT_S), lone_node(tmp_path, HADOOP) as node:
        token = nm_token(node)
        other = node.rm.nm_tokens.create(node.attempt._replace(attempt=2), node.node.node_id, "alice")
        await started(node, "true")
        for _ in range(2):
            node.rm.orders = {"nm_token_key": new_master_key()}
            beats = len(node.rm.heartbeats)
            await node.rm.wait_for(lambda seen=beats: len(node.rm.heartbeats) > seen + 1)  # type: ignore[misc]
        async with connected(str(node.node.node_id), NM_PROTOCOL, token=token) as am:
            await am.call(STATUSES, ())
        with pytest.raises(HadoopError, match="unknown or has expired"):
            async with connected(str(node.node.node_id), NM_PROTOCOL, token=other):
                pass


async def test_each_node_of_a_pack_answers_at_its_address(tmp_path: Path) -> None:
    async with asyncio.timeout(WAIT_S), lone_nodes(tmp_path, HADOOP | PACK_OF_3) as nodes:
        for number, node in enumerate(nodes, 1):
            # Container ids are unique in a cluster; here each node counts its own.
            node._numbers = 10 * number
            container_id = await started(node, f"echo $NM_HOST > {tmp_path}/said-{number}")
            assert (await node.end_of(container_id)).exit_status == 0
            assert (tmp_path / f"said-{number}").read_text() == f"{node.node.node_id.host}\n"
        # The token says which node is meant, not the address.
        async with connected(str(nodes[0].node.node_id), NM_PROTOCOL, token=nm_token(nodes[2])) as am:
            assert (await am.call(STATUSES, ())).statuses == ()
        forged = replace(nm_token(nodes[1]), password=b"x" * 32)
        with pytest.raises(HadoopError) as caught:
            async with connected(str(nodes[1].node.node_id), NM_PROTOCOL, token=forged):
                pass
        assert caught.value.seen[1] == TOKEN_REFUSED


async def test_off_a_node_answers_grpc_alone(tmp_path: Path) -> None:
    async with asyncio.timeout(WAIT_S), lone_node(tmp_path) as node:
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            async with connected(str(node.node.node_id), NM_PROTOCOL, token=nm_token(node)):
                pass
