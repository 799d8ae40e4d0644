"""The network between a cluster's processes, with a TCP proxy for each link, into which faults are injected.

The links of node k, and the link of clients, are:

    tracker-k    its NodeManager to the ResourceManager       scheduler-k    its AMs to the ResourceManager
    node-k       all callers to its NodeManager               clients        clients to the ResourceManager

A NodeManager advertises the address of its proxy and listens at another one (yarn.nodemanager.bind-host). The node's
ApplicationMasters find the ResourceManager through a configuration directory that only this node has.

A proxy does to a TCP stream what a network can do to it: it holds data back and lets it pass later (as an unplugged
cable does, because TCP retransmits), delays it, throttles it, or breaks the connection. Bytes are never dropped,
because TCP never loses any: a lost packet is a pause until it is retransmitted.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from wire.files.full_disk import full_disk_named
from wire.files.hadoop_xml import to_xml
from wire.local_peer import is_foreign
from yarn.settings import nodemanager, resourcemanager
from yarnling.cluster.daemons import RouteOverride
from yarnling.cluster.directory import CLIENT_FILES, NodePlace

HOST = "127.0.0.1"
NODE_NETWORK = "127.128."
"""The first half of the addresses where nodes behind a proxy listen: 127.0.0.4 becomes 127.128.0.4,
with the same port."""
CHUNK_BYTES = 16 * 1024
CHUNKS_MAX = 64
"""The limit on chunks that were read but not sent, for each direction of a connection. At the limit, the sender must
wait."""
RETRANSMIT_S = 0.2
"""The pause, in seconds, that a lost packet causes: Linux's minimum retransmission timeout."""
BACKLOG = 1024


class NetworkFault(Struct, frozen=True):
    """The faults of a link.

    `requests`, `replies`: nothing passes in that direction. `forgets`: what was held back is discarded at the end, with
    its connection. `reset`: every existing and every new connection is reset. `rate` is in bytes a second; 0 means
    unlimited. `loss` and `breaks` are the probabilities that a chunk is lost, or breaks its connection.
    """

    requests: bool = False
    replies: bool = False
    forgets: bool = False
    reset: bool = False
    delay_s: float = 0.0
    loss: float = 0.0
    rate: float = 0.0
    breaks: float = 0.0


@dataclass
class ProxyDirection:
    """A direction of a link, with all its faults combined. Nothing passes while the event `is_open` is not set."""

    delay_s: float = 0.0
    loss: float = 0.0
    rate: float = 0.0
    breaks: float = 0.0
    is_open: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.is_open.set()


class ProxyNetwork:
    """All links of one cluster. LocalCluster calls `of_node` for each node that it starts."""

    def __init__(self, directory: Path, draw: random.Random) -> None:
        self._directory = directory
        self._draw = draw
        self.links: dict[str, ProxyLink] = {}

    async def of_node(self, place: NodePlace, values: Mapping[str, str]) -> RouteOverride:
        """The addresses for a node. The links of the node are opened at its first start.

        `values` is the cluster's configuration.
        """
        number = place.number
        tracker = await self._open(
            f"tracker-{number}", HOST, _target(values, resourcemanager.RESOURCE_TRACKER_ADDRESS.key)
        )
        scheduler = await self._open(
            f"scheduler-{number}", HOST, _target(values, resourcemanager.SCHEDULER_ADDRESS.key)
        )
        behind = NODE_NETWORK + place.host.split(".", 2)[2]
        front = await self._open(f"node-{number}", place.host, None)
        front.target = (behind, front.address[1])
        conf_dir = self._directory / f"conf-{place.name}"
        own = {
            resourcemanager.SCHEDULER_ADDRESS.key: _text(scheduler),
            resourcemanager.RESOURCE_TRACKER_ADDRESS.key: _text(tracker),
        }
        with full_disk_named(conf_dir):
            conf_dir.mkdir(exist_ok=True)
            (conf_dir / "yarn-site.xml").write_text(to_xml({**values, **own}))
            for name in CLIENT_FILES:
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(self._directory / "conf" / name, conf_dir / name)
        return RouteOverride(
            {
                nodemanager.ADDRESS.key: _text(front),
                nodemanager.BIND_HOST.key: behind,
                resourcemanager.RESOURCE_TRACKER_ADDRESS.key: _text(tracker),
            },
            conf_dir,
        )

    async def for_clients(self, addresses: Mapping[str, str]) -> dict[str, str]:
        """The addresses that clients use."""
        link = await self._open("clients", HOST, _target(addresses, resourcemanager.ADDRESS.key))
        return {**addresses, resourcemanager.ADDRESS.key: _text(link)}

    def inject(self, key: int, names: tuple[str, ...], fault: NetworkFault) -> None:
        """Inject a fault into these links. The fault stays until `remove(key)`."""
        for name in names:
            self.links[name].inject(key, fault)

    def has_fault(self, key: int) -> bool:
        """True if a fault was injected with this key and not removed."""
        return any(link.has_fault(key) for link in self.links.values())

    def remove(self, key: int) -> None:
        for link in self.links.values():
            link.remove(key)

    def recover(self) -> None:
        """Remove all faults from all links."""
        for link in self.links.values():
            link.recover()

    async def close(self) -> None:
        for link in self.links.values():
            await link.close()

    async def _open(self, name: str, host: str, target: tuple[str, int] | None) -> ProxyLink:
        if name not in self.links:
            link = ProxyLink(name, random.Random(self._draw.random()))
            await link.listen(host)
            self.links[name] = link
        if target is not None:
            self.links[name].target = target
        return self.links[name]


class SamePorts:
    """Gives a restarted NodeManager the port, and so the node id, that it had before."""

    def __init__(self) -> None:
        self._ports: dict[int, int] = {}

    async def of_node(self, place: NodePlace, values: Mapping[str, str]) -> RouteOverride:
        if place.number not in self._ports:
            with socket.socket() as free:
                free.bind((place.host, 0))
                self._ports[place.number] = free.getsockname()[1]
        return RouteOverride({nodemanager.ADDRESS.key: f"{place.host}:{self._ports[place.number]}"})


class ProxyLink:
    """A proxy: it listens on a free port of `host` and forwards each connection to `target`.

    `requests` is the direction from callers to the server, `replies` the opposite one. Call `close` at the end.
    """

    def __init__(self, name: str, draw: random.Random) -> None:
        self.name = name
        self.target: tuple[str, int] | None = None
        self.address = ("", 0)
        self.requests, self.replies = ProxyDirection(), ProxyDirection()
        self.refuses = False
        self._faults: dict[int, NetworkFault] = {}
        self._draw = draw
        self._server: asyncio.Server | None = None
        self._connections: dict[_ProxiedConnection, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, host: str) -> tuple[str, int]:
        """Bind a free port and return the address. Connections that arrive before `target` is set are reset."""
        self._server = await asyncio.start_server(self._serve, host, 0, backlog=BACKLOG)
        name = self._server.sockets[0].getsockname()
        self.address = (name[0], name[1])
        return self.address

    def inject(self, key: int, fault: NetworkFault) -> None:
        """Add a fault to those already on the link. The fault stays until `remove(key)`."""
        self._faults[key] = fault
        self._apply()
        if fault.reset:
            self.reset_connections()

    def has_fault(self, key: int) -> bool:
        return key in self._faults

    def remove(self, key: int) -> None:
        """Remove a fault; a no-op if the link does not have it."""
        fault = self._faults.pop(key, None)
        if fault is not None and fault.forgets:
            self.reset_connections()
        self._apply()

    def recover(self) -> None:
        """Remove all faults. Data that was held back passes."""
        for key in tuple(self._faults):
            self.remove(key)

    def reset_connections(self) -> None:
        for connection in tuple(self._connections):
            connection.reset()

    async def close(self) -> None:
        """Stop listening and reset every connection."""
        if self._server is not None:
            self._server.close()
        self.reset_connections()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def _apply(self) -> None:
        faults = self._faults.values()
        self.refuses = any(fault.reset for fault in faults)
        for direction, closed in (
            (self.requests, any(fault.requests for fault in faults)),
            (self.replies, any(fault.replies for fault in faults)),
        ):
            direction.delay_s = sum(fault.delay_s for fault in faults)
            direction.loss = max((fault.loss for fault in faults), default=0.0)
            direction.breaks = max((fault.breaks for fault in faults), default=0.0)
            direction.rate = min((fault.rate for fault in faults if fault.rate), default=0.0)
            if closed:
                direction.is_open.clear()
            else:
                direction.is_open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if is_foreign(writer.get_extra_info("socket")):
            # Behind the proxy it would pass for a connection of ours (docs/security.md).
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = _ProxiedConnection(self, reader, writer, self._draw)
        self._connections[connection] = None
        try:
            await connection.run()
        finally:
            self._connections.pop(connection, None)
            self._tasks.discard(task)


class _ProxiedConnection:
    """A caller's connection, and the matching connection to the server."""

    def __init__(
        self, link: ProxyLink, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, draw: random.Random
    ) -> None:
        self._link = link
        self._reader = reader
        self._writers = [writer]
        self._draw = draw

    async def run(self) -> None:
        link = self._link
        if link.refuses or link.target is None:
            self.reset()
            return
        try:
            # No connection can be established over an unplugged cable.
            await link.requests.is_open.wait()
            reader, writer = await asyncio.open_connection(*link.target)
        except OSError:
            self.reset()
            return
        self._writers.append(writer)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._forward(self._reader, writer, link.requests))
                tasks.create_task(self._forward(reader, self._writers[0], link.replies))
        except* OSError:
            pass
        finally:
            self.reset()

    def reset(self) -> None:
        """Close both sides in a way that both peers see a reset."""
        for writer in self._writers:
            if writer.transport.is_closing():
                continue
            with contextlib.suppress(OSError):
                # With a linger time of 0 the kernel sends RST instead of FIN.
                sock: socket.socket | None = writer.get_extra_info("socket")
                if sock is not None:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: ProxyDirection
    ) -> None:
        """Forward one direction until its sender closes it. Then send the remaining data, and close both sides."""
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read(reader, chunks, direction))
            while True:
                due_s, data = await chunks.get()
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                await direction.is_open.wait()
                if not data or self._breaks(direction):
                    raise ConnectionResetError
                writer.write(data)
                await writer.drain()
                if direction.rate:
                    await asyncio.sleep(len(data) / direction.rate)

    async def _read(
        self, reader: asyncio.StreamReader, chunks: asyncio.Queue[tuple[float, bytes]], direction: ProxyDirection
    ) -> None:
        while True:
            data = await reader.read(CHUNK_BYTES)
            lost_s = RETRANSMIT_S if direction.loss and self._draw.random() < direction.loss else 0.0
            await chunks.put((time.monotonic() + direction.delay_s + lost_s, data))
            if not data:
                return

    def _breaks(self, direction: ProxyDirection) -> bool:
        return bool(direction.breaks) and self._draw.random() < direction.breaks


def _target(values: Mapping[str, str], key: str) -> tuple[str, int]:
    host, _, port = values[key].rpartition(":")
    return host, int(port)


def _text(link: ProxyLink) -> str:
    return f"{link.address[0]}:{link.address[1]}"
