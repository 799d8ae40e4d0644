"""Lets an autoscaler add and remove nodes of a simulated cluster.

It sees the metrics of the ResourceManager once a minute. Nodes are removed by graceful decommissioning, those with the
least memory in use first, of equal ones those that were added last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rm.view import RMView
from yarn.states import NodeState
from yarnling.simulation.engine import Rank
from yarnling.simulation.node_events import NodeChanges
from yarnling.simulation.spot_losses import SpotLosses
from yarnling.simulation.workload_cluster import WorkloadCluster
from yarnling.workload.autoscaling import SAMPLE_MS, Autoscaler, NodeScaling, ScalingMetrics
from yarnling.workload.model import NodeChange, NodeEvent, NodeSchedule, WorkloadNode


def change_nodes(
    cluster: WorkloadCluster, schedule: NodeSchedule, nodes: Sequence[WorkloadNode], view_of: Callable[[], RMView]
) -> NodeChanges:
    """Begin to change the nodes of a workload that starts now; returns what tells which of them are there."""
    changes = NodeChanges(cluster, [node.host for node in nodes])
    changes.plan(schedule.events)
    SpotLosses(cluster.engine, changes, schedule.spots)
    if schedule.scaling is not None:
        ScaledNodes(cluster, changes, schedule.scaling, view_of)
    return changes


class ScaledNodes:
    """The nodes of one group. `_starting`: those that were added, and have not registered yet, in that order."""

    def __init__(
        self, cluster: WorkloadCluster, changes: NodeChanges, scaling: NodeScaling, view_of: Callable[[], RMView]
    ) -> None:
        self._cluster = cluster
        self._changes = changes
        self._scaling = scaling
        self._view_of = view_of
        self._autoscaler = Autoscaler(scaling)
        self._began_ms = cluster.engine.now_ms
        self._starting: dict[str, None] = {}
        self._look_later()

    def _look_later(self) -> None:
        engine = self._cluster.engine
        engine.at(engine.now_ms + SAMPLE_MS, Rank.CLIENT, 0, self._look)

    def _look(self) -> None:
        """Show the metrics to the autoscaler, and carry out what it decides."""
        changes, view = self._changes, self._view_of()
        waiting = [host for host in self._starting if changes.is_there(host) and not self._runs(view, host)]
        self._starting = dict.fromkeys(waiting)
        active = [host for host in self._scaling.hosts if changes.is_there(host) and not changes.is_leaving(host)]
        leaving = any(changes.is_there(host) and changes.is_leaving(host) for host in self._scaling.hosts)
        change = self._autoscaler.take(
            self._cluster.engine.now_ms - self._began_ms,
            self._metrics(view),
            len(active),
            is_busy=bool(self._starting) or leaving,
        )
        if change > 0:
            self._add(change)
        elif change < 0:
            self._remove(view, active, -change)
        self._look_later()

    def _metrics(self, view: RMView) -> ScalingMetrics:
        load = view.load()
        return ScalingMetrics(
            load.total.memory_mb,
            max(load.total.memory_mb - load.used.memory_mb, 0),
            load.pending.memory_mb,
            load.allocated_containers,
            load.pending_containers,
            self._changes.there,
        )

    def _runs(self, view: RMView, host: str) -> bool:
        nm = self._cluster.machine_on(host).nm
        return nm.is_up and view.node_state(nm.node_id) == NodeState.RUNNING.name

    def _add(self, count: int) -> None:
        absent = [host for host in self._scaling.hosts if not self._changes.is_there(host)]
        for host in absent[:count]:
            self._starting[host] = None
            self._changes.arrive(host)
            self._changes.after(self._scaling.start_ms, host, partial(self._join, host))

    def _join(self, host: str) -> None:
        if self._changes.is_there(host):
            self._changes.join(host)

    def _remove(self, view: RMView, active: list[str], count: int) -> None:
        def order(position: int) -> tuple[int, int]:
            node = view.node(self._cluster.machine_on(active[position]).nm.node_id)
            return 0 if node is None else node.allocated.memory_mb, -position

        least_used = [active[position] for position in sorted(range(len(active)), key=order)]
        now_ms = self._cluster.engine.now_ms - self._began_ms
        for host in least_used[:count]:
            self._changes.happen(NodeEvent(now_ms, host, NodeChange.DRAIN, self._scaling.drain_timeout_s))
