"""Groups of users, which the shell looks up for the core."""

from __future__ import annotations

import grp
import pwd

import pytest

from rm.shell import groups
from rm.shell.groups import groups_of


def test_a_users_groups_are_those_of_the_system_primary_group_first() -> None:
    root = pwd.getpwuid(0)
    assert groups_of(root.pw_name)[0] == grp.getgrgid(root.pw_gid).gr_name


def test_a_user_that_the_system_does_not_know_has_no_groups() -> None:
    assert groups_of("no-such-user-here") == ()


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 1_000_000], ids=["NUL", "surrogate", "huge"])
def test_a_name_that_the_system_cannot_look_up_has_no_groups(name: str) -> None:
    looked_up = groups._looked_up.cache_info().currsize
    assert groups_of(name) == ()
    assert groups._looked_up.cache_info().currsize == looked_up, "an invalid user name is not cached"
