"""Carries out the changes of the nodes in a workload run: nodes join, leave, are drained, or are lost.

Nodes leave as by an administrator's list of excluded hosts and `rmadmin -refreshNodes`. A refresh concerns all hosts of
the list, and one that is not graceful would end the nodes that are being drained. So after a node has been drained,
other nodes leave by a graceful refresh with a timeout of 0 for them, which ends them at one of their next heartbeats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rm.core.host_lists import HostLists
from yarn.settings.resourcemanager import GRACEFUL_DECOMMISSION_TIMEOUT
from yarn.states import DecommissionType, NodeState
from yarnling.simulation.engine import Rank
from yarnling.simulation.workload_cluster import WorkloadCluster
from yarnling.workload.model import NodeChange, NodeEvent, NodeSchedule


def joining_later(schedule: NodeSchedule) -> frozenset[str]:
    """The hosts that are not there at the start: their first event is that they join, or the autoscaler adds them."""
    first: dict[str, NodeChange] = {}
    for event in sorted(schedule.events, key=lambda event: event.time_ms):
        first.setdefault(event.host, event.change)
    later = {host for host, change in first.items() if change is NodeChange.JOIN}
    scaling = schedule.scaling
    return frozenset(later.union(scaling.hosts[scaling.initial :] if scaling is not None else ()))


class NodeChanges:
    """The machines of a cluster, from now on, which is the start of the workload.

    `counts`: [(time of the engine, number of machines that are there)], at the start and after each change: a machine
    is there from the moment that it is ordered until it is lost or decommissioned. `arrived`: called with the host of
    each machine that comes after the start. `_excluded` {host that has left or is being drained: seconds to wait for
    its containers}
    """

    def __init__(self, cluster: WorkloadCluster, hosts: Sequence[str]) -> None:
        """`hosts`: of all machines."""
        self._cluster = cluster
        self._engine = cluster.engine
        self._default_timeout_s = GRACEFUL_DECOMMISSION_TIMEOUT.of(cluster.conf)
        self._excluded: dict[str, int] = {}
        self._there = dict.fromkeys(host for host in hosts if host not in cluster.joining_later)
        self.counts = [(self._engine.now_ms, len(self._there))]
        self.arrived: Callable[[str], None] = lambda _: None
        cluster.node_changed = self._node_changed

    def plan(self, events: Sequence[NodeEvent]) -> None:
        """Carry out the events, each at its time from now on."""
        for event in events:
            self.after(event.time_ms, event.host, partial(self.happen, event))

    def after(self, delay_ms: int, host: str, action: Callable[[], None]) -> None:
        """Schedule what happens to a machine."""
        number = self._cluster.machine_on(host).number
        self._engine.at(self._engine.now_ms + delay_ms, Rank.FAULT, number, action)

    @property
    def there(self) -> int:
        """The number of machines that are there."""
        return len(self._there)

    def is_there(self, host: str) -> bool:
        """True if the machine is there, drained or not."""
        return host in self._there

    def is_leaving(self, host: str) -> bool:
        """True if the machine is being drained, or has been decommissioned."""
        return host in self._excluded

    def happen(self, event: NodeEvent) -> None:
        """Carry out an event now."""
        match event.change:
            case NodeChange.JOIN:
                self.arrive(event.host)
                self.join(event.host)
            case NodeChange.LEAVE:
                self._exclude(event.host, 0)
            case NodeChange.DRAIN:
                self._exclude(event.host, self._default_timeout_s if event.timeout_s is None else event.timeout_s)
            case NodeChange.LOST:
                self.lose(event.host)

    def arrive(self, host: str) -> None:
        """Note that a machine was ordered; `join` starts its NodeManager."""
        if host not in self._there:
            self._there[host] = None
            self._count()
            self.arrived(host)

    def join(self, host: str) -> None:
        """Start the NodeManager, unless it runs."""
        if self._excluded.pop(host, None) is not None:
            self._refresh()
        self._cluster.start_node(self._cluster.machine_on(host).number)

    def lose(self, host: str) -> None:
        """Let the machine fail with its containers."""
        self._depart(host)
        self._cluster.machine_on(host).kill(containers=True)

    def _depart(self, host: str) -> None:
        if host in self._there:
            del self._there[host]
            self._count()

    def _count(self) -> None:
        self.counts.append((self._engine.now_ms, len(self._there)))

    def _node_changed(self, host: str, state: str) -> None:
        if state == NodeState.DECOMMISSIONED.name:
            self._depart(host)

    def _exclude(self, host: str, timeout_s: int) -> None:
        self._cluster.machine_on(host).is_exit_expected = True
        self._excluded[host] = timeout_s
        self._refresh()

    def _refresh(self) -> None:
        """Let the ResourceManager read the excluded hosts again."""
        kind = DecommissionType.GRACEFUL if any(self._excluded.values()) else DecommissionType.NORMAL
        hosts = HostLists(excluded=tuple(self._excluded.items()))
        self._cluster.refresh_nodes(hosts, kind, self._default_timeout_s)
