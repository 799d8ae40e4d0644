"""/scheduler/activities and /scheduler/app-activities, from what the scheduler keeps anyway for explanations.

Hadoop records the next visits of nodes once somebody has asked. Here the last refusal of each application and queue on
each node is always there, and each container knows when and why it was placed, so the first request has an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rm.core.context import RMContext
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.refusals import Reason, Refusal
from rm.scheduler.model.requests import SchedulerKey
from rm.scheduler.model.rm_container import RMContainer
from rm.shell.web.placements import (
    NOT_ASSIGNED,
    RE_RESERVED,
    last_placed_by_node,
    of_application,
    of_reservation,
    of_visit,
    placements_of,
    reserved_with,
    state_of,
)
from rm.shell.web.queues import root_queue
from wire.web.document import Document, Element, Value, many
from wire.web.errors import bad_request
from wire.web.records import java_date, parse_long
from wire.web.request import WebRequest
from yarn.errors import InvalidIdException
from yarn.ids import ApplicationId, NodeId
from yarn.resource import Resource

SKIPPED = "SKIPPED"
BY_DIAGNOSTIC = "diagnostic"
BULK_DEFAULT, BULK_MAX = 10, 500
ACTIONS = ("refresh", "get")
_AMOUNTS = frozenset({Reason.NODE_FULL, Reason.NODE_TOTAL_TOO_SMALL})
NO_NODES = "No node manager running in the cluster"


def activities(context: RMContext, request: WebRequest, now_ms: int) -> Document:
    """The result of the last visit of a node, and why it placed no more: queue by queue, application by application."""
    text = request.first("nodeId")
    nodes = list(context.scheduler.nodes.values())
    found = _node(nodes, text)
    problem = _group_problem(request)
    if found is None:
        problem = problem or ("Cannot find node manager with given node id" if nodes else NO_NODES)
    if problem or found is None:
        return Document("activities", Element({"nodeId": text, "diagnostic": problem}))
    placed = last_placed_by_node(context)
    return Document("activities", _of_node(context, found, placed, now_ms, grouped=_is_grouped(request)))


def bulk_activities(context: RMContext, request: WebRequest, now_ms: int) -> Document:
    """Like `activities`, for several nodes. Raises WebException."""
    if (problem := _group_problem(request)) is not None:
        raise bad_request(problem)
    nodes = list(context.scheduler.nodes.values())
    if not nodes:
        raise bad_request(NO_NODES)
    wanted = parse_long(request.first("activitiesCount") or "") or 0
    count = min(wanted if wanted > 0 else BULK_DEFAULT, BULK_MAX)
    grouped, placed = _is_grouped(request), last_placed_by_node(context)
    listed = many(_of_node(context, node, placed, now_ms, grouped=grouped) for node in nodes[:count])
    return Document("bulkActivities", Element({"activities": listed}))


def app_activities(context: RMContext, request: WebRequest, now_ms: int) -> Document:
    """The containers that an application was given lately, by node, and why others did not take its requests."""
    text = request.path["appid"]
    actions = [action.lower() for action in request.words("actions")]
    problem = _group_problem(request) or _parameter_problem(request, actions)
    if problem is None and actions and "get" not in actions:
        problem = f"Successfully received action{'' if len(actions) == 1 else 's'}: {','.join(actions)}"
    attempt: FiCaSchedulerApp | None = None
    if problem is None:
        try:
            attempt = context.scheduler.attempt_of(ApplicationId.parse(text))
        except InvalidIdException:
            problem = "Cannot find application with given appId"
        else:
            problem = None if attempt is not None else "fail to get application activities after finished"
    allocations = [] if attempt is None or problem is not None else _allocations(context, attempt, request, now_ms)
    fields: dict[str, Value] = {"applicationId": text}
    if problem is not None or not allocations:
        fields |= {"diagnostic": problem or "waiting for display", "timestamp": now_ms, "dateTime": java_date(now_ms)}
    return Document("appActivities", Element({**fields, "allocations": many(allocations)}))


def _allocations(context: RMContext, attempt: FiCaSchedulerApp, request: WebRequest, now_ms: int) -> list[Element]:
    """Placements and, for each node, the last refusal; the last first."""
    grouped, wanted = _is_grouped(request), _Wanted(request)
    entries: list[tuple[int, Element]] = []
    for container in placements_of(context, attempt, now_ms):
        if wanted.includes(container.key):
            children = [of_application(container, grouped=grouped)]
            fields = _head(attempt, container.node_id, container.started_ms, state_of(container))
            entries.append((container.started_ms, Element({**fields, "children": many(children)})))
    for node_id, refusal in LeafQueue.of(attempt).last_refusals(attempt).items():
        if not wanted.includes(refusal.key):
            continue
        fields = _head(attempt, node_id, refusal.at_ms, SKIPPED)
        if refusal.key is None:
            fields["diagnostic"] = _diagnostic(refusal, grouped=grouped)
        else:
            state = RE_RESERVED if reserved_with(attempt, node_id, refusal) else SKIPPED
            fields["children"] = many([_request(refusal, str(node_id), state, grouped=grouped, named=False)])
        entries.append((refusal.at_ms, Element(fields)))
    entries.sort(key=lambda entry: entry[0])
    limit = parse_long(request.first("limit") or "") or None
    return [element for _, element in reversed(entries)][:limit]


class _Wanted:
    """The requests that are asked for: all, or those of some priorities and ids."""

    def __init__(self, request: WebRequest) -> None:
        self._priorities = {parse_long(word) for word in request.words("requestPriorities")}
        self._ids = {parse_long(word) for word in request.words("allocationRequestIds")}

    def includes(self, key: SchedulerKey | None) -> bool:
        if key is None:
            return not self._priorities and not self._ids
        by_priority = not self._priorities or key.priority in self._priorities
        return by_priority and (not self._ids or key.allocation_request_id in self._ids)


def _head(attempt: FiCaSchedulerApp, node_id: NodeId, at_ms: int, state: str) -> dict[str, Value]:
    return {
        "nodeId": str(node_id),
        "timestamp": at_ms,
        "dateTime": java_date(at_ms),
        "queueName": attempt.leaf.name,
        "appPriority": attempt.priority,
        "allocationState": state,
    }


def _request(refusal: Refusal, node_id: str, state: str, *, grouped: bool, named: bool) -> Element:
    key = refusal.key
    assert key is not None, "the refusal of an application has no request"
    of_node: dict[str, Value] = {"allocationState": state, "diagnostic": _diagnostic(refusal, grouped=grouped)}
    of_node |= {"count": 1, "nodeIds": many([node_id])} if grouped else {"nodeId": node_id}
    if not grouped and not named:
        of_node = {"name": NOT_ASSIGNED, **of_node}
    return Element(
        {
            "name": f"request_{key.priority}_{key.allocation_request_id}" if named else None,
            "requestPriority": key.priority,
            "allocationRequestId": key.allocation_request_id,
            "allocationState": state,
            "children": many([Element(of_node)]),
        }
    )


def _of_node(
    context: RMContext, node: SchedulerNode, placed: Mapping[NodeId, list[RMContainer]], now_ms: int, *, grouped: bool
) -> Element:
    """The last known visit of the node: what it placed, and unless it ended then, why it placed no more."""
    reserved, containers = node.reserved_container, placed.get(node.node_id, [])
    refused_ms = max((refusal.at_ms for refusal in _refusals(context, node)), default=None)
    placed_ms = containers[0].started_ms if containers else None
    if reserved is not None:
        allocations = [of_reservation(context, reserved, _lacking(context, reserved, grouped=grouped), grouped=grouped)]
        at_ms = max(reserved.started_ms, refused_ms or 0)
    elif placed_ms is not None and placed_ms >= (refused_ms or 0):
        allocations = [of_visit(context, container, grouped=grouped) for container in containers]
        if refused_ms == placed_ms:
            allocations.append(_skipped(context, node, grouped=grouped))
        at_ms = placed_ms
    else:
        allocations = [_skipped(context, node, grouped=grouped)]
        at_ms = refused_ms or now_ms
    return Element(
        {
            "nodeId": str(node.node_id),
            "timestamp": at_ms,
            "dateTime": java_date(at_ms),
            "allocations": many(allocations),
        }
    )


def _skipped(context: RMContext, node: SchedulerNode, *, grouped: bool) -> Element:
    """A visit that placed nothing."""
    root = _queue(root_queue(context), node, grouped=grouped)
    return Element({"partition": node.partition, "finalAllocationState": SKIPPED, "root": root})


def _lacking(context: RMContext, reserved: RMContainer, *, grouped: bool) -> str | None:
    """The reason why the node could not fill the reservation at its last visit."""
    attempt = context.scheduler.attempt_of(reserved.id.application_id)
    refusal = None if attempt is None else attempt.refusals.on(reserved.node_id)
    return None if refusal is None else _diagnostic(refusal, grouped=grouped)


def _refusals(context: RMContext, node: SchedulerNode) -> Iterator[Refusal]:
    """The last refusals on the node, by queues and by applications."""
    pending: list[CSQueue] = [root_queue(context)]
    while pending:
        queue = pending.pop()
        if isinstance(queue, ParentQueue):
            pending += queue.children
        owners = [queue.refusals.by_node()]
        if isinstance(queue, LeafQueue):
            owners += [queue.last_refusals(attempt) for attempt in queue.active]
        for of_node in owners:
            refusal = of_node.get(node.node_id)
            if refusal is not None:
                yield refusal


def _queue(queue: CSQueue, node: SchedulerNode, *, grouped: bool) -> Element:
    refusal = queue.refusals.on(node.node_id)
    children: list[Element] = []
    if refusal is None and isinstance(queue, ParentQueue):
        children = [_queue(child, node, grouped=grouped) for child in queue.children]
    elif refusal is None and isinstance(queue, LeafQueue):
        children = list(_applications(queue, node, grouped=grouped))
    diagnostic = None if children else Reason.QUEUE_SATISFIED.value
    return Element(
        {
            "name": queue.path,
            "allocationState": SKIPPED,
            "diagnostic": diagnostic if refusal is None else _diagnostic(refusal, grouped=grouped),
            "children": many(children),
        }
    )


def _applications(leaf: LeafQueue, node: SchedulerNode, *, grouped: bool) -> Iterator[Element]:
    for attempt in leaf.active:
        refusal = leaf.last_refusals(attempt).get(node.node_id)
        if refusal is None:
            continue
        requests = (
            [] if refusal.key is None else [_request(refusal, str(node.node_id), SKIPPED, grouped=grouped, named=True)]
        )
        yield Element(
            {
                "name": str(attempt.attempt_id.application_id),
                "appPriority": attempt.priority,
                "allocationState": SKIPPED,
                "diagnostic": None if requests else _diagnostic(refusal, grouped=grouped),
                "children": many(requests),
            }
        )


def _diagnostic(refusal: Refusal, *, grouped: bool) -> str:
    """Hadoop's sentence; of a node that is too small also what is missing, and the amounts unless grouped."""
    text = refusal.reason.value
    asked, bound = refusal.asked, refusal.bound
    if refusal.reason not in _AMOUNTS or asked is None or bound is None:
        return text
    text += f", insufficient resources=[{', '.join(_missing(asked, bound))}]"
    return text if grouped else f"{text}\nrequired={asked}, available={bound}"


def _missing(asked: Resource, bound: Resource) -> list[str]:
    free = bound.amounts()
    return [name for name, amount in asked.amounts().items() if amount > free.get(name, 0)]


def _node(nodes: list[SchedulerNode], text: str | None) -> SchedulerNode | None:
    """The node with this id or on this host; the first if none is named."""
    for node in nodes:
        if text in (None, str(node.node_id), node.node_id.host):
            return node
    return None


def _is_grouped(request: WebRequest) -> bool:
    return (request.first("groupBy") or "").lower() == BY_DIAGNOSTIC


def _group_problem(request: WebRequest) -> str | None:
    text = request.first("groupBy")
    if not text or text.lower() == BY_DIAGNOSTIC:
        return None
    return f"Got invalid groupBy: {text[:100]}, valid groupBy types: [DIAGNOSTIC]"


def _parameter_problem(request: WebRequest, actions: list[str]) -> str | None:
    for action in actions:
        if action not in ACTIONS:
            return f"Got invalid action: {action[:100]}, valid actions: [REFRESH, GET]"
    if any(parse_long(word) is None for word in request.words("requestPriorities")):
        return "request priorities must be integers!"
    if any(parse_long(word) is None for word in request.words("allocationRequestIds")):
        return "allocation request Ids must be integers!"
    limit = request.first("limit")
    if limit is None:
        return None
    number = parse_long(limit)
    if number is None:
        return "limit must be integer!"
    return None if number > 0 else "limit must be greater than 0!"
