"""Nodes: their health, reports, metrics and labels."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from yarn.ids import NodeId
from yarn.resource import Resource
from yarn.states import NodeState, NodeUpdateType

NO_LABEL: Final = ""
"""The partition of nodes without a label (CommonNodeLabelsManager.NO_LABEL)."""

DEFAULT_RACK = "/default-rack"
"""The rack of every host where no topology is configured (NetworkTopology.DEFAULT_RACK)."""


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


class NodeLabel(Struct, frozen=True):
    """A label of the cluster; the nodes with the label form a partition.

    Nodes with an exclusive label serve only requests for that label. Idle nodes with another label also serve requests
    without a label.
    """

    name: str
    exclusive: bool = True

    def __str__(self) -> str:
        return f"<{self.name}:exclusivity={'true' if self.exclusive else 'false'}>"
