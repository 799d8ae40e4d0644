"""Answers about attempts and their containers: functions of the core's context that change nothing.

The list of attempts and a single attempt are different objects in Hadoop, with different fields and styles.
"""

from __future__ import annotations

from rm.core.access_control import VIEW
from rm.core.applications import RMApp, RMAppAttempt
from rm.core.context import RMContext
from rm.core.events import Asker
from rm.core.reports import applications as reports
from wire.web.document import Document, Element, Entries, Style, Value, many
from wire.web.errors import WebException, forbidden, not_found, web_application_exception
from wire.web.records import application_id, attempt_id, container_id, elapsed_ms
from yarn.applications import ContainerReport
from yarn.errors import (
    ApplicationAttemptNotFoundException,
    ApplicationNotFoundException,
    ContainerNotFoundException,
    YarnException,
)
from yarn.ids import ApplicationAttemptId

_MISSING = (ApplicationNotFoundException, ApplicationAttemptNotFoundException, ContainerNotFoundException)


def attempts(context: RMContext, app: RMApp, asker: Asker) -> Document:
    """All attempts of an application (the ResourceManager's own AppAttemptInfo)."""
    is_shown = context.application_acls.may(asker, VIEW, app)
    found = many(_listed(context, attempt, is_shown=is_shown) for attempt in app.attempts.values())
    return Document("appAttempts", Element({"appAttempt": found}))


def attempt(context: RMContext, app_text: str, attempt_text: str, asker: Asker) -> Document:
    """An attempt. Raises WebException."""
    wanted = _checked(app_text, attempt_text)
    try:
        report = reports.attempt_report(context, wanted, asker)
    except YarnException as error:
        raise _rewrapped(error) from None
    return Document(
        "appAttempt",
        Element(
            {
                "appAttemptId": str(report.attempt_id),
                "host": report.host,
                "rpcPort": report.rpc_port,
                "trackingUrl": report.tracking_url,
                "originalTrackingUrl": report.original_tracking_url,
                "diagnosticsInfo": report.diagnostics,
                "appAttemptState": report.state.name,
                "amContainerId": None if report.am_container_id is None else str(report.am_container_id),
                "startedTime": report.start_time_ms,
                "finishedTime": report.finish_time_ms,
            }
        ),
        Style.MAPPED,
    )


def containers(context: RMContext, app_text: str, attempt_text: str, asker: Asker, now_ms: int) -> Document:
    """The live containers of an attempt. Raises WebException."""
    wanted = _checked(app_text, attempt_text)
    try:
        found = reports.container_reports(context, wanted, asker)
    except YarnException as error:
        raise _rewrapped(error) from None
    return Document(
        "containers", Element({"container": many(_container(report, now_ms) for report in found)}), Style.MAPPED
    )


def container(
    context: RMContext, app_text: str, attempt_text: str, container_text: str, asker: Asker, now_ms: int
) -> Document:
    """A live container. Raises WebException."""
    wanted_attempt, wanted = _checked(app_text, attempt_text), container_id(container_text)
    if wanted.attempt_id != wanted_attempt:
        raise not_found("appAttemptId and containerId don't match")
    try:
        report = reports.container_report(context, wanted, asker)
    except YarnException as error:
        raise _rewrapped(error) from None
    return Document("container", _container(report, now_ms), Style.MAPPED)


def _checked(app_text: str, attempt_text: str) -> ApplicationAttemptId:
    """The attempt of the path. Raises WebException if it is not one of the path's application."""
    wanted_app, wanted = application_id(app_text), attempt_id(attempt_text)
    if wanted.application_id != wanted_app:
        raise not_found("appId and appAttemptId don't match")
    return wanted


def _rewrapped(error: YarnException) -> WebException:
    """Convert an error (WebServices.rewrapAndThrowException): 404 for missing objects, else an unexpected error."""
    if isinstance(error, _MISSING):
        return not_found(error.message, error.java_class)
    if "does not have privilege" in error.message:
        return forbidden(error.message)
    return web_application_exception(f"{error.java_class}: {error.message}", 500)


def _listed(context: RMContext, attempt: RMAppAttempt, *, is_shown: bool) -> Element:
    container = attempt.am_container if is_shown else None
    fields: dict[str, Value] = {
        "id": attempt.attempt_id.attempt,
        "startTime": attempt.start_ms,
        "finishedTime": attempt.finish_ms,
        "containerId": "",
        "nodeHttpAddress": "",
        "nodeId": "",
        "logsLink": "",
        "blacklistedNodes": "",
        "nodesBlacklistedBySystem": None,
        "appAttemptId": str(attempt),
        "exportPorts": "",
        "appAttemptState": attempt.state.name,
    }
    if container is not None:
        address = container.node_http_address
        scheduled = context.scheduler.attempt_of(attempt.app.application_id)
        is_current = scheduled is not None and scheduled.attempt_id == attempt.attempt_id
        fields |= {
            "containerId": str(container.id),
            "nodeHttpAddress": address,
            "nodeId": str(container.node_id),
            "logsLink": f"http://{address}/node/containerlogs/{container.id}/{attempt.app.user}",
            "blacklistedNodes": ", ".join(sorted(scheduled.blacklist)) if scheduled and is_current else "",
            "nodesBlacklistedBySystem": "",
            "exportPorts": "null",
        }
    return Element(fields)


def _container(report: ContainerReport, now_ms: int) -> Element:
    return Element(
        {
            "containerId": str(report.container_id),
            "allocatedMB": report.resource.memory_mb,
            "allocatedVCores": report.resource.vcores,
            "assignedNodeId": str(report.node_id),
            "priority": report.priority,
            "startedTime": report.creation_time_ms,
            "finishedTime": report.finish_time_ms,
            "elapsedTime": elapsed_ms(report.creation_time_ms, report.finish_time_ms, now_ms),
            "diagnosticsInfo": report.diagnostics or None,
            "logUrl": report.log_url,
            "containerExitStatus": report.exit_status,
            "containerState": report.state.name,
            "nodeHttpAddress": report.node_http_address,
            "nodeId": str(report.node_id),
            "allocatedResources": Entries(
                tuple((name, str(amount)) for name, amount in report.resource.amounts().items())
            ),
            "exposedPorts": "",
        }
    )
