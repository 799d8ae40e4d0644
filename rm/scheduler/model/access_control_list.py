"""The users and groups that have a permission (AccessControlList)."""

from __future__ import annotations

from msgspec import Struct

from yarn.java.hash_order import hash_order, string_hash


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

    def __str__(self) -> str:
        """As AccessControlList.getAclString writes it, in the order of Java's sets."""
        if self.everybody:
            return "*"
        return f"{_joined(self.users)} {_joined(self.groups)}"


def _joined(names: frozenset[str]) -> str:
    return ",".join(hash_order(sorted(names), string_hash))


def _names(text: str) -> frozenset[str]:
    return frozenset(name for part in text.split(",") if (name := part.strip()))
