"""What one pass over the tree proposes for a node: a placement, a reservation, or nothing and why the pass went on."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from rm.scheduler.context import RESPECT, SchedulingMode
from rm.scheduler.model.asks import NodeType, SchedulerKey
from rm.scheduler.model.rm_container import RMContainer
from yarn.resource import Resource

if TYPE_CHECKING:
    from rm.scheduler.model.application import FiCaSchedulerApp
    from rm.scheduler.model.node import SchedulerNode


class Skipped(Enum):
    """Nothing was found; what the asker should do next (CSAssignment.SkippedType).

    NONE: stop this queue. OTHER: try the next application. QUEUE_LIMIT: stop this queue, and let its parent keep the
    room that it could not take.
    """

    NONE = "NONE"
    OTHER = "OTHER"
    QUEUE_LIMIT = "QUEUE_LIMIT"


class Proposal:
    """A container to be booked: placed (`is_allocation`) or reserved, `kind` as near as it is.

    `reserved` is the reservation that it fills or that is looked at again. `to_release` is a reservation elsewhere
    that is given up for it, `to_kill` are killable containers that make the room. Nothing is
    booked before `commit` has accepted it; then `is_booked` says so.
    """

    __slots__ = (
        "application",
        "is_allocation",
        "is_booked",
        "key",
        "kind",
        "mode",
        "node",
        "reserved",
        "resource",
        "to_kill",
        "to_release",
    )

    def __init__(
        self,
        application: FiCaSchedulerApp,
        node: SchedulerNode,
        key: SchedulerKey,
        resource: Resource,
        kind: NodeType,
        *,
        is_allocation: bool,
    ) -> None:
        self.application = application
        self.node = node
        self.key = key
        self.resource = resource
        self.kind = kind
        self.is_allocation = is_allocation
        self.is_booked = False
        self.reserved: RMContainer | None = None
        self.to_release: RMContainer | None = None
        self.to_kill: list[RMContainer] = []
        self.mode: SchedulingMode = RESPECT

    @property
    def going(self) -> list[RMContainer]:
        """What goes for it, of whichever queue."""
        return self.to_kill if self.to_release is None else [*self.to_kill, self.to_release]


class Excess:
    """A reservation that nobody asks for any more: to be released."""

    __slots__ = ("application", "container")

    def __init__(self, application: FiCaSchedulerApp, container: RMContainer) -> None:
        self.application = application
        self.container = container


Assignment: TypeAlias = Proposal | Excess | Skipped
