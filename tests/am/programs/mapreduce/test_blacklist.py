"""Hosts with three failures are avoided, unless a third of the cluster would be (RMContainerRequestor)."""

from __future__ import annotations

from am.programs.mapreduce.core.blacklist import NodeBlacklist
from am.programs.mapreduce.core.job import Tuning


def failed(*hosts: str) -> NodeBlacklist:
    blacklist = NodeBlacklist(Tuning())
    for host in hosts:
        for _ in range(3):
            blacklist.count_failure(host)
    return blacklist


def test_two_failures_are_borne() -> None:
    blacklist = NodeBlacklist(Tuning())
    blacklist.count_failure("n1")
    blacklist.count_failure("n1")
    assert blacklist.changes(10) == ((), ())
    assert "n1" not in blacklist


def test_the_third_failure_is_told_once() -> None:
    blacklist = failed("n1")
    assert "n1" in blacklist
    assert blacklist.changes(10) == (("n1",), ())
    assert blacklist.changes(10) == ((), ())


def test_a_third_of_the_cluster_sets_the_blacklist_aside_and_back() -> None:
    blacklist = failed("n1")
    assert blacklist.changes(4) == (("n1",), ())
    blacklist.count_failure("n2")
    blacklist.count_failure("n2")
    blacklist.count_failure("n2")
    assert blacklist.changes(4) == ((), ("n1",))
    assert "n1" not in blacklist
    assert blacklist.changes(10) == (("n1", "n2"), ())


def test_the_threshold_can_be_switched_off() -> None:
    blacklist = NodeBlacklist(Tuning(failures_per_node_max=1, blacklist_ignored_percent=-1))
    blacklist.count_failure("n1")
    assert blacklist.changes(1) == (("n1",), ())
