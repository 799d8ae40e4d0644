"""The groups of a user in the operating system (Hadoop's ShellBasedUnixGroupsMapping)."""

from __future__ import annotations

import grp
import os
import pwd
from functools import lru_cache

USERS_REMEMBERED_MAX = 10_000
USER_LENGTH_MAX = 256
"""Longer names are not looked up. Linux allows 32 bytes; directory services allow more."""


def groups_of(user: str) -> tuple[str, ...]:
    """The user's groups, the primary one first; empty for a user that the system does not know."""
    # A name with a NUL or a surrogate cannot be passed to the system.
    if len(user) > USER_LENGTH_MAX or not user.isprintable():
        return ()
    return _looked_up(user)


def forget_groups() -> None:
    """Forget all groups, so that every user is looked up again."""
    _looked_up.cache_clear()


@lru_cache(maxsize=USERS_REMEMBERED_MAX)
def _looked_up(user: str) -> tuple[str, ...]:
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        return ()
    names = []
    for number in os.getgrouplist(user, account.pw_gid):
        try:
            names.append(grp.getgrgid(number).gr_name)
        except KeyError:
            continue
    return tuple(names)
