"""Groups of users: what the shell looks up for the core."""

from __future__ import annotations

import grp
import pwd

from rm.groups import groups_of


def test_a_users_groups_are_the_systems_the_primary_first() -> None:
    root = pwd.getpwuid(0)
    assert groups_of(root.pw_name)[0] == grp.getgrgid(root.pw_gid).gr_name


def test_a_user_that_the_system_does_not_know_has_no_groups() -> None:
    assert groups_of("no-such-user-here") == ()
