"""Who may view or change an application (ApplicationACLsManager, and ClientRMService.checkAccess around it).

Its owner, administrators, whom its own lists name, and who may administer its queue. Nothing is looked at unless
yarn.acl.enable is true; and as yarn.admin.acl is everybody unless set, nobody is kept out before both are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rm.core.events import Asker
from rm.scheduler.model.access_control_list import AccessControlList
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings import resourcemanager, scheduler
from yarn.states import ApplicationAccessType, QueueACL

if TYPE_CHECKING:
    from rm.core.context import RMContext
    from rm.core.rm_app import RMApp

VIEW, MODIFY = ApplicationAccessType.VIEW_APP, ApplicationAccessType.MODIFY_APP
_NOBODY = AccessControlList.parse(" ")


class ApplicationAcls:
    """As of the start: neither a refresh of the queues nor one of the administrators' list changes it, as in Hadoop.

    `owner`: the user that the ResourceManager runs as, an administrator whatever the list says (AdminACLsManager).
    """

    def __init__(self, context: RMContext, configuration: Configuration, owner: str | None) -> None:
        self._context = context
        self._is_enabled = scheduler.ACL_ENABLE.of(configuration)
        self._admins = AccessControlList.parse(resourcemanager.ADMIN_ACL.of(configuration))
        self._owner = owner

    def may(self, asker: Asker, access: ApplicationAccessType, app: RMApp) -> bool:
        if not self._is_enabled:
            return True
        user, groups = asker
        own = app.acls.get(access, _NOBODY)
        if user in (app.user, self._owner) or self._admins.allows(user, groups) or own.allows(user, groups):
            return True
        return self._administers_queue(asker, app)

    def check_modify(self, asker: Asker, app: RMApp) -> None:
        """Raises YarnException unless the asker may change the application."""
        if not self.may(asker, MODIFY, app):
            raise YarnException(
                f"org.apache.hadoop.security.AccessControlException: User {asker[0]} cannot perform operation "
                f"{MODIFY.name} on {app}"
            )

    def check_view(self, asker: Asker, app: RMApp, what: str) -> None:
        """Raises YarnException unless the asker may look at `what` of the application."""
        if not self.may(asker, VIEW, app):
            raise YarnException(f"User {asker[0]} does not have privilege to see this {what}")

    def _administers_queue(self, asker: Asker, app: RMApp) -> bool:
        """Everybody does for a queue that is not there (any more), nobody for an ambiguous name."""
        queue = self._context.scheduler.queue(app.queue)
        if queue is None:
            return not self._context.scheduler.is_ambiguous(app.queue)
        return self._context.queue_acls.has_access(queue.path, QueueACL.ADMINISTER_QUEUE, *asker)
