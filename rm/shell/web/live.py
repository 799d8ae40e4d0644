"""yarnling's own REST API beside Hadoop's, for pages that follow a cluster: JSON only.

GET /ws/yarnling/v1/changes                 server-sent events: `changed`, at most one a second, if something did
GET /ws/yarnling/v1/nodes                   the nodes with what is on them; `?state=`, `?node=`, `?limit=` select
GET /ws/yarnling/v1/waiting                 explanations of the applications that wait, oldest first
GET /ws/yarnling/v1/apps/{appid}/explain    an explanation; with `?what-if=true` also changes that would help
GET /ws/yarnling/v1/apps/{appid}/containers   its reserved containers and those that ended last
GET /ws/yarnling/v1/containers/{containerid}/explain    why a container is on its node, and why it was preempted
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any

from rm.core.access_control import VIEW
from rm.core.applications import RMApp
from rm.core.context import RMContext
from rm.core.events import Asker
from rm.core.reports.applications import application_state
from rm.core.resource_manager import ResourceManagerCore
from rm.core.rm_node import RMNode
from rm.scheduler.model.rm_container import RMContainer
from rm.shell.inspection_service import InspectionService
from rm.shell.web.applications import find_app
from rm.shell.web.paths import asker_of
from wire.files.plain_json import plain
from wire.web.application import JSON, JSON_UTF8, EventStream, TextAnswer, WebRoute, json_answer
from wire.web.errors import PlainRefusal
from wire.web.pacing import collected, in_slices
from wire.web.request import WebRequest
from yarn.errors import ContainerNotFoundException, InvalidIdException
from yarn.ids import ContainerId
from yarn.machine import StateChanged
from yarn.protocols.inspection import Explanation
from yarn.states import FINAL_APPLICATION_STATES

BASE = "/ws/yarnling/v1"
STREAMS_MAX = 16
"""Pages that follow changes at a time, of the 64 connections that a daemon keeps."""
CHANGES_INTERVAL_S = 1.0
STREAM_S = 50.0
"""The time a stream of changes lasts; a browser then opens the next one by itself."""
ENDED_SHOWN_MAX = 100
"""The number of ended containers of an application that are listed."""
EXPLAINED_MAX = 20
"""The number of waiting applications that are explained at a time."""


class LiveService:
    """Serves the data of pages that update themselves. `note` must be called with each transition of the core."""

    def __init__(self, core: ResourceManagerCore, inspections: InspectionService) -> None:
        self._core = core
        self._inspections = inspections
        self._changes = 0
        self._streams = 0

    def note(self, change: StateChanged) -> None:
        """Note a change, so that open pages are updated."""
        self._changes += 1

    def rows(self) -> Iterator[WebRoute]:
        """The routes."""
        yield WebRoute("GET", f"{BASE}/changes", self._follow, ("text/event-stream",))
        yield WebRoute("GET", f"{BASE}/nodes", self._nodes, (JSON,))
        yield WebRoute("GET", f"{BASE}/waiting", self._waiting, (JSON,))
        yield WebRoute("GET", f"{BASE}/apps/{{appid}}/explain", self._explain, (JSON,))
        yield WebRoute("GET", f"{BASE}/apps/{{appid}}/containers", self._containers, (JSON,))
        yield WebRoute("GET", f"{BASE}/containers/{{containerid}}/explain", self._explain_container, (JSON,))

    async def _follow(self, request: WebRequest) -> EventStream:
        if self._streams >= STREAMS_MAX:
            raise PlainRefusal(503, f"{STREAMS_MAX} pages follow this cluster already: close one")
        return EventStream(self._stream())

    async def _stream(self) -> AsyncIterator[bytes]:
        """Yield an event at once, and one after each second in which something has changed."""
        self._streams += 1
        try:
            loop = asyncio.get_running_loop()
            ends_s, seen = loop.time() + STREAM_S, -1
            while loop.time() < ends_s:
                if seen != self._changes:
                    seen = self._changes
                    yield f"event: changed\ndata: {seen}\n\n".encode()
                await asyncio.sleep(CHANGES_INTERVAL_S)
        finally:
            self._streams -= 1

    async def _explain(self, request: WebRequest) -> TextAnswer:
        app, asker = self._viewed(request, request.path["appid"]), asker_of(request)
        what_if = request.first("what-if") == "true"
        return json_answer(plain(self._inspections.explained(app.application_id, asker, what_if=what_if)))

    async def _explain_container(self, request: WebRequest) -> TextAnswer:
        try:
            container_id = ContainerId.parse(request.path["containerid"])
        except InvalidIdException as error:
            raise PlainRefusal(400, error.message) from None
        self._viewed(request, str(container_id.application_id))
        try:
            return json_answer(plain(self._inspections.container_explained(container_id, asker_of(request))))
        except ContainerNotFoundException as error:
            raise PlainRefusal(404, error.message) from None

    async def _containers(self, request: WebRequest) -> TextAnswer:
        app, scheduler = self._viewed(request, request.path["appid"]), self._core.context.scheduler
        attempt = scheduler.attempt_of(app.application_id)
        reserved = () if attempt is None else attempt.reserved_containers
        ended = islice(scheduler.context.ended.of(app.application_id), ENDED_SHOWN_MAX)
        return json_answer(
            {
                "reserved": [_of_app(container, None) for container in reserved],
                "ended": [_of_app(container, ended_ms) for container, ended_ms in ended],
            }
        )

    def _viewed(self, request: WebRequest, app_id: str) -> RMApp:
        """The application, if the caller may view it. Raises PlainRefusal or WebException."""
        context, asker = self._core.context, asker_of(request)
        app = find_app(context, app_id)
        if not context.application_acls.may(asker, VIEW, app):
            raise PlainRefusal(403, f"user {asker[0]} may not view application {app.application_id}")
        return app

    async def _waiting(self, request: WebRequest) -> TextAnswer:
        waiting = islice(self._waiting_apps(asker_of(request)), EXPLAINED_MAX)
        return json_answer({"waiting": [plain(explanation) for explanation in await in_slices(collected(waiting))]})

    def _waiting_apps(self, asker: Asker) -> Iterator[Explanation]:
        """Explain each live application that the caller may view and that waits for containers."""
        context = self._core.context
        for app in list(context.apps.values()):
            is_live = app.application_id in context.apps and application_state(app) not in FINAL_APPLICATION_STATES
            if is_live and context.application_acls.may(asker, VIEW, app):
                explanation = self._inspections.explained(app.application_id, asker, what_if=False)
                if explanation.asks:
                    yield explanation

    async def _nodes(self, request: WebRequest) -> TextAnswer:
        context, asker = self._core.context, asker_of(request)
        wanted = _wanted_nodes(context, request)
        answer = {
            "count": len(wanted),
            "largest_mb": max((node.capability.memory_mb for node in wanted), default=0),
            "nodes": await in_slices(
                collected(_node(context, node, asker) for node in islice(wanted, _limit(request.first("limit"))))
            ),
        }
        return TextAnswer(await asyncio.to_thread(json.dumps, answer), JSON_UTF8)


def _wanted_nodes(context: RMContext, request: WebRequest) -> list[RMNode]:
    """The nodes in use that the query asks for: of one state, one node, or all."""
    state, node_id = request.first("state"), request.first("node")
    return [
        node
        for node in context.nodes.values()
        if (state is None or node.state.name == state) and (node_id is None or str(node.node_id) == node_id)
    ]


def _limit(text: str | None) -> int | None:
    """The number of nodes to list at most; None for all. Raises PlainRefusal."""
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise PlainRefusal(400, f"limit = {text!r}: must be a number of at most 9 digits")
    return int(text)


def _node(context: RMContext, node: RMNode, asker: Asker) -> dict[str, Any]:
    """A node with its containers, in the order in which they were placed."""
    scheduled = context.scheduler.nodes.get(node.node_id)
    fields: dict[str, Any] = {
        "id": str(node.node_id),
        "rack": node.rack,
        "state": node.state.name,
        "httpAddress": node.http_address,
    }
    if scheduled is None:
        return {**fields, "total": node.capability.amounts(), "label": "", "containers": [], "reserved": None}
    reserved = scheduled.reserved_container
    return {
        **fields,
        "label": scheduled.partition,
        "total": scheduled.total.amounts(),
        "allocated": scheduled.allocated.amounts(),
        "containers": [_container(context, container, asker) for container in scheduled.containers.values()],
        "reserved": None if reserved is None else _container(context, reserved, asker),
    }


def _container(context: RMContext, container: RMContainer, asker: Asker) -> dict[str, Any]:
    """The record of a container, without its id and owner if the caller may not view its application."""
    container_id = container.container.id
    app = context.apps.get(container_id.application_id)
    fields: dict[str, Any] = {"resource": container.resource.amounts(), "state": container.state.name}
    if app is None or not context.application_acls.may(asker, VIEW, app):
        return fields
    return {
        **fields,
        "id": str(container_id),
        "app": str(container_id.application_id),
        "user": app.user,
        "queue": app.queue,
        "isAm": container.is_am,
        "priority": container.container.priority,
        "startedMs": container.started_ms,
    }


def _of_app(container: RMContainer, ended_ms: int | None) -> dict[str, Any]:
    """The record of a reserved container (`ended_ms` None) or of one that has ended."""
    return {
        "id": str(container.container.id),
        "node": str(container.node_id),
        "resource": container.resource.amounts(),
        "state": container.state.name,
        "startedMs": container.started_ms,
        "endedMs": ended_ms,
        "isPreempted": bool(container.preemption_steps),
        "exitStatus": None if container.status is None else container.status.exit_status,
    }
