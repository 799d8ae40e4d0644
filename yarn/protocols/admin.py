"""ResourceManagerAdministrationProtocol: its requests with several fields."""

from __future__ import annotations

from msgspec import Struct

from yarn.protocols.client import NodesToLabels
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
