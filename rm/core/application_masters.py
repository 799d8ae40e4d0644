"""The core's part of ApplicationMasterProtocol: register, allocate, finish (Hadoop's ApplicationMasterService).

Every allocate call carries the id of the last reply that the AM received. If that id is one behind, the reply was lost:
the same reply is sent again and nothing else is done. Any other difference is refused. So each allocate takes effect
exactly once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from rm.core.applications import RMApp, RMAppAttempt
from rm.core.context import RMContext
from rm.core.events import Allocate, FinishApplicationMaster, RegisterApplicationMaster
from rm.core.lifecycle_events import RMAppAttemptRegistered, RMAppAttemptStatusUpdate, RMAppAttemptUnregistered
from rm.core.node_reports import node_update_report
from rm.core.service_context import AMSession, next_response_id
from rm.core.states import ENDING_ATTEMPT_STATES, STORED_APP_STATES
from rm.scheduler.events.request_checks import with_trimmed_label
from rm.scheduler.model.allocation import Allocation
from yarn.containers import ANY, Container, ResourceRequest, Token
from yarn.errors import (
    ApplicationAttemptNotFoundException,
    ApplicationMasterNotRegisteredException,
    InvalidApplicationMasterRequestException,
    InvalidContainerReleaseException,
    InvalidResourceBlacklistRequestException,
    YarnException,
)
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.nodes import NodeReport
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterResponse,
    NMToken,
    RegisterApplicationMasterResponse,
)

NM_TOKEN_KIND = "NMToken"


class ApplicationMasterService:
    """The calls of AMs."""

    def __init__(self, context: RMContext) -> None:
        self._context = context

    def register(self, event: RegisterApplicationMaster) -> RegisterApplicationMasterResponse:
        """Register the AM.

        Raises InvalidApplicationMasterRequestException if the attempt is unknown or already registered, YarnException
        if it has placement constraints. Hadoop counts the AM as registered all the same; here nothing has changed.
        """
        attempt_id = event.attempt_id
        session = self._session(attempt_id)
        app, attempt = self._known(attempt_id)
        if session.response_id >= 0 and not _may_register_again(app):
            raise InvalidApplicationMasterRequestException(f"Application Master is already registered : {app}")
        context = self._context
        context.am_liveness.ping(attempt_id, context.now_ms)
        if event.request.has_placement_constraints:
            raise _without_constraints(attempt_id, "placement constraints map", "registerApplicationMaster")
        session.response_id = 0
        session.response = AllocateResponse(
            response_id=0, headroom=context.scheduler.resource_types.none, cluster_nodes=0
        )
        context.send(RMAppAttemptRegistered(attempt_id, event.request))
        kept = self._kept_containers(app, attempt)
        if app.submission.keep_containers_across_attempts:
            session.token_nodes.clear()
        return RegisterApplicationMasterResponse(
            maximum_capability=context.scheduler.maximum_allocation(context.now_ms, app.queue),
            queue=app.queue,
            containers_from_previous_attempts=kept,
            nm_tokens=_new_tokens(session, kept),
            resource_types=context.resource_types(),
            application_acls=app.submission.am_container.application_acls,
            scheduler_resource_types=context.scheduler.scheduling_resource_types,
        )

    def allocate(self, event: Allocate) -> AllocateResponse:
        """Apply an AM's requests. Raises the error of the first failed check; then nothing was applied."""
        context, attempt_id, request = self._context, event.attempt_id, event.request
        context.am_liveness.ping(attempt_id, context.now_ms)
        session = context.sessions.get(attempt_id)
        if session is None:
            raise ApplicationAttemptNotFoundException(
                f"Application attempt {attempt_id} doesn't exist in ApplicationMasterService cache."
            )
        if session.response is None:
            raise ApplicationMasterNotRegisteredException(
                f"AM is not registered for known application attempt: {attempt_id} or RM had restarted after AM"
                " registered.  AM should re-register."
            )
        if next_response_id(request.response_id) == session.response_id:
            return session.response
        if request.response_id != session.response_id:
            raise InvalidApplicationMasterRequestException(
                f"Invalid responseId in AllocateRequest from application attempt: {attempt_id} "
                f"expect responseId to be {session.response_id} but get {request.response_id}"
            )
        session.response = self._exchange(attempt_id, request, session)
        session.response_id = session.response.response_id
        return session.response

    def finish(self, event: FinishApplicationMaster) -> FinishApplicationMasterResponse:
        """Unregister the AM. Replies False until the outcome is stored; the AM repeats the call until True."""
        attempt_id = event.attempt_id
        app, _ = self._known(attempt_id)
        if app.state in STORED_APP_STATES:
            return FinishApplicationMasterResponse(is_unregistered=True)
        session = self._session(attempt_id)
        if session.response_id < 0:
            raise ApplicationMasterNotRegisteredException(
                f"Application Master is trying to unregister before registering for: {app}"
            )
        # As in DefaultAMSProcessor also for a repeated call: the state that the first one led to ignores it.
        self._context.send(RMAppAttemptUnregistered(attempt_id, event.request))
        self._context.am_liveness.ping(attempt_id, self._context.now_ms)
        return FinishApplicationMasterResponse(is_unregistered=app.submission.unmanaged_am)

    def _exchange(
        self, attempt_id: ApplicationAttemptId, request: AllocateRequest, session: AMSession
    ) -> AllocateResponse:
        """Apply requests and releases; returns what has happened since the last call (DefaultAMSProcessor)."""
        if request.has_scheduling_requests:
            raise _without_constraints(attempt_id, "SchedulingRequest", "allocate")
        context = self._context
        app, attempt = self._known(attempt_id)
        label, exclusive = app.submission.node_label_expression, context.settings.exclusive_partitions
        requests = _with_application_label(request.asks, label, exclusive)
        requests = self._checked(app, attempt_id, requests, request)
        updates, update_errors = context.scheduler.check_updates(app.queue, request.updates)
        allocation = self._allocate(app, attempt, replace(request, asks=requests, updates=tuple(updates)))
        context.send(RMAppAttemptStatusUpdate(attempt_id, _fraction(request.progress), request.tracking_url))
        attempt.let_nodes_forget(attempt.finished_containers.take_sent())
        containers = allocation.containers
        recovered = context.scheduler.pull_recovered(attempt_id)
        return AllocateResponse(
            response_id=next_response_id(request.response_id),
            headroom=allocation.headroom,
            cluster_nodes=context.scheduler.node_count_for(app.queue),
            allocated=containers,
            completed=attempt.finished_containers.pull(
                attempt_id, keep_containers=app.submission.keep_containers_across_attempts
            ),
            updated_nodes=tuple(_node_updates(context, app)),
            nm_tokens=_new_tokens(
                session, (*containers, *recovered, *(updated.container for updated in allocation.updated))
            ),
            containers_from_previous_attempts=recovered,
            updated_containers=allocation.updated,
            update_errors=(*update_errors, *allocation.update_errors),
            application_priority=app.priority,
            preemption=allocation.preemption,
        )

    def _allocate(self, app: RMApp, attempt: RMAppAttempt, request: AllocateRequest) -> Allocation:
        context = self._context
        if attempt.state in ENDING_ATTEMPT_STATES or app.state in STORED_APP_STATES:
            return Allocation((), context.scheduler.resource_types.none)
        return context.scheduler.allocate(
            attempt.attempt_id,
            request.asks,
            request.releases,
            request.blacklist_additions,
            request.blacklist_removals,
            request.updates,
            context.now_ms,
        )

    def _checked(
        self,
        app: RMApp,
        attempt_id: ApplicationAttemptId,
        requests: tuple[ResourceRequest, ...],
        request: AllocateRequest,
    ) -> tuple[ResourceRequest, ...]:
        """The requests with labels filled in. Raises the error of the first failed check."""
        requests = self._context.scheduler.check_asks(app.queue, requests)
        if ANY in request.blacklist_additions:
            raise InvalidResourceBlacklistRequestException(f"Cannot add {ANY} to the blacklist!")
        if not app.submission.keep_containers_across_attempts:
            _check_releases(attempt_id, request.releases)
        self._context.scheduler.check_limits(
            attempt_id,
            requests,
            request.releases,
            request.blacklist_additions,
            request.blacklist_removals,
            self._context.now_ms,
        )
        return requests

    def _kept_containers(self, app: RMApp, attempt: RMAppAttempt) -> tuple[Container, ...]:
        """The running containers of earlier attempts, for the reply to a registration (getTransferredContainers)."""
        if not app.submission.keep_containers_across_attempts:
            return ()
        self._context.scheduler.pull_recovered(attempt.attempt_id)
        live = self._context.scheduler.containers_of(app.application_id).values()
        return tuple(rm_container.container for rm_container in live if not attempt.is_am_container(rm_container.id))

    def _session(self, attempt_id: ApplicationAttemptId) -> AMSession:
        session = self._context.sessions.get(attempt_id)
        if session is None:
            raise InvalidApplicationMasterRequestException(f"Application doesn't exist in cache {attempt_id}")
        return session

    def _known(self, attempt_id: ApplicationAttemptId) -> tuple[RMApp, RMAppAttempt]:
        app = self._context.apps.get(attempt_id.application_id)
        attempt = None if app is None else app.attempts.get(attempt_id)
        if app is None or attempt is None:
            raise InvalidApplicationMasterRequestException(f"Application doesn't exist in cache {attempt_id}")
        return app, attempt


def _without_constraints(attempt_id: ApplicationAttemptId, what: str, operation: str) -> YarnException:
    """The refusal of placement constraints, which are not supported (DisabledPlacementProcessor)."""
    request = f"{operation[0].upper()}{operation[1:]}Request"
    return YarnException(
        f"Found non empty {what} in {request} for application={attempt_id}, but the configured "
        "yarn.resourcemanager.placement-constraints.handler cannot handle placement constraints. Rejecting this "
        f"{operation} operation"
    )


def _may_register_again(app: RMApp) -> bool:
    """True for an unmanaged AM that keeps containers: it may be started again under its old attempt."""
    return app.submission.unmanaged_am and app.submission.keep_containers_across_attempts


def _fraction(progress: float) -> float:
    """`progress` limited to 0..1; NaN counts as 0."""
    return 0.0 if math.isnan(progress) else min(1.0, max(0.0, progress))


def _check_releases(attempt_id: ApplicationAttemptId, releases: tuple[ContainerId, ...]) -> None:
    for container_id in releases:
        if container_id.attempt_id != attempt_id:
            raise InvalidContainerReleaseException(
                f"Cannot release container : {container_id} not belonging to this application attempt : {attempt_id}"
            )


def _new_tokens(session: AMSession, containers: tuple[Container, ...]) -> tuple[NMToken, ...]:
    """A token for each node of the containers for which the AM has none yet.

    The tokens are unsigned: the shell has the keys.
    """
    tokens: list[NMToken] = []
    for container in containers:
        if container.node_id not in session.token_nodes:
            session.token_nodes[container.node_id] = None
            tokens.append(NMToken(container.node_id, Token(b"", b"", NM_TOKEN_KIND, str(container.node_id))))
    return tuple(tokens)


def _node_updates(context: RMContext, app: RMApp) -> Iterator[NodeReport]:
    for node_id, update in app.pull_node_updates():
        node = context.node(node_id)
        if node is not None:
            yield node_update_report(context, node, update)


def _with_application_label(
    requests: Iterable[ResourceRequest], label: str | None, exclusive: frozenset[str]
) -> tuple[ResourceRequest, ...]:
    """Add the application's label to requests for any host that have no label (DefaultAMSProcessor.allocate)."""
    return tuple(
        enforce_exclusivity(replace(request, label=label) if request.label is None else request, label, exclusive)
        if request.resource_name == ANY
        else request
        for request in requests
    )


def enforce_exclusivity(request: ResourceRequest, label: str | None, exclusive: frozenset[str]) -> ResourceRequest:
    """The request with the application's label if its own label or the application's is `exclusive`.

    This is enforcePartitionExclusivity: an exclusive partition is used only by applications that were submitted with
    its label, and these applications use no other partition.
    """
    request = with_trimmed_label(request)
    if request.label != label and (label in exclusive or request.label in exclusive):
        return replace(request, label=label)
    return request
