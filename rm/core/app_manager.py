"""Submission and recovery of applications, and the limit on completed ones (Hadoop's RMAppManager).

A submission is checked completely before anything is stored, so a refused submission leaves no trace. The exception is
a refusal by the scheduler, which decides after the application was stored: then the application exists and FAILED is
its state.
"""

from __future__ import annotations

from msgspec.structs import replace

from rm.core.application_masters import enforce_exclusivity
from rm.core.applications import RMApp
from rm.core.context import RMContext
from rm.core.events import Asker, SubmitApplication
from rm.core.lifecycle_events import AppCompleted, RMAppRecover, RMAppStart
from rm.core.settings import RMSettings
from rm.core.stored_state import RMState, StoredApplication
from rm.scheduler.config.acls import default_priority, may_have
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ANY, ResourceRequest
from yarn.errors import InvalidResourceRequestException, YarnException
from yarn.ids import ApplicationId
from yarn.states import ExecutionType, QueueACL

TYPE_LENGTH_MAX = 20
"""Application types are cut to this many characters (YarnConfiguration.APPLICATION_TYPE_LENGTH)."""

USER_TAG = "userid="
"""The tag that names the user for whom an application is placed (RMAppManager.USER_ID_PREFIX)."""

AM_PRIORITY = 0
"""Every AM's container is requested at this priority (RMAppAttemptImpl.AM_CONTAINER_PRIORITY)."""


class RMAppManager:
    """Adds submitted and recovered applications to the list, and removes the oldest completed ones."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._stored_completed = 0

    def submit(self, event: SubmitApplication) -> None:
        """Accept an application. Submitting the same id again has no effect, so a client can repeat the call."""
        context, submission = self._context, event.context
        if submission.application_id in context.apps:
            return
        app = admit(context, event.user, submission, event.groups, event.tag_groups)
        context.apps[app.application_id] = app
        context.send(RMAppStart(app.application_id))

    def recover(self, state: RMState) -> None:
        """Restore what an earlier ResourceManager stored, in the order of ids. This is the first event.

        An application that had ended is shown again. An application whose AM was never launched starts again. Any other
        application waits for its last attempt, whose AM may still be running (ResourceManager.recover,
        RMAppManager.recover).
        """
        context = self._context
        work_preserving = context.settings.work_preserving
        context.scheduler.recovery.begin(
            epoch=state.epoch if work_preserving else 0,
            waits=work_preserving and bool(state.applications),
            remember_releases_ms=context.settings.node_expiry_ms,
            now_ms=context.now_ms,
        )
        for stored in state.applications:
            app = _recovered(context, stored)
            context.apps[app.application_id] = app
            context.dispatcher.deliver(RMAppRecover(app.application_id, stored))

    def completed(self, event: AppCompleted) -> None:
        """Add an ended application to the completed ones, and drop the oldest over the limit
        (checkAppNumCompletedLimit).
        """
        context, completed = self._context, self._context.completed_apps
        completed.append(event.application_id)
        self._stored_completed += 1
        while self._stored_completed > context.settings.stored_completed_applications_max:
            context.store.remove_application(completed[-self._stored_completed])
            self._stored_completed -= 1
        while len(completed) > context.settings.completed_applications_max:
            del context.apps[completed.popleft()]


def admit(
    context: RMContext,
    user: str,
    submission: ApplicationSubmissionContext,
    groups: tuple[str, ...],
    tag_groups: tuple[str, ...] = (),
) -> RMApp:
    """Check a submission; returns its application, which is not yet in the list. Raises YarnException for a refusal.

    `tag_groups`: the groups of `tagged_user`.
    """
    check_tags(context.settings, submission.tags)
    if submission.lifetime_s is not None and submission.lifetime_s <= 0:
        raise YarnException(f"Invalid application timeout, value={submission.lifetime_s} for type=LIFETIME")
    submission = replace(submission, type=submission.type[:TYPE_LENGTH_MAX])
    submission, placed = _placed(context, user, groups, submission, tag_groups)
    path = placed if placed is not None else context.scheduler.queue_path(submission.queue)
    am_requests = am_container_requests(context, submission)
    priority = submission.priority
    if priority is None:
        priority = _default_priority(context, submission.queue, user, groups)
    priority = checked_priority(context, submission.application_id, submission.queue, priority, (user, groups))
    _check_access(context, user, groups, submission, path)
    return RMApp(
        context,
        submission,
        user=user,
        queue=path,
        placed=placed,
        am_requests=am_requests,
        priority=priority,
    )


def tagged_user(settings: RMSettings, user: str, tags: frozenset[str]) -> str | None:
    """The user in the tag `userid=NAME`, for whom the placement rules choose the queue; None to use the submitter.

    Only users in the whitelist may name another user (RMAppManager.getUserNameForPlacement).
    """
    if user not in settings.tag_placement_users:
        return None
    for tag in sorted(tags):
        if tag.startswith(USER_TAG):
            # Like Java's split, which drops empty parts at the end: `userid=` names nobody.
            parts = tag.rstrip("=").split("=")
            if len(parts) == 2:
                return parts[1]
    return None


def _placed(
    context: RMContext,
    user: str,
    groups: tuple[str, ...],
    submission: ApplicationSubmissionContext,
    tag_groups: tuple[str, ...],
) -> tuple[ApplicationSubmissionContext, str | None]:
    """Apply the placement rules; returns the submission and the queue that the rules chose, None if they chose none.

    Raises YarnException to reject the submission. If the last part of the chosen path equals the queue that the
    submission names, the submission is unchanged (RMAppManager.copyPlacementQueueToSubmissionContext). An empty queue
    name is refused even if a rule places the application (RMAppManager.placeApplication); a submission without the
    field uses the default queue.
    """
    placed = _place_for_tagged(context, user, groups, submission, tag_groups)
    if placed is None:
        placed = context.placement.place(user=user, groups=groups, application=submission.name, queue=submission.queue)
    if not submission.queue:
        raise YarnException(
            f"Failed to place application {submission.application_id} in a queue and submit context queue is null or "
            "empty (name a queue, or leave the field out)"
        )
    if placed is not None and placed.rpartition(".")[2].lower() != submission.queue.lower():
        submission = replace(submission, queue=placed)
    return submission, placed


def _place_for_tagged(
    context: RMContext,
    user: str,
    groups: tuple[str, ...],
    submission: ApplicationSubmissionContext,
    tag_groups: tuple[str, ...],
) -> str | None:
    """The queue that the rules choose for the tagged user, if the submitting user may submit to it; else None.

    A queue that does not exist yet is open to those who may submit to the nearest queue above it
    (CapacityScheduler.checkAccess).
    """
    named = tagged_user(context.settings, user, submission.tags)
    if named is None:
        return None
    name, queue = submission.name, submission.queue
    placed = context.placement.place(user=named, groups=tag_groups, application=name, queue=queue)
    existing = placed
    while existing and context.scheduler.queue(existing) is None:
        existing = existing.rpartition(".")[0]
    if not existing or not context.queue_acls.has_access(existing, QueueACL.SUBMIT_APPLICATIONS, user, groups):
        return None
    return placed


def _check_access(
    context: RMContext, user: str, groups: tuple[str, ...], submission: ApplicationSubmissionContext, path: str
) -> None:
    """Raises YarnException unless the access lists admit the user, including those of queues to be created.

    A queue that does not exist and cannot be created passes here; the scheduler refuses it later.
    """
    missing = () if context.scheduler.queue(path) is not None else context.scheduler.paths_to_create(path)
    if context.scheduler.queue(path) is None and not missing:
        return
    if not context.queue_acls.may_submit(path, user, groups, missing=missing):
        raise YarnException(
            f"org.apache.hadoop.security.AccessControlException: User {user} does not have permission to submit "
            f"{submission.application_id} to queue {submission.queue}"
        )


def check_tags(settings: RMSettings, tags: frozenset[str]) -> None:
    """Raises YarnException for too many tags, or one that is too long or not printable ASCII."""
    if len(tags) > settings.tags_max:
        raise _illegal(f"Too many applicationTags, a maximum of only {settings.tags_max} are allowed!")
    for tag in sorted(tags):
        if len(tag) > settings.tag_length_max:
            raise _illegal(f"Tag {tag} is too long, maximum allowed length of a tag is {settings.tag_length_max}")
        if not all(" " <= letter <= "~" for letter in tag):
            raise _illegal(f"A tag can only have ASCII characters! Invalid tag - {tag}")


def _illegal(message: str) -> YarnException:
    """The error of a failed check.

    Like ClientRMService it has the Java class of an exception that is not a YarnException.
    """
    return YarnException(f"java.lang.IllegalArgumentException: {message}")


def _default_priority(context: RMContext, queue: str, user: str, groups: tuple[str, ...]) -> int:
    """The default priority from the leaf's priority lists for the user, else the queue's default."""
    acls = context.priority_acls.get(context.scheduler.queue_path(queue), ())
    own = default_priority(acls, user, groups)
    return own if own is not None else context.scheduler.default_priority(queue)


def checked_priority(
    context: RMContext, application_id: ApplicationId, queue: str, priority: int, caller: Asker
) -> int:
    """The priority, reduced to the cluster's maximum.

    Raises YarnException if the caller (user, groups) may not use it in the queue (checkAndGetApplicationPriority).
    """
    priority = min(priority, context.settings.application_priority_max)
    acls = context.priority_acls.get(context.scheduler.queue_path(queue), ())
    if not may_have(acls, priority, *caller):
        raise YarnException(
            f"org.apache.hadoop.security.AccessControlException: User {caller[0]} (auth:SIMPLE) does not have "
            f"permission to submit/update {application_id} for {priority}"
        )
    return priority


def am_container_requests(context: RMContext, submission: ApplicationSubmissionContext) -> tuple[ResourceRequest, ...]:
    """The requests for the AM's container, the one for any host first, all with the same normalised size.

    Raises InvalidResourceRequestException (validateAndCreateResourceRequest).
    """
    if submission.unmanaged_am:
        return ()
    requests = submission.am_requests or (ResourceRequest(AM_PRIORITY, ANY, submission.resource, 1),)
    anywhere = [request for request in requests if request.resource_name == ANY]
    if not anywhere:
        raise InvalidResourceRequestException(f"Invalid resource request, no resource request specified with {ANY}")
    if len(anywhere) > 1:
        raise InvalidResourceRequestException(
            f"Invalid resource request, only one resource request with {ANY} is allowed"
        )
    first = _labelled_am_request(context.settings, submission, anywhere[0])
    ordered = (first, *(request for request in requests if request.resource_name != ANY))
    alike = (
        replace(
            request,
            priority=AM_PRIORITY,
            capability=first.capability,
            count=1,
            execution_type=ExecutionType.GUARANTEED,
        )
        for request in ordered
    )
    return context.scheduler.master_requests(submission.queue, alike)


def _labelled_am_request(
    settings: RMSettings, submission: ApplicationSubmissionContext, request: ResourceRequest
) -> ResourceRequest:
    """The request with its label: its own, else the configured default for AMs, else the application's."""
    request = enforce_exclusivity(request, submission.node_label_expression, settings.exclusive_partitions)
    return replace(request, label=request.label or settings.am_default_label or submission.node_label_expression)


def _recovered(context: RMContext, stored: StoredApplication) -> RMApp:
    """The application as it was submitted. Neither limits nor access lists are checked again."""
    data = stored.application
    submission = data.submission
    app = RMApp(
        context,
        submission,
        user=data.user,
        queue=data.placed or context.scheduler.queue_path(submission.queue),
        placed=data.placed,
        am_requests=_recovered_requests(context, submission),
        priority=submission.priority or 0,
    )
    app.submit_ms = data.submit_ms
    return app


def _recovered_requests(context: RMContext, submission: ApplicationSubmissionContext) -> tuple[ResourceRequest, ...]:
    """The AM's requests of a recovered submission.

    If they are no longer valid, for example because the maximum was reduced, they are returned unchecked and the
    scheduler refuses them later.
    """
    try:
        return am_container_requests(context, submission)
    except YarnException as error:
        context.warn(f"{submission.application_id} is recovered with its AM requests as submitted: {error.message}")
        return submission.am_requests
