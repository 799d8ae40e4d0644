"""A process that hosts a pack of nodes: what differs from a process with one node (nm.shell.node_host.OneNode)."""

from __future__ import annotations

import asyncio
import ipaddress
import random
import resource

from nm.launcher.directories import NodeDirectories
from nm.pack.router import NodesByToken
from nm.pack.tracker import PackTracker
from nm.shell.host_environment import HostEnvironment
from nm.shell.node_host import NodeHost
from nm.shell.resource_tracker import TrackerAccess
from nm.shell.server import ContainerManagerServer
from wire.address import Address
from wire.channel import Channels
from wire.protocols.pack import PackTokenSecretManager, PackTrackerProtocol
from wire.tokens import NMTokenSecretManager
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.protocols.pack import Pack
from yarn.settings import nodemanager
from yarn.settings.yarnling import PACK

_FURTHER_DESCRIPTORS = 256
"""Open files of a process beside the listeners of its nodes: channels, logs, pipes of the first containers."""


class NodePack:
    """The nodes of a pack have one server, one connection to the RM, and a directory each, named after the host."""

    def __init__(self, conf: Configuration) -> None:
        """Raises YarnException if there are too few loopback addresses, or the limit of open files is too low."""
        self.environment = pack_environment(conf)
        self.server = ContainerManagerServer(self.environment)
        services = dict(zip(self.environment.hosts, self.server.services, strict=True))
        router = NodesByToken(NMTokenSecretManager(self.server.nm_keys), services)
        self.server.serve(router, router.authenticate)
        listeners = 1 + len(nodemanager.AUX_SERVICES.of(conf))
        _allow_descriptors(len(services) * listeners + _FURTHER_DESCRIPTORS)

    def connect(self, host: NodeHost, rm: TrackerAccess, channels: Channels, tasks: asyncio.TaskGroup) -> PackTracker:
        """The calls of all nodes to the RM, many nodes in a call."""
        first = host.nodes[0]
        token = PackTokenSecretManager(rm.cluster_secret).create(Pack(first.node_id, len(host.nodes)))
        emulates = first.settings.emulation is not None
        tracker = PackTracker(
            PackTrackerProtocol(rm.target, token=token, retry=rm.retry, channels=channels),
            rm.retry,
            container_keys=self.server.container_keys,
            nm_keys=self.server.nm_keys,
            interval_ms=first.settings.heartbeat_interval_ms,
            tasks=tasks,
            utilization=lambda: None if emulates else host.monitors.machine,
        )
        for node in host.nodes:
            tracker.add(node.node_id, node.service.container_tokens, node.take_answer)
        return tracker


def pack_environment(conf: Configuration) -> HostEnvironment:
    """The environment of a pack, whose nodes have one loopback address each, from the configured one on.

    Raises YarnException if there are too few, or if the nodes are configured to listen elsewhere.
    """
    bind_host = nodemanager.BIND_HOST.maybe_of(conf)
    if bind_host:
        raise YarnException(
            f"{nodemanager.BIND_HOST.key} = {bind_host}: nodes of a pack listen where they are called "
            f"(unset it, or {PACK.key})"
        )
    address = Address.read(conf, nodemanager.ADDRESS)
    local_dirs, log_dirs = nodemanager.LOCAL_DIRS.of(conf), nodemanager.LOG_DIRS.of(conf)
    directories = {
        host: NodeDirectories(
            [f"{directory}/{host}" for directory in local_dirs],
            [f"{directory}/{host}" for directory in log_dirs],
            random.Random(),
        )
        for host in _hosts(address, PACK.of(conf))
    }
    return HostEnvironment(conf, directories, address)


def _hosts(address: Address, count: int) -> list[str]:
    try:
        first = ipaddress.IPv4Address(address.host)
    except ValueError:
        first = ipaddress.IPv4Address(0)
    if not first.is_loopback or not (first + (count - 1)).is_loopback:
        raise YarnException(
            f"{PACK.key} = {count}: there are not {count} loopback addresses from that of {address.said} on, one for "
            f"each node of the pack (set {nodemanager.HOSTNAME.key} to 127.0.0.2, for example)"
        )
    return [str(first + number) for number in range(count)]


def _allow_descriptors(needed: int) -> None:
    """Raise the process's limit of open files if it is too low. Raises YarnException if the hard limit is, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise YarnException(
            f"{PACK.key}: the process needs {needed} file descriptors, the listeners of each node among them, and "
            f"may open {hard} (use a smaller pack, or raise `ulimit -Hn`)"
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
