"""The nodes of a local cluster: their identity, how one is decommissioned, and their health reports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wire.files.full_disk import full_disk_named
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import NodeId
from yarn.nodes import NodeGroup, NodeReport
from yarn.settings import resourcemanager
from yarn.states import DecommissionType, NodeState
from yarnling.cluster.client import Client
from yarnling.cluster.directory import NodePlace
from yarnling.cluster.launcher import Daemon

POLL_S = 0.1
"""The interval, in seconds, between two requests to the ResourceManager while a node is being decommissioned."""
EXIT_TIMEOUT_S = 30.0
"""The time, in seconds, a NodeManager may take to exit after the ResourceManager has decommissioned it."""
_NOT_RUNNING = frozenset(NodeState) - {NodeState.RUNNING}
GONE = frozenset({NodeState.DECOMMISSIONED, NodeState.SHUTDOWN, NodeState.LOST})
NAMED_MAX = 3
"""The number of nodes that one line names; often all nodes have the same health report."""

Report = Callable[[str], None]
"""A function that is called with a line about the progress of a command."""


@dataclass
class Node:
    """A NodeManager of the cluster. `id` is known once it was ready. In a pack, several nodes share one `daemon`.

    `sizes` is {configuration key: value} if the node's resources differ from the configuration.
    """

    place: NodePlace
    daemon: Daemon
    sizes: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def id(self) -> NodeId:
        return NodeId(self.place.host, NodeId.parse(self.daemon.facts["node_id"]).port)

    @property
    def alive(self) -> bool:
        return self.daemon.exit_status is None

    def __repr__(self) -> str:
        status = self.daemon.exit_status
        state = f"process {self.daemon.pid}" if status is None else f"ended with {status}"
        return f"<Node {self.name} {self.id}, {state}>"


class ExcludedHosts:
    """The ResourceManager's list of hosts that may not run a NodeManager.

    `own` is the cluster's file. `users` is the file that the user's configuration names, which only the user edits.
    """

    def __init__(self, own: Path, users: str | None) -> None:
        self._own = own
        self._users = users

    def add(self, host: str) -> None:
        """Add the host. Raises InvalidArgumentException if the user's configuration names a list."""
        if self._users is not None:
            key = resourcemanager.NODES_EXCLUDE_PATH.key
            raise InvalidArgumentException(
                f"{key} = {self._users or '(none)'}: yarnling does not change a list of yours (write {host} into it, "
                f"then yarnling rmadmin -refreshNodes -g -client; or remove-node --now)"
            )
        self._write([*self._hosts(), host])

    def discard(self, host: str) -> bool:
        """Remove the host. Returns True if it was on the cluster's list."""
        hosts = self._hosts()
        if host not in hosts:
            return False
        self._write([other for other in hosts if other != host])
        return True

    def _hosts(self) -> list[str]:
        return self._own.read_text().split() if self._own.exists() else []

    def _write(self, hosts: list[str]) -> None:
        temporary = self._own.with_name(f".{self._own.name}.new")
        with full_disk_named(self._own):
            temporary.write_text("".join(f"{host}\n" for host in hosts))
        temporary.replace(self._own)


async def decommission(client: Client, hosts: ExcludedHosts, node: Node, timeout_s: int | None, report: Report) -> None:
    """Decommission a node. Returns when it has left: when its work is done, or after `timeout_s` (None: as configured).

    `report` is called with a line whenever the work that the node waits for has changed. If this coroutine is
    cancelled, the node stays.
    """
    hosts.add(node.place.host)
    try:
        await client.refresh_nodes(DecommissionType.GRACEFUL, timeout_s)
        before = ""
        while node.alive and not _has_gone(found := await _report_of(client, node)):
            waits_for = _waits_for(node, found)
            if waits_for != before:
                report(waits_for)
            before = waits_for
            await asyncio.sleep(POLL_S)
    except YarnException:
        hosts.discard(node.place.host)
        raise
    except asyncio.CancelledError:
        hosts.discard(node.place.host)
        await client.refresh_nodes(DecommissionType.GRACEFUL)
        raise
    if node.place.is_packed:
        # The process continues, because it has other nodes.
        return
    async with asyncio.timeout(EXIT_TIMEOUT_S):
        await node.daemon.exited.wait()


async def _report_of(client: Client, node: Node) -> NodeReport | None:
    """The report of the node; None if the ResourceManager does not know it.

    The list of all nodes, which may be thousands, is read only for a node that still is RUNNING.
    """
    for states in (_NOT_RUNNING, frozenset[NodeState]()):
        for report in await client.nodes(states):
            if report.node_id == node.id:
                return report
    return None


def _has_gone(report: NodeReport | None) -> bool:
    return report is None or report.state in GONE


def _waits_for(node: Node, report: NodeReport | None) -> str:
    if report is None or report.state is not NodeState.DECOMMISSIONING:
        return f"{node.name}: waiting for the ResourceManager to decommission it"
    if report.containers:
        what = f"{report.containers} container{'' if report.containers == 1 else 's'} to end"
    else:
        what = "the applications that ran there"
    left_s = report.decommissioning_timeout_s
    until = f", for {left_s} s at most" if left_s is not None and left_s >= 0 else ""
    return f"{node.name}: waiting for {what}{until}"


def complaints(groups: Iterable[NodeGroup]) -> list[str]:
    """A line for each different health report of the NodeManagers, with the nodes that sent it.

    Healthy nodes may send reports too, for example that they cannot limit CPU.
    """
    lines = []
    for group in groups:
        report = group.health_report or ("no reason given" if group.state is NodeState.UNHEALTHY else "")
        if report:
            lines.append(f"{named(group.node_ids, group.nodes)} {group.state.name}: {report}")
    return lines


def named(node_ids: Sequence[NodeId | str], count: int, limit: int = NAMED_MAX) -> str:
    """The first of `count` nodes, at most `limit`, and how many more there are."""
    shown = ", ".join(str(node_id) for node_id in node_ids[:limit])
    return shown if count <= limit else f"{shown} and {count - limit} more"
