"""ResourceManagerAdministrationProtocol: requests of administrators that are more than an id."""

from __future__ import annotations

from msgspec import Struct

from yarn.protocols.client import NodesToLabels
from yarn.states import DecommissionType


class RefreshNodesRequest(Struct, frozen=True):
    """Read the host lists again; `timeout_s` of decommissioning: None = as configured, negative = no timeout."""

    type: DecommissionType = DecommissionType.NORMAL
    timeout_s: int | None = None


class ReplaceLabelsRequest(Struct, frozen=True):
    """New labels for nodes and whole hosts; `fail_on_unknown_nodes`: refuse all if one is unknown to the RM."""

    labels: NodesToLabels
    fail_on_unknown_nodes: bool = False
