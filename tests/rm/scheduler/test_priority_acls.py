"""Priorities that users may set (Hadoop: TestApplicationPriorityACLConfiguration, TestApplicationPriorityACLs)."""

from __future__ import annotations

import pytest

from rm.scheduler.config.acls import PriorityAcl, default_priority, may_have, read_priority_acls
from rm.scheduler.config.reader import Reader
from yarn.configuration import Configuration
from yarn.faults import Fault

KEY = "yarn.scheduler.capacity.root.a.acl_application_max_priority"
LISTS = (
    "[user=ann max_priority=2 default_priority=1] [user=ann,bob group=staff max_priority=7 default_priority=3]"
    " [user=* max_priority=1 default_priority=-4]"
)


def read(text: str, cluster_maximum: int = 10) -> tuple[tuple[PriorityAcl, ...], list[Fault]]:
    conf = {KEY: text, "yarn.cluster.max-application-priority": str(cluster_maximum)}
    reader = Reader(Configuration.of(conf))
    return read_priority_acls(reader, KEY), reader.faults


@pytest.mark.parametrize(
    ("user", "groups", "highest", "default"),
    [("ann", (), 7, 0), ("bob", (), 7, 0), ("cid", ("staff",), 7, 0), ("cid", (), 1, 0)],
)
def test_the_highest_maximum_applies_with_the_default_of_the_lowest(
    user: str, groups: tuple[str, ...], highest: int, default: int
) -> None:
    """AppPriorityACLGroup sorts by Priority.compareTo, which puts the larger number first."""
    acls, faults = read(LISTS)
    assert faults == []
    assert [may_have(acls, priority, user, groups) for priority in (highest, highest + 1)] == [True, False]
    assert default_priority(acls, user, groups) == default
    assert default_priority(read(LISTS.partition(" [user=*")[0])[0], "ann", ()) == 1


def test_unlisted_users_may_set_no_priority_unless_there_are_no_lists() -> None:
    acls, _ = read("[user=ann max_priority=2 default_priority=1]")
    assert not may_have(acls, 0, "bob", ())
    assert default_priority(acls, "bob", ()) is None
    for text in ("*", "", " "):
        assert read(text) == ((), [])
    assert may_have((), 99, "bob", ())


def test_a_maximum_above_the_clusters_is_lowered() -> None:
    acls, _ = read("[user=ann max_priority=20 default_priority=1]", 10)
    assert [may_have(acls, priority, "ann", ()) for priority in (10, 11)] == [True, False]


def test_the_first_value_is_the_user_list_whatever_its_key() -> None:
    """createACLStringForPriority uses the order of the values."""
    acls, _ = read("[group=staff user=ann max_priority=2 default_priority=1]")
    assert may_have(acls, 1, "staff", ())
    assert may_have(acls, 1, "cid", ("ann",))
    assert not may_have(acls, 1, "ann", ("staff",))


def test_a_star_for_groups_means_everybody_too() -> None:
    acls, _ = read("[user=ann group=* max_priority=2 default_priority=1]")
    assert may_have(acls, 2, "zoe", ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[max_priority=2]", "[max_priority=2] does not name a user or group"),
        ("[user=ann default_priority=2]", "[user=ann default_priority=2] does not name a max_priority"),
        ("[user=ann max_priority=high]", "'max_priority=high' in [user=ann max_priority=high] is not a valid setting"),
        ("[user=ann rank=2 max_priority=1]", "'rank=2' in [user=ann rank=2 max_priority=1] is not a valid setting"),
    ],
)
def test_an_acl_that_hadoop_refuses_at_start_is_a_fault(text: str, problem: str) -> None:
    acls, faults = read(text)
    assert acls == ()
    assert [(fault.key, fault.problem) for fault in faults] == [
        (KEY, f"[{text[1:-1]}] {problem}" if problem.startswith("names") else problem)
    ]
