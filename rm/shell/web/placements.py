"""Placed containers, in the shape of Hadoop's scheduler activities: where, for which request, through which queues.

Nothing is recorded for that: each container says when and why it was placed, also for a while after it has ended
(rm.scheduler.model.origin, rm.scheduler.model.ended_containers).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from rm.core.context import RMContext
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.refusals import Refusal
from rm.scheduler.model.rm_container import RMContainer, RMContainerState
from wire.web.document import Element, Value, many
from yarn.containers import Container
from yarn.ids import NodeId

ALLOCATED, ALLOCATED_FROM_RESERVED = "ALLOCATED", "ALLOCATED_FROM_RESERVED"
RESERVED, RE_RESERVED = "RESERVED", "RE_RESERVED"
ACCEPTED = "ACCEPTED"
NOT_ASSIGNED = "Container-Id-Not-Assigned"
"""The name of a node on which a request of an application got no container."""
KEPT_MS = 600_000
"""The time activities of applications are shown, as with Hadoop's app-activities.ttl-ms."""
PLACEMENTS_MAX = 100
"""The number of placements of an application that are shown, as with Hadoop's app-activities.max-queue-length."""
_NOT_PLACED = (RMContainerState.NEW, RMContainerState.RESERVED)


def last_placed_by_node(context: RMContext) -> dict[NodeId, list[RMContainer]]:
    """{node: the containers that were placed in the last visit that placed any}, those that still run first."""
    scheduler = context.scheduler
    found: dict[NodeId, list[RMContainer]] = {}
    live = (container for node in scheduler.nodes.values() for container in node.containers.values())
    ended = (container for container, _ in scheduler.context.ended.last_first())
    for container in (*live, *ended):
        if not _is_placement(container):
            continue
        of_node = found.setdefault(container.node_id, [container])
        if container.started_ms > of_node[0].started_ms:
            found[container.node_id] = [container]
        elif container.started_ms == of_node[0].started_ms and container is not of_node[0]:
            of_node.append(container)
    return found


def placements_of(context: RMContext, attempt: FiCaSchedulerApp, now_ms: int) -> list[RMContainer]:
    """The containers of an application that were placed or reserved lately, the last first."""
    ended = context.scheduler.context.ended.of(attempt.attempt_id.application_id)
    known = (*attempt.live_containers.values(), *(container for container, _ in ended if _is_placement(container)))
    lately = [*_since(known, now_ms - KEPT_MS), *_since(attempt.reserved_containers, now_ms - KEPT_MS)]
    lately.sort(key=lambda container: (container.started_ms, container.id), reverse=True)
    return lately[:PLACEMENTS_MAX]


def _since(containers: Iterable[RMContainer], since_ms: int) -> Iterator[RMContainer]:
    return (one for one in containers if one.origin is not None and one.started_ms >= since_ms)


def _is_placement(container: RMContainer) -> bool:
    """False for a reservation that was given up, and for a container that this scheduler did not place."""
    return container.origin is not None and container.state not in _NOT_PLACED


def is_from_reservation(container: RMContainer) -> bool:
    return container.origin is not None and container.origin.reserved_ms is not None


def of_visit(context: RMContext, container: RMContainer, *, grouped: bool) -> Element:
    """An allocation of a node's visit: the path through the queues to the container (NodeAllocationInfo).

    A visit that fills a reservation goes to the leaf at once, so the tree begins there.
    """
    final = ALLOCATED_FROM_RESERVED if is_from_reservation(container) else ALLOCATED
    placed: dict[str, Value] = {"allocationState": ALLOCATED}
    placed |= _nodes(container, grouped=grouped)
    if not grouped:
        placed = {"name": _text(container.container), **placed}
    tree = _application(context, container, ALLOCATED, placed)
    for path in islice(_paths(context, container), 1 if is_from_reservation(container) else None):
        tree = Element({"name": path, "allocationState": ACCEPTED, "children": many([tree])})
    return _allocation(context, container, final, tree)


def of_reservation(context: RMContext, container: RMContainer, diagnostic: str | None, *, grouped: bool) -> Element:
    """A visit of a reserved node that could not fill the reservation."""
    kept: dict[str, Value] = {"allocationState": RE_RESERVED, "diagnostic": diagnostic}
    tree = _application(context, container, RE_RESERVED, kept | _nodes(container, grouped=grouped))
    leaf = Element({"name": next(_paths(context, container)), "allocationState": RE_RESERVED, "children": many([tree])})
    return _allocation(context, container, RESERVED, leaf)


def of_application(container: RMContainer, *, grouped: bool) -> Element:
    """The outcome of an application's request: a placement or reservation (AppRequestAllocationInfo)."""
    state = state_of(container)
    node: dict[str, Value] = {"allocationState": state, **_nodes(container, grouped=grouped)}
    if not grouped:
        node = {"name": NOT_ASSIGNED if state is RESERVED else str(container.id), **node}
    return Element({**_request(container), "allocationState": state, "children": many([Element(node)])})


def state_of(container: RMContainer) -> str:
    """The state of a placement in the list of an application."""
    return RESERVED if container.state in _NOT_PLACED else ALLOCATED


def reserved_with(attempt: FiCaSchedulerApp, node_id: NodeId, refusal: Refusal) -> bool:
    """True if the refusal is that of a reservation which could not be filled yet."""
    return refusal.key is not None and node_id in attempt.reserved.get(refusal.key, ())


def _allocation(context: RMContext, container: RMContainer, final: str, root: Element) -> Element:
    node = context.scheduler.nodes.get(container.node_id)
    return Element(
        {
            "partition": "" if node is None else node.partition,
            "updatedContainerId": str(container.id),
            "finalAllocationState": final,
            "root": root,
        }
    )


def _application(context: RMContext, container: RMContainer, state: str, node: dict[str, Value]) -> Element:
    attempt = context.scheduler.attempt_of(container.id.application_id)
    priority, request_id = container.key.priority, container.key.allocation_request_id
    request = Element(
        {
            "name": f"request_{priority}_{request_id}",
            **_request(container),
            "allocationState": state,
            "children": many([Element(node)]),
        }
    )
    return Element(
        {
            "name": str(container.id.application_id),
            "appPriority": 0 if attempt is None else attempt.priority,
            "allocationState": state,
            "children": many([request]),
        }
    )


def _paths(context: RMContext, container: RMContainer) -> Iterator[str]:
    """The container's leaf and the queues above it, upwards."""
    leaf = context.scheduler.queue(container.queue)
    path = container.queue if leaf is None else leaf.path
    while path:
        yield path
        path = path.rpartition(".")[0]


def _request(container: RMContainer) -> dict[str, Value]:
    key = container.key
    return {"requestPriority": key.priority, "allocationRequestId": key.allocation_request_id}


def _nodes(container: RMContainer, *, grouped: bool) -> dict[str, Value]:
    node_id = str(container.node_id)
    return {"count": 1, "nodeIds": many([node_id])} if grouped else {"nodeId": node_id}


def _text(container: Container) -> str:
    """Hadoop's text of a container that has just been placed and has no token yet (ContainerPBImpl.toString)."""
    fields = {
        "ContainerId": container.id,
        "AllocationRequestId": container.allocation_request_id,
        "Version": container.version,
        "NodeId": container.node_id,
        "NodeHttpAddress": container.node_http_address,
        "Resource": container.resource,
        "Priority": container.priority,
        "Token": "null",
        "ExecutionType": container.execution_type.name,
    }
    return f"Container: [{''.join(f'{name}: {value}, ' for name, value in fields.items())}]"
