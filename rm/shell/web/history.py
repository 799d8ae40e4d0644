"""The REST API of the cluster's history: JSON only.

GET /ws/yarnling/v1/history                 curves of the cluster, and of the queues and nodes that are named
GET /ws/yarnling/v1/decisions               what the scheduler did with containers, the last first
GET /ws/yarnling/v1/apps/{appid}/history    why an application waited; `?at=MS`: at that time
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from rm.core.access_control import VIEW
from rm.core.context import RMContext
from rm.core.events import Asker
from rm.core.history.cluster_history import CLUSTER_COLUMNS, NODE_COLUMNS, QUEUE_COLUMNS, ClusterHistory
from rm.core.history.decisions import ContainerDecision, decisions_since
from rm.core.resource_manager import ResourceManagerCore
from rm.shell.inspection_service import InspectionService
from rm.shell.web.applications import find_app
from rm.shell.web.live import BASE
from rm.shell.web.paths import asker_of
from wire.files.plain_json import plain
from wire.web.application import JSON, JSON_UTF8, TextAnswer, WebRoute, json_answer
from wire.web.errors import PlainRefusal
from wire.web.pacing import collected, in_slices
from wire.web.request import WebRequest
from yarn.errors import YarnException
from yarn.times import MINUTE_MS

MINUTES = 10
"""The minutes that are answered if the query names no other number."""
MINUTES_MAX = 24 * 60
NAMED_MAX = 100
"""The number of queues and of nodes whose curves one call may ask for."""
DECISIONS_MAX = 500


class HistoryService:
    """Serves what `history` has kept. `clock`: the core's."""

    def __init__(
        self,
        core: ResourceManagerCore,
        history: ClusterHistory,
        inspections: InspectionService,
        clock: Callable[[], int],
    ) -> None:
        self._core = core
        self._history = history
        self._inspections = inspections
        self._clock = clock

    def rows(self) -> Iterator[WebRoute]:
        """The routes."""
        yield WebRoute("GET", f"{BASE}/history", self._curves, (JSON,))
        yield WebRoute("GET", f"{BASE}/decisions", self._decisions, (JSON,))
        yield WebRoute("GET", f"{BASE}/apps/{{appid}}/history", self._application, (JSON,))

    async def _curves(self, request: WebRequest) -> TextAnswer:
        now_ms, history = self._clock(), self._history
        from_ms = now_ms - _number(request, "minutes", MINUTES, MINUTES_MAX) * MINUTE_MS
        queues, nodes = _names(request, "queue"), _names(request, "node")
        answer = {
            "nowMs": now_ms,
            "fromMs": from_ms,
            "sinceMs": history.since_ms,
            "stepMs": history.step_ms(from_ms),
            "columns": {
                "cluster": ["time_ms", *CLUSTER_COLUMNS],
                "queues": ["time_ms", *QUEUE_COLUMNS],
                "nodes": ["time_ms", *NODE_COLUMNS],
            },
            "cluster": history.cluster(from_ms),
            "queues": {path: history.queue(path, from_ms) for path in queues},
            "nodes": {node_id: history.node(node_id, from_ms) for node_id in nodes},
        }
        return TextAnswer(await asyncio.to_thread(json.dumps, answer), JSON_UTF8)

    async def _decisions(self, request: WebRequest) -> TextAnswer:
        now_ms, context, asker = self._clock(), self._core.context, asker_of(request)
        from_ms = now_ms - _number(request, "minutes", MINUTES, MINUTES_MAX) * MINUTE_MS
        found = await in_slices(collected(decisions_since(context, from_ms)))
        found.sort(key=lambda decision: -decision.at_ms)
        shown = found[: _number(request, "limit", DECISIONS_MAX, DECISIONS_MAX)]
        answer = {
            "nowMs": now_ms,
            "count": len(found),
            "decisions": [_decision(context, decision, asker) for decision in shown],
        }
        return json_answer(answer)

    async def _application(self, request: WebRequest) -> TextAnswer:
        app, asker = find_app(self._core.context, request.path["appid"]), asker_of(request)
        try:
            found = self._inspections.past_explained(app.application_id, asker)
        except YarnException as error:
            raise PlainRefusal(403, error.message) from None
        at_ms = request.first("at")
        if at_ms is None:
            return json_answer(plain(found))
        at = _number(request, "at", 0, 10**15)
        if not found.since_ms <= at <= found.now_ms:
            raise PlainRefusal(404, f"at = {at}: kept from {found.since_ms} to {found.now_ms} (ms since 1970)")
        held = [one for one in found.verdicts if one.from_ms <= at and (one.until_ms is None or at < one.until_ms)]
        return json_answer({**plain(found), "verdicts": plain(held)})


def _decision(context: RMContext, decision: ContainerDecision, asker: Asker) -> dict[str, Any]:
    """The record of a decision; of an application that the caller may not view, only what was done and the size."""
    container = decision.container
    fields: dict[str, Any] = {
        "atMs": decision.at_ms,
        "what": decision.what,
        "resource": container.resource.amounts(),
        "node": str(container.node_id),
    }
    app = context.apps.get(container.id.application_id)
    if app is None or not context.application_acls.may(asker, VIEW, app):
        return fields
    return {
        **fields,
        "container": str(container.id),
        "app": str(container.id.application_id),
        "user": app.user,
        "queue": app.queue,
        "isAm": container.is_am,
    }


def _names(request: WebRequest, parameter: str) -> list[str]:
    """The names that the query lists. Raises PlainRefusal for too many."""
    names = request.words(parameter)
    if len(names) > NAMED_MAX:
        raise PlainRefusal(400, f"{len(names)} values of {parameter}: at most {NAMED_MAX} in one call")
    return names


def _number(request: WebRequest, parameter: str, default: int, largest: int) -> int:
    """The parameter, a number from 1 to `largest`. Raises PlainRefusal."""
    text = request.first(parameter)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,16}", text) or not 1 <= int(text) <= largest:
        raise PlainRefusal(400, f"{parameter} = {text!r}: must be a number from 1 to {largest}")
    return int(text)
