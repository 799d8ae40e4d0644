"""Single messages outside any sequence: any RPC with any request, damaged bytes, and bytes that are not a call."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from random import Random
from typing import Any

import grpc.aio
from msgspec.structs import replace

from tests.cluster.rpc_fuzz.caller import (
    DEADLINE_S,
    KEY_OF,
    ODD_USERS,
    RPCS,
    USERS,
    FuzzCaller,
    Message,
    Metadata,
    metadata_of,
    odd_metadata,
)
from tests.cluster.rpc_fuzz.known import Known
from tests.cluster.rpc_fuzz.mutations import mutated
from tests.rm.served_cluster import Cluster
from wire.channel import MESSAGE_BYTES_MAX, METADATA_BYTES_MAX
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.pack import PackTokenSecretManager, PackTrackerProtocol
from wire.protocols.tracker import ResourceTracker
from wire.rpc import Rpc
from yarn.containers import Token
from yarn.errors import InvalidArgumentException
from yarn.ids import NodeId
from yarn.protocols.pack import Pack
from yarn.protocols.tracker import RegisterNodeManagerRequest

RAW = (
    b"",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" + b"\xff" * 100,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\x00" * 1000,
    b"hrpc\x09\x00\xde",
)
"""The first bytes of other protocols: HTTP, TLS, a part of HTTP/2, Hadoop's own RPC."""
LARGE_BYTES = (METADATA_BYTES_MAX * 2, METADATA_BYTES_MAX * 3)
"""gRPC refuses some messages slightly above its limit, and accepts others."""


@dataclass
class Strays:
    """Single messages, until cancelled. `secret` is the cluster's."""

    caller: FuzzCaller
    known: Known
    rng: Random
    cluster: Cluster
    secret: bytes

    async def run(self) -> None:
        while True:
            kind = self.rng.random()
            if kind < 0.9:
                await self._any_call()
            elif kind < 0.95:
                await self.caller.replay(self.rng)
            else:
                await self.rng.choice(_ODD)(self)

    async def _any_call(self) -> None:
        rng = self.rng
        rpc = rng.choice(RPCS)
        record = self.known.request(rng, rpc.path, self.caller.harmless)
        if isinstance(record, RegisterNodeManagerRequest) and not self.known.nodes_list_ended:
            record = replace(record, containers=())
        if rpc is PackTrackerProtocol.register_nodes and not self.known.nodes_list_ended:
            record = tuple(replace(one, containers=()) for one in record)
        try:
            data = rpc.request.encode(record)
        except (ValueError, InvalidArgumentException):
            return
        if rng.random() < 0.4:
            data = mutated(rng, data)
        target = self._target(rpc, record)
        if target is not None:
            await self.caller.send(rng, Message(rpc, target, data, self._metadata(rpc, record, target)))

    def _target(self, rpc: Rpc[Any, Any], record: object) -> str | None:
        if rpc in ContainerManagementProtocol.rpcs:
            return str(self.rng.choice(self.known.real_nodes)) if self.known.real_nodes else None
        return self.caller.addresses[KEY_OF[rpc.path]]

    def _metadata(self, rpc: Rpc[Any, Any], record: Any, target: str) -> Any:
        rng = self.rng
        if rng.random() < 0.1:
            return odd_metadata(rng)
        user = rng.choice((*USERS, *USERS, rng.choice(ODD_USERS)))
        token = self._token(rpc, record, target) if rng.random() < 0.85 else self.known.token(rng)
        return metadata_of(user, token)

    def _token(self, rpc: Rpc[Any, Any], record: Any, target: str) -> Token | None:
        """A token that the call accepts."""
        rng = self.rng
        if rpc in ApplicationMasterProtocol.rpcs:
            return rng.choice(self.known.master_tokens) if self.known.master_tokens else None
        if rpc in ContainerManagementProtocol.rpcs:
            those = [token for node, token in self.known.nm_tokens if str(node) == target]
            return rng.choice(those) if those else None
        if rpc in ResourceTracker.rpcs:
            node = record if isinstance(record, NodeId) else record.node_id
            # Real nodes mostly keep their registration, or nothing would ever run on them.
            is_spared = node in self.known.real_nodes and rng.random() < 0.9
            return None if is_spared else self.cluster.node_tokens.create(node)
        if rpc in PackTrackerProtocol.rpcs:
            return PackTokenSecretManager(self.secret).create(Pack(NodeId("127.0.3.1", 1), rng.choice((1, 3, 100))))
        return self.caller.client_token

    # Requests that are not a call of a known RPC

    async def _unknown_method(self) -> None:
        rng, rpc = self.rng, self.rng.choice(RPCS)
        path = rng.choice(
            (
                f"/{rpc.service}/noSuchCall",
                "/no.such.Service/x",
                f"/{rpc.service}/",
                "/",
                f"/{rpc.service}/{rpc.name}/x",
            )
        )
        await self._raw_call(
            "unknown method",
            path,
            b"\x08\x01",
            self._client_metadata(),
            {grpc.StatusCode.UNIMPLEMENTED},
        )

    async def _large_metadata(self) -> None:
        metadata = (("x-large", "y" * self.rng.choice(LARGE_BYTES)),)
        await self._raw_call(
            "large metadata",
            ApplicationClientProtocol.get_cluster_metrics.path,
            b"",
            metadata,
            {grpc.StatusCode.RESOURCE_EXHAUSTED},
        )

    async def _large_message(self) -> None:
        if self.rng.random() < 0.9:
            # A message of 64 MiB takes as long as hundreds of others.
            return
        data = b"\x00" * (MESSAGE_BYTES_MAX + 1)
        await self._raw_call(
            "large message",
            ApplicationClientProtocol.get_cluster_metrics.path,
            data,
            self._client_metadata(),
            {grpc.StatusCode.RESOURCE_EXHAUSTED},
        )

    async def _cancelled_call(self) -> None:
        """The caller cancels its call, or sets a very short deadline, while it is being answered."""
        rpc = self.rng.choice(
            (ApplicationClientProtocol.get_cluster_nodes, ApplicationClientProtocol.get_cluster_metrics)
        )
        self.caller.spend()
        call: Any = self.caller.channel(self.caller.addresses[KEY_OF[rpc.path]]).unary_unary(rpc.path)
        waiting = call(
            b"",
            metadata=self._client_metadata(),
            timeout=self.rng.choice((0.0001, 0.001, DEADLINE_S)),
        )
        await asyncio.sleep(self.rng.choice((0, 0.001)))
        waiting.cancel()
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
            await waiting
        self.caller.note("cancelled call", "cancelled")

    async def _raw_bytes(self) -> None:
        """Send another protocol, or a part of this one; the server closes or waits, and serves others meanwhile."""
        self.caller.spend()
        address = self.rng.choice(list(self.caller.addresses.values()) + [str(node) for node in self.known.real_nodes])
        host, _, port = address.rpartition(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
        except OSError as error:
            self.caller.note("raw bytes", "refused", f"{address} accepts no connection: {error}")
            return
        with contextlib.suppress(OSError, TimeoutError):
            writer.write(self.rng.choice((*RAW, self.rng.randbytes(100))))
            async with asyncio.timeout(self.rng.choice((0.0, 0.05))):
                await reader.read(1000)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        self.caller.note("raw bytes", "closed")

    def _client_metadata(self) -> Metadata:
        return metadata_of("ann", self.caller.client_token)

    async def _raw_call(self, name: str, path: str, data: bytes, metadata: Any, right: set[grpc.StatusCode]) -> None:
        self.caller.spend()
        address = self.rng.choice(list(self.caller.addresses.values()))
        if name != "unknown method":
            address = self.caller.addresses[KEY_OF[path]]
        call: Any = self.caller.channel(address).unary_unary(path)
        try:
            await call(data, metadata=metadata, timeout=DEADLINE_S)
        except grpc.aio.AioRpcError as failure:
            is_right = failure.code() in right
            fault = "" if is_right else f"{path}: {failure.code().name} {failure.details()}"
            self.caller.note(name, failure.code().name, fault)
        else:
            self.caller.note(name, "ok", f"{path} was answered")


_ODD = (
    Strays._unknown_method,
    Strays._unknown_method,
    Strays._large_metadata,
    Strays._large_message,
    Strays._cancelled_call,
    Strays._raw_bytes,
    Strays._raw_bytes,
)
