"""Decides when a decommissioning node may leave (Hadoop's DecommissioningNodesWatcher).

A node that is decommissioned gracefully gets no new containers. It leaves when its last container has ended and every
application that ran there is over (the output of a finished map task may still be needed), or when its timeout has
passed. Each heartbeat of the node checks this. A poll finds nodes that send no heartbeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rm.core.rm_node import RMNode
from yarn.containers import ContainerStatus
from yarn.ids import NodeId
from yarn.states import ContainerState, NodeState

FRESH_MS = 5000
"""The poll skips nodes that sent a heartbeat within this time: their next heartbeat does the check."""

_ACTIVE = (ContainerState.NEW, ContainerState.RUNNING)


@dataclass(slots=True)
class _Watched:
    """A decommissioning node. `active`: the number of containers in its last report that have not ended."""

    start_ms: int
    updated_ms: int
    active: int = 0


class DecommissioningNodesWatcher:
    """Watches the decommissioning nodes, from their first heartbeat in that state. `nodes` {node id: node in use}.

    A node that is recommissioned is watched until its next heartbeat or poll. If it is decommissioned again before, the
    new timeout counts from the first heartbeat in that state, as in Hadoop.
    """

    def __init__(self, poll_interval_ms: int, start_ms: int, nodes: Mapping[NodeId, RMNode]) -> None:
        self._poll_ms = poll_interval_ms
        self._start_ms = start_ms
        self._nodes = nodes
        self._watched: dict[NodeId, _Watched] = {}
        self._polled_ms = start_ms

    def update(self, node: RMNode, statuses: Iterable[ContainerStatus], now_ms: int) -> None:
        """Note a heartbeat."""
        if node.state is not NodeState.DECOMMISSIONING:
            self._watched.pop(node.node_id, None)
            return
        if not self._watched:
            self._polled_ms = self._last_poll_ms(now_ms)
        watched = self._watched.setdefault(node.node_id, _Watched(now_ms, now_ms))
        watched.updated_ms = now_ms
        watched.active = sum(status.state in _ACTIVE for status in statuses)

    def may_go(self, node: RMNode, now_ms: int) -> bool:
        """True if the node is empty and unused, or its timeout has passed."""
        watched = self._watched.get(node.node_id)
        if watched is None:
            return False
        if not watched.active and not node.running_apps:
            return True
        return 0 <= node.decommissioning_timeout_s * 1000 <= now_ms - watched.start_ms

    def next_deadline_ms(self) -> int | None:
        """The time of the next poll; None if no node is watched."""
        return self._polled_ms + self._poll_ms if self._watched else None

    def expire(self, now_ms: int) -> list[NodeId]:
        """Poll if a poll is due; returns the nodes without heartbeats whose timeout had passed at that poll.

        Also stops watching nodes that are gone or no longer decommissioning.
        """
        poll_ms = self._last_poll_ms(now_ms)
        if poll_ms <= self._polled_ms:
            return []
        self._polled_ms = poll_ms
        expired: list[NodeId] = []
        for node_id, watched in list(self._watched.items()):
            node = self._nodes.get(node_id)
            if node is None or node.state is not NodeState.DECOMMISSIONING:
                del self._watched[node_id]
            elif poll_ms - watched.updated_ms >= FRESH_MS:
                end_ms = watched.start_ms + node.decommissioning_timeout_s * 1000
                if node.decommissioning_timeout_s >= 0 and end_ms < poll_ms and self.may_go(node, poll_ms):
                    expired.append(node_id)
                    del self._watched[node_id]
        return expired

    def _last_poll_ms(self, now_ms: int) -> int:
        """The time of the latest poll at or before `now_ms`. Polls are due at every interval since the start."""
        return self._start_ms + (now_ms - self._start_ms) // self._poll_ms * self._poll_ms
