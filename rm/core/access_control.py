"""Access control: who may submit to a queue, and who may view or change an application.

If yarn.acl.enable is false, which is the default, everybody may do everything.

Queues (CapacityQueueACLsManager): a user with access to a queue has access to all queues below it, so a queue cannot
withdraw a right that a queue above it grants. The root queue admits everybody unless it is configured otherwise, and
then every queue does.

Applications (ApplicationACLsManager, ClientRMService.checkAccess): access is granted to the owner, to administrators,
to the users in the application's own lists, and to those who may administer its queue. yarn.admin.acl admits everybody
unless it is set, so nobody is refused until an operator sets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rm.core.applications import RMApp
from rm.core.events import Asker
from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.config.acls import AccessControlList
from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.config.queue_templates import QueueTemplate, configuration_of_leaf, is_managed, template_entries
from rm.scheduler.config.reader import Reader
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings import resourcemanager
from yarn.settings import scheduler as scheduler_settings
from yarn.settings.scheduler import ROOT, queue_key
from yarn.states import ApplicationAccessType, QueueACL

VIEW, MODIFY = ApplicationAccessType.VIEW_APP, ApplicationAccessType.MODIFY_APP
_NOBODY = AccessControlList.parse(" ")

_NAMES = {
    QueueACL.SUBMIT_APPLICATIONS: "acl_submit_applications",
    QueueACL.ADMINISTER_QUEUE: "acl_administer_queue",
}


class QueueAcls:
    """The access lists of the queues, as of the last start or refresh.

    A queue without a list of its own uses the lists of the queues above it. A queue that was created on demand since
    the last refresh has no list yet, even if its template configures one: users whom the template admits are refused
    until a refresh (CapacitySchedulerQueueManager.setQueueAcls). `before`: the lists of deleted queues. As in Hadoop's
    authorizer they apply again to a new queue with the same path.
    """

    def __init__(
        self, configuration: Configuration, queues: Mapping[str, QueueConfiguration], before: QueueAcls | None = None
    ) -> None:
        self._configuration = configuration
        self._is_enabled = scheduler_settings.ACL_ENABLE.of(configuration)
        self._lists: dict[tuple[str, QueueACL], AccessControlList] = dict(before._lists) if before is not None else {}
        for path, queue in queues.items():
            for acl in QueueACL:
                self._lists[path, acl] = self._list(path, acl, queue)

    def list_of(self, path: str, acl: QueueACL) -> AccessControlList:
        """The queue's own list; nobody if it has none."""
        return self._lists.get((path, acl), _NOBODY)

    def may_submit(self, path: str, user: str, groups: tuple[str, ...], *, missing: Sequence[str] = ()) -> bool:
        """True if the user may submit to the queue or administer it.

        `missing`: paths of the queues that the submission would create, the leaf last; the lists in their templates
        count.
        """
        return any(self._has_access(path, acl, user, groups, missing) for acl in QueueACL)

    def has_access(self, path: str, acl: QueueACL, user: str, groups: tuple[str, ...]) -> bool:
        """True if the queue's own list or one above it admits the user (AbstractCSQueue.hasAccess)."""
        return self._has_access(path, acl, user, groups, ())

    def lists_admit(self, path: str, acl: QueueACL, user: str, groups: tuple[str, ...]) -> bool:
        """True if the queue's own list or one above it admits the user, whether or not access control is enabled."""
        return self._lists_admit(path, acl, user, groups, ())

    def _has_access(self, path: str, acl: QueueACL, user: str, groups: tuple[str, ...], missing: Sequence[str]) -> bool:
        return not self._is_enabled or self._lists_admit(path, acl, user, groups, missing)

    def _lists_admit(
        self, path: str, acl: QueueACL, user: str, groups: tuple[str, ...], missing: Sequence[str]
    ) -> bool:
        while path:
            if any(allowed.allows(user, groups) for allowed in self._lists_of(path, acl, missing)):
                return True
            path = path.rpartition(".")[0]
        return False

    def _lists_of(self, path: str, acl: QueueACL, missing: Sequence[str]) -> Iterator[AccessControlList]:
        allowed = self._lists.get((path, acl))
        if allowed is not None:
            yield allowed
        if path in missing:
            yield self._template_list(path, acl, is_leaf=path == missing[-1])

    def _list(self, path: str, acl: QueueACL, queue: QueueConfiguration) -> AccessControlList:
        if queue.is_dynamic:
            return self._template_list(path, acl, is_leaf=queue.is_leaf)
        if queue.is_auto_created:
            return self._own(path, acl, configuration_of_leaf(self._configuration, path))
        return self._own(path, acl, self._configuration)

    def _own(self, path: str, acl: QueueACL, configuration: Configuration) -> AccessControlList:
        """The configured list of a queue; without one, everybody for root and nobody for other queues."""
        default = "*" if path == ROOT else ""
        return AccessControlList.parse(configuration.get(queue_key(path, _NAMES[acl]), default) or "")

    def _template_list(self, path: str, acl: QueueACL, *, is_leaf: bool) -> AccessControlList:
        """The list of a queue that is created on demand.

        The queue's own keys are ignored (setDynamicQueueACLProperties).
        """
        above = path.rpartition(".")[0]
        if is_managed(Reader(self._configuration), above):
            entry = template_entries(self._configuration, above).get(_NAMES[acl])
        else:
            entry = QueueTemplate(self._configuration, above).properties(is_leaf=is_leaf).get(_NAMES[acl])
        return AccessControlList.parse(entry.value if entry is not None else "")


class ApplicationAcls:
    """The access lists of applications, and the administrators, as of the start.

    As in Hadoop, neither a refresh of the queues nor one of the administrators' list changes them. `queue_acls` returns
    the present lists of the queues. `owner`: the user that the ResourceManager runs as, always an administrator
    (AdminACLsManager).
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        owner: str | None,
        scheduler: CapacityScheduler,
        queue_acls: Callable[[], QueueAcls],
    ) -> None:
        self._scheduler = scheduler
        self._queue_acls = queue_acls
        self._is_enabled = scheduler_settings.ACL_ENABLE.of(configuration)
        self._admins = AccessControlList.parse(resourcemanager.ADMIN_ACL.of(configuration))
        self._owner = owner

    def may(self, asker: Asker, access: ApplicationAccessType, app: RMApp) -> bool:
        """True if the caller has this access to the application."""
        if not self._is_enabled:
            return True
        user, groups = asker
        own = app.acls.get(access, _NOBODY)
        if user == app.user or self._is_admin(asker) or own.allows(user, groups):
            return True
        return self._administers_queue(asker, app)

    def may_administer(self, asker: Asker) -> bool:
        """True for an administrator of the cluster, and for everybody if access control is not enabled."""
        return not self._is_enabled or self._is_admin(asker)

    def _is_admin(self, asker: Asker) -> bool:
        user, groups = asker
        return user == self._owner or self._admins.allows(user, groups)

    def check_modify(self, asker: Asker, app: RMApp) -> None:
        """Raises YarnException unless the caller may change the application."""
        if not self.may(asker, MODIFY, app):
            raise YarnException(
                f"java.security.AccessControlException: User {asker[0]} cannot perform operation {MODIFY.name} on {app}"
            )

    def check_view(self, asker: Asker, app: RMApp, what: str) -> None:
        """Raises YarnException unless the caller may view `what` of the application."""
        if not self.may(asker, VIEW, app):
            raise YarnException(f"User {asker[0]} does not have privilege to see this {what}")

    def _administers_queue(self, asker: Asker, app: RMApp) -> bool:
        """True if the caller may administer the application's queue.

        True for a queue that no longer exists, False for an ambiguous name.
        """
        queue = self._scheduler.queue(app.queue)
        if queue is None:
            return not self._scheduler.is_ambiguous(app.queue)
        return self._queue_acls().has_access(queue.path, QueueACL.ADMINISTER_QUEUE, *asker)
