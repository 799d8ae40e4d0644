"""The NodeManager's web services: the routes of one node at yarn.nodemanager.webapp.address."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Callable, Iterator

from nm.core.container import NMContainer, NMContainerState
from nm.shell.node_manager import NodeManager
from nm.shell.web import node
from nm.shell.web.beans import NodeManagerBeans
from nm.shell.web.logs import OpenLog, log_document, log_files, open_log
from nm.shell.web.node import ServedNode
from wire.address import Address
from wire.web.access import AccessCheck
from wire.web.application import (
    JSON,
    TEXT,
    Answer,
    ListAnswer,
    StreamAnswer,
    TextAnswer,
    WebApplication,
    WebRoute,
)
from wire.web.document import Document
from wire.web.errors import PlainRefusal, WebException, bad_request, number_format
from wire.web.pages import daemon_page_rows
from wire.web.records import parse_long
from wire.web.request import WebRequest
from wire.web.server import WebServer
from wire.web.site import site_rows
from yarn.configuration import Configuration
from yarn.ids import ContainerId
from yarn.machine import StateChanged
from yarn.settings import nodemanager, resourcemanager
from yarn.settings.yarnling import LISTEN_BEYOND_LOOPBACK, OPEN_TO_LOCAL_USERS

BASE = "/ws/v1/node"
PAGE = "/node"
"""Where Hadoop has its web pages."""
PAGES = tuple(
    f"{PAGE}{path}"
    for path in (
        "",
        "/node",
        "/allApplications",
        "/allContainers",
        "/application/{id}",
        "/container/{id}",
        "/containerlogs/{id}",
        "/containerlogs/{id}/{user}",
        "/containerlogs/{id}/{user}/{file}",
    )
)
"""The paths of the pages, as in Hadoop."""
_CONTENT_TYPES = {"text": "text/plain", "octet-stream": "application/octet-stream"}
_NOT_STARTED = (NMContainerState.NEW, NMContainerState.LOCALIZING, NMContainerState.SCHEDULED)
UNKNOWN_CONTAINER = (
    "Unknown container. Container either has not started or has already completed or doesn't belong to this node at "
    "all."
)


class NodeManagerWeb:
    """Takes the port first, because the node registers with it; answers once the node is there."""

    def __init__(self, conf: Configuration, clock: Callable[[], int]) -> None:
        self._conf = conf
        self._address = Address.read(conf, nodemanager.WEBAPP_ADDRESS)
        self._started_ms = clock()
        self._server = WebServer(
            self._address,
            beyond_loopback=LISTEN_BEYOND_LOOPBACK.of(conf),
            admits_all_users=OPEN_TO_LOCAL_USERS.of(conf),
        )

    async def bind(self) -> int:
        """The port. Raises YarnException if it is taken."""
        return await self._server.bind()

    async def start(self, manager: NodeManager, log_dirs: tuple[str, ...]) -> None:
        """Answer requests about the node."""
        service = NodeService(self._conf, manager, log_dirs, self._started_ms)
        rest, noted = list(service.rows()), manager.shell.state_changed
        beans = NodeManagerBeans(service.view)

        def note(change: StateChanged) -> None:
            if noted is not None:
                noted(change)
            beans.state_changed(change)

        manager.shell.state_changed = note
        site = site_rows(f"NodeManager {manager.node_id}", PAGE, f"{PAGE}/paths", rest, beans)
        cluster = resourcemanager.CLUSTER_ID.maybe_of(self._conf) or ""
        rows = [*rest, *daemon_page_rows("NodeManager", "nm", PAGE, PAGES, cluster=cluster), *site]
        await self._server.start(WebApplication(rows, AccessCheck(self._conf, [self._address.host])))

    async def stop(self) -> None:
        await self._server.stop()


class NodeService:
    """Answers about one node."""

    def __init__(self, conf: Configuration, manager: NodeManager, log_dirs: tuple[str, ...], started_ms: int) -> None:
        self._core = manager.core
        self._log_dirs = log_dirs
        self._owner = getpass.getuser()
        self.view = ServedNode(
            manager.core,
            manager.node_id,
            manager.facts,
            started_ms,
            nodemanager.VMEM_CHECK_ENABLED.of(conf),
            nodemanager.PMEM_CHECK_ENABLED.of(conf),
            lambda container: [file.name for file in log_files(log_dirs, container.id)],
        )

    def rows(self) -> Iterator[WebRoute]:
        """The routes."""
        for path in (BASE, f"{BASE}/info"):
            yield WebRoute("GET", path, self.info)
        yield WebRoute("GET", f"{BASE}/apps", self.apps)
        yield WebRoute("GET", f"{BASE}/apps/{{appid}}", self.app)
        yield WebRoute("GET", f"{BASE}/containers", self.containers)
        container = f"{BASE}/containers/{{containerid}}"
        yield WebRoute("GET", container, self.container)
        yield WebRoute("GET", f"{container}/logs", self.logs)
        for path in (f"{container}/logs/{{filename}}", f"{BASE}/containerlogs/{{containerid}}/{{filename}}"):
            yield WebRoute("GET", path, self.log, (TEXT,))
        for method in ("GET", "PUT"):
            yield WebRoute(method, f"{BASE}/auxiliaryservices", _no_manifest)
        yield WebRoute("GET", f"{BASE}/resources/{{resourcename}}", _no_plugin, (JSON,))

    async def info(self, request: WebRequest) -> Answer:
        return Answer(node.node_info(self.view))

    async def apps(self, request: WebRequest) -> ListAnswer:
        return ListAnswer("apps", "app", node.applications(self.view, request.first("state"), request.first("user")))

    async def app(self, request: WebRequest) -> Answer:
        return Answer(node.application(self.view, request.path["appid"]))

    async def containers(self, request: WebRequest) -> ListAnswer:
        base = _base(request)
        found = tuple(self._core.containers.values())
        return ListAnswer("containers", "container", (node.container_element(self.view, one, base) for one in found))

    async def container(self, request: WebRequest) -> Answer:
        found = node.find_container(self.view, request.path["containerid"])
        return Answer(Document("container", node.container_element(self.view, found, _base(request))))

    async def logs(self, request: WebRequest) -> Answer:
        container_id = node.parse_container_id(request.path["containerid"])
        try:
            self._check_readable(container_id)
        except PlainRefusal as refusal:
            # Hadoop wraps the exception without a message of its own.
            message = f"org.apache.hadoop.yarn.webapp.NotFoundException: java.lang.Exception: {refusal.text}"
            raise WebException(500, "javax.ws.rs.WebApplicationException", message) from None
        files = await asyncio.to_thread(log_files, self._log_dirs, container_id)
        return Answer(log_document(files, container_id, self.view.node_id))

    async def log(self, request: WebRequest) -> StreamAnswer:
        container_id, name = self._log_id(request), request.path["filename"]
        self._check_readable(container_id)
        content_type, size = _format(request), _size(request)
        descriptor = await asyncio.to_thread(open_log, self._log_dirs, container_id, name)
        if descriptor is None:
            raise PlainRefusal(404, "java.lang.Exception: Cannot find this log on the local disk.")
        container = self._core.containers.get(container_id)
        running = container is not None and container.machine.state is NMContainerState.RUNNING
        log = OpenLog(descriptor, name, container_id, self.view.node_id, running=running, size=size)
        return StreamAnswer(log.parts(), log.length, f"{content_type}; charset=utf-8", log.close)

    def _log_id(self, request: WebRequest) -> ContainerId:
        try:
            return node.parse_container_id(request.path["containerid"])
        except WebException:
            raise PlainRefusal(400, "") from None

    def _check_readable(self, container_id: ContainerId) -> None:
        """Raises PlainRefusal for a container whose logs cannot be there (ContainerLogsUtils)."""
        if container_id.application_id not in self._core.applications:
            raise PlainRefusal(404, f"java.lang.Exception: {UNKNOWN_CONTAINER}")
        container: NMContainer | None = self._core.containers.get(container_id)
        if container is None:
            return
        state = container.machine.state
        if state in _NOT_STARTED:
            raise PlainRefusal(404, f"java.lang.Exception: Container is not yet running. Current state is {state.name}")
        if state is NMContainerState.LOCALIZATION_FAILED:
            raise PlainRefusal(404, "java.lang.Exception: Container wasn't started. Localization failed.")


def _base(request: WebRequest) -> str:
    """`http://host:port` as the caller wrote it."""
    return "/".join(request.url.split("/", 3)[:3])


def _format(request: WebRequest) -> str:
    text = request.first("format")
    content_type = _CONTENT_TYPES.get((text or "text").lower())
    if content_type is None:
        raise PlainRefusal(400, "The valid values for the parameter : format are [text, octet-stream]")
    return content_type


def _size(request: WebRequest) -> int | None:
    text = request.first("size")
    if not text:
        return None
    size = parse_long(text)
    if size is None:
        raise number_format(f'For input string: "{text}"')
    return size


async def _no_manifest(request: WebRequest) -> Answer:
    raise bad_request("Auxiliary services manifest is not enabled")


async def _no_plugin(request: WebRequest) -> TextAnswer:
    return TextAnswer("{}", "application/json;charset=utf-8")
