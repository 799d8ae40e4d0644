"""Who may submit to a queue (CapacityQueueACLsManager): whoever may on the queue or on any queue above it.

So a right cannot be taken away further down: while root lets everybody in, which it does unless told otherwise, every
queue does. Nothing is looked at unless yarn.acl.enable is true.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from yarn.configuration import Configuration
from yarn.settings import scheduler
from yarn.states import QueueACL

_PREFIX = "yarn.scheduler.capacity."
_NAMES = {
    QueueACL.SUBMIT_APPLICATIONS: "acl_submit_applications",
    QueueACL.ADMINISTER_QUEUE: "acl_administer_queue",
}


@dataclass(frozen=True, slots=True)
class AccessControlList:
    """`ann,bob staff`: users, a blank, groups; `*` is everybody, a blank alone nobody."""

    users: frozenset[str]
    groups: frozenset[str]
    everybody: bool = False

    @staticmethod
    def parse(text: str) -> AccessControlList:
        if text.strip() == "*":
            return AccessControlList(frozenset(), frozenset(), everybody=True)
        users, _, groups = text.partition(" ")
        return AccessControlList(_names(users), _names(groups))

    def allows(self, user: str, groups: tuple[str, ...]) -> bool:
        return self.everybody or user in self.users or not self.groups.isdisjoint(groups)


class QueueAcls:
    """The lists of the queues at `paths`; a queue that is not among them has what those above it have."""

    def __init__(self, configuration: Configuration, paths: Iterable[str]) -> None:
        self._is_enabled = scheduler.ACL_ENABLE.of(configuration)
        self._lists = {
            (path, acl): AccessControlList.parse(
                configuration.get(f"{_PREFIX}{path}.{name}", "*" if path == "root" else "") or ""
            )
            for path in paths
            for acl, name in _NAMES.items()
        }

    def may_submit(self, path: str, user: str, groups: tuple[str, ...]) -> bool:
        """True if the user may submit to the queue or administer it."""
        return any(self.has_access(path, acl, user, groups) for acl in QueueACL)

    def has_access(self, path: str, acl: QueueACL, user: str, groups: tuple[str, ...]) -> bool:
        """True if the queue's own list or one above it lets the user in (AbstractCSQueue.hasAccess)."""
        while self._is_enabled:
            allowed = self._lists.get((path, acl))
            if allowed is not None and allowed.allows(user, groups):
                return True
            if not path:
                return False
            path = path.rpartition(".")[0]
        return True


def _names(text: str) -> frozenset[str]:
    return frozenset(name for part in text.split(",") if (name := part.strip()))
