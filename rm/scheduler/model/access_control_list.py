"""The users and groups that have a permission (AccessControlList)."""

from __future__ import annotations

from msgspec import Struct


class AccessControlList(Struct, frozen=True):
    """`ann,bob staff`: users, a space, groups. `*` in either place means everyone, a single space no one."""

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


def _names(text: str) -> frozenset[str]:
    return frozenset(name for part in text.split(",") if (name := part.strip()))
