"""The ways between a cluster's processes, each through a proxy of its own: for node k

    tracker-k    its NodeManager to the ResourceManager       scheduler-k    its masters to the ResourceManager
    node-k       everybody to its NodeManager                 clients        the work's clients to the ResourceManager

A node listens beside the host that it names (yarn.nodemanager.bind-host): the proxy has that host and port. Its masters
find the ResourceManager in a configuration directory of the node's own.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping
from pathlib import Path

from wire.hadoop_xml import to_xml
from yarn.settings import nodemanager, resourcemanager
from yarnling.chaos.proxy import Harm, Link
from yarnling.cluster.daemons import RouteOverride
from yarnling.cluster.directory import NodePlace

HOST = "127.0.0.1"
BEHIND = "127.128."
"""Where a node behind its proxy listens: 127.0.0.4 at 127.128.0.4, at the same port."""


class Network:
    """All links of one cluster; LocalCluster asks it for each node's ways (`of_node`)."""

    def __init__(self, directory: Path, draw: random.Random) -> None:
        self._directory = directory
        self._draw = draw
        self.links: dict[str, Link] = {}

    async def of_node(self, place: NodePlace, values: Mapping[str, str]) -> RouteOverride:
        """The node's ways, made when it starts first; `values` is what the cluster's files say."""
        number = place.number
        tracker = await self._open(
            f"tracker-{number}", HOST, _target(values, resourcemanager.RESOURCE_TRACKER_ADDRESS.key)
        )
        scheduler = await self._open(
            f"scheduler-{number}", HOST, _target(values, resourcemanager.SCHEDULER_ADDRESS.key)
        )
        behind = BEHIND + place.host.split(".", 2)[2]
        front = await self._open(f"node-{number}", place.host, None)
        front.target = (behind, front.address[1])
        conf_dir = self._directory / f"conf-{place.name}"
        own = {
            resourcemanager.SCHEDULER_ADDRESS.key: _text(scheduler),
            resourcemanager.RESOURCE_TRACKER_ADDRESS.key: _text(tracker),
        }
        conf_dir.mkdir(exist_ok=True)
        (conf_dir / "yarn-site.xml").write_text(to_xml({**values, **own}))
        return RouteOverride(
            {
                nodemanager.ADDRESS.key: _text(front),
                nodemanager.BIND_HOST.key: behind,
                resourcemanager.RESOURCE_TRACKER_ADDRESS.key: _text(tracker),
            },
            conf_dir,
        )

    async def for_clients(self, addresses: Mapping[str, str]) -> dict[str, str]:
        """The addresses that clients shall call."""
        link = await self._open("clients", HOST, _target(addresses, resourcemanager.ADDRESS.key))
        return {**addresses, resourcemanager.ADDRESS.key: _text(link)}

    def harm(self, key: int, names: tuple[str, ...], harm: Harm) -> None:
        """Do this to these links, until `undo`."""
        for name in names:
            self.links[name].harm(key, harm)

    def undo(self, key: int) -> None:
        for link in self.links.values():
            link.undo(key)

    def heal(self) -> None:
        for link in self.links.values():
            link.heal()

    async def close(self) -> None:
        for link in self.links.values():
            await link.close()

    async def _open(self, name: str, host: str, target: tuple[str, int] | None) -> Link:
        if name not in self.links:
            link = Link(name, random.Random(self._draw.random()))
            await link.listen(host)
            self.links[name] = link
        if target is not None:
            self.links[name].target = target
        return self.links[name]


class SamePorts:
    """A node that is started again has the port, and so the NodeId, that it had before."""

    def __init__(self) -> None:
        self._ports: dict[int, int] = {}

    async def of_node(self, place: NodePlace, values: Mapping[str, str]) -> RouteOverride:
        if place.number not in self._ports:
            with socket.socket() as free:
                free.bind((place.host, 0))
                self._ports[place.number] = free.getsockname()[1]
        return RouteOverride({nodemanager.ADDRESS.key: f"{place.host}:{self._ports[place.number]}"})


def _target(values: Mapping[str, str], key: str) -> tuple[str, int]:
    host, _, port = values[key].rpartition(":")
    return host, int(port)


def _text(link: Link) -> str:
    return f"{link.address[0]}:{link.address[1]}"
