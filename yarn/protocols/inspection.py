"""InspectionProtocol, yarnling's own: why an application has not got what it requests."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from yarn.ids import ApplicationId, NodeId
from yarn.resource import Resource
from yarn.states import YarnApplicationState


class ObstacleScope(Enum):
    """Which check refused: the application's own, its user's limits, or a queue's."""

    APPLICATION = 1
    USER = 2
    QUEUE = 3


class PendingAsk(Struct, frozen=True):
    """A resource request that is not satisfied yet: `count` containers at a host, a rack or `*`."""

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
    """A key that would change the outcome, with its value; "" if only the node's machine knows it."""

    key: str
    value: str


class ObstacleReport(Struct, frozen=True):
    """One check that refused a container when it was last made. `node_id` None: on every node.

    `subject` is the application, its user or the path of a queue; `reason` a constant
    (rm.scheduler.model.refusals), `message` Hadoop's sentence. `asked` is what was compared with `bound`; what they
    count depends on the reason.
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

    Obstacles are listed node by node, after those of all nodes: first the application's own, then its user's, then its
    queues' upwards. `now_ms` is the ResourceManager's clock, to which `at_ms` and `since_ms` belong.
    """

    application_id: ApplicationId
    user: str
    queue: str
    state: YarnApplicationState
    now_ms: int
    asks: tuple[PendingAsk, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    obstacles: tuple[ObstacleReport, ...] = ()
