"""The REST calls that change something. Each calls the method that answers the same RPC, which makes its checks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from rm.core.applications import RMApp
from rm.core.context import RMContext
from rm.core.reports import applications as reports
from rm.core.resource_manager import ResourceManagerCore
from rm.shell.admin_service import AdminService
from rm.shell.services import ClientService
from rm.shell.web import applications
from rm.shell.web.nodes import find_node
from rm.shell.web.paths import APP, BASE, node_or_host
from rm.shell.web.submission import read_resource, read_submission, whole_number, within_limits
from wire.caller import Caller
from wire.protocols.admin import ResourceManagerAdministrationProtocol as Admin
from wire.protocols.client import ApplicationClientProtocol as Client
from wire.web.application import Answer, WebRoute
from wire.web.document import Document, Element, Style
from wire.web.errors import PlainRefusal, WebException, bad_request, undeclared_throwable
from wire.web.records import resource_element
from wire.web.request import Body, WebRequest, member, members, text_of
from yarn.configuration import Configuration
from yarn.errors import AccessControlException, InvalidIdException, YarnException
from yarn.ids import ContainerId, NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.admin import ReplaceLabelsRequest, ResourceOption
from yarn.protocols.client import (
    KillApplicationRequest,
    MoveApplicationRequest,
    UpdatePriorityRequest,
    UpdateTimeoutsRequest,
)
from yarn.protocols.container_management import SignalContainerRequest
from yarn.settings import resourcemanager
from yarn.states import SignalContainerCommand, YarnApplicationState
from yarn.times import parse_iso8601

T = TypeVar("T")

_ACCESS_CONTROL = ".AccessControlException"
"""The end of the classes, of Java's security package and of Hadoop's, that a refusal's message starts with."""
_COMMANDS = ", ".join(command.name for command in SignalContainerCommand)
DISABLED = "App submission via REST is disabled."
NO_KERBEROS = (
    "Delegation token operations can only be carried out on a Kerberos authenticated channel. Expected auth type is "
    "kerberos, got type SIMPLE"
)


class WriteService:
    """Answers the REST calls that change applications, labels and other state."""

    def __init__(
        self,
        core: ResourceManagerCore,
        conf: Configuration,
        clock: Callable[[], int],
        clients: ClientService,
        admins: AdminService,
    ) -> None:
        self._core = core
        self._clock = clock
        self._clients = clients
        self._admins = admins
        self._takes_submissions = resourcemanager.REST_SUBMISSIONS_ENABLED.of(conf)
        self._lower_case_tags = resourcemanager.FORCE_LOWER_CASE_TAGS.of(conf)

    def rows(self) -> Iterator[WebRoute]:
        """The routes."""
        yield WebRoute("POST", f"{BASE}/apps/new-application", self._new_application)
        yield WebRoute("POST", f"{BASE}/apps", self._submit)
        yield WebRoute("PUT", f"{APP}/state", self._put_state)
        yield WebRoute("PUT", f"{APP}/queue", self._put_queue)
        yield WebRoute("PUT", f"{APP}/priority", self._put_priority)
        yield WebRoute("PUT", f"{APP}/timeout", self._put_timeout)
        yield WebRoute("POST", f"{BASE}/containers/{{containerid}}/signal/{{command}}", self._signal)
        yield WebRoute("POST", f"{BASE}/nodes/{{nodeId}}/resource", self._put_resource)
        yield WebRoute("POST", f"{BASE}/add-node-labels", self._add_labels)
        yield WebRoute("POST", f"{BASE}/remove-node-labels", self._remove_labels)
        yield WebRoute("POST", f"{BASE}/replace-node-to-labels", self._replace_labels)
        yield WebRoute("POST", f"{BASE}/nodes/{{nodeId}}/replace-labels", self._replace_labels_of_node)
        yield from _refused_rows()

    @property
    def _context(self) -> RMContext:
        return self._core.context

    def _find(self, request: WebRequest) -> RMApp:
        return applications.find_app(self._context, request.path["appid"])

    async def _new_application(self, request: WebRequest) -> Answer:
        self._check_submissions()
        reply = await self._clients.get_new_application(_caller(request), None)
        content = Element(
            {
                "application-id": str(reply.application_id),
                "maximum-resource-capability": resource_element(reply.maximum_capability),
            }
        )
        return Answer(Document("NewApplication", content, Style.UNWRAPPED))

    async def _submit(self, request: WebRequest) -> Answer:
        self._check_submissions()
        maximum = self._context.scheduler.context.settings.maximum_allocation
        wanted = read_submission(request.body(), maximum, lower_case_tags=self._lower_case_tags)
        submission = within_limits(Client.submit_application, wanted)
        try:
            await self._clients.submit_application(_caller(request), submission)
        except YarnException as error:
            raise bad_request(error.message) from None
        return Answer(None, 202, f"{request.url}/{submission.application_id}")

    def _check_submissions(self) -> None:
        if not self._takes_submissions:
            raise PlainRefusal(403, DISABLED)

    async def _put_state(self, request: WebRequest) -> Answer:
        app, body = self._find(request), request.body()
        target = text_of(body, "state") or ""
        if target == app.state.name:
            return Answer(applications.state_document(YarnApplicationState[target]))
        if target != YarnApplicationState.KILLED.name:
            raise bad_request("Only 'KILLED' is allowed as a target state.")
        kill = KillApplicationRequest(app.application_id, text_of(body, "diagnostics") or "")
        kill = within_limits(Client.force_kill_application, kill)
        what = f"kill appid {app} by"
        before = reports.application_state(app)
        reply = await _permitted(request, what, lambda caller: self._clients.force_kill_application(caller, kill))
        if reply.is_kill_completed:
            return Answer(applications.state_document(reports.application_state(app)))
        return Answer(applications.state_document(before), 202, request.url)

    async def _put_queue(self, request: WebRequest) -> Answer:
        app, queue = self._find(request), text_of(request.body(), "queue") or ""
        if queue != app.queue:
            move = within_limits(
                Client.move_application_across_queues, MoveApplicationRequest(app.application_id, queue)
            )
            what = f"move appid {app} by"
            await _permitted(
                request,
                what,
                lambda caller: self._clients.move_application_across_queues(caller, move),
                expected=lambda text: text.startswith("App in") and text.endswith("state cannot be moved."),
            )
        return Answer(applications.queue_document(app.queue))

    async def _put_priority(self, request: WebRequest) -> Answer:
        app, priority = self._find(request), whole_number(request.body(), "priority", 0)
        if priority != app.priority:
            update = within_limits(
                Client.update_application_priority, UpdatePriorityRequest(app.application_id, priority)
            )
            what = f"change priority of appid {app} by"
            await _permitted(request, what, lambda caller: self._clients.update_application_priority(caller, update))
        return Answer(applications.priority_document(app.priority))

    async def _put_timeout(self, request: WebRequest) -> Answer:
        app, body = self._find(request), request.body()
        timeout = member(body, "timeout") or body
        kind, ends = text_of(timeout, "type"), text_of(timeout, "expiryTime")
        if kind is None or ends is None:
            raise PlainRefusal(400, "Timeout type or ExpiryTime is null.")
        if kind != applications.LIFETIME:
            raise bad_request(f"{kind[:100]!r} is not one of [{applications.LIFETIME}]")
        try:
            parse_iso8601(ends)
        except YarnException:
            text = f"Text '{ends[:100]}' could not be parsed at index 0"
            raise WebException(503, "java.time.format.DateTimeParseException", text) from None
        update = UpdateTimeoutsRequest(app.application_id, ends)
        what = f"change timeout of app {app} by"
        await _permitted(request, what, lambda caller: self._clients.update_application_timeouts(caller, update))
        return Answer(Document("timeout", applications.timeout_element(app, self._clock())))

    async def _signal(self, request: WebRequest) -> Answer:
        name = request.path["command"].upper()
        if name not in SignalContainerCommand.__members__:
            raise PlainRefusal(400, f"Invalid command: {name[:100]}, valid commands are: [{_COMMANDS}]")
        try:
            container_id = ContainerId.parse(request.path["containerid"])
            await self._clients.signal_to_container(
                _caller(request), SignalContainerRequest(container_id, SignalContainerCommand[name])
            )
        except InvalidIdException:
            raise PlainRefusal(500, f"Invalid ContainerId prefix: {request.path['containerid'][:100]}") from None
        except YarnException as error:
            raise PlainRefusal(500, error.message) from None
        return Answer(None)

    async def _put_resource(self, request: WebRequest) -> Answer:
        node, body = find_node(self._context, request.path["nodeId"]), request.body()
        option = member(body, "resourceOption") or body
        # A timeout that is left out is 0, as in ResourceOptionInfo.
        timeout_ms = whole_number(option, "overCommitTimeout", 0)
        size = ResourceOption(read_resource(member(option, "resource")), timeout_ms)
        before = node.capability
        update = within_limits(Admin.update_node_resource, ((node.node_id, size),))
        try:
            await self._admins.update_node_resource(_caller(request), update)
        except YarnException as error:
            text = f"Failed to update the node resource {node}."
            raise WebException(503, "org.apache.hadoop.yarn.exceptions.YarnRuntimeException", text) from error
        return Answer(Document("resourceInfo", resource_element(before)))

    async def _add_labels(self, request: WebRequest) -> Answer:
        body = request.body()
        labels = tuple(map(_label, members(member(body, "nodeLabelsInfo") or body, "nodeLabelInfo")))
        labels = within_limits(Admin.add_to_cluster_node_labels, labels)
        await _authorized(
            request, "add-node-labels ", self._admins.add_to_cluster_node_labels(_caller(request), labels)
        )
        return Answer(None)

    async def _remove_labels(self, request: WebRequest) -> Answer:
        names = within_limits(Admin.remove_from_cluster_node_labels, tuple(request.query.get("labels", ())))
        change = self._admins.remove_from_cluster_node_labels(_caller(request), names)
        await _authorized(request, "remove-node-labels ", change)
        return Answer(None)

    async def _replace_labels(self, request: WebRequest) -> Answer:
        labels = tuple(map(_node_labels, members(request.body(), "nodeToLabels")))
        return await self._replace(request, labels, "replace-node-to-labels")

    async def _replace_labels_of_node(self, request: WebRequest) -> Answer:
        node_id = node_or_host(request.path["nodeId"])
        names = tuple(name for name in request.query.get("labels", ()) if name)
        return await self._replace(request, ((node_id, names),), "nodes/nodeid/replace-labels")

    async def _replace(
        self, request: WebRequest, labels: tuple[tuple[NodeId, tuple[str, ...]], ...], path: str
    ) -> Answer:
        change = within_limits(Admin.replace_labels_on_nodes, ReplaceLabelsRequest(labels))
        await _authorized(request, path, self._admins.replace_labels_on_nodes(_caller(request), change))
        return Answer(None)


def _caller(request: WebRequest) -> Caller[None]:
    """The caller, without an address: in Hadoop the web layer's calls have no remote address (Server.getRemoteIp)."""
    return Caller(request.user, None, "", None)


async def _permitted(
    request: WebRequest,
    what: str,
    call: Callable[[Caller[None]], Awaitable[T]],
    expected: Callable[[str], bool] = lambda _: False,
) -> T:
    """The result of the call.

    Raises PlainRefusal if the user may not make the call, or if `expected` is true for the message of the refusal. For
    any other refusal, raises the error that Hadoop's web layer reports for an exception that it does not handle.
    """
    try:
        return await call(_caller(request))
    except YarnException as error:
        if _is_not_permitted(error):
            raise PlainRefusal(403, f"Unauthorized attempt to {what} remote user {request.user}") from None
        if expected(error.message):
            raise PlainRefusal(400, error.message) from None
        raise undeclared_throwable() from None


def _is_not_permitted(error: YarnException) -> bool:
    cause = error.message.partition(":")[0]
    return isinstance(error, AccessControlException) or cause.endswith(_ACCESS_CONTROL)


async def _authorized(request: WebRequest, path: str, change: Awaitable[None]) -> None:
    """Make a change of labels. Raises WebException if it is refused."""
    try:
        await change
    except YarnException as error:
        if _is_not_permitted(error):
            text = f"User {request.user} not authorized for post to .../{path}"
            raise WebException(401, "org.apache.hadoop.security.authorize.AuthorizationException", text) from None
        cause, colon, text = error.message.partition(": ")
        if colon and cause.startswith("java."):
            raise bad_request(text, cause) from None
        raise bad_request(error.message, error.java_class) from None


def _label(body: Body) -> NodeLabel:
    fields = body if isinstance(body, dict) else {}
    return NodeLabel(text_of(fields, "name") or "", (text_of(fields, "exclusivity") or "false").lower() == "true")


def _node_labels(body: Body) -> tuple[NodeId, tuple[str, ...]]:
    fields = body if isinstance(body, dict) else {}
    return node_or_host(text_of(fields, "nodeId") or ""), tuple(map(str, members(fields, "labels")))


def _refused_rows() -> Iterator[WebRoute]:
    """The routes that Hadoop refuses in a cluster like this one.

    This cluster has no security and no reservation system.
    """
    for method, path in (("POST", ""), ("DELETE", ""), ("POST", "/expiration")):
        yield WebRoute(method, f"{BASE}/delegation-token{path}", _refusing(403, NO_KERBEROS))
    yield WebRoute("POST", f"{BASE}/reservation/new-reservation", _no_reservations)
    for verb in ("submit", "update", "delete"):
        yield WebRoute("POST", f"{BASE}/reservation/{verb}", _no_reservations)


def _refusing(status: int, text: str) -> Callable[[WebRequest], Awaitable[Answer]]:
    async def refuse(request: WebRequest) -> Answer:
        raise PlainRefusal(status, text)

    return refuse


async def _no_reservations(request: WebRequest) -> Answer:
    text = "Unable to create new reservation from RM web service"
    raise WebException(503, "org.apache.hadoop.yarn.exceptions.YarnRuntimeException", text)
