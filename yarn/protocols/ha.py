"""Records of HAServiceProtocol."""

from __future__ import annotations

from msgspec import Struct

from yarn.states import HAServiceState


class HAServiceStatus(Struct, frozen=True):
    """The state of a ResourceManager. `reason`: why it is not ready to become active."""

    state: HAServiceState
    ready_to_become_active: bool = False
    reason: str = ""
