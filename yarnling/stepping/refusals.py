"""Why applications got no container at a node's heartbeat: the refusals that the scheduler keeps for `explain`."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from rm.core.explain.obstacles import Obstacle, obstacles_of
from rm.core.resource_manager import ResourceManagerCore
from yarn.ids import ApplicationId, NodeId


class Refused(Struct, frozen=True):
    """`by`: the path of the queue that refused; "" if it was the node, or a limit of the application itself."""

    application_id: ApplicationId
    node_id: NodeId
    by: str
    reason: str


def refusals_at(core: ResourceManagerCore, node_id: NodeId, served: Collection[ApplicationId]) -> Iterator[Refused]:
    """The refusals at the heartbeat of a node, one for each application that waits and was not `served`.

    If nothing has changed since a heartbeat that placed nothing, the scheduler does not look again: what it noted then
    still holds.
    """
    scheduler = core.context.scheduler
    node = scheduler.nodes.get(node_id)
    if node is None:
        return
    for application_id, application in core.scheduler.applications.items():
        attempt = application.current_attempt
        if attempt is None or attempt.is_stopped or application_id in served or not attempt.usage.is_pending():
            continue
        for obstacle in obstacles_of(attempt, [node]):
            if obstacle.node_id in {None, node_id}:
                yield _refused(application_id, node_id, obstacle, str(attempt.attempt_id))
                break


def _refused(application_id: ApplicationId, node_id: NodeId, obstacle: Obstacle, own: str) -> Refused:
    by = "" if obstacle.subject == own else obstacle.subject
    return Refused(application_id, node_id, by, str(obstacle.refusal))
