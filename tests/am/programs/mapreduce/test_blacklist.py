"""Hosts with three failures are avoided, unless a third of the cluster would be (RMContainerRequestor)."""

from __future__ import annotations

from am.programs.mapreduce.core.container_allocator import NodeBlacklist
from am.programs.mapreduce.core.job import JobConf


def failed(*hosts: str) -> NodeBlacklist:
    blacklist = NodeBlacklist(JobConf())
    for host in hosts:
        for _ in range(3):
            blacklist.count_failure(host)
    return blacklist


def test_two_failures_are_tolerated() -> None:
    blacklist = NodeBlacklist(JobConf())
    blacklist.count_failure("n1")
    blacklist.count_failure("n1")
    assert blacklist.changes(10) == ((), ())
    assert "n1" not in blacklist


def test_the_third_failure_is_sent_once() -> None:
    blacklist = failed("n1")
    assert "n1" in blacklist
    assert blacklist.changes(10) == (("n1",), ())
    assert blacklist.changes(10) == ((), ())


def test_the_blacklist_is_ignored_while_it_has_a_third_of_the_cluster() -> None:
    blacklist = failed("n1")
    assert blacklist.changes(4) == (("n1",), ())
    blacklist.count_failure("n2")
    blacklist.count_failure("n2")
    blacklist.count_failure("n2")
    assert blacklist.changes(4) == ((), ("n1",))
    assert "n1" not in blacklist
    assert blacklist.changes(10) == (("n1", "n2"), ())


def test_the_threshold_can_be_switched_off() -> None:
    blacklist = NodeBlacklist(JobConf(failures_per_node_max=1, blacklist_ignored_percent=-1))
    blacklist.count_failure("n1")
    assert blacklist.changes(1) == (("n1",), ())
