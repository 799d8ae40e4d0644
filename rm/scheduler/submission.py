"""Which leaf takes an application, or why none does, in the order of Hadoop's checks."""

from __future__ import annotations

from rm.scheduler.context import SchedulerContext
from rm.scheduler.leaf_queue import LeafQueue
from rm.scheduler.queue_tree import QueueTree
from yarn.errors import AccessControlException
from yarn.ids import ApplicationId


class SubmissionRefused(Exception):
    """No leaf takes the application; the message is what the client is told."""


def leaf_for(
    application_id: ApplicationId, queue: str, user: str, *, tree: QueueTree, context: SchedulerContext
) -> LeafQueue:
    """The leaf of that path or short name, with room for one more. Raises SubmissionRefused."""
    if tree.root.application_count >= context.settings.maximum_applications:
        raise SubmissionRefused(
            f"Maximum system application limit reached,cannot accept submission of application: {application_id}"
        )
    leaf = _leaf_called(application_id, queue, user, tree)
    try:
        leaf.check_submission(application_id, user)
    except AccessControlException as refusal:
        raise SubmissionRefused(f"{refusal.java_class}: {refusal.message}") from None
    return leaf


def _leaf_called(application_id: ApplicationId, queue: str, user: str, tree: QueueTree) -> LeafQueue:
    found = tree.get(queue)
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
