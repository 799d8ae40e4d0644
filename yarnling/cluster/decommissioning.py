"""A node that leaves when its work is done: it is put on the ResourceManager's list of excluded hosts.

The list is a file of the cluster's own, unless the user's configuration names one: that is for its user to write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from yarn.errors import InvalidArgumentException, YarnException
from yarn.nodes import NodeReport
from yarn.settings import resourcemanager
from yarn.states import DecommissionType, NodeState
from yarnling.cluster.client import Client
from yarnling.cluster.daemons import Node

LOOK_S = 0.1
LEAVE_S = 30.0
"""What a NodeManager has for its end once the ResourceManager has sent it away."""
GONE = frozenset({NodeState.DECOMMISSIONED, NodeState.SHUTDOWN, NodeState.LOST})

Tell = Callable[[str], None]


class ExcludedHosts:
    """The hosts that may have no NodeManager. `own`: the cluster's file; `users`: the one that a user has named."""

    def __init__(self, own: Path, users: str | None) -> None:
        self._own = own
        self._users = users

    def add(self, host: str) -> None:
        """Raises InvalidArgumentException if the list is the user's."""
        if self._users is not None:
            key = resourcemanager.NODES_EXCLUDE_PATH.key
            raise InvalidArgumentException(
                f"{key} = {self._users or '(none)'}: a list of yours, which is left to you (write {host} into it, then "
                f"yarnling rmadmin -refreshNodes -g -client; or remove-node --now)"
            )
        self._write([*self._hosts(), host])

    def discard(self, host: str) -> bool:
        """Whether it was on the cluster's list."""
        hosts = self._hosts()
        if host not in hosts:
            return False
        self._write([other for other in hosts if other != host])
        return True

    def _hosts(self) -> list[str]:
        return self._own.read_text().split() if self._own.exists() else []

    def _write(self, hosts: list[str]) -> None:
        beside = self._own.with_name(f".{self._own.name}.new")
        beside.write_text("".join(f"{host}\n" for host in hosts))
        beside.replace(self._own)


async def decommission(client: Client, hosts: ExcludedHosts, node: Node, timeout_s: int | None, tell: Tell) -> None:
    """Return once the node has left: when its work is done, or at `timeout_s` (None: as configured).

    `tell` hears what it still waits for. If this is cancelled the node stays.
    """
    hosts.add(node.place.host)
    try:
        await client.refresh_nodes(DecommissionType.GRACEFUL, timeout_s)
        before = ""
        while node.alive and not _has_gone(report := await _report(client, node)):
            waits_for = _waits_for(node, report)
            if waits_for != before:
                tell(waits_for)
            before = waits_for
            await asyncio.sleep(LOOK_S)
    except YarnException:
        hosts.discard(node.place.host)
        raise
    except asyncio.CancelledError:
        hosts.discard(node.place.host)
        await client.refresh_nodes(DecommissionType.GRACEFUL)
        raise
    if node.place.is_packed:
        # The process stays, for its other nodes.
        return
    async with asyncio.timeout(LEAVE_S):
        await node.daemon.exited.wait()


async def _report(client: Client, node: Node) -> NodeReport | None:
    return next((report for report in await client.nodes() if report.node_id == node.id), None)


def _has_gone(report: NodeReport | None) -> bool:
    return report is None or report.state in GONE


def _waits_for(node: Node, report: NodeReport | None) -> str:
    if report is None or report.state is not NodeState.DECOMMISSIONING:
        return f"{node.name}: is told to leave"
    if report.containers:
        what = f"{report.containers} container{'' if report.containers == 1 else 's'} to end"
    else:
        what = "the applications that ran there"
    left_s = report.decommissioning_timeout_s
    until = f", for {left_s} s at most" if left_s is not None and left_s >= 0 else ""
    return f"{node.name}: waits for {what}{until}"
