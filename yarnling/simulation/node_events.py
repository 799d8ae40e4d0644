"""Carries out the node events of a workload run: nodes join, leave, are drained, or are lost.

Nodes leave as by an administrator's list of excluded hosts and `rmadmin -refreshNodes`. A refresh concerns all hosts of
the list, and one that is not graceful would end the nodes that are being drained. So after a node has been drained,
other nodes leave by a graceful refresh with a timeout of 0 for them, which ends them at one of their next heartbeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rm.core.host_lists import HostLists
from yarn.settings.resourcemanager import GRACEFUL_DECOMMISSION_TIMEOUT
from yarn.states import DecommissionType
from yarnling.simulation.engine import Rank
from yarnling.simulation.workload_cluster import WorkloadCluster
from yarnling.workload.model import NodeChange, NodeEvent


def joining_later(events: Sequence[NodeEvent]) -> frozenset[str]:
    """The hosts whose first event is that they join: they are not there at the start."""
    first: dict[str, NodeChange] = {}
    for event in sorted(events, key=lambda event: event.time_ms):
        first.setdefault(event.host, event.change)
    return frozenset(host for host, change in first.items() if change is NodeChange.JOIN)


def plan_node_events(cluster: WorkloadCluster, events: Sequence[NodeEvent]) -> None:
    """Carry out the events, each at its time from now on."""
    engine, changes = cluster.engine, _NodeChanges(cluster)
    for event in events:
        number = cluster.machine_on(event.host).number
        engine.at(engine.now_ms + event.time_ms, Rank.FAULT, number, partial(changes.happen, event))


class _NodeChanges:
    """`_excluded` {host that has left or is being drained: seconds to wait for its containers}"""

    def __init__(self, cluster: WorkloadCluster) -> None:
        self._cluster = cluster
        self._default_timeout_s = GRACEFUL_DECOMMISSION_TIMEOUT.of(cluster.conf)
        self._excluded: dict[str, int] = {}

    def happen(self, event: NodeEvent) -> None:
        match event.change:
            case NodeChange.JOIN:
                self._join(event.host)
            case NodeChange.LEAVE:
                self._exclude(event.host, 0)
            case NodeChange.DRAIN:
                self._exclude(event.host, self._default_timeout_s if event.timeout_s is None else event.timeout_s)
            case NodeChange.LOST:
                self._cluster.machine_on(event.host).kill(containers=True)

    def _join(self, host: str) -> None:
        if self._excluded.pop(host, None) is not None:
            self._refresh()
        self._cluster.start_node(self._cluster.machine_on(host).number)

    def _exclude(self, host: str, timeout_s: int) -> None:
        self._cluster.machine_on(host).is_exit_expected = True
        self._excluded[host] = timeout_s
        self._refresh()

    def _refresh(self) -> None:
        """Let the ResourceManager read the excluded hosts again."""
        kind = DecommissionType.GRACEFUL if any(self._excluded.values()) else DecommissionType.NORMAL
        hosts = HostLists(excluded=tuple(self._excluded.items()))
        self._cluster.refresh_nodes(hosts, kind, self._default_timeout_s)
