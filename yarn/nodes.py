"""Nodes: their health, reports, metrics and labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from yarn.ids import NodeId
from yarn.resource import Resource
from yarn.states import NodeState, NodeUpdateType

NO_LABEL: Final = ""
"""The partition of nodes without a label (CommonNodeLabelsManager.NO_LABEL)."""

DEFAULT_RACK = "/default-rack"
"""The rack of every host where no topology is configured (NetworkTopology.DEFAULT_RACK)."""


REPORTS_MAX = 50
"""The number of different health reports that `node_groups` keeps apart."""
OTHER_REPORTS = "(other health reports)"
NODES_NAMED_MAX = 10
"""The number of nodes that a NodeGroup names."""


class ResourceUtilization(Struct, frozen=True):
    """Measured utilization: physical and virtual memory in MiB, CPU in cores (node) or vcores (containers)."""

    physical_memory_mb: int = 0
    virtual_memory_mb: int = 0
    cpu: float = 0.0


class NodeHealth(Struct, frozen=True):
    """The health that a node reports. `reported_ms`: the wall-clock time of the check."""

    healthy: bool = True
    report: str = ""
    reported_ms: int = 0


class NodeReport(Struct, frozen=True):
    """A node as clients and AMs see it."""

    node_id: NodeId
    state: NodeState
    http_address: str
    rack: str
    used: Resource
    capability: Resource
    containers: int
    health: NodeHealth
    containers_utilization: ResourceUtilization | None = None
    node_utilization: ResourceUtilization | None = None
    labels: frozenset[str] = frozenset()
    update_type: NodeUpdateType | None = None
    decommissioning_timeout_s: int | None = None

    def __repr__(self) -> str:
        return (
            f"<NodeReport {self.node_id} {self.state.name}, {self.containers} containers, "
            f"{self.used} of {self.capability} in use>"
        )


class ClusterMetrics(Struct, frozen=True):
    """Counts of nodes by state. `total`: those in use (running, unhealthy, decommissioning)."""

    total: int
    active: int = 0
    lost: int = 0
    unhealthy: int = 0
    decommissioning: int = 0
    decommissioned: int = 0
    rebooted: int = 0
    shutdown: int = 0


class NodeGroup(Struct, frozen=True):
    """The nodes in one state with one health report: their number, the sums of their figures, and the first node ids.

    `health_report` is "" for nodes that report nothing, also if their state is UNHEALTHY.
    """

    state: NodeState
    health_report: str
    nodes: int
    containers: int
    used: Resource
    capability: Resource
    physical_memory_mb: int
    node_ids: tuple[NodeId, ...]


@dataclass
class _Sums:
    """The sums of one group, while reports are added."""

    nodes: int = 0
    containers: int = 0
    used: Resource = Resource(0, 0)
    capability: Resource = Resource(0, 0)
    physical_memory_mb: int = 0
    node_ids: list[NodeId] = field(default_factory=list)

    def add(self, report: NodeReport) -> None:
        self.nodes += 1
        self.containers += report.containers
        self.used += report.used
        self.capability += report.capability
        if report.containers_utilization is not None:
            self.physical_memory_mb += report.containers_utilization.physical_memory_mb
        if self.nodes <= NODES_NAMED_MAX:
            self.node_ids.append(report.node_id)


def node_groups(reports: Iterable[NodeReport]) -> tuple[NodeGroup, ...]:
    """Summarise nodes, in the order in which their groups first appear.

    From the health report number REPORTS_MAX on, nodes count as having sent OTHER_REPORTS.
    """
    found: dict[tuple[NodeState, str], _Sums] = {}
    seen: set[str] = set()
    for node in reports:
        text = node.health.report
        if text and text not in seen:
            if len(seen) < REPORTS_MAX:
                seen.add(text)
            else:
                text = OTHER_REPORTS
        found.setdefault((node.state, text), _Sums()).add(node)
    return tuple(
        NodeGroup(
            state,
            text,
            sums.nodes,
            sums.containers,
            sums.used,
            sums.capability,
            sums.physical_memory_mb,
            tuple(sums.node_ids),
        )
        for (state, text), sums in found.items()
    )


class NodeLabel(Struct, frozen=True):
    """A label of the cluster; the nodes with the label form a partition.

    Nodes with an exclusive label serve only requests for that label. Idle nodes with another label also serve requests
    without a label.
    """

    name: str
    exclusive: bool = True

    def __str__(self) -> str:
        return f"<{self.name}:exclusivity={'true' if self.exclusive else 'false'}>"
