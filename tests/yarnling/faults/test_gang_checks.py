"""The checks of gangs: their members start together and end together."""

from __future__ import annotations

import pytest

from tests.yarnling.faults.stories import APP, Story, found
from yarnling.faults import checks
from yarnling.faults.history import ObservedChange
from yarnling.faults.plan import WorkProgram


def gang(tasks: int = 2) -> Story:
    return Story(WorkProgram.GANG, tasks=tasks)


def test_a_gang_has_succeeded_if_all_members_of_one_try_have() -> None:
    halves = gang().member(2.0, 3.0, 0, 1).member(2.0, 3.0, 1, 1, status=None).member(9.0, 9.5, 1, 2)
    assert found(checks.check_work_is_done, halves) == (f"{APP} succeeded with 1 of 2 members of a try done",)
    assert not found(checks.check_work_is_done, halves.member(9.0, 9.5, 0, 2))


def test_a_member_that_starts_before_its_gang_is_complete_is_a_violation() -> None:
    assert not found(checks.check_gangs_start, gang().member(2.0, 3.0, 0).member(2.1, 3.0, 1))
    early = gang(3).member(2.0, 3.0, 0).member(2.1, 3.0, 1).member(2.2, 3.0, 2, of=3)
    assert found(checks.check_gangs_start, early) == (f"{APP}: members of try 1 started when 2 of 3 had containers",)


def test_a_rank_that_two_members_of_a_try_have_is_a_violation() -> None:
    story = gang().member(2.0, 3.0, 0).member(2.0, 3.0, 0, attempt=2).member(5.0, 6.0, 0, 2)
    assert not found(checks.check_gangs_start, story)
    assert found(checks.check_gangs_start, story.member(5.0, 6.0, 0, 2)) == (f"{APP}: rank 0 of try 2 started 2 times",)


@pytest.mark.parametrize(("to_s", "is_excused"), [(14.9, True), (15.1, False)])
def test_members_of_a_gangs_earlier_try_end_before_the_next_one_runs(to_s: float, is_excused: bool) -> None:
    story = gang().member(2.0, to_s, 0).member(10.0, 20.0, 0, 2).member(10.0, 20.0, 1, 2)
    violations = found(checks.check_gangs_end, story)
    assert bool(violations) is not is_excused
    assert is_excused or "ran on for 5.1 s after try 2 of its gang started" in violations[0]


def test_members_of_a_gang_end_with_the_first_that_is_lost() -> None:
    def lost(to_s: float) -> Story:
        return gang().am(1.0, 30.0, node=3).member(2.0, 10.0, 0, status=None, node=2).member(2.0, to_s, 1)

    assert not found(checks.check_gangs_end, lost(14.9))
    (line,) = found(checks.check_gangs_end, lost(15.1))
    assert "ran on for 5.1 s after rank 0 of its gang ended" in line


@pytest.mark.parametrize(
    ("fault", "node"), [("kill-node", 1), ("kill-node", 2), ("kill-rm", 0), ("partition-masters-from-rm", 3)]
)
def test_a_fault_may_keep_the_members_of_a_gang_from_ending_together(fault: str, node: int) -> None:
    """The fault hides their node or that of the lost member, or the AM does not learn of the loss."""
    story = gang().am(1.0, 40.0, node=3).member(2.0, 10.0, 0, status=None, node=2).member(2.0, 24.0, 1)
    assert found(checks.check_gangs_end, story)
    assert not found(checks.check_gangs_end, story.fault(fault, 9.0, 20.0, *([node] if node else ())))


def test_members_of_a_gang_without_an_am_end_with_its_next_attempt() -> None:
    story = gang().am(1.0, 9.0).member(2.0, 10.0, 0, status=None).member(2.0, 24.0, 1)
    assert not found(checks.check_gangs_end, story.am(20.0, 60.0, 2))


def test_a_member_whose_end_the_resourcemanager_forgot_may_run_on() -> None:
    story = gang().am(1.0, 40.0, node=3).member(2.0, 10.0, 0, status=None, node=2).member(2.0, 39.0, 1)
    story.member(12.0, 14.0, 0, 2).member(12.0, 14.0, 1, 2)
    assert len(found(checks.check_gangs_end, story)) == 2
    story.history.changes += [
        ObservedChange(8.0, "nm-1", "LOST"),
        ObservedChange(8.5, "rm", "SILENT"),
        ObservedChange(9.5, "nm-1", "RUNNING"),
    ]
    assert not found(checks.check_gangs_end, story)


@pytest.mark.parametrize(
    ("silent_s", "starts_s", "is_excused"),
    [
        (12.0, 13.0, True),  # before it started
        (13.9, 13.0, True),  # before the node was told
        (14.1, 13.0, False),
        (9.9, 13.0, False),  # the AM released it afterwards, at the next ResourceManager
        (12.0, 9.0, False),  # it ran, and the node was told
    ],
)
def test_a_member_that_was_released_before_it_started_may_run_on_if_the_resourcemanager_forgot_that(
    silent_s: float, starts_s: float, is_excused: bool
) -> None:
    """Random simulation 3319276: a fault held back the call that starts it until the ResourceManager was killed."""
    story = gang().am(1.0, 60.0, node=3).member(5.0, 10.0, 0, status=None, node=2).member(starts_s, 40.0, 1)
    story.member(11.0, 14.0, 0, 2, node=3)
    story.history.changes += [ObservedChange(silent_s, "rm", "SILENT")]
    assert bool(found(checks.check_gangs_end, story)) is not is_excused


def test_a_gang_that_was_submitted_again_after_the_loss_of_the_store_has_its_tries_twice() -> None:
    story = gang().member(0.4, 0.5, 0, status=None).member(0.4, 0.5, 1, status=None)
    story.member(5.0, 20.0, 0).member(5.0, 20.0, 1)
    assert found(checks.check_gangs_start, story)
    assert found(checks.check_gangs_end, story)
    story.fault("lose-store", 0.5, 0.5)
    assert not found(checks.check_gangs_start, story)
    assert not found(checks.check_gangs_end, story)
