"""Answers about applications (AppInfo): functions of the core's context that change nothing."""

from __future__ import annotations

from msgspec import Struct

from rm.core.access_control import VIEW
from rm.core.applications import RMApp, RMAppAttempt
from rm.core.context import RMContext
from rm.core.events import Asker
from rm.core.reports import applications as reports
from rm.core.states import COMPLETED_APP_STATES
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.shell.web.queues import usage_by_partition
from wire.web.document import Document, Element, Entries, Many, Style, Value, many
from wire.web.errors import not_found
from wire.web.records import application_id as parsed_id
from wire.web.records import elapsed_ms, resource_element, seconds_map
from yarn.java.binary32 import f32
from yarn.states import LogAggregationStatus, YarnApplicationState
from yarn.times import UNLIMITED, format_iso8601

LIFETIME = "LIFETIME"
_WITHOUT_PAGE = frozenset(
    {
        YarnApplicationState.NEW,
        YarnApplicationState.NEW_SAVING,
        YarnApplicationState.SUBMITTED,
        YarnApplicationState.ACCEPTED,
    }
)

REQUESTS, TIMEOUTS, APP_LABEL, AM_LABEL, USAGE = (
    "resourceRequests",
    "timeouts",
    "appNodeLabelExpression",
    "amNodeLabelExpression",
    "resourceInfo",
)
DESELECTABLE = (REQUESTS, TIMEOUTS, APP_LABEL, AM_LABEL, USAGE)
"""Parts of the answer that the parameter deSelects leaves out (DeSelectFields)."""


class AppView(Struct, frozen=True):
    """The view of applications: the user, the time, and the parts to leave out."""

    context: RMContext
    asker: Asker
    now_ms: int
    without: frozenset[str] = frozenset()


def find_app(context: RMContext, text: str) -> RMApp:
    """The application with this id. Raises WebException."""
    application_id = parsed_id(text)
    app = context.apps.get(application_id)
    if app is None:
        raise not_found(f"app with id: {text} not found")
    return app


def app_element(view: AppView, app: RMApp) -> Element:
    """An AppInfo. Users who may not view the application get only the public fields."""
    context, attempt = view.context, app.current_attempt
    is_shown = context.application_acls.may(view.asker, VIEW, app)
    state = reports.application_state(app)
    url = None if state in _WITHOUT_PAGE else _tracking_url(attempt)
    submission = app.submission
    fields: dict[str, Value] = {
        "id": str(app),
        "user": app.user,
        "name": submission.name,
        "queue": app.queue,
        "state": state.name,
        "finalStatus": reports.final_status(app).name,
        "progress": 0.0 if attempt is None else f32(f32(attempt.progress) * 100),
        "trackingUI": "UNASSIGNED" if url is None else ("History" if app.finish_ms else "ApplicationMaster"),
        "trackingUrl": url,
        "diagnostics": _diagnostics(app, attempt),
        "clusterId": context.cluster_timestamp,
        "applicationType": submission.type,
        "applicationTags": ",".join(sorted(submission.tags)),
        "priority": app.priority,
        **_running(view, app, attempt, is_shown=is_shown),
        **_consumption(context, app, is_shown=is_shown),
        REQUESTS: _requests(context, app) if is_shown and REQUESTS not in view.without else None,
        "logAggregationStatus": LogAggregationStatus.DISABLED.name if is_shown else None,
        "unmanagedApplication": submission.unmanaged_am,
        APP_LABEL: submission.node_label_expression,
        AM_LABEL: None if AM_LABEL in view.without else _am_label(app),
        USAGE: None if USAGE in view.without else _usage(context, app),
        TIMEOUTS: None if TIMEOUTS in view.without else timeouts_element(app, view.now_ms),
    }
    return Element(fields)


def app_document(view: AppView, app: RMApp) -> Document:
    """An application."""
    return Document("app", app_element(view, app))


def _tracking_url(attempt: RMAppAttempt | None) -> str | None:
    if attempt is None or not attempt.tracking_url:
        return None
    url = attempt.tracking_url
    return url if "://" in url else f"http://{url}"


def _diagnostics(app: RMApp, attempt: RMAppAttempt | None) -> str:
    return app.diagnostics or ("" if attempt is None else reports.attempt_diagnostics(attempt))


def _running(view: AppView, app: RMApp, attempt: RMAppAttempt | None, *, is_shown: bool) -> dict[str, Value]:
    """Fields of times, places and resources held now; Java's zeros for users who may not view the application."""
    fields: dict[str, Value] = {
        "startedTime": app.submit_ms if is_shown else 0,
        "launchTime": app.launch_ms if is_shown else 0,
        "finishedTime": app.finish_ms if is_shown else 0,
        "elapsedTime": elapsed_ms(app.submit_ms, app.finish_ms, view.now_ms) if is_shown else 0,
    }
    container = None if attempt is None or not is_shown else attempt.am_container
    if container is not None:
        address = container.node_http_address
        fields["amContainerLogs"] = f"http://{address}/node/containerlogs/{container.id}/{app.user}"
        fields["amHostHttpAddress"] = address
    if attempt is not None and is_shown and attempt.host != reports.UNAVAILABLE and attempt.rpc_port != -1:
        fields["amRPCAddress"] = f"{attempt.host}:{attempt.rpc_port}"
    fields["masterNodeId"] = "" if container is None else str(container.node_id)
    usage = view.context.scheduler.application_usage(app.application_id) or reports.UNKNOWN_USAGE
    is_known = attempt is not None and is_shown
    fields |= {
        "allocatedMB": usage.used.memory_mb if is_known else 0,
        "allocatedVCores": usage.used.vcores if is_known else 0,
        "reservedMB": usage.reserved.memory_mb if is_known else 0,
        "reservedVCores": usage.reserved.vcores if is_known else 0,
        "runningContainers": usage.used_containers if is_known else 0,
    }
    return fields


def _consumption(context: RMContext, app: RMApp, *, is_shown: bool) -> dict[str, Value]:
    """The resources that the application has used and lost."""
    usage, lost = reports.application_usage(context, app), app.losses
    has_run = bool(app.attempts)
    return {
        "memorySeconds": usage.memory_seconds,
        "vcoreSeconds": usage.vcore_seconds,
        "queueUsagePercentage": usage.queue_usage_percentage if is_shown else 0.0,
        "clusterUsagePercentage": usage.cluster_usage_percentage if is_shown else 0.0,
        "resourceSecondsMap": seconds_map(
            {"memory-mb": usage.memory_seconds, "vcores": usage.vcore_seconds} if has_run else {}
        ),
        "preemptedResourceMB": lost.resource.memory_mb,
        "preemptedResourceVCores": lost.resource.vcores,
        "numNonAMContainerPreempted": app.preempted_containers,
        "numAMContainerPreempted": app.preempted_ams,
        "preemptedMemorySeconds": usage.preempted_memory_seconds,
        "preemptedVcoreSeconds": usage.preempted_vcore_seconds,
        "preemptedResourceSecondsMap": _losses(app),
    }


def _losses(app: RMApp) -> Entries:
    lost = app.losses
    if not lost.containers:
        return Entries(())
    return seconds_map({"memory-mb": lost.memory_mb_seconds, "vcores": lost.vcore_seconds})


def _requests(context: RMContext, app: RMApp) -> Many:
    """The rows of the current attempt's requests (ResourceRequestInfo)."""
    attempt = context.scheduler.attempt_of(app.application_id)
    if attempt is None:
        return many([])
    return many(
        Element(
            {
                "priority": key.priority,
                "allocationRequestId": key.allocation_request_id,
                "resourceName": row.terms.resource_name,
                "capability": resource_element(row.terms.capability),
                "numContainers": row.count,
                "relaxLocality": row.terms.relax_locality,
                "nodeLabelExpression": row.terms.label,
                "executionTypeRequest": Element({"executionType": "GUARANTEED", "enforceExecutionType": False}),
            }
        )
        for key, row in attempt.requests.rows()
        if row.count
    )


def _am_label(app: RMApp) -> str | None:
    if app.submission.unmanaged_am or not app.am_requests:
        return None
    return app.am_requests[0].label or ""


def _usage(context: RMContext, app: RMApp) -> Element | None:
    attempt: FiCaSchedulerApp | None = context.scheduler.attempt_of(app.application_id)
    if attempt is None:
        return None
    return usage_by_partition(attempt.usage, with_am=True)


def timeouts_element(app: RMApp, now_ms: int) -> Element:
    """All timeouts; there is one kind."""
    return Element({"timeout": many([timeout_element(app, now_ms)])})


def timeout_element(app: RMApp, now_ms: int) -> Element:
    """The end of the application's lifetime (AppTimeoutInfo)."""
    ends_ms = app.lifetime_ends_ms
    if ends_ms is None:
        return Element({"type": LIFETIME, "expiryTime": UNLIMITED, "remainingTimeInSeconds": -1})
    is_over = app.state in COMPLETED_APP_STATES
    remaining_s = 0 if is_over else max((ends_ms - now_ms) // 1000, 0)
    return Element({"type": LIFETIME, "expiryTime": format_iso8601(ends_ms), "remainingTimeInSeconds": remaining_s})


def state_document(state: YarnApplicationState) -> Document:
    """The answer to GET and PUT of a state."""
    return Document("appstate", Element({"state": state.name}), Style.UNWRAPPED)


def queue_document(queue: str) -> Document:
    return Document("appqueue", Element({"queue": queue}), Style.UNWRAPPED)


def priority_document(priority: int) -> Document:
    return Document("applicationpriority", Element({"priority": priority}), Style.UNWRAPPED)
