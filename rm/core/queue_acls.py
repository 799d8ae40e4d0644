"""Who may submit to a queue (CapacityQueueACLsManager): whoever may on the queue or on any queue above it.

So a right cannot be taken away further down: while root lets everybody in, which it does unless told otherwise, every
queue does. Nothing is looked at unless yarn.acl.enable is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.config.queue_templates import QueueTemplate, configuration_of_leaf, is_managed, template_entries
from rm.scheduler.config.reader import Reader
from rm.scheduler.model.access_control_list import AccessControlList
from yarn.configuration import Configuration
from yarn.settings import scheduler
from yarn.settings.scheduler import ROOT, queue_key
from yarn.states import QueueACL

_NAMES = {
    QueueACL.SUBMIT_APPLICATIONS: "acl_submit_applications",
    QueueACL.ADMINISTER_QUEUE: "acl_administer_queue",
}


class QueueAcls:
    """The lists as of the last start or refresh; a queue that has none has what those above it have.

    So a queue that was created on demand since has none, though its template may name lists: whoever those let in is
    refused once the queue is there, until a refresh (CapacitySchedulerQueueManager.setQueueAcls). `before`: the lists
    of queues that are gone since, which count again for one of the same path, as in Hadoop's authorizer.
    """

    def __init__(
        self, configuration: Configuration, queues: Mapping[str, QueueConfiguration], before: QueueAcls | None = None
    ) -> None:
        self._configuration = configuration
        self._is_enabled = scheduler.ACL_ENABLE.of(configuration)
        self._lists: dict[tuple[str, QueueACL], AccessControlList] = dict(before._lists) if before is not None else {}
        for path, queue in queues.items():
            for acl in QueueACL:
                self._lists[path, acl] = self._list(path, acl, queue)

    def may_submit(self, path: str, user: str, groups: tuple[str, ...], *, missing: Sequence[str] = ()) -> bool:
        """True if the user may submit to the queue or administer it.

        `missing`: paths that would be created for it, the leaf last; what their templates say counts.
        """
        return any(self._has_access(path, acl, user, groups, missing) for acl in QueueACL)

    def has_access(self, path: str, acl: QueueACL, user: str, groups: tuple[str, ...]) -> bool:
        """True if the queue's own list or one above it lets the user in (AbstractCSQueue.hasAccess)."""
        return self._has_access(path, acl, user, groups, ())

    def _has_access(self, path: str, acl: QueueACL, user: str, groups: tuple[str, ...], missing: Sequence[str]) -> bool:
        while self._is_enabled:
            if any(allowed.allows(user, groups) for allowed in self._lists_of(path, acl, missing)):
                return True
            if not path:
                return False
            path = path.rpartition(".")[0]
        return True

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
        """Everybody for root, nobody for others, unless configured."""
        default = "*" if path == ROOT else ""
        return AccessControlList.parse(configuration.get(queue_key(path, _NAMES[acl]), default) or "")

    def _template_list(self, path: str, acl: QueueACL, *, is_leaf: bool) -> AccessControlList:
        """Of a queue that is created on demand: its own keys do not count (setDynamicQueueACLProperties)."""
        above = path.rpartition(".")[0]
        if is_managed(Reader(self._configuration), above):
            entry = template_entries(self._configuration, above).get(_NAMES[acl])
        else:
            entry = QueueTemplate(self._configuration, above).properties(is_leaf=is_leaf).get(_NAMES[acl])
        return AccessControlList.parse(entry.value if entry is not None else "")
