"""How many workers an elastic application wants, grows to, and gives back (ExecutorAllocationManager's rules)."""

from __future__ import annotations

import pytest

from am.core.events import (
    Allocation,
    ContainersAllocated,
    ContainersCompleted,
    ContainerStartFailed,
    HeartbeatFailed,
    PreemptionAsked,
    Registered,
    ShutdownOrdered,
)
from am.core.requests import ContainerRequest
from am.programs.core.actions import AskFor, Finish, GiveBack, Launch, Leave, Withdraw
from am.programs.elastic.core import BacklogSeen, Elastic, ElasticAction, ElasticPlan, PutBack, PutTasks
from tests.am.builders import GB, MB_512, container, container_id, ended
from yarn.asks import Preemption
from yarn.containers import ContainerLaunchContext
from yarn.errors import YarnException
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus

REQUEST = ContainerRequest(MB_512, priority=0)
WORKER = ContainerLaunchContext(commands=("work",))


def elastic(*stages: int, put: int = 0, **settings: int) -> Elastic:
    plan = ElasticPlan(stages, MB_512, backlog_ms=1000, sustained_ms=500, idle_ms=2000, **settings)
    made = Elastic(plan, lambda: WORKER, put)
    assert made.handle(Registered(GB, "root.default"), 0) == []
    return made


def begun(*stages: int, **settings: int) -> Elastic:
    """With the first stage's tasks in the spool."""
    made = elastic(*stages, **settings)
    assert see(made, 0) == [PutTasks(1, stages[0])]
    return made


def see(made: Elastic, now_ms: int, waiting: int = 0, *busy: int, ended: int = 0) -> list[ElasticAction]:
    return made.handle(BacklogSeen(waiting, dict.fromkeys(map(container_id, busy), 1), ended), now_ms)


def give(made: Elastic, *numbers: int, now_ms: int = 0) -> list[ElasticAction]:
    given = tuple(Allocation(container(n, priority=0, size=MB_512), REQUEST) for n in numbers)
    return made.handle(ContainersAllocated(given), now_ms)


def asked(actions: list[ElasticAction]) -> int:
    assert all(action == AskFor(REQUEST) for action in actions)
    return len(actions)


def test_workers_grow_by_steps_that_double_while_tasks_wait() -> None:
    made = begun(40)
    assert asked(see(made, 0, 40)) == 0
    assert asked(see(made, 999, 40)) == 0
    # 1000: one; then every 500 ms two more, four more, ... up to what the tasks need.
    grown = [asked(see(made, now_ms, 40)) for now_ms in range(1000, 4500, 500)]
    assert grown == [1, 2, 4, 8, 16, 9, 0]
    assert made.target == 40


def test_a_step_that_was_not_granted_in_full_begins_anew() -> None:
    made = begun(40, workers_max=5)
    grown = [asked(see(made, now_ms, 40)) for now_ms in (0, 1000, 1500, 2000, 2500)]
    assert grown == [0, 1, 2, 2, 0]


def test_after_a_step_that_was_more_than_needed_the_next_is_one_again() -> None:
    made = begun(40)
    grown = [asked(see(made, now_ms, 4)) for now_ms in (0, 1000, 1500, 2000)]
    assert grown == [0, 1, 2, 1]
    assert [asked(see(made, now_ms, 40)) for now_ms in (2500, 3000)] == [1, 2]


def test_after_the_target_fell_the_next_step_is_one_again() -> None:
    made = begun(40)
    for now_ms in (0, 1000, 1500, 2000):
        see(made, now_ms, 40)
    assert see(made, 2100, 5) == [Withdraw(REQUEST)] * 2
    assert asked(see(made, 2500, 40)) == 1


def test_growth_begins_at_what_there_is_if_that_is_above_the_target() -> None:
    made = begun(40)
    for now_ms in (0, 1000, 1500):
        see(made, now_ms, 40)
    give(made, 2, 3, 4, now_ms=1500)
    assert see(made, 1600, 0, 2, ended=1) == []
    assert made.target == 1
    see(made, 1700, 30, 2, 3, 4, ended=1)
    assert asked(see(made, 2700, 30, 2, 3, 4, ended=1)) == 1
    assert made.target == 4


def test_a_worker_that_runs_several_tasks_counts_for_as_many() -> None:
    made = begun(10, tasks_per_worker=4)
    see(made, 0, 10)
    assert [asked(see(made, now_ms, 10)) for now_ms in (1000, 1500, 2000)] == [1, 2, 0]


def test_the_target_follows_the_tasks_down_at_once_and_asks_are_taken_back() -> None:
    made = begun(4)
    see(made, 0, 4)
    assert asked(see(made, 1000, 4)) == 1
    assert asked(see(made, 1500, 4)) == 2
    give(made, 2)
    assert see(made, 1600, 0, 2, ended=3) == [Withdraw(REQUEST)] * 2
    assert made.target == 1
    assert see(made, 1700, 0, 2, ended=3) == []


def test_tasks_that_wait_no_more_stop_the_growth_and_its_doubling() -> None:
    made = begun(8)
    see(made, 0, 8)
    see(made, 1000, 8)
    give(made, 2)
    assert asked(see(made, 1400, 0, 2, ended=1)) == 0
    assert asked(see(made, 1500, 5, 2, ended=2)) == 0
    assert asked(see(made, 2499, 5, 2, ended=2)) == 0
    assert asked(see(made, 2500, 5, 2, ended=2)) == 1


def test_workers_that_idle_go_back_the_longest_first_but_not_below_the_target() -> None:
    made = begun(4, 1)
    see(made, 0, 4)
    see(made, 1000, 4)
    see(made, 1500, 4)
    assert [type(action) for action in give(made, 2, 3, 4, now_ms=1600)] == [Launch] * 3
    see(made, 1700, 0, 2, 3, 4, ended=1)
    assert see(made, 1800, 0, 3, 4, ended=2) == []
    assert see(made, 2000, 0, ended=4) == [PutTasks(5, 5)]
    assert see(made, 3799, 0, 4, ended=4) == []
    assert see(made, 3800, 0, 4, ended=4) == [GiveBack(container_id(2))]
    assert see(made, 5799, 0, 4, ended=4) == [GiveBack(container_id(3))]
    # A task that waits keeps one worker, however long that has not taken it.
    assert see(made, 9999, 1, ended=4) == []
    assert see(made, 19999, 1, ended=4) == []
    assert made.live == 1


def test_some_workers_are_kept_if_that_is_wished() -> None:
    made = begun(3, workers_min=2)
    assert asked(see(made, 0, 3)) == 2
    give(made, 2, 3)
    see(made, 100, 1, 2, 3)
    assert see(made, 200, 0, 2, ended=2) == []
    assert see(made, 9000, 0, 2, ended=2) == []
    assert made.target == 2


def test_what_comes_when_it_is_not_needed_any_more_is_released() -> None:
    made = begun(1)
    see(made, 0, 1)
    see(made, 1000, 1)
    assert [type(action) for action in give(made, 2, 3)] == [Launch, GiveBack]


def test_the_tasks_of_a_lost_worker_wait_again_and_its_place_is_asked_for() -> None:
    made = begun(1)
    see(made, 0, 1)
    see(made, 1000, 1)
    give(made, 2)
    see(made, 1100, 0, 2)
    assert made.handle(ContainersCompleted((ended(2, -100),)), 1200) == [PutBack(container_id(2))]
    assert asked(see(made, 1300, 1)) == 1


def test_what_a_worker_takes_that_was_given_up_waits_again() -> None:
    """Its node was lost and the worker was not: it goes on taking tasks until somebody can end it."""
    made = begun(2)
    see(made, 0, 2)
    see(made, 1000, 2)
    give(made, 2)
    see(made, 1100, 0, 2, ended=1)
    assert made.handle(ContainersCompleted((ended(2, -100),)), 1200) == [PutBack(container_id(2))]
    give(made, 3)
    assert PutBack(container_id(2)) in see(made, 1300, 0, 2, 3)
    assert not any(isinstance(action, PutBack) for action in see(made, 1400, 0, 3, ended=1))


def test_a_worker_given_back_may_have_taken_a_task_meanwhile() -> None:
    made = begun(2)
    see(made, 0, 2)
    see(made, 1000, 2)
    see(made, 1500, 2)
    give(made, 2, 3, now_ms=1500)
    assert see(made, 3499, 0, 3, ended=1) == []
    assert see(made, 3500, 0, 3, ended=1) == [GiveBack(container_id(2))]
    assert made.handle(ContainersCompleted((ended(2, -100),)), 3600) == [PutBack(container_id(2))]
    assert made.handle(ContainersCompleted((ended(2, -100),)), 3600) == []


def test_too_many_workers_that_fail_end_it() -> None:
    made = begun(9, workers_min=1)
    see(made, 0, 9)
    for number in range(2, 5):
        give(made, number)
        assert made.handle(ContainersCompleted((ended(number, 1),)), 0) == [PutBack(container_id(number))]
        see(made, 0, 9)
    give(made, 5)
    back, finish = made.handle(ContainerStartFailed(container_id(5), "no"), 0)
    assert back == GiveBack(container_id(5))
    assert isinstance(finish, Finish)
    assert finish.diagnostics == "4 workers failed, more than 3 (see their logs)"


def test_preemption_takes_idle_workers_first() -> None:
    made = begun(3, workers_min=3)
    see(made, 0, 3)
    give(made, 2, 3, 4)
    see(made, 10, 0, 2, 4, ended=1)
    wanted = Preemption(strict=frozenset(), negotiable=frozenset({container_id(2)}))
    assert made.handle(PreemptionAsked(wanted), 20) == [GiveBack(container_id(3))]


def test_stages_follow_one_another_and_the_last_ends_it() -> None:
    made = begun(2, 3)
    assert see(made, 10, 0, ended=2) == [PutTasks(3, 5)]
    assert see(made, 20, 0, ended=5) == [Finish(FinalApplicationStatus.SUCCEEDED)]
    assert see(made, 30, 0, ended=5) == []


@pytest.mark.parametrize(("put", "first"), [(0, PutTasks(1, 2)), (1, PutTasks(1, 2)), (2, PutTasks(3, 5))])
def test_a_second_attempt_goes_on_where_the_first_was(put: int, first: PutTasks) -> None:
    """One that ended while it put a stage's tasks has them put again; those that are there stay."""
    made = elastic(2, 3, put=put)
    assert see(made, 0, 0, ended=2 if put == 2 else 0) == [first]


def test_a_task_that_fails_ends_it() -> None:
    made = begun(2)
    (finish,) = made.handle(BacklogSeen(1, {}, 1, "task 1 ended with 3"), 0)
    assert finish == Finish(FinalApplicationStatus.FAILED, "task 1 ended with 3", 2)


def test_workers_larger_than_the_queue_allows_end_it() -> None:
    made = Elastic(ElasticPlan((1,), MB_512), lambda: WORKER)
    (finish,) = made.handle(Registered(Resource(256, 1), "root.s"), 0)
    assert isinstance(finish, Finish)
    assert "workers of <memory:512, vCores:1> are larger than root.s allows" in finish.diagnostics


def test_it_leaves_when_it_is_told_to_or_cut_off() -> None:
    assert begun(1).handle(ShutdownOrdered("gone"), 0) == [Leave("gone")]
    assert begun(1).handle(HeartbeatFailed(YarnException("silent")), 0) == [Leave("silent")]
