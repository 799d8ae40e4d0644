"""ResourceManagerAdministrationProtocol: an operator and the RM; the messages that are more than an id."""

from __future__ import annotations

from yarn.protocols.client import NodesToLabels
from yarn.records import dataclass
from yarn.states import DecommissionType


@dataclass(frozen=True, slots=True)
class RefreshNodesRequest:
    """Read the host lists anew; `timeout_s` None: as configured, negative: for ever."""

    type: DecommissionType = DecommissionType.NORMAL
    timeout_s: int | None = None


@dataclass(frozen=True, slots=True)
class ReplaceLabelsRequest:
    """Other labels for nodes and whole hosts; `fail_on_unknown_nodes`: none, if the RM has never seen one of them."""

    labels: NodesToLabels
    fail_on_unknown_nodes: bool = False
