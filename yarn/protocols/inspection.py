"""What yarnling tells beyond YARN's protocols: why an application has not got what it asks for."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from yarn.ids import ApplicationId, NodeId
from yarn.resource import Resource
from yarn.states import YarnApplicationState


class ObstacleScope(Enum):
    """Whose check said no: what the application asks for, its user's limits, or a queue's."""

    APPLICATION = 1
    USER = 2
    QUEUE = 3


class PendingAsk(Struct, frozen=True):
    """A row that is not served yet: `count` containers at a host, a rack or `*`."""

    priority: int
    allocation_request_id: int
    resource_name: str
    capability: Resource
    count: int
    relax_locality: bool
    label: str


class Reservation(Struct, frozen=True):
    """A node that is kept for the application until it has the room."""

    node_id: NodeId
    resource: Resource
    since_ms: int


class SettingInForce(Struct, frozen=True):
    """A key that would change the outcome, with what holds now; "" if only the machine that reads it knows."""

    key: str
    value: str


class ObstacleReport(Struct, frozen=True):
    """One check that said no, as it was last made. `node_id` None: on every node.

    `subject` is the application, its user or the path of a queue; `reason` a word for programs
    (rm.scheduler.model.refusals), `message` Hadoop's text. `asked` is what was compared with `bound`; what they count
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
    """What an application still asks for, what is kept for it, and what stands in the way.

    Obstacles come node by node, on each the application's own first, then its user's, then its queues' upwards; those
    of every node before them. `now_ms` is the ResourceManager's clock, which `at_ms` and `since_ms` are of.
    """

    application_id: ApplicationId
    user: str
    queue: str
    state: YarnApplicationState
    now_ms: int
    asks: tuple[PendingAsk, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    obstacles: tuple[ObstacleReport, ...] = ()
