"""The groups of a user, as the operating system has them (Hadoop's ShellBasedUnixGroupsMapping)."""

from __future__ import annotations

import grp
import os
import pwd
from functools import lru_cache

USERS_REMEMBERED_MAX = 10_000


@lru_cache(maxsize=USERS_REMEMBERED_MAX)
def groups_of(user: str) -> tuple[str, ...]:
    """The user's groups, the primary one first; none for a user that the system does not know."""
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
