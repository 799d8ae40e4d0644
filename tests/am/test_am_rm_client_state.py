"""AMRMClientState against the rules of AMRMClientImpl, and against a model of what an RM knows."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from am.core.am_rm_client_state import AMRMClientState
from am.core.events import (
    AllocatedContainer,
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    HeartbeatDone,
    NodesUpdated,
    PreemptionAsked,
    Registered,
)
from am.core.invariants import CheckedAMRMClientState
from am.core.requests import ContainerRequest
from tests.am.builders import GB, container, container_id, ended, node_id, node_report, reply
from yarn.containers import Container, Preemption, ResourceRequest, Token, UpdateContainerRequest
from yarn.errors import InternalError
from yarn.protocols.master import AllocateRequest, AllocateResponse, NMToken, RegisterApplicationMasterResponse
from yarn.resource import Resource
from yarn.states import ContainerUpdateType, NodeState, SchedulerResourceTypes


def rack_of(host: str) -> str:
    return {"n1": "/r1", "n2": "/r1", "n3": "/r2"}[host]


ANYWHERE = ContainerRequest(GB, priority=1)


def exchange(state: AMRMClientState, response: AllocateResponse | None = None) -> list[object]:
    """Exchange one heartbeat. The reply gets the response id that follows that of the request."""
    request = state.next_request(0.0)
    return list(state.handle_reply(replace(response or reply(), response_id=request.response_id + 1)))


def allocation(events: list[object]) -> tuple[AllocatedContainer, ...]:
    return next(event.allocations for event in events if isinstance(event, ContainersAllocated))


def completed(events: list[object]) -> list[int]:
    return [
        status.container_id.number
        for event in events
        if isinstance(event, ContainersCompleted)
        for status in event.statuses
    ]


def test_an_end_that_was_marked_lost_is_reported_once() -> None:
    state = CheckedAMRMClientState()
    assert completed(list(state.mark_lost((ended(2, -100), ended(3)), release=False))) == [2, 3]
    assert state.mark_lost((ended(2),), release=False) == []
    assert completed(exchange(state, reply(completed=(ended(2), ended(4))))) == [4]
    assert state.next_request(0.0).releases == ()


def test_an_end_that_the_rm_reported_cannot_be_marked_lost() -> None:
    state = CheckedAMRMClientState()
    exchange(state, reply(completed=(ended(2),)))
    assert state.mark_lost((ended(2, -100),), release=True) == []
    assert state.next_request(0.0).releases == ()


def test_a_lost_container_that_may_run_is_released_until_the_rm_reports_its_end() -> None:
    state = CheckedAMRMClientState()
    assert completed(list(state.mark_lost((ended(2, -100),), release=True))) == [2]
    assert state.next_request(0.0).releases == (container_id(2),)
    state.handle_not_registered()
    assert state.next_request(0.0).releases == (container_id(2),)
    assert completed(list(state.handle_reply(reply(completed=(ended(2, -100),))))) == []
    state.handle_not_registered()
    assert state.next_request(0.0).releases == ()


def test_the_response_id_follows_the_replies() -> None:
    state = CheckedAMRMClientState()
    assert state.next_request(0.0).response_id == 0
    state.handle_reply(reply(1))
    assert state.next_request(0.0).response_id == 1


def test_a_request_with_unknown_outcome_is_sent_again_unchanged() -> None:
    """The RM answers an exact repetition with the same answer as before, and ignores its content."""
    state = CheckedAMRMClientState()
    state.add_request(ANYWHERE)
    first = state.next_request(0.1)
    state.add_request(ANYWHERE)
    state.release(container_id(5))
    assert state.next_request(0.9) is first
    state.handle_reply(reply())
    assert [ask.count for ask in state.next_request(0.9).asks] == [2]


def test_a_refused_request_is_sent_again_with_later_changes() -> None:
    state = CheckedAMRMClientState()
    state.add_request(ANYWHERE)
    state.release(container_id(5))
    state.change_blacklist(["n1"])
    state.next_request(0.0)
    state.add_request(ANYWHERE)
    state.change_blacklist(["n2"], ["n1"])
    state.handle_refused()
    again = state.next_request(0.0)
    assert again.response_id == 0
    assert [ask.count for ask in again.asks] == [2]
    assert again.releases == (container_id(5),)
    assert again.blacklist_additions == ("n2",)
    assert again.blacklist_removals == ("n1",)


def test_a_refused_withdrawal_is_sent_again() -> None:
    state = CheckedAMRMClientState()
    state.add_request(ANYWHERE)
    exchange(state)
    assert state.remove_request(ANYWHERE)
    state.next_request(0.0)
    state.handle_refused()
    assert [ask.count for ask in state.next_request(0.0).asks] == [0]


def test_an_allocated_container_satisfies_one_request() -> None:
    state = CheckedAMRMClientState()
    state.add_request(ANYWHERE)
    state.add_request(ANYWHERE)
    events = exchange(state, reply(allocated=(container(2),)))
    assert allocation(events) == (AllocatedContainer(container(2), ANYWHERE),)
    assert state.requests() == (ANYWHERE,)


def test_a_satisfied_request_is_not_sent_again_as_the_rm_has_lowered_its_count() -> None:
    """Otherwise containers that the RM allocates before it gets the lower count would be allocated twice."""
    state = CheckedAMRMClientState()
    for _ in range(3):
        state.add_request(ANYWHERE)
    exchange(state, reply(1))
    exchange(state, reply(2, allocated=(container(2), container(3))))
    assert state.next_request(0.0).asks == ()
    assert [ask.count for ask in state._table.outstanding()] == [1]
    state.handle_reply(reply(3, allocated=(container(4),)))
    assert state._table.outstanding() == ()


def test_a_row_sent_with_the_call_that_brought_the_container_is_sent_again() -> None:
    """The RM allocated the container before it read the row's new count."""
    state = CheckedAMRMClientState()
    state.add_request(ANYWHERE)
    exchange(state, reply(1))
    state.add_request(ANYWHERE)
    exchange(state, reply(2, allocated=(container(2),)))
    assert [ask.count for ask in state.next_request(0.0).asks] == [1]


def test_rows_of_hosts_and_racks_are_sent_again_when_a_request_is_satisfied() -> None:
    """The RM lowers the rows of the host it chose, not those of the other hosts of the request."""
    state = CheckedAMRMClientState(rack_of)
    state.add_request(ContainerRequest(GB, priority=1, nodes=("n1", "n3")))
    exchange(state, reply(1, allocated=(container(2, "n1"),)))
    rows = {ask.resource_name: ask.count for ask in state.next_request(0.0).asks}
    assert rows == {"n1": 0, "n3": 0, "/r1": 0, "/r2": 0, "*": 0}


def test_a_container_without_a_request_is_reported_as_surplus() -> None:
    state = CheckedAMRMClientState()
    events = exchange(state, reply(allocated=(container(2),)))
    assert allocation(events) == (AllocatedContainer(container(2), None),)


def test_a_container_satisfies_the_request_nearest_to_it() -> None:
    state = CheckedAMRMClientState(rack_of)
    on_n1 = ContainerRequest(GB, priority=1, nodes=("n1",))
    on_n3 = ContainerRequest(GB, priority=1, nodes=("n3",))
    for request in (ANYWHERE, on_n3, on_n1):
        state.add_request(request)
    same_rack = allocation(exchange(state, reply(1, allocated=(container(2, "n2"),))))
    same_host = allocation(exchange(state, reply(2, allocated=(container(3, "n3"),))))
    assert (same_rack[0].request, same_host[0].request) == (on_n1, on_n3)
    assert state.requests() == (ANYWHERE,)


def test_a_strict_request_is_not_satisfied_elsewhere() -> None:
    state = CheckedAMRMClientState(rack_of)
    state.add_request(ContainerRequest(GB, priority=1, nodes=("n1",), relax_locality=False))
    assert allocation(exchange(state, reply(allocated=(container(2, "n2"),))))[0].request is None


def test_removing_a_request_that_is_not_outstanding_does_nothing() -> None:
    state = CheckedAMRMClientState()
    assert not state.remove_request(ANYWHERE)
    assert state.next_request(0.0).asks == ()


def test_an_end_is_reported_exactly_once() -> None:
    state = CheckedAMRMClientState()
    first = exchange(state, reply(1, completed=(ended(2), ended(3, 1))))
    second = exchange(state, reply(2, completed=(ended(3, 1), ended(4))))
    assert first[0] == ContainersCompleted((ended(2), ended(3, 1)))
    assert second[0] == ContainersCompleted((ended(4),))
    assert exchange(state, reply(3, completed=(ended(2),))) == [HeartbeatDone(GB, 2)]


def test_events_of_a_reply_are_in_hadoops_order() -> None:
    """The order is that of AMRMClientAsyncImpl's handler: nodes, completed containers, then allocated ones."""
    state = CheckedAMRMClientState()
    lost, asked = (node_report("n1", NodeState.LOST),), Preemption((container_id(9),))
    state.next_request(0.0)
    kinds = [
        type(event)
        for event in state.handle_reply(
            AllocateResponse(
                1,
                GB,
                cluster_nodes=1,
                allocated=(container(3),),
                completed=(ended(2),),
                updated_nodes=lost,
                preemption=asked,
            )
        )
    ]
    assert kinds == [NodesUpdated, ContainersCompleted, PreemptionAsked, ContainersAllocated, HeartbeatDone]


def test_registration_brings_tokens_and_containers_of_earlier_attempts() -> None:
    state = CheckedAMRMClientState()
    token = Token(b"i", b"p", "NMToken", "n1:45454")
    response = RegisterApplicationMasterResponse(
        GB,
        "root.default",
        containers_from_previous_attempts=(container(2),),
        nm_tokens=(NMToken(node_id("n1"), token),),
        scheduler_resource_types=(SchedulerResourceTypes.MEMORY,),
    )
    assert state.handle_registered(response) == [
        Registered(GB, "root.default", ("MEMORY",)),
        ContainersFromPreviousAttempts((container(2),)),
    ]
    assert state.nm_tokens == {node_id("n1"): token}


@pytest.mark.parametrize(
    ("types", "is_satisfied"),
    [
        ((SchedulerResourceTypes.MEMORY,), True),
        ((SchedulerResourceTypes.MEMORY, SchedulerResourceTypes.CPU), False),
        ((), False),
    ],
)
def test_vcores_are_compared_only_if_the_scheduler_counts_them(
    types: tuple[SchedulerResourceTypes, ...], is_satisfied: bool
) -> None:
    """A scheduler that counts memory alone gives every container 1 vcore, whatever the request has."""
    state = CheckedAMRMClientState()
    state.handle_registered(RegisterApplicationMasterResponse(GB, "root.default", scheduler_resource_types=types))
    wanted = ContainerRequest(Resource(1024, 4), priority=1)
    state.add_request(wanted)
    got = container(2, size=Resource(1024, 1))
    (allocated,) = allocation(exchange(state, reply(allocated=(got,))))
    assert allocated == AllocatedContainer(got, wanted if is_satisfied else None)
    assert state.requests() == (() if is_satisfied else (wanted,))


def test_after_a_restart_of_the_rm_everything_outstanding_is_sent_again() -> None:
    """As AMRMClientImpl does on ApplicationMasterNotRegistered, everything is sent again, from response id 0."""
    state = CheckedAMRMClientState()
    update = UpdateContainerRequest(container_id(3), 0, ContainerUpdateType.INCREASE_RESOURCE, GB * 2)
    state.add_request(ANYWHERE)
    state.release(container_id(5))
    state.release(container_id(6))
    state.change_blacklist(["n1"])
    state.update(update)
    exchange(state, reply(4, completed=(ended(6, -100),)))
    state.next_request(0.0)
    state.handle_not_registered()
    again = state.next_request(0.0)
    assert again.response_id == 0
    assert [(ask.resource_name, ask.count) for ask in again.asks] == [("*", 1)]
    assert again.releases == (container_id(5),)
    assert again.blacklist_additions == ("n1",)
    assert again.updates == (update,)


def test_a_container_that_has_ended_is_not_released() -> None:
    state = CheckedAMRMClientState()
    exchange(state, reply(completed=(ended(2),)))
    state.release(container_id(2))
    assert state.next_request(0.0).releases == ()


def test_a_reply_without_a_request_is_a_bug() -> None:
    with pytest.raises(InternalError, match="without a request"):
        CheckedAMRMClientState().handle_reply(reply())
    with pytest.raises(InternalError, match="without a request"):
        CheckedAMRMClientState().handle_refused()


class Manager:
    """The knowledge of an RM: rows as sent and as lowered by allocations, the blacklist, the releases that it has seen.

    It answers a repeated call as it did before. The containers that it allocates are part of the answer to the next
    call, after it has read the rows of that call.
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[int, str], int] = {}
        self.blacklist: set[str] = set()
        self.releases: set[object] = set()
        self.ready: list[Container] = []
        self.last: tuple[AllocateRequest, AllocateResponse] | None = None

    def place(self, given: Container) -> None:
        """Place a container if one is wanted anywhere at its priority. The count of its `*` row then falls by one."""
        wanted = self.rows.get((given.priority, "*"), 0)
        if wanted:
            self.rows[given.priority, "*"] = wanted - 1
            self.ready.append(given)

    def answer(self, request: AllocateRequest) -> AllocateResponse:
        if self.last is not None and self.last[0] is request:
            return self.last[1]
        self.rows.update({(ask.priority, ask.resource_name): ask.count for ask in request.asks})
        self.blacklist |= set(request.blacklist_additions)
        self.blacklist -= set(request.blacklist_removals)
        self.releases |= set(request.releases)
        response = reply(request.response_id + 1, allocated=tuple(self.ready))
        self.ready = []
        self.last = (request, response)
        return response

    def has_heard(self, request: AllocateRequest) -> bool:
        return self.last is not None and self.last[0] is request


def rows_of(asks: tuple[ResourceRequest, ...]) -> dict[tuple[int, str], int]:
    return {(ask.priority, ask.resource_name): ask.count for ask in asks}


REQUESTS = st.builds(
    ContainerRequest,
    capability=st.just(GB),
    priority=st.integers(1, 2),
    nodes=st.sampled_from([(), ("n1",), ("n1", "n2"), ("n3",)]),
)
STEPS = st.one_of(
    st.tuples(st.just("add"), REQUESTS),
    st.tuples(st.just("remove"), REQUESTS),
    st.tuples(st.just("release"), st.integers(1, 5)),
    st.tuples(st.just("blacklist"), st.sampled_from(["n1", "n2"])),
    st.tuples(st.just("unblacklist"), st.sampled_from(["n1", "n2"])),
    st.tuples(st.just("place"), st.integers(1, 2)),
    st.tuples(st.sampled_from(["heard", "answered", "refused", "restarted"]), st.none()),
)


@settings(max_examples=100)
@given(st.lists(STEPS, max_size=40))
def test_after_lost_calls_refusals_and_restarts_the_rm_knows_what_the_state_wants(
    steps: list[tuple[str, object]],
) -> None:
    """After one successful exchange both sides agree."""
    state, manager = CheckedAMRMClientState(rack_of), Manager()
    numbers = itertools.count(100)
    for step, value in [*steps, *[("answered", None)] * 3]:
        match step, value:
            case "add", ContainerRequest() as request:
                state.add_request(request)
            case "remove", ContainerRequest() as request:
                state.remove_request(request)
            case "release", int(number):
                state.release(container_id(number))
            case "blacklist", str(host):
                state.change_blacklist([host])
            case "unblacklist", str(host):
                state.change_blacklist((), [host])
            case "place", int(priority):
                manager.place(container(next(numbers), priority=priority))
            case "heard", _:
                manager.answer(state.next_request(0.0))
            case "answered", _:
                state.handle_reply(manager.answer(state.next_request(0.0)))
            case "refused", _ if not manager.has_heard(state.next_request(0.0)):
                state.handle_refused()
            case "restarted", _:
                state.handle_not_registered()
                manager = Manager()
    assert {key: count for key, count in manager.rows.items() if count} == rows_of(state._table.outstanding())
    assert manager.blacklist == set(state._blacklist)
    assert manager.releases >= set(state._unconfirmed_releases)
