"""Which leaf takes an application, or why none does, in the order of Hadoop's checks."""

from __future__ import annotations

from contextlib import suppress

from rm.scheduler.context import SchedulerContext
from rm.scheduler.dynamic_queues import CreationRefused, create_queue
from rm.scheduler.managed_queues import AutoCreatedLeafQueue
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue_tree import QueueTree
from yarn.errors import AccessControlException
from yarn.ids import ApplicationId
from yarn.settings.scheduler import PREFIX
from yarn.states import QueueState


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


def recovered_leaf(queue: str, *, placed: str | None, tree: QueueTree) -> LeafQueue:
    """The leaf that an application was in before a restart; made anew if it was made on demand.

    A queue that was stopped meanwhile drains. Raises SubmissionRefused if there is no such leaf (any more).
    """
    path = tree.behind_plan(placed or queue)
    found = tree.get(path)
    if found is None and not tree.is_ambiguous(path):
        with suppress(CreationRefused):
            found = create_queue(path, tree)
    if found is None:
        raise SubmissionRefused(
            f"Application killed on recovery as it was submitted to queue {queue} which no longer exists after restart."
        )
    if not isinstance(found, LeafQueue):
        raise SubmissionRefused(
            f"Application killed on recovery as it was submitted to queue {queue} "
            "which is no longer a leaf queue after restart."
        )
    if found.state is QueueState.STOPPED:
        found.recover_draining()
    return found


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
    if isinstance(found, AutoCreatedLeafQueue) and not by_rule:
        raise SubmissionRefused(
            f"Application {application_id} submission by user : {user} to specified queue : {queue}  is prohibited. "
            f"Verify automatic queue mapping for user exists in {PREFIX}queue-mappings"
        )
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
