"""InspectionProtocol, yarnling's own: explains why an application waits, and what happened to a container."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.resource import Resource
from yarn.states import YarnApplicationState


class ObstacleScope(Enum):
    """Whose check refused the container: the application's, its user's, or a queue's."""

    APPLICATION = 1
    USER = 2
    QUEUE = 3


def about_vcores(requested: int) -> str:
    """Hint that the scheduler has cut a request to 1 vcore (DefaultResourceCalculator.normalize)."""
    return (
        f"{requested} vcores are requested for a container, and it gets 1: the DefaultResourceCalculator counts memory "
        "only (set yarn.scheduler.capacity.resource-calculator to "
        "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator)"
    )


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
    """A check that refused a container when it was last made.

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
    """The reason why one resource request waits now.

    `cause`: a constant of rm.core.explain.verdict. `sentence` continues the request: "waits because ...". `since_ms`:
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


class RefusedStartReport(Struct, frozen=True):
    """The last container of an application that a node refused to start, with the error that the AM got."""

    container_id: ContainerId
    node_id: NodeId
    reason: str
    at_ms: int


class Explanation(Struct, frozen=True):
    """The requests of an application, why it waits, what is reserved for it, and which checks refused it.

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
    refused_start: RefusedStartReport | None = None


class ExplainPastRequest(Struct, frozen=True):
    """Explain why an application waited in the past."""

    application_id: ApplicationId


class PastVerdict(Struct, frozen=True):
    """A reason for which an application waited: the verdict on its first request.

    `from_ms`: the first sample at which it was so; `until_ms`: the first at which it was not, None if it is still so.
    `sentence` has the numbers of the first of these samples.
    """

    from_ms: int
    until_ms: int | None
    cause: str
    sentence: str


class PastExplanation(Struct, frozen=True):
    """Why an application waited since `since_ms`, the first sample of the history; the oldest verdict first.

    Verdicts are sampled, so one that held for a short time may be missing. Between two verdicts nothing was requested.
    Times are of the ResourceManager's clock, as `now_ms`.
    """

    application_id: ApplicationId
    user: str
    queue: str
    now_ms: int
    since_ms: int
    verdicts: tuple[PastVerdict, ...] = ()


class ExplainContainerRequest(Struct, frozen=True):
    """Explain why a container is where it is, and why it was preempted."""

    container_id: ContainerId


class NodePassed(Struct, frozen=True):
    """A node that refused the container's request before it was placed. `reason`, `message`: as in ObstacleReport."""

    node_id: NodeId
    reason: str
    message: str
    at_ms: int


class QueueInRound(Struct, frozen=True):
    """A queue on one partition ("" without a label) as a round of preemption saw it.

    `ideal`: what the queue should have had. `to_be_preempted`: what it had above that. `to_obtain`: how much of it the
    round was to take. The three are zero if the selector does not compute them.
    """

    path: str
    partition: str
    guaranteed: Resource
    used: Resource
    pending: Resource
    ideal: Resource
    to_be_preempted: Resource
    to_obtain: Resource


class PreemptionReport(Struct, frozen=True):
    """The action of a round of preemption on the container.

    `step`: "requested" (from its AM), "killed", or "killable" (with lazy preemption). `selector`: the name of Hadoop's
    class. `victim`: the container's queue; `served`: the queue that was to get the resources, if it is another one and
    there is a single one. `numbers`: both in words.
    """

    at_ms: int
    step: str
    reason: str
    selector: str
    sentence: str
    victim: QueueInRound
    served: QueueInRound | None
    numbers: tuple[str, ...]


class ContainerExplanation(Struct, frozen=True):
    """The explanation of a container: why it is on its node, or what it waits for, and why it was preempted.

    `state`: a constant of rm.scheduler.model.rm_container. Times are of the ResourceManager's clock, as `now_ms`; None
    if it is not known or did not happen. `locality`: NODE_LOCAL, RACK_LOCAL or OFF_SWITCH; "" if not known.
    `sentences`: what happened, in order, in words. `passed`: nodes that refused the request before,
    the last first; noted only if it names places.
    """

    container_id: ContainerId
    user: str
    queue: str
    node_id: NodeId
    resource: Resource
    state: str
    now_ms: int
    requested_ms: int | None
    reserved_ms: int | None
    placed_ms: int | None
    ended_ms: int | None
    locality: str
    sentences: tuple[str, ...]
    passed: tuple[NodePassed, ...] = ()
    preemptions: tuple[PreemptionReport, ...] = ()
