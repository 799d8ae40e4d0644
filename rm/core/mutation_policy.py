"""Permission to change the scheduler's configuration (ConfigurationMutationACLPolicy).

The default policy permits a change to the administrators of the cluster. The other one permits it to the users whom the
access lists of all queues in the change name as administrators, also if yarn.acl.enable is false. An administrator of
the cluster whom those lists do not name is refused.
"""

from __future__ import annotations

from rm.core.context import RMContext
from rm.core.events import Asker
from rm.scheduler.config.mutation import SchedConfUpdateInfo
from rm.scheduler.model.queue import CSQueue
from yarn.settings.scheduler import is_queue_path
from yarn.states import QueueACL


def administers_changed_queues(
    context: RMContext, asker: Asker, change: SchedConfUpdateInfo, *, is_admin: bool
) -> bool:
    """True if the user administers each queue of the change, and the cluster if keys of the whole scheduler change.

    For a queue that does not exist the nearest one above it counts (QueueAdminConfigurationMutationACLPolicy). A path
    that does not begin with root is refused, because its keys would belong to no queue; Hadoop may not answer at all.
    """
    if change.global_params and not is_admin:
        return False
    user, groups = asker
    for path in change.queues():
        if not is_queue_path(path):
            return False
        queue = _nearest(context, path)
        if not context.queue_acls.lists_admit(queue.path, QueueACL.ADMINISTER_QUEUE, user, groups):
            return False
    return True


def _nearest(context: RMContext, path: str) -> CSQueue:
    """The queue of the path's last name, or else of the name before it, and so on; the first name is root.

    As in Hadoop the names count, not the path: for root.x.a that is root.y.a, if no other queue is called a.
    """
    found = map(context.scheduler.queue, reversed(path.split(".")))
    return next(queue for queue in found if queue is not None)
