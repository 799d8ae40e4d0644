"""The cost of a call to the ResourceManager: over gRPC, and over Hadoop's RPC.

The two ways take turns, so that a busy machine is busy for both; each figure is the median of its rounds.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import psutil

from wire.generated.hadoop_rpc_pb2 import (
    IpcConnectionContextProto,
    RequestHeaderProto,
    RpcKindProto,
    RpcRequestHeaderProto,
)
from wire.protocols.client import ApplicationClientProtocol
from yarn.settings.resourcemanager import ADDRESS
from yarn.settings.yarnling import HADOOP_RPC_ENABLED
from yarnling.cluster.local_cluster import LocalCluster

ROUNDS = 15
CALLS = 1_000
"""Calls in a round, AT_ONCE at a time."""
AT_ONCE = 50
ALONE = 100
"""Calls in a round one after the other, whose wall time is measured."""
JAVA_PROTOCOL = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"

Call = Callable[[], Awaitable[object]]


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"us_rm_WAY": CPU of the RM a call, "us_alone_WAY": wall time of a call}; a way: grpc, hadoop."""
    return asyncio.run(_measure(progress))


async def _measure(progress: Callable[[str], None]) -> dict[str, float]:
    cpu_us: dict[str, list[float]] = {}
    alone_us: dict[str, list[float]] = {}
    async with AsyncExitStack() as stack:
        both = await stack.enter_async_context(LocalCluster(nodes=0, settings={HADOOP_RPC_ENABLED.key: "true"}))
        ways: Mapping[str, tuple[Call, int]] = {
            "grpc": (both.client.metrics, both.rm.pid),
            "hadoop": (await stack.enter_async_context(_hadoop_calls(both.addresses[ADDRESS.key])), both.rm.pid),
        }
        for number in range(ROUNDS + 1):
            progress(f"round {number} of {ROUNDS}")
            for way, (call, pid) in ways.items():
                used_s = await _cpu_s(call, psutil.Process(pid))
                started = time.perf_counter()
                for _ in range(ALONE):
                    await call()
                if number:  # the first round warms up
                    cpu_us.setdefault(way, []).append(used_s / CALLS * 1e6)
                    alone_us.setdefault(way, []).append((time.perf_counter() - started) / ALONE * 1e6)
    figures: dict[str, float] = {f"us_rm_{way}": round(statistics.median(values)) for way, values in cpu_us.items()}
    return figures | {f"us_alone_{way}": round(statistics.median(values)) for way, values in alone_us.items()}


async def _cpu_s(call: Call, process: psutil.Process) -> float:
    """The cost of CALLS calls to the process."""

    async def one_after_the_other() -> None:
        for _ in range(CALLS // AT_ONCE):
            await call()

    before = process.cpu_times()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(one_after_the_other())
    after = process.cpu_times()
    return after.user + after.system - before.user - before.system


@asynccontextmanager
async def _hadoop_calls(address: str) -> AsyncIterator[Call]:
    """getClusterMetrics over one connection of Hadoop's RPC; replies come in any order, so each call waits for one."""
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    context = IpcConnectionContextProto(protocol=JAVA_PROTOCOL)
    context.userInfo.effectiveUser = "ann"
    writer.write(b"hrpc\x09\0\0" + _frame(-3, context.SerializeToString()))
    names = RequestHeaderProto(
        methodName=ApplicationClientProtocol.get_cluster_metrics.name,
        declaringClassProtocolName=JAVA_PROTOCOL,
        clientProtocolVersion=1,
    ).SerializeToString()
    reading = asyncio.Lock()

    async def call() -> None:
        writer.write(_frame(1, names, b""))
        async with reading:
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))

    try:
        yield call
    finally:
        writer.close()
        await writer.wait_closed()


def _frame(call_id: int, *messages: bytes) -> bytes:
    header = RpcRequestHeaderProto(callId=call_id, clientId=bytes(16), rpcKind=RpcKindProto.RPC_PROTOCOL_BUFFER)
    # Each message is shorter than 128 bytes, so its length is one byte.
    content = b"".join(bytes([len(data)]) + data for data in (header.SerializeToString(), *messages))
    return len(content).to_bytes(4, "big") + content
