"""The ramp of reduces (RMContainerAllocator), compared with numbers worked out by hand, and the blacklist of hosts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from am.programs.mapreduce.core.container_allocator import (
    Demand,
    NodeBlacklist,
    has_slow_start_passed,
    must_preempt_reduces,
    reduces_to_schedule,
    reduces_to_stop,
)
from am.programs.mapreduce.core.job import JobConf

CONF = JobConf()
HALF_DONE = Demand(
    total_maps=20,
    completed_maps=10,
    scheduled_maps=6,
    assigned_maps=4,
    pending_reduces=10,
    scheduled_reduces=0,
    assigned_reduces=0,
    headroom_mb=4000,
    map_mb=1000,
    reduce_mb=1000,
)
STARVED = replace(HALF_DONE, assigned_maps=0, assigned_reduces=8, headroom_mb=0)


@pytest.mark.parametrize(
    ("completed", "total", "passed"), [(0, 20, False), (1, 20, True), (1, 21, False), (2, 21, True), (0, 0, True)]
)
def test_slow_start_is_a_share_of_the_maps_rounded_up(completed: int, total: int, passed: bool) -> None:
    demand = replace(HALF_DONE, total_maps=total, completed_maps=completed)
    assert has_slow_start_passed(demand, CONF) is passed


def test_all_reduces_are_scheduled_once_no_map_waits() -> None:
    assert reduces_to_schedule(replace(HALF_DONE, scheduled_maps=0), CONF) == 10


def test_reduces_get_the_share_of_maps_done() -> None:
    """limit 8000; ideal 8000 * 0.5 = 4000; the maps' 4000 do not cover their 10000."""
    assert reduces_to_schedule(HALF_DONE, CONF) == 4
    assert reduces_to_schedule(replace(HALF_DONE, completed_maps=5), CONF) == 2


def test_the_share_is_never_above_the_ramp_up_limit() -> None:
    assert reduces_to_schedule(replace(HALF_DONE, completed_maps=19), CONF) == 4


def test_what_maps_do_not_need_goes_to_reduces() -> None:
    """limit 8000; ideal 4000 each; maps want 1 + 2 = 3000 of theirs; reduces get 5000."""
    assert reduces_to_schedule(replace(HALF_DONE, scheduled_maps=1, assigned_maps=2, headroom_mb=6000), CONF) == 5


def test_what_reduces_hold_already_counts() -> None:
    """limit 6000, ideal 3000, of which 2 are held."""
    held = replace(HALF_DONE, scheduled_reduces=1, assigned_reduces=1, headroom_mb=1000)
    assert reduces_to_schedule(held, CONF) == 1


def test_requests_are_withdrawn_when_the_share_shrinks_but_running_reduces_stay() -> None:
    """limit 4000 + 2000, ideal 3000, held 5000: two too many; only what is asked for can go."""
    crowded = replace(HALF_DONE, scheduled_reduces=3, assigned_reduces=2, headroom_mb=0)
    assert reduces_to_schedule(crowded, CONF) == -2
    assert reduces_to_schedule(replace(crowded, scheduled_reduces=1, assigned_reduces=9), CONF) == -1


def test_reduces_are_stopped_only_if_maps_wait_none_runs_and_no_memory_is_left() -> None:
    assert must_preempt_reduces(STARVED, CONF, hanging_ms=0)
    assert not must_preempt_reduces(replace(STARVED, assigned_maps=1), CONF, hanging_ms=0)
    assert not must_preempt_reduces(replace(STARVED, scheduled_maps=0), CONF, hanging_ms=0)
    assert not must_preempt_reduces(replace(STARVED, headroom_mb=1000), CONF, hanging_ms=0)
    assert must_preempt_reduces(replace(STARVED, headroom_mb=1000, scheduled_reduces=1), CONF, hanging_ms=0)


def test_memory_of_stopping_containers_counts_as_free() -> None:
    assert not must_preempt_reduces(replace(STARVED, stopping_mb=1000), CONF, hanging_ms=1000)


def test_the_delays_of_preemption() -> None:
    patient = JobConf(preempt_delay_ms=5000)
    assert not must_preempt_reduces(STARVED, patient, hanging_ms=4999)
    assert must_preempt_reduces(STARVED, patient, hanging_ms=5000)
    roomy = replace(STARVED, headroom_mb=5000)
    assert not must_preempt_reduces(roomy, CONF, hanging_ms=300_000)
    assert must_preempt_reduces(roomy, CONF, hanging_ms=300_001)


@pytest.mark.parametrize(("waiting", "stopped"), [(1, 1), (3, 3), (6, 4), (20, 4)])
def test_reduces_to_stop_are_bounded_by_half_the_limit_and_by_the_need(waiting: int, stopped: int) -> None:
    assert reduces_to_stop(replace(STARVED, scheduled_maps=waiting), CONF) == stopped


def test_one_map_may_need_several_small_reduces() -> None:
    assert reduces_to_stop(replace(STARVED, reduce_mb=300, assigned_reduces=5, scheduled_maps=1), CONF) == 4


# Hosts with three failures are avoided, unless a third of the cluster would be (RMContainerRequestor)


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
