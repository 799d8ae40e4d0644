"""Which leaf takes an application, or why none does, in the order of Hadoop's checks."""

from __future__ import annotations

from rm.scheduler.context import SchedulerContext
from rm.scheduler.dynamic_queues import CreationRefused, create_queue
from rm.scheduler.leaf_queue import LeafQueue
from rm.scheduler.queue_tree import QueueTree
from yarn.errors import AccessControlException
from yarn.ids import ApplicationId


class SubmissionRefused(Exception):
    """No leaf takes the application; the message is what the client is told."""


def leaf_for(
    application_id: ApplicationId,
    queue: str,
    user: str,
    *,
    placed: str | None,
    tree: QueueTree,
    context: SchedulerContext,
) -> LeafQueue:
    """The leaf of that path or short name, with room for one more; made if its parent makes queues on demand.

    `placed`: where placement rules want it, if they do, whatever the submission says (getAddedAppQueueName). Raises
    SubmissionRefused; a queue that was made stays.
    """
    if tree.root.application_count >= context.settings.maximum_applications:
        raise SubmissionRefused(
            f"Maximum system application limit reached,cannot accept submission of application: {application_id}"
        )
    leaf = _leaf_called(application_id, placed or queue, user, tree, by_rule=placed is not None)
    try:
        leaf.check_submission(application_id, user)
    except AccessControlException as refusal:
        raise SubmissionRefused(f"{refusal.java_class}: {refusal.message}") from None
    leaf.last_submitted_ms = context.now_ms
    return leaf


def _leaf_called(application_id: ApplicationId, queue: str, user: str, tree: QueueTree, *, by_rule: bool) -> LeafQueue:
    """getOrCreateQueueFromPlacementContext: why no queue could be made is told to those whom a rule placed there."""
    queue = tree.behind_plan(queue)
    found = tree.get(queue)
    if found is None and not tree.is_ambiguous(queue):
        try:
            found = create_queue(queue, tree)
        except CreationRefused as refusal:
            if by_rule and refusal.is_told:
                raise SubmissionRefused(
                    f"Application {application_id} submission by user : {user} to  queue : {queue} failed : {refusal}"
                ) from None
    if isinstance(found, LeafQueue):
        return found
    if found is not None:
        raise SubmissionRefused(f"Application {application_id} submitted by user : {user} to non-leaf queue : {queue}")
    if tree.is_ambiguous(queue):
        raise SubmissionRefused(
            f"Application {application_id} submitted by user {user} to ambiguous queue: {queue} "
            "please use full queue path instead."
        )
    raise SubmissionRefused(f"Application {application_id} submitted by user {user} to unknown queue: {queue}")
