"""Access control lists, and the priorities that a leaf's users may give their applications.

Hadoop's AccessControlList and AppPriorityACLConfigurationParser. The latter reads:

    root.a.acl_application_max_priority =
        [user=ann,bob group=staff max_priority=7 default_priority=3] [user=* max_priority=2 default_priority=1]

The groups that name a user decide: the highest `max_priority` of them is the user's limit, and an application without
a priority gets the default of the one with the lowest maximum. Without the key only the cluster's maximum holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from rm.scheduler.config.reader import Reader
from yarn.java.hash_order import hash_order, string_hash


class AccessControlList(Struct, frozen=True):
    """The users and groups that have a permission.

    Written as `ann,bob staff`: users, a space, groups. `*` in either place means everyone, a single space no one.
    """

    users: frozenset[str]
    groups: frozenset[str]
    everybody: bool = False

    @staticmethod
    def parse(text: str) -> AccessControlList:
        users, _, groups = text.partition(" ")
        if "*" in (users.strip(), groups.strip()):
            return AccessControlList(frozenset(), frozenset(), everybody=True)
        return AccessControlList(_names(users), _names(groups))

    def allows(self, user: str, groups: tuple[str, ...]) -> bool:
        return self.everybody or user in self.users or not self.groups.isdisjoint(groups)

    def __str__(self) -> str:
        """Write the list as AccessControlList.getAclString does, in the order of Java's sets."""
        if self.everybody:
            return "*"
        return f"{_joined(self.users)} {_joined(self.groups)}"


def _joined(names: frozenset[str]) -> str:
    return ",".join(hash_order(sorted(names), string_hash))


def _names(text: str) -> frozenset[str]:
    return frozenset(name for part in text.split(",") if (name := part.strip()))


PRIORITY_ACL = "acl_application_max_priority"
CLUSTER_MAX_PRIORITY = "yarn.cluster.max-application-priority"

_GROUP = re.compile(r"\[([^\]]+)")
_REMEDY = "write [user=u1,u2 group=g1 max_priority=N default_priority=N] ..."


class PriorityAcl(Struct, frozen=True):
    """A group of the list. `default_priority` None: the queue's is used."""

    allowed: AccessControlList
    max_priority: int
    default_priority: int | None


def read_priority_acls(reader: Reader, key: str) -> tuple[PriorityAcl, ...]:
    """The groups at `key`, the highest maximum first. Faults are added to the reader."""
    highest = reader.integer(CLUSTER_MAX_PRIORITY, 0)
    groups = (text for text in _GROUP.findall(reader.text(key)) if text.strip())
    read = (_group(reader, key, text, highest) for text in groups)
    return tuple(sorted((acl for acl in read if acl is not None), key=lambda acl: -acl.max_priority))


def may_have(acls: Iterable[PriorityAcl], priority: int, user: str, groups: tuple[str, ...]) -> bool:
    """True if some list allows the user this priority, or there are no lists (AppPriorityACLsManager.checkAccess)."""
    acls = tuple(acls)
    return not acls or any(priority <= acl.max_priority for acl in acls if acl.allowed.allows(user, groups))


def default_priority(acls: Iterable[PriorityAcl], user: str, groups: tuple[str, ...]) -> int | None:
    """The priority of an application without one: by the last list that names the user (getMappedPriorityAclForUGI)."""
    found = [acl.default_priority for acl in acls if acl.allowed.allows(user, groups)]
    return found[-1] if found else None


def _group(reader: Reader, key: str, text: str, highest: int) -> PriorityAcl | None:
    """None, and a fault, for a group with which Hadoop would not start."""
    names: list[str] = []
    numbers: dict[str, int] = {}
    for word in text.split():
        kind, equals, value = word.partition("=")
        kind, value = kind.upper(), value.split("=")[0]
        if not (equals and value):
            continue
        if kind in ("USER", "GROUP"):
            names.append(value)
        elif kind in ("MAX_PRIORITY", "DEFAULT_PRIORITY") and re.fullmatch(r"[+-]?\d+", value, re.ASCII):
            numbers[kind] = int(value)
        else:
            reader.fault(key, f"{word!r} in [{text}] is not a valid setting", _REMEDY)
            return None
    if not names or "MAX_PRIORITY" not in numbers:
        reader.fault(key, f"[{text}] does not name a {'max_priority' if names else 'user or group'}", _REMEDY)
        return None
    default = numbers.get("DEFAULT_PRIORITY")
    return PriorityAcl(
        _list_of(names), min(numbers["MAX_PRIORITY"], highest), None if default is None else max(default, 0)
    )


def _list_of(names: list[str]) -> AccessControlList:
    """The access list: the first value names users, the second one groups, whatever their keys are.

    Source: createACLStringForPriority.
    """
    return AccessControlList.parse("*" if names[0] == "*" else " ".join(names[:2]))
