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


class NodesAlike(Struct, frozen=True):
    """Nodes on which a request fails for the same reason. `node_ids` are the first few of `count` nodes."""

    count: int
    sentence: str
    node_ids: tuple[NodeId, ...]


class VerdictReport(Struct, frozen=True):
    """Why one resource request waits, as of now.

    `cause`: a constant of rm.scheduler.view.verdict. `sentence` continues the request: "waits because ...". `since_ms`:
    when the AM sent the request. `settings`: the keys behind the cause. `notes`: what else bears on it, such as
    preemption or nodes that are down. `nodes`: what fails on each node that could serve the request, equal ones folded.
    `changes`: each of these alone would get the request its next container, tried on a copy of the scheduler, the
    smallest first; only if the client asked for them.
    """

    priority: int
    allocation_request_id: int
    cause: str
    sentence: str
    since_ms: int
    settings: tuple[SettingInForce, ...] = ()
    notes: tuple[str, ...] = ()
    nodes: tuple[NodesAlike, ...] = ()
    changes: tuple[str, ...] = ()


class ExplainRequest(Struct, frozen=True):
    """Explain why an application waits. `what_if`: also try changes on a copy of the scheduler."""

    application_id: ApplicationId
    what_if: bool = False


class Explanation(Struct, frozen=True):
    """What an application still requests, why it waits, what is reserved for it, and which checks refused it.

    Obstacles on all nodes come first, then those of each node: the application's, its user's, then its queues' from the
    leaf upwards. `now_ms` is the ResourceManager's clock, which `at_ms` and `since_ms` use, too. `counted_types`: the
    resource types that the scheduler compares; amounts of others decide nothing.
    """

    application_id: ApplicationId
    user: str
    queue: str
    state: YarnApplicationState
    now_ms: int
    asks: tuple[PendingAsk, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    obstacles: tuple[ObstacleReport, ...] = ()
    verdicts: tuple[VerdictReport, ...] = ()
    counted_types: tuple[str, ...] = ()
