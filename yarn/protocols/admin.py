"""ResourceManagerAdministrationProtocol: an operator and the RM; the messages that are more than an id."""

from __future__ import annotations

from msgspec import Struct

from yarn.protocols.client import NodesToLabels
from yarn.states import DecommissionType


class RefreshNodesRequest(Struct, frozen=True):
    """Read the host lists anew; `timeout_s` None: as configured, negative: for ever."""

    type: DecommissionType = DecommissionType.NORMAL
    timeout_s: int | None = None


class ReplaceLabelsRequest(Struct, frozen=True):
    """Other labels for nodes and whole hosts; `fail_on_unknown_nodes`: none, if the RM has never seen one of them."""

    labels: NodesToLabels
    fail_on_unknown_nodes: bool = False
