"""Each invariant of am.core.invariants, and each of an application, is reported when it is broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from am.core.actions import Finish, Launch, Leave, ReleaseContainer, RequestContainer, WithdrawRequest
from am.core.am_rm_client_state import AMRMClientState
from am.core.events import AllocatedContainer, ContainersAllocated, ContainersCompleted, ContainerStarted, Resynced
from am.core.invariants import ApplicationAudit, CheckedAMRMClientState, CheckedReconciliation
from am.core.reconciliation import QueriedNode, QueryNode
from am.core.requests import ContainerRequest, RowKey
from am.programs.distributed_shell.core import DistributedShellCore, Width
from am.programs.elastic.core import Elastic, ElasticPlan
from am.programs.gang.core import Gang, GangPhase, GangPlan
from am.programs.mapreduce.core.tasks import AttemptState, TaskState
from tests.am.builders import GB, container, container_id, ended, node_id, reply
from tests.am.programs.mapreduce.model import started
from yarn.containers import ContainerLaunchContext, UpdateContainerRequest
from yarn.errors import InternalError
from yarn.machine import Tick
from yarn.states import ContainerUpdateType, FinalApplicationStatus

REQUEST = ContainerRequest(GB, priority=1)
ROW = RowKey(1, 0, "*")
HELLO = ContainerLaunchContext(commands=("echo hello",))
TWO, N1 = container_id(2), node_id("n1")


def allocated(number: int = 2, request: ContainerRequest | None = None) -> ContainersAllocated:
    return ContainersAllocated((AllocatedContainer(container(number), request),))


# AMRMClientState


def lose_a_request(state: CheckedAMRMClientState) -> None:
    state._requests.clear()


def keep_a_row_of_zero(state: CheckedAMRMClientState) -> None:
    state.remove_request(REQUEST)
    state._table._unsent.clear()


def send_an_unknown_row(state: CheckedAMRMClientState) -> None:
    state._table._unsent.add(RowKey(9, 0, "*"))


def lose_a_release(state: CheckedAMRMClientState) -> None:
    state._releases[TWO] = None


def lose_an_update(state: CheckedAMRMClientState) -> None:
    state._updates[TWO] = UpdateContainerRequest(TWO, 0, ContainerUpdateType.INCREASE_RESOURCE, GB)


def lose_a_blacklisted_host(state: CheckedAMRMClientState) -> None:
    state._blacklist_changes["n1"] = True


@pytest.mark.parametrize(
    ("break_it", "number"),
    [
        (lose_a_request, "A-01"),
        (keep_a_row_of_zero, "A-02"),
        (send_an_unknown_row, "A-02"),
        (lose_a_release, "A-03"),
        (lose_an_update, "A-03"),
        (lose_a_blacklisted_host, "A-03"),
    ],
)
def test_an_inconsistent_state_is_reported_by_the_next_call(
    break_it: Callable[[CheckedAMRMClientState], None], number: str
) -> None:
    state = CheckedAMRMClientState()
    state.add_request(REQUEST)
    break_it(state)
    with pytest.raises(InternalError, match=number):
        state.release(container_id(9))


def test_a_request_in_flight_that_changes_is_reported() -> None:
    state = CheckedAMRMClientState()
    state.next_request(0.0)
    state._in_flight = None
    with pytest.raises(InternalError, match="A-04"):
        state.next_request(0.5)


@pytest.mark.parametrize("response_id", [0, 2])
def test_a_response_id_that_does_not_follow_is_reported(response_id: int) -> None:
    state = CheckedAMRMClientState()
    state.next_request(0.0)
    with pytest.raises(InternalError, match="A-05"):
        state.handle_reply(reply(response_id))


@pytest.mark.parametrize("kind", ["release", "update"])
def test_what_is_not_sent_again_after_a_restart_is_reported(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = CheckedAMRMClientState()
    if kind == "release":
        state.release(TWO)
    else:
        state.update(UpdateContainerRequest(TWO, 0, ContainerUpdateType.INCREASE_RESOURCE, GB))
    state.next_request(0.0)
    monkeypatch.setattr(AMRMClientState, "handle_not_registered", lambda state: None)
    with pytest.raises(InternalError, match=f"A-03: the {kind} of {TWO} is not sent again"):
        state.handle_not_registered()


def test_the_response_id_may_wrap_around() -> None:
    state = CheckedAMRMClientState()
    state._response_id = 0x7FFF_FFFF
    state.next_request(0.0)
    state.handle_reply(reply(0))


def test_a_container_that_is_allocated_twice_is_reported() -> None:
    state = CheckedAMRMClientState()
    state.next_request(0.0)
    state.handle_reply(reply(1, allocated=(container(2),)))
    state.next_request(0.0)
    with pytest.raises(InternalError, match="A-06"):
        state.handle_reply(reply(2, allocated=(container(2),)))


def test_a_released_container_that_is_reported_as_new_is_reported() -> None:
    state = CheckedAMRMClientState()
    state.release(TWO)
    state.next_request(0.0)
    with pytest.raises(InternalError, match="A-06"):
        state.handle_reply(reply(1, allocated=(container(2),)))


def test_an_end_that_is_reported_twice_is_reported() -> None:
    state = CheckedAMRMClientState()
    state.mark_lost((ended(2),), release=False)
    state._completed.clear()
    with pytest.raises(InternalError, match="A-07"):
        state.mark_lost((ended(2),), release=False)


# Reconciliation


def resynced() -> CheckedReconciliation:
    """A core that queries n1 about one container."""
    core = CheckedReconciliation(4000)
    core.handle(allocated(), 0)
    core.handle(ContainerStarted(TWO), 0)
    core.handle(Resynced(), 0)
    return core


def query_a_container_that_has_ended(core: CheckedReconciliation) -> None:
    core._containers.clear()


def query_a_node_about_nothing(core: CheckedReconciliation) -> None:
    core._nodes[node_id("n2")] = QueriedNode(0, 0)


@pytest.mark.parametrize("break_it", [query_a_container_that_has_ended, query_a_node_about_nothing])
def test_a_query_about_other_containers_is_reported(break_it: Callable[[CheckedReconciliation], None]) -> None:
    core = resynced()
    break_it(core)
    with pytest.raises(InternalError, match="A-08"):
        core.handle(Tick(), 1)


def test_a_node_without_a_planned_query_is_reported() -> None:
    core = resynced()
    core._nodes[N1].is_queried = False
    with pytest.raises(InternalError, match="A-09"):
        core.handle(Tick(), 1)


def test_a_second_query_at_a_time_is_reported() -> None:
    core = resynced()
    core.handle(Tick(), 1)
    assert [problem[:4] for problem in core._of_queries([QueryNode(N1, (TWO,))])] == ["A-10"]


# ApplicationCore


def test_a_container_that_is_launched_twice_or_without_allocation_is_reported() -> None:
    audit = ApplicationAudit()
    launch = Launch(container(2), HELLO)
    assert audit.violations(allocated(), [launch]) == []
    assert "A-11" in audit.violations(Tick(), [launch])[0]
    audit.violations(ContainersCompleted((ended(2),)), [])
    assert "A-11" in audit.violations(Tick(), [launch])[0]


def test_a_release_of_a_container_that_has_completed_is_reported() -> None:
    audit = ApplicationAudit()
    assert audit.violations(allocated(), [ReleaseContainer(TWO)]) == []
    assert "A-12" in audit.violations(ContainersCompleted((ended(2),)), [ReleaseContainer(TWO)])[0]


def test_a_withdrawal_of_a_request_that_is_not_outstanding_is_reported() -> None:
    audit = ApplicationAudit()
    assert audit.violations(Tick(), [RequestContainer(REQUEST), WithdrawRequest(REQUEST)]) == []
    audit.violations(Tick(), [RequestContainer(REQUEST)])
    assert "A-13" in audit.violations(allocated(2, REQUEST), [WithdrawRequest(REQUEST)])[0]


def test_an_action_after_the_last_one_is_reported() -> None:
    finish = Finish(FinalApplicationStatus.SUCCEEDED)
    assert ApplicationAudit().violations(Tick(), [finish]) == []
    assert "A-14" in ApplicationAudit().violations(Tick(), [finish, Leave("gone")])[0]


# Applications


def test_counts_of_a_distributed_shell_that_do_not_agree_are_reported() -> None:
    core = DistributedShellCore(Width(2, GB), lambda number: HELLO)
    assert list(core.violations()) == []
    core.completed = 1
    assert all("A-15" in problem for problem in core.violations())
    assert list(core.violations())


def test_a_gang_that_lost_a_member_is_reported() -> None:
    gang = Gang(GangPlan(3, GB), lambda member: HELLO, 0)
    assert list(gang.violations()) == []
    gang.machine.state = GangPhase.REQUESTING
    assert "A-16" in next(gang.violations())


def test_a_worker_that_is_live_and_released_is_reported() -> None:
    elastic = Elastic(ElasticPlan((1,), GB), lambda: HELLO)
    assert list(elastic.violations()) == []
    elastic._idle_since[TWO] = None
    elastic._releasing[TWO] = None
    elastic._requested = -1
    elastic.target = 1001
    assert [problem[:4] for problem in elastic.violations()] == ["A-17"] * 3


def test_a_task_with_the_wrong_number_of_attempts_is_reported() -> None:
    model = started(maps=2, reduces=0)
    assert list(model.core.violations()) == []
    model.core.maps[0].machine.state = TaskState.RUNNING
    assert [problem[:4] for problem in model.core.violations()] == ["A-18", "A-19"]


def test_an_attempt_that_is_over_and_holds_a_container_is_reported() -> None:
    model = started(maps=1, reduces=0)
    model.place()
    model.core.maps[0].end_attempt(AttemptState.SUCCEEDED, 1)
    assert [problem[:4] for problem in model.core.violations()] == ["A-19"]


def test_a_core_that_checks_its_invariants_raises_the_broken_ones() -> None:
    gang = Gang(GangPlan(3, GB), lambda member: HELLO, 0, check_invariants=True)
    gang.machine.state = GangPhase.REQUESTING
    with pytest.raises(InternalError, match="A-16: gang of 3 is REQUESTING with 0 members in place of 3"):
        gang.handle(Resynced(), 0)
