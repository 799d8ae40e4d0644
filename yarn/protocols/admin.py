"""ResourceManagerAdministrationProtocol: an operator and the RM; the messages that are more than an id."""

from __future__ import annotations

from dataclasses import dataclass

from yarn.states import DecommissionType


@dataclass(frozen=True, slots=True)
class RefreshNodesRequest:
    """Read the host lists anew; `timeout_s` None: as configured, negative: for ever."""

    type: DecommissionType = DecommissionType.NORMAL
    timeout_s: int | None = None
