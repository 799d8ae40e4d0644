"""InspectionProtocol, yarnling's own: explains why an application does not have what it requests."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from yarn.ids import ApplicationId, NodeId
from yarn.resource import Resource
from yarn.states import YarnApplicationState


class ObstacleScope(Enum):
    """Whose check refused the container: the application's, its user's, or a queue's."""

    APPLICATION = 1
    USER = 2
    QUEUE = 3


class PendingAsk(Struct, frozen=True):
    """A resource request that is not satisfied yet: `count` more containers at a host, a rack or `*`."""

    priority: int
    allocation_request_id: int
    resource_name: str
    capability: Resource
    count: int
    relax_locality: bool
    label: str


class Reservation(Struct, frozen=True):
    """A node reserved for the application until it has enough free capacity."""

    node_id: NodeId
    resource: Resource
    since_ms: int


class SettingInForce(Struct, frozen=True):
    """A configuration key that could change the outcome, with its value; "" if only the node's machine has the
    value.
    """

    key: str
    value: str


class ObstacleReport(Struct, frozen=True):
    """One check that refused a container when it was last made.

    `node_id`: None = on every node. `subject`: the application, its user, or the path of a queue. `reason`: a constant
    of rm.scheduler.model.refusals. `message`: Hadoop's sentence. `asked` was compared with `bound`; what they measure
    depends on the reason.
    """

    scope: ObstacleScope
    subject: str
    node_id: NodeId | None
    reason: str
    message: str
    asked: Resource | None
    bound: Resource | None
    at_ms: int
    settings: tuple[SettingInForce, ...] = ()


class Explanation(Struct, frozen=True):
    """What an application still requests, what is reserved for it, and which checks refuse it.

    Obstacles on all nodes come first, then those of each node: the application's, its user's, then its queues' from the
    leaf upwards. `now_ms` is the ResourceManager's clock, which `at_ms` and `since_ms` use, too.
    """

    application_id: ApplicationId
    user: str
    queue: str
    state: YarnApplicationState
    now_ms: int
    asks: tuple[PendingAsk, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    obstacles: tuple[ObstacleReport, ...] = ()
