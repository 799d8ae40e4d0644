"""Which applications are let in (ClientRMService.submitApplication and RMAppManager), and as what.

All checks come before anything is kept: a refused submission leaves no trace. What a queue refuses is told later, by
the application's state, since the scheduler decides it after the application has been stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from rm.core.ask_labels import enforce_exclusivity
from rm.core.rm_app import RMApp
from rm.scheduler.config.priority_acls import default_priority, may_have
from yarn.applications import ApplicationSubmissionContext
from yarn.asks import ANY, ResourceRequest
from yarn.errors import InvalidResourceRequestException, YarnException
from yarn.ids import ApplicationId
from yarn.states import ExecutionType

if TYPE_CHECKING:
    from rm.core.context import RMContext
    from rm.core.settings import RMSettings

TYPE_LENGTH_MAX = 20
"""Application types are cut to this many characters (YarnConfiguration.APPLICATION_TYPE_LENGTH)."""

MASTER_PRIORITY = 0
"""Every master's container is asked for at this priority (RMAppAttemptImpl.AM_CONTAINER_PRIORITY)."""


def admit(context: RMContext, user: str, submission: ApplicationSubmissionContext, groups: tuple[str, ...]) -> RMApp:
    """The application that a submission makes, not yet known to anybody; raises YarnException if it may not be."""
    check_tags(context.settings, submission.tags)
    if submission.lifetime_s is not None and submission.lifetime_s <= 0:
        raise YarnException(f"Invalid application timeout, value={submission.lifetime_s} for type=LIFETIME")
    submission = replace(submission, type=submission.type[:TYPE_LENGTH_MAX])
    submission, placed = _placed(context, user, groups, submission)
    path = placed if placed is not None else context.scheduler.queue_path(submission.queue)
    am_requests = master_requests(context, submission)
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


def _placed(
    context: RMContext, user: str, groups: tuple[str, ...], submission: ApplicationSubmissionContext
) -> tuple[ApplicationSubmissionContext, str | None]:
    """The submission as the placement rules have it, and where they put it, if they do; raises YarnException to reject.

    If the queue that the rules choose is called like the one that was named, the submission keeps the name as it is
    (RMAppManager.copyPlacementQueueToSubmissionContext). An empty queue name is refused even where a rule places the
    application (RMAppManager.placeApplication); a submission without the field has the default queue.
    """
    placed = context.placement.place(user=user, groups=groups, application=submission.name, queue=submission.queue)
    if not submission.queue:
        raise YarnException(
            f"Failed to place application {submission.application_id} in a queue and submit context queue is null or "
            "empty (name a queue, or leave the field out)"
        )
    if placed is not None and placed.rpartition(".")[2].lower() != submission.queue.lower():
        submission = replace(submission, queue=placed)
    return submission, placed


def _check_access(
    context: RMContext, user: str, groups: tuple[str, ...], submission: ApplicationSubmissionContext, path: str
) -> None:
    """Raises YarnException unless the access lists let the user in, those of queues to be created included.

    A queue that neither is nor could be created is refused later, as such.
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
    """ClientRMService wraps what is no YarnException and puts the class before the message."""
    return YarnException(f"java.lang.IllegalArgumentException: {message}")


def _default_priority(context: RMContext, queue: str, user: str, groups: tuple[str, ...]) -> int:
    """What the leaf's priority lists give the user, or the queue gives everybody."""
    acls = context.priority_acls.get(context.scheduler.queue_path(queue), ())
    own = default_priority(acls, user, groups)
    return own if own is not None else context.scheduler.default_priority(queue)


def checked_priority(
    context: RMContext, application_id: ApplicationId, queue: str, priority: int, caller: tuple[str, tuple[str, ...]]
) -> int:
    """The priority cut to the cluster's maximum, if the caller (user, groups) may have it in the queue.

    Raises YarnException if not (CapacityScheduler.checkAndGetApplicationPriority).
    """
    priority = min(priority, context.settings.application_priority_max)
    acls = context.priority_acls.get(context.scheduler.queue_path(queue), ())
    if not may_have(acls, priority, *caller):
        raise YarnException(
            f"org.apache.hadoop.security.AccessControlException: User {caller[0]} (auth:SIMPLE) does not have "
            f"permission to submit/update {application_id} for {priority}"
        )
    return priority


def master_requests(context: RMContext, submission: ApplicationSubmissionContext) -> tuple[ResourceRequest, ...]:
    """The asks for the master's container: that for anywhere first, all of one normalised size.

    Raises InvalidResourceRequestException (validateAndCreateResourceRequest).
    """
    if submission.unmanaged_am:
        return ()
    asks = submission.am_requests or (ResourceRequest(MASTER_PRIORITY, ANY, submission.resource, 1),)
    anywhere = [ask for ask in asks if ask.resource_name == ANY]
    if not anywhere:
        raise InvalidResourceRequestException(f"Invalid resource request, no resource request specified with {ANY}")
    if len(anywhere) > 1:
        raise InvalidResourceRequestException(
            f"Invalid resource request, only one resource request with {ANY} is allowed"
        )
    first = _labelled_master_request(context.settings, submission, anywhere[0])
    ordered = (first, *(ask for ask in asks if ask.resource_name != ANY))
    alike = (
        replace(
            ask,
            priority=MASTER_PRIORITY,
            capability=first.capability,
            count=1,
            execution_type=ExecutionType.GUARANTEED,
        )
        for ask in ordered
    )
    return context.scheduler.master_requests(submission.queue, alike)


def _labelled_master_request(
    settings: RMSettings, submission: ApplicationSubmissionContext, ask: ResourceRequest
) -> ResourceRequest:
    """The ask's own label, else that of the configuration for masters, else the application's."""
    ask = enforce_exclusivity(ask, submission.node_label_expression, settings.exclusive_partitions)
    return replace(ask, label=ask.label or settings.master_default_label or submission.node_label_expression)
