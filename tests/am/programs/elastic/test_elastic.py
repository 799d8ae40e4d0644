"""Workers that an elastic application wants, requests, and releases (ExecutorAllocationManager's rules)."""

from __future__ import annotations

import pytest

from am.core.actions import Finish, Launch, Leave, ReleaseContainer, RequestContainer, WithdrawRequest
from am.core.events import (
    AllocatedContainer,
    AllocateFailed,
    ContainersAllocated,
    ContainersCompleted,
    ContainerStartFailed,
    PreemptionAsked,
    Registered,
    ShutdownOrdered,
)
from am.core.requests import ContainerRequest
from am.programs.elastic.core import Elastic, ElasticAction, ElasticPlan, EnqueueTasks, RequeueTasks, SpoolScanned
from tests.am.builders import GB, MB_512, container, container_id, ended
from yarn.containers import ContainerLaunchContext, Preemption
from yarn.errors import YarnException
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus

REQUEST = ContainerRequest(MB_512, priority=0)
WORKER = ContainerLaunchContext(commands=("work",))


def elastic(*stages: int, enqueued: int = 0, **settings: int) -> Elastic:
    plan = ElasticPlan(stages, MB_512, backlog_ms=1000, sustained_ms=500, idle_ms=2000, **settings)
    made = Elastic(plan, lambda: WORKER, enqueued, check_invariants=True)
    assert made.handle(Registered(GB, "root.default"), 0) == []
    return made


def running(*stages: int, **settings: int) -> Elastic:
    """An application that has put the tasks of its first stage into the spool."""
    made = elastic(*stages, **settings)
    assert see(made, 0) == [EnqueueTasks(1, stages[0])]
    return made


def see(made: Elastic, now_ms: int, waiting: int = 0, *busy: int, ended: int = 0) -> list[ElasticAction]:
    return made.handle(SpoolScanned(waiting, dict.fromkeys(map(container_id, busy), 1), ended), now_ms)


def give(made: Elastic, *numbers: int, now_ms: int | None = None) -> list[ElasticAction]:
    given = tuple(AllocatedContainer(container(n, priority=0, size=MB_512), REQUEST) for n in numbers)
    return made.handle(ContainersAllocated(given), made.now_ms if now_ms is None else now_ms)


def requested(actions: list[ElasticAction]) -> int:
    assert all(action == RequestContainer(REQUEST) for action in actions)
    return len(actions)


def test_workers_grow_by_steps_that_double_while_tasks_wait() -> None:
    made = running(40)
    assert requested(see(made, 0, 40)) == 0
    assert requested(see(made, 999, 40)) == 0
    # 1000: one; then every 500 ms two more, four more, ... up to what the tasks need.
    grown = [requested(see(made, now_ms, 40)) for now_ms in range(1000, 4500, 500)]
    assert grown == [1, 2, 4, 8, 16, 9, 0]
    assert made.target == 40


def test_after_a_step_that_the_maximum_cut_the_next_is_one_again() -> None:
    made = running(40, workers_max=5)
    grown = [requested(see(made, now_ms, 40)) for now_ms in (0, 1000, 1500, 2000, 2500)]
    assert grown == [0, 1, 2, 2, 0]


def test_after_a_step_that_was_more_than_needed_the_next_is_one_again() -> None:
    made = running(40)
    grown = [requested(see(made, now_ms, 4)) for now_ms in (0, 1000, 1500, 2000)]
    assert grown == [0, 1, 2, 1]
    assert [requested(see(made, now_ms, 40)) for now_ms in (2500, 3000)] == [1, 2]


def test_after_the_target_fell_the_next_step_is_one_again() -> None:
    made = running(40)
    for now_ms in (0, 1000, 1500, 2000):
        see(made, now_ms, 40)
    assert see(made, 2100, 5) == [WithdrawRequest(REQUEST)] * 2
    assert requested(see(made, 2500, 40)) == 1


def test_growth_starts_from_the_live_workers_if_they_exceed_the_target() -> None:
    made = running(40)
    for now_ms in (0, 1000, 1500):
        see(made, now_ms, 40)
    give(made, 2, 3, 4, now_ms=1500)
    assert see(made, 1600, 0, 2, ended=1) == []
    assert made.target == 1
    see(made, 1700, 30, 2, 3, 4, ended=1)
    assert requested(see(made, 2700, 30, 2, 3, 4, ended=1)) == 1
    assert made.target == 4


def test_a_worker_that_runs_several_tasks_counts_for_several() -> None:
    made = running(10, tasks_per_worker=4)
    see(made, 0, 10)
    assert [requested(see(made, now_ms, 10)) for now_ms in (1000, 1500, 2000)] == [1, 2, 0]


def test_the_target_follows_the_tasks_down_at_once_and_requests_are_withdrawn() -> None:
    made = running(4)
    see(made, 0, 4)
    assert requested(see(made, 1000, 4)) == 1
    assert requested(see(made, 1500, 4)) == 2
    give(made, 2)
    assert see(made, 1600, 0, 2, ended=3) == [WithdrawRequest(REQUEST)] * 2
    assert made.target == 1
    assert see(made, 1700, 0, 2, ended=3) == []


def test_growth_and_its_doubling_stop_when_no_task_waits() -> None:
    made = running(8)
    see(made, 0, 8)
    see(made, 1000, 8)
    give(made, 2)
    assert requested(see(made, 1400, 0, 2, ended=1)) == 0
    assert requested(see(made, 1500, 5, 2, ended=2)) == 0
    assert requested(see(made, 2499, 5, 2, ended=2)) == 0
    assert requested(see(made, 2500, 5, 2, ended=2)) == 1


def test_idle_workers_are_released_longest_idle_first_but_not_below_the_target() -> None:
    made = running(4, 1)
    see(made, 0, 4)
    see(made, 1000, 4)
    see(made, 1500, 4)
    assert [type(action) for action in give(made, 2, 3, 4, now_ms=1600)] == [Launch] * 3
    see(made, 1700, 0, 2, 3, 4, ended=1)
    assert see(made, 1800, 0, 3, 4, ended=2) == []
    assert see(made, 2000, 0, ended=4) == [EnqueueTasks(5, 5)]
    assert see(made, 3799, 0, 4, ended=4) == []
    assert see(made, 3800, 0, 4, ended=4) == [ReleaseContainer(container_id(2))]
    assert see(made, 5799, 0, 4, ended=4) == [ReleaseContainer(container_id(3))]
    # A waiting task keeps one worker alive, however long that worker has not taken it.
    assert see(made, 9999, 1, ended=4) == []
    assert see(made, 19999, 1, ended=4) == []
    assert made.live == 1


def test_the_minimum_of_workers_is_kept() -> None:
    made = running(3, workers_min=2)
    assert requested(see(made, 0, 3)) == 2
    give(made, 2, 3)
    see(made, 100, 1, 2, 3)
    assert see(made, 200, 0, 2, ended=2) == []
    assert see(made, 9000, 0, 2, ended=2) == []
    assert made.target == 2


def test_a_container_that_crosses_the_withdrawal_of_its_request_is_released_once() -> None:
    """The container was allocated before the RM got the withdrawal. No other container is requested in its place."""
    made = running(2)
    see(made, 0, 2)
    assert requested(see(made, 1000, 2)) == 1
    assert see(made, 1100, 0, ended=1) == [WithdrawRequest(REQUEST)]
    assert give(made, 2) == [ReleaseContainer(container_id(2))]
    assert see(made, 1200, 0, ended=1) == []


def test_surplus_containers_are_released() -> None:
    made = running(1)
    see(made, 0, 1)
    see(made, 1000, 1)
    assert [type(action) for action in give(made, 2, 3)] == [Launch, ReleaseContainer]


def test_tasks_of_a_lost_worker_are_requeued_and_another_worker_is_requested() -> None:
    made = running(1)
    see(made, 0, 1)
    see(made, 1000, 1)
    give(made, 2)
    see(made, 1100, 0, 2)
    assert made.handle(ContainersCompleted((ended(2, -100),)), 1200) == [RequeueTasks(container_id(2))]
    assert requested(see(made, 1300, 1)) == 1


def test_tasks_taken_by_a_worker_that_was_given_up_are_requeued() -> None:
    """Only the node was lost: the worker takes tasks until it can be stopped."""
    made = running(2)
    see(made, 0, 2)
    see(made, 1000, 2)
    give(made, 2)
    see(made, 1100, 0, 2, ended=1)
    assert made.handle(ContainersCompleted((ended(2, -100),)), 1200) == [RequeueTasks(container_id(2))]
    give(made, 3)
    assert RequeueTasks(container_id(2)) in see(made, 1300, 0, 2, 3)
    assert not any(isinstance(action, RequeueTasks) for action in see(made, 1400, 0, 3, ended=1))


def test_a_task_that_a_worker_takes_after_its_release_is_requeued() -> None:
    made = running(2)
    see(made, 0, 2)
    see(made, 1000, 2)
    see(made, 1500, 2)
    give(made, 2, 3, now_ms=1500)
    assert see(made, 3499, 0, 3, ended=1) == []
    assert see(made, 3500, 0, 3, ended=1) == [ReleaseContainer(container_id(2))]
    assert made.handle(ContainersCompleted((ended(2, -100),)), 3600) == [RequeueTasks(container_id(2))]
    assert made.handle(ContainersCompleted((ended(2, -100),)), 3600) == []


def test_too_many_failed_workers_fail_the_application() -> None:
    made = running(9, workers_min=1)
    see(made, 0, 9)
    for number in range(2, 5):
        give(made, number)
        assert made.handle(ContainersCompleted((ended(number, 1),)), 0) == [RequeueTasks(container_id(number))]
        see(made, 0, 9)
    give(made, 5)
    back, finish = made.handle(ContainerStartFailed(container_id(5), "no"), 0)
    assert back == ReleaseContainer(container_id(5))
    assert isinstance(finish, Finish)
    assert finish.diagnostics == "4 workers failed, more than 3 (see their logs)"


def test_preemption_takes_idle_workers_first() -> None:
    made = running(3, workers_min=3)
    see(made, 0, 3)
    give(made, 2, 3, 4)
    see(made, 10, 0, 2, 4, ended=1)
    wanted = Preemption(strict=frozenset(), negotiable=frozenset({container_id(2)}))
    assert made.handle(PreemptionAsked(wanted), 20) == [ReleaseContainer(container_id(3))]


def test_stages_follow_one_another_and_the_last_finishes_the_application() -> None:
    made = running(2, 3)
    assert see(made, 10, 0, ended=2) == [EnqueueTasks(3, 5)]
    assert see(made, 20, 0, ended=5) == [Finish(FinalApplicationStatus.SUCCEEDED)]
    assert see(made, 30, 0, ended=5) == []


@pytest.mark.parametrize(
    ("enqueued", "first"), [(0, EnqueueTasks(1, 2)), (1, EnqueueTasks(1, 2)), (2, EnqueueTasks(3, 5))]
)
def test_a_second_attempt_continues_where_the_first_ended(enqueued: int, first: EnqueueTasks) -> None:
    """If the first attempt ended while it enqueued a stage, all tasks of the stage are enqueued, except those in the
    spool.
    """
    made = elastic(2, 3, enqueued=enqueued)
    assert see(made, 0, 0, ended=2 if enqueued == 2 else 0) == [first]


def test_a_failed_task_fails_the_application() -> None:
    made = running(2)
    (finish,) = made.handle(SpoolScanned(1, {}, 1, "task 1 ended with 3"), 0)
    assert finish == Finish(FinalApplicationStatus.FAILED, "task 1 ended with 3", 2)


def test_workers_larger_than_the_queue_allows_fail_the_application() -> None:
    made = Elastic(ElasticPlan((1,), MB_512), lambda: WORKER, check_invariants=True)
    (finish,) = made.handle(Registered(Resource(256, 1), "root.s"), 0)
    assert isinstance(finish, Finish)
    assert "workers of <memory:512, vCores:1> are larger than root.s allows" in finish.diagnostics


def test_it_exits_when_the_rm_does_not_know_it_or_cannot_be_reached() -> None:
    assert running(1).handle(ShutdownOrdered("gone"), 0) == [Leave("gone")]
    assert running(1).handle(AllocateFailed(YarnException("silent")), 0) == [Leave("silent")]
