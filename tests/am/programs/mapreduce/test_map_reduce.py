"""The map-reduce core in a model cluster."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from am.core.actions import Finish, Leave, ReleaseContainer, StopContainer, WithdrawRequest
from am.core.events import AllocateFailed, ContainerStartFailed, NodesUpdated, PreemptionAsked, ShutdownOrdered
from am.programs.mapreduce.core import map_reduce
from am.programs.mapreduce.core.job import TaskAttemptId, TaskId, TaskKind
from am.programs.mapreduce.core.map_reduce import EXIT_FETCH_FAILED, MapReduce, TaskEnded, TaskReport
from am.programs.mapreduce.core.tasks import AttemptRecord, AttemptState, TaskState
from tests.am.builders import APP, ATTEMPT, GB, MB_512, container_id, ended, node_id, node_report
from tests.am.programs.mapreduce.model import Model, job, started
from yarn.containers import Preemption, ResourceRequest
from yarn.errors import YarnException
from yarn.resource import NONE
from yarn.states import FinalApplicationStatus, NodeState

MAP, REDUCE = TaskKind.MAP, TaskKind.REDUCE


def priorities(model: Model) -> list[int]:
    return sorted(request.priority for request in model.wanted)


def succeeded(model: Model) -> bool:
    return model.end == Finish(FinalApplicationStatus.SUCCEEDED)


def test_maps_are_requested_at_once_at_priority_20_and_reduces_not_yet() -> None:
    assert priorities(started(maps=4, reduces=2)) == [20, 20, 20, 20]


def test_reduces_are_requested_at_priority_10_after_slow_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_reduce, "SLOW_START", 0.5)
    model = started(maps=4, reduces=2)
    model.place()
    for passed, container in enumerate(model.running_ids(MAP), start=1):
        model.finish(container)
        model.beat()
        assert priorities(model) == ([10, 10] if passed >= 2 else [])


def done(model: Model, kind: TaskKind) -> list[int]:
    tasks = model.core.maps if kind is MAP else model.core.reduces
    return [task.id.number for task in tasks if task.state is TaskState.SUCCEEDED]


def test_a_job_runs_to_its_end_and_finishes_once() -> None:
    model = started()
    model.run()
    assert succeeded(model)
    assert sum(isinstance(action, Finish) for action in model.actions) == 1
    assert done(model, REDUCE) == [0, 1]
    assert model.core.progress() == pytest.approx(0.95)


def test_progress_weighs_maps_and_reduces_equally() -> None:
    model = started(maps=4, reduces=2)
    assert model.core.progress() == pytest.approx(0.05)
    model.place()
    model.finish_all(MAP)
    assert model.core.progress() == pytest.approx(0.5)


def test_a_job_without_reduces_ends_with_its_maps() -> None:
    model = started(maps=3, reduces=0)
    model.run()
    assert succeeded(model)
    assert done(model, MAP) == [0, 1, 2]
    assert model.published == {}


def test_a_job_without_input_still_runs_its_reduces() -> None:
    model = started(maps=0, reduces=2)
    model.run()
    assert succeeded(model)
    assert done(model, REDUCE) == [0, 1]


def test_a_failed_map_is_tried_again_before_reduces_at_priority_5() -> None:
    model = started(maps=2, reduces=1)
    model.place()
    model.finish(model.running_ids(MAP)[0], 1)
    assert priorities(model) == [5]
    model.run()
    assert succeeded(model)
    assert [attempt.id.number for attempt in model.core.maps[0].attempts] == [0, 1]


def test_the_fourth_failure_of_a_task_fails_the_job() -> None:
    model = started(maps=1, reduces=1)
    for _ in range(4):
        assert model.end is None
        model.place()
        model.finish(model.running_ids(MAP)[0], 3)
    assert isinstance(model.end, Finish)
    assert model.end.final_status is FinalApplicationStatus.FAILED
    assert f"Task failed {model.core.maps[0].id}" in model.end.diagnostics
    assert "failedMaps:1 failedReduces:0" in model.end.diagnostics
    assert "boom" in model.end.diagnostics


@pytest.mark.parametrize("exit_status", [-100, -102, -108])
def test_an_end_that_is_not_the_tasks_fault_does_not_count(exit_status: int) -> None:
    model = started(maps=1, reduces=0)
    for _ in range(10):
        model.place()
        model.finish(model.running_ids(MAP)[0], exit_status)
    assert model.end is None
    assert model.core.maps[0].failures == 0
    model.run()
    assert succeeded(model)


def test_success_without_a_report_is_a_failure() -> None:
    model = started(maps=1, reduces=0)
    model.place()
    container, _ = model.running.popitem()
    model.deliver(TaskEnded(ended(container.number)))
    assert model.core.maps[0].attempt.state is AttemptState.FAILED
    assert "left no report" in model.core.maps[0].attempt.why


def test_a_refused_start_counts_as_a_failure_and_releases_the_container() -> None:
    model = started(maps=1, reduces=0)
    model.place()
    container = model.running_ids(MAP)[0]
    actions = model.deliver(ContainerStartFailed(container, "no such user"))
    assert ReleaseContainer(container) in actions
    assert "no such user" in model.core.maps[0].attempt.why
    assert model.core.maps[0].failures == 1


def test_a_failed_commit_is_a_failure_of_the_attempt() -> None:
    model = started(maps=1, reduces=0)
    model.place()
    model.finish(model.running_ids(MAP)[0], 0, TaskReport(commit_error="No space left on device"))
    assert model.core.maps[0].attempt.state is AttemptState.FAILED
    assert "No space left" in model.core.maps[0].attempt.why


# Nodes


@pytest.mark.parametrize("state", [NodeState.LOST, NodeState.UNHEALTHY, NodeState.DECOMMISSIONED, NodeState.SHUTDOWN])
def test_a_lost_node_takes_map_output_and_running_tasks_with_it(state: NodeState) -> None:
    model = started(maps=8, reduces=1)
    model.place()
    model.finish(model.running_ids(MAP, "n1")[0])
    model.lose_node("n1", state)
    assert priorities(model) == [5, 5]
    assert model.core.lost_outputs == 1
    assert sum(task.failures for task in model.core.maps) == 0
    model.run()
    assert succeeded(model)


@pytest.mark.parametrize("state", [NodeState.RUNNING, NodeState.DECOMMISSIONING])
def test_a_node_that_still_serves_loses_nothing(state: NodeState) -> None:
    model = started(maps=8, reduces=1)
    model.place()
    model.finish_all(MAP)
    model.deliver(NodesUpdated((node_report("n1", state),)))
    assert model.core.lost_outputs == 0


def test_output_that_no_reduce_needs_any_more_is_not_made_again() -> None:
    model = started(maps=1, reduces=1)
    model.place()
    model.finish_all(MAP)
    model.beat()
    model.place()
    model.now_ms += 60_000
    model.finish_all(REDUCE)
    model.lose_node("n1")
    assert model.core.lost_outputs == 0
    model.beat()
    assert succeeded(model)


def test_reduces_lost_with_their_node_run_again_and_committed_ones_do_not() -> None:
    model = started(maps=2, reduces=3)
    model.place()
    model.finish_all(MAP)
    model.beat()
    model.place()
    first = model.running_ids(REDUCE)[0]
    host = model.running[first][0].node_id.host
    model.finish(first)
    model.lose_node(host)
    model.run()
    assert succeeded(model)
    assert [len(task.attempts) for task in model.core.reduces].count(1) >= 1
    assert model.core.reduces[0].attempts[0].state is AttemptState.SUCCEEDED


def test_output_that_cannot_be_fetched_is_made_again_and_counts_against_the_map() -> None:
    model = started(maps=2, reduces=1)
    model.place()
    model.finish_all(MAP)
    model.beat()
    model.place()
    missing = model.published[1]
    model.finish(model.running_ids(REDUCE)[0], EXIT_FETCH_FAILED, TaskReport(fetch_failures=(missing,)))
    assert model.core.maps[1].attempt.state is AttemptState.FAILED
    assert [task.failures for task in model.core.maps] == [0, 1]
    assert model.core.reduces[0].failures == 0
    model.run()
    assert succeeded(model)


def test_output_that_can_never_be_fetched_fails_the_job() -> None:
    model = started(maps=1, reduces=1)
    for _ in range(4):
        model.beat()
        model.place()
        model.finish_all(MAP)
        model.beat()
        model.place()
        lost = TaskReport(fetch_failures=(model.published[0],))
        model.finish(model.running_ids(REDUCE)[0], EXIT_FETCH_FAILED, lost)
    assert isinstance(model.end, Finish)
    assert "could not be fetched 4 times" in model.end.diagnostics


# Containers that are not wanted


def test_surplus_containers_are_released() -> None:
    model = started(maps=1, reduces=0)
    assert model.give("n1", None) == [ReleaseContainer(container_id(2))]


def test_a_container_for_a_withdrawn_request_is_released() -> None:
    """The RM allocated the container before it got the withdrawal, and no task waits for it any more."""
    model = started(maps=1, reduces=1)
    request = model.wanted[0]
    model.place()
    assert model.give("n2", request)[0] == ReleaseContainer(container_id(3))


# Reduces give way to maps


def starved() -> Model:
    """A job whose two reduces fill the cluster; then the output of a map is lost with its node."""
    model = started(maps=2, reduces=2)
    model.hosts, model.slots_per_host = ("n1", "n2", "n3"), 1
    model.place()
    model.finish_all(MAP)
    model.beat()
    model.running.clear()
    model.hosts = ("n2", "n3")
    model.place()
    assert len(model.running_ids(REDUCE)) == 2
    model.lose_node("n1")
    return model


def test_reduces_are_stopped_when_maps_starve() -> None:
    model = starved()
    assert priorities(model) == [5]
    actions = model.beat()
    assert sum(isinstance(action, StopContainer) for action in actions) == 1
    assert sum(task.failures for task in model.core.reduces) == 0
    model.run()
    assert succeeded(model)


def test_requests_for_reduces_are_withdrawn_when_maps_starve() -> None:
    model = started(maps=4, reduces=6)
    model.slots_per_host = 1
    model.place()
    model.finish_all(MAP)
    model.beat()
    model.place()
    assert priorities(model) == [10, 10]
    model.lose_node("n1")
    actions = model.beat(NONE)
    assert sum(isinstance(action, WithdrawRequest) for action in actions) == 2
    assert sum(isinstance(action, StopContainer) for action in actions) >= 1
    model.run()
    assert succeeded(model)


def test_the_youngest_are_released_on_preemption() -> None:
    model = started(maps=3, reduces=0)
    model.place(2)
    model.now_ms += 5000
    model.place(1)
    youngest = model.running_ids(MAP)[-1]
    one = (ResourceRequest(20, "*", GB, 1),)
    actions = model.deliver(PreemptionAsked(Preemption(negotiable=tuple(model.running), asks=one)))
    assert ReleaseContainer(youngest) in actions
    assert priorities(model) == [5]
    assert sum(task.failures for task in model.core.maps) == 0


# Begin and end


@pytest.mark.parametrize("word", ["MAP", "REDUCE"])
def test_a_job_that_can_never_run_here_fails_at_once(word: str) -> None:
    model = Model(MapReduce(job(maps=1 if word == "MAP" else 0), ATTEMPT, {}))
    model.register(MB_512)
    assert isinstance(model.end, Finish)
    assert model.end.diagnostics.startswith(f"{word} capability required is more than the supported max")


@pytest.mark.parametrize("event", [ShutdownOrdered("gone"), AllocateFailed(YarnException("gone"))])
def test_without_the_rm_it_exits(event: ShutdownOrdered | AllocateFailed) -> None:
    model = started()
    model.deliver(event)
    assert model.end == Leave("gone")
    assert model.beat() == []


def test_the_job_is_not_finished_by_an_am_that_is_cut_off() -> None:
    """CommitterEventHandler.waitForValidCommitWindow: the RM must have answered within the last ten seconds."""
    model = started(maps=1, reduces=0)
    model.place()
    model.now_ms += 60_000
    model.finish_all(MAP)
    assert model.end is None
    model.beat()
    assert succeeded(model)


def finished(*tasks: tuple[TaskKind, int, str]) -> dict[TaskId, tuple[AttemptRecord, ...]]:
    """Tasks, given as (kind, number, host), that an earlier attempt of the AM finished."""
    done: dict[TaskId, tuple[AttemptRecord, ...]] = {}
    for kind, number, host in tasks:
        task_id = TaskId(APP, kind, number)
        attempt_id, state = TaskAttemptId(task_id, 0), AttemptState.SUCCEEDED
        output = f"/local/{number}"
        attempt = AttemptRecord(attempt_id, container_id(number + 2), node_id(host), GB, 1, state, 2, output=output)
        done[task_id] = (attempt,)
    return done


def test_a_second_attempt_repeats_only_what_is_missing() -> None:
    recovered = finished((MAP, 0, "n1"), (MAP, 2, "n1"), (REDUCE, 1, "n1"))
    model = started(maps=3, reduces=2, attempt=2, recovered=recovered)
    assert priorities(model) == [20]
    assert sorted(model.published) == [0, 2]
    model.run()
    assert succeeded(model)
    assert [len(task.attempts) for task in model.core.reduces] == [1, 1]
    assert [attempt.id.number for attempt in model.core.maps[1].attempts] == [1000]


def test_a_second_attempt_that_finds_everything_done_only_finishes() -> None:
    recovered = finished((MAP, 0, "n1"), (REDUCE, 0, "n1"))
    model = started(maps=1, reduces=1, attempt=2, recovered=recovered)
    model.run()
    assert succeeded(model)
    assert model.containers == 1


def test_recovered_output_is_lost_with_its_node_too() -> None:
    model = started(maps=2, reduces=1, attempt=2, recovered=finished((MAP, 0, "n1"), (MAP, 1, "n2")))
    model.lose_node("n1")
    assert priorities(model) == [5]
    model.run()
    assert succeeded(model)


STEPS = st.one_of(
    st.tuples(st.sampled_from(["beat", "place", "starve"]), st.just(0)),
    st.tuples(st.sampled_from(["map", "reduce", "kill", "start"]), st.integers(0, 7)),
    st.tuples(st.just("fail"), st.integers(0, 7)),
    st.tuples(st.just("lose"), st.integers(0, 2)),
)


@settings(max_examples=150)
@given(
    st.integers(0, 6),
    st.integers(0, 3),
    st.lists(STEPS, max_size=60),
)
def test_each_task_runs_once_at_a_time_and_the_job_ends(maps: int, reduces: int, steps: list[tuple[str, int]]) -> None:
    """After each step a task has one live attempt, and each waiting task has one request.

    After heartbeats the job ends.
    """
    model = started(maps, reduces)
    with patch.object(map_reduce, "ATTEMPTS_MAX", 1000):
        for step, number in steps:
            take_step(model, step, number)
            check(model)
            if model.end is not None:
                break
        model.run()
    assert succeeded(model)
    assert done(model, REDUCE if reduces else MAP) == list(range(reduces or maps))


def take_step(model: Model, step: str, number: int) -> None:
    running = list(model.running)
    match step:
        case "beat":
            model.beat()
        case "starve":
            model.beat(NONE)
        case "place":
            model.place()
        case "map" if found := model.running_ids(MAP):
            model.finish(found[number % len(found)])
        case "reduce" if len(model.published) == len(model.core.maps) and (found := model.running_ids(REDUCE)):
            model.finish(found[number % len(found)])
        case "fail" if running:
            model.finish(running[number % len(running)], 1)
        case "kill" if running:
            model.finish(running[number % len(running)], -100)
        case "start" if running:
            model.running.pop(running[number % len(running)])
            model.deliver(ContainerStartFailed(running[number % len(running)], "refused"))
        case "lose" if len(model.lost) < 3:
            host = model.hosts[number]
            if host not in model.lost:
                model.lose_node(host)


def check(model: Model) -> None:
    live = {AttemptState.RUNNING, AttemptState.SUCCEEDED}
    tasks = [*model.core.maps, *model.core.reduces]
    for task in tasks:
        alive = [attempt for attempt in task.attempts if attempt.state in live]
        expected = task.state in {TaskState.RUNNING, TaskState.SUCCEEDED}
        assert len(alive) == expected, (task, alive)
    waiting = sum(task.state is TaskState.SCHEDULED for task in tasks)
    if model.end is None:
        assert len(model.wanted) == waiting
        assert len(model.running) == sum(task.state is TaskState.RUNNING for task in tasks)
