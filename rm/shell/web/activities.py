"""/scheduler/activities and /scheduler/app-activities, from the refusals that the scheduler keeps anyway.

Hadoop records the next visits of nodes once somebody has asked. Here the last refusal of each application and queue on
each node is always there, so the first request has an answer; what was allocated is not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator

from rm.core.context import RMContext
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.refusals import Reason, Refusal
from rm.shell.web.queues import root_queue
from wire.web.document import Document, Element, Value, many
from wire.web.errors import bad_request
from wire.web.records import java_date, parse_long
from wire.web.request import WebRequest
from yarn.errors import InvalidIdException
from yarn.ids import ApplicationId
from yarn.resource import Resource

SKIPPED = "SKIPPED"
BY_DIAGNOSTIC = "diagnostic"
BULK_DEFAULT, BULK_MAX = 10, 500
ACTIONS = ("refresh", "get")
_AMOUNTS = frozenset({Reason.NODE_FULL, Reason.NODE_TOTAL_TOO_SMALL})
NO_NODES = "No node manager running in the cluster"


def activities(context: RMContext, request: WebRequest, now_ms: int) -> Document:
    """Why the last visit of a node placed nothing: queue by queue, application by application."""
    text = request.first("nodeId")
    nodes = list(context.scheduler.nodes.values())
    found = _node(nodes, text)
    problem = _group_problem(request)
    if found is None:
        problem = problem or ("Cannot find node manager with given node id" if nodes else NO_NODES)
    if problem or found is None:
        return Document("activities", Element({"nodeId": text, "diagnostic": problem}))
    return Document("activities", _of_node(context, found, now_ms, grouped=_is_grouped(request)))


def bulk_activities(context: RMContext, request: WebRequest, now_ms: int) -> Document:
    """The same of several nodes. Raises WebException."""
    if (problem := _group_problem(request)) is not None:
        raise bad_request(problem)
    nodes = list(context.scheduler.nodes.values())
    if not nodes:
        raise bad_request(NO_NODES)
    wanted = parse_long(request.first("activitiesCount") or "") or 0
    count = min(wanted if wanted > 0 else BULK_DEFAULT, BULK_MAX)
    grouped = _is_grouped(request)
    listed = many(_of_node(context, node, now_ms, grouped=grouped) for node in nodes[:count])
    return Document("bulkActivities", Element({"activities": listed}))


def app_activities(context: RMContext, request: WebRequest, now_ms: int) -> Document:
    """Why the nodes that were offered to an application last did not take its requests."""
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
    allocations = [] if attempt is None or problem is not None else list(_allocations(attempt, request))
    fields: dict[str, Value] = {"applicationId": text}
    if problem is not None or not allocations:
        fields |= {"diagnostic": problem or "waiting for display", "timestamp": now_ms, "dateTime": java_date(now_ms)}
    return Document("appActivities", Element({**fields, "allocations": many(allocations)}))


# Applications


def _allocations(attempt: FiCaSchedulerApp, request: WebRequest) -> Iterator[Element]:
    """One for each node, the last refused first."""
    priorities = {parse_long(word) for word in request.words("requestPriorities")}
    ids = {parse_long(word) for word in request.words("allocationRequestIds")}
    limit, grouped = parse_long(request.first("limit") or "") or None, _is_grouped(request)
    refusals = list(LeafQueue.of(attempt).last_refusals(attempt).items())[::-1]
    for node_id, refusal in refusals[:limit]:
        key = refusal.key
        if priorities and (key is None or key.priority not in priorities):
            continue
        if ids and (key is None or key.allocation_request_id not in ids):
            continue
        fields: dict[str, Value] = {
            "nodeId": str(node_id),
            "timestamp": refusal.at_ms,
            "dateTime": java_date(refusal.at_ms),
            "queueName": attempt.leaf.name,
            "appPriority": attempt.priority,
            "allocationState": SKIPPED,
        }
        if key is None:
            fields["diagnostic"] = _diagnostic(refusal, grouped=grouped)
        else:
            fields["children"] = many([_request(refusal, str(node_id), grouped=grouped, named=False)])
        yield Element(fields)


def _request(refusal: Refusal, node_id: str, *, grouped: bool, named: bool) -> Element:
    key = refusal.key
    assert key is not None, "the refusal of an application has no request"
    of_node: dict[str, Value] = {"allocationState": SKIPPED, "diagnostic": _diagnostic(refusal, grouped=grouped)}
    of_node |= {"count": 1, "nodeIds": many([node_id])} if grouped else {"nodeId": node_id}
    return Element(
        {
            "name": f"request_{key.priority}_{key.allocation_request_id}" if named else None,
            "requestPriority": key.priority,
            "allocationRequestId": key.allocation_request_id,
            "allocationState": SKIPPED,
            "children": many([Element(of_node)]),
        }
    )


# Nodes


def _of_node(context: RMContext, node: SchedulerNode, now_ms: int, *, grouped: bool) -> Element:
    root = _queue(root_queue(context), node, grouped=grouped)
    allocation = Element({"partition": node.partition, "finalAllocationState": SKIPPED, "root": root})
    return Element(
        {
            "nodeId": str(node.node_id),
            "timestamp": now_ms,
            "dateTime": java_date(now_ms),
            "allocations": many([allocation]),
        }
    )


def _queue(queue: CSQueue, node: SchedulerNode, *, grouped: bool) -> Element:
    refusal = queue.refusals.by_node().get(node.node_id)
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
        requests = [] if refusal.key is None else [_request(refusal, str(node.node_id), grouped=grouped, named=True)]
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


# Parameters


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
