"""ResourceManagerAdministrationProtocol: its requests with several fields."""

from __future__ import annotations

from msgspec import Struct

from yarn.ids import NodeId
from yarn.protocols.client import NodesToLabels
from yarn.resource import Resource
from yarn.states import DecommissionType


class RefreshNodesRequest(Struct, frozen=True):
    """Read the host lists again.

    `timeout_s` of a graceful decommission: None = as configured, negative = no timeout.
    """

    type: DecommissionType = DecommissionType.NORMAL
    timeout_s: int | None = None


class ReplaceLabelsRequest(Struct, frozen=True):
    """New labels for nodes and whole hosts. `fail_on_unknown_nodes`: refuse the request if the RM does not know one."""

    labels: NodesToLabels
    fail_on_unknown_nodes: bool = False


class ResourceOption(Struct, frozen=True):
    """A new size for a node, and the time after which containers that no longer fit are killed.

    `over_commit_timeout_ms`: negative = never, 0 = at once; otherwise AMs are asked to release containers at once, and
    after this time containers are killed.
    """

    resource: Resource
    over_commit_timeout_ms: int = -1


NodeResources = tuple[tuple[NodeId, ResourceOption], ...]
"""The new size of each node."""
