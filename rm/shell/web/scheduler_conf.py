"""The mutation API: the scheduler's configuration, read, checked, changed and reset by REST.

    GET  /ws/v1/cluster/scheduler-conf            the present values
    PUT  /ws/v1/cluster/scheduler-conf            a change: SchedConfUpdateInfo as JSON or XML
    POST /ws/v1/cluster/scheduler-conf/validate   the values after a change, which is not made
    GET  /ws/v1/cluster/scheduler-conf/version    the number of the present configuration
    GET  /ws/v1/cluster/scheduler-conf/format     what capacity-scheduler.xml has, again

Where yarn.scheduler.configuration.store.class is file, all are refused. With access control only administrators may
call. The first line of a refusal has Hadoop's words, further lines name each key, its value and the remedy.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from rm.core.administration import check_queues
from rm.core.mutation_policy import administers_changed_queues
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.config.mutation import QueueConfigInfo, SchedConfUpdateInfo, Values
from rm.shell.admin_service import AdminService
from rm.shell.mutable_configuration import MutableConfiguration
from rm.shell.web.paths import BASE, asker_of
from wire.web.access import AccessRefused
from wire.web.application import JSON_UTF8, XML_UTF8, Answer, TextAnswer, WebRoute
from wire.web.document import Document, Element, Style, many
from wire.web.errors import PlainRefusal, bad_request, forbidden
from wire.web.request import Body, WebRequest, entries_of, members, text_of
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import ConfigurationException, Severity
from yarn.java.hash_order import hash_order, string_hash
from yarn.settings.resourcemanager import MUTATION_ACL_POLICY_CLASS

CONF = f"{BASE}/scheduler-conf"
NOT_MUTABLE = {
    ("GET", CONF): (
        "This API only supports to retrieve scheduler configuration from a mutable-conf scheduler, underneath "
        "scheduler CapacityScheduler is not an instance of MutableConfScheduler"
    ),
    ("GET", f"{CONF}/version"): "Configuration Version only supported by MutableConfScheduler.",
    ("GET", f"{CONF}/format"): "Scheduler Configuration format only supported by MutableConfScheduler",
    ("PUT", CONF): "Configuration change only supported by mutable configuration store.",
    ("POST", f"{CONF}/validate"): "Configuration change validation only supported by MutableConfScheduler.",
}
"""{(method, path): what is answered where queues are read from a file}."""
_NO_QUEUE = "null"
"""The name that Hadoop gives a queue without one."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class SchedulerConfService:
    """Answers the calls, with the store of the scheduler's configuration; None if queues are read from a file."""

    def __init__(
        self,
        core: ResourceManagerCore,
        conf: Configuration,
        admins: AdminService,
        mutable: MutableConfiguration | None,
    ) -> None:
        self._core = core
        self._admins = admins
        self._mutable = mutable
        self._by_queue = MUTATION_ACL_POLICY_CLASS.of(conf).endswith(".QueueAdminConfigurationMutationACLPolicy")

    def rows(self) -> Iterator[WebRoute]:
        """The routes."""
        yield WebRoute("GET", CONF, self._get)
        yield WebRoute("PUT", CONF, self._put)
        yield WebRoute("POST", f"{CONF}/validate", self._validate)
        yield WebRoute("GET", f"{CONF}/version", self._version)
        yield WebRoute("GET", f"{CONF}/format", self._format)

    async def _get(self, request: WebRequest) -> Answer:
        return Answer(_document(self._permitted(request).values))

    async def _version(self, request: WebRequest) -> Answer:
        mutable = self._permitted(request)
        try:
            version = await mutable.version()
        except YarnException as error:
            raise PlainRefusal(400, error.message) from None
        return Answer(Document("configversion", Element({"versionID": version}), Style.MAPPED))

    async def _put(self, request: WebRequest) -> TextAnswer:
        mutable = self._permitted(request)
        change = read_change(request.body())
        if not self._may_change(request, change):
            raise PlainRefusal(400, "User is not admin of all modified queues.")
        try:
            await mutable.change(change, self._admins.apply_values)
        except YarnException as error:
            raise PlainRefusal(400, refusal_text(error)) from None
        queues = ",".join(change.queues())
        _logger.info("changed the scheduler's configuration user=%s queues=%s", request.user, queues)
        return _text(request, "Configuration change successfully applied.")

    async def _validate(self, request: WebRequest) -> Answer:
        mutable = self._permitted(request)
        change = read_change(request.body())
        try:
            values = await mutable.after(change)
            check_queues(self._core.context, self._admins.configuration_with(values))
        except YarnException as error:
            text = f"CapacityScheduler configuration validation failed:java.io.IOException: {refusal_text(error)}"
            raise PlainRefusal(400, text) from None
        return Answer(_document(values))

    async def _format(self, request: WebRequest) -> TextAnswer:
        if request.is_cross_site:
            # Only this call changes something although it is a GET, which any page can make a browser send.
            raise AccessRefused(403, "requests from other sites may not change anything")
        mutable = self._permitted(request)
        try:
            await mutable.format(self._admins.values_in_file, self._admins.apply_values)
        except YarnException as error:
            raise PlainRefusal(400, refusal_text(error)) from None
        _logger.info("reset the scheduler's configuration to the file's user=%s", request.user)
        return _text(request, "Configuration under store successfully formatted.")

    def _permitted(self, request: WebRequest) -> MutableConfiguration:
        """The configuration. Raises WebException, or PlainRefusal if it is a file (initForWritableEndpoints)."""
        if not self._core.context.application_acls.may_administer(asker_of(request)):
            raise forbidden("Only admins can carry out this operation.")
        if self._mutable is None:
            path = BASE + request.url.partition(BASE)[2].rstrip("/")
            raise PlainRefusal(400, NOT_MUTABLE[request.method if request.method != "HEAD" else "GET", path])
        return self._mutable

    def _may_change(self, request: WebRequest, change: SchedConfUpdateInfo) -> bool:
        asker = asker_of(request)
        is_admin = self._admins.is_admin(asker)
        if self._by_queue:
            return administers_changed_queues(self._core.context, asker, change, is_admin=is_admin)
        return is_admin


def read_change(body: dict[str, Body]) -> SchedConfUpdateInfo:
    """The change that a body describes; unknown fields are ignored. Raises WebException."""
    return SchedConfUpdateInfo(
        removed=tuple(_path(name) for name in members(body, "remove-queue") if name is not None),
        added=tuple(_queue(info, "add-queue") for info in members(body, "add-queue")),
        updated=tuple(_queue(info, "update-queue") for info in members(body, "update-queue")),
        global_params=_params(body, "global-updates"),
    )


def refusal_text(error: YarnException) -> str:
    """The text of a refused change."""
    if not isinstance(error, ConfigurationException) or not error.faults:
        return error.message
    errors = [fault for fault in error.faults if fault.severity is Severity.ERROR]
    return "\n".join([f"Failed to re-init queues : {errors[0].problem}", *map(str, errors)])


def _path(name: Body) -> str:
    if not isinstance(name, str):
        raise bad_request(f"remove-queue: {str(name)[:100]!r} is not the path of a queue (write a text such as root.a)")
    return name


def _queue(info: Body, field: str) -> QueueConfigInfo:
    if not isinstance(info, dict):
        raise bad_request(f"{field}: {str(info)[:100]!r} is not a queue (write an object with queue-name and params)")
    name = text_of(info, "queue-name")
    if name is None and field == "add-queue":
        raise bad_request("add-queue: there is no queue-name (write the path of the queue)")
    return QueueConfigInfo(_NO_QUEUE if name is None else name, _params(info, "params"))


def _params(body: dict[str, Body], name: str) -> dict[str, str | None]:
    """{key: value} of a map, or of a list of maps as web interfaces send it."""
    maps = (each for each in members(body, name) if isinstance(each, dict))
    entries = {key: value for each in maps for key, value in entries_of(each).items()}
    return {key: text_of({key: value}, key) for key, value in entries.items()}


def _document(values: Values) -> Document:
    """The values in the order of the map into which Hadoop copies them, from a map with more buckets."""
    keys = hash_order(hash_order(values, string_hash, peak=3 * len(values)), string_hash)
    return Document(
        "configuration",
        Element({"property": many(Element({"name": key, "value": values[key]}) for key in keys)}),
        Style.UNWRAPPED,
    )


def _text(request: WebRequest, text: str) -> TextAnswer:
    return TextAnswer(text, XML_UTF8 if request.is_xml else JSON_UTF8)
