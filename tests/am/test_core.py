"""The ask book against the rules of AMRMClientImpl, and against a model of what an RM would know."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from am.core.ask_book import AskBook
from am.core.events import (
    Allocation,
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    HeartbeatDone,
    NodesUpdated,
    PreemptionAsked,
    Registered,
)
from am.core.requests import ContainerRequest
from tests.am.builders import GB, container, container_id, ended, node_id, node_report, reply
from yarn.asks import Preemption, ResourceRequest, UpdateContainerRequest
from yarn.containers import Container, Token
from yarn.errors import InternalError
from yarn.protocols.master import AllocateRequest, AllocateResponse, NMToken, RegisterApplicationMasterResponse
from yarn.states import ContainerUpdateType, NodeState


def rack_of(host: str) -> str:
    return {"n1": "/r1", "n2": "/r1", "n3": "/r2"}[host]


ANYWHERE = ContainerRequest(GB, priority=1)


def exchange(book: AskBook, response: AllocateResponse | None = None) -> list[object]:
    book.next_request(0.0)
    return list(book.handle_reply(response or reply()))


def allocation(events: list[object]) -> tuple[Allocation, ...]:
    return next(event.allocations for event in events if isinstance(event, ContainersAllocated))


def completed(events: list[object]) -> list[int]:
    return [
        status.container_id.number
        for event in events
        if isinstance(event, ContainersCompleted)
        for status in event.statuses
    ]


def test_an_end_that_was_found_elsewhere_is_told_once() -> None:
    book = AskBook()
    assert completed(list(book.take_as_ended((ended(2, -100), ended(3)), give_back=False))) == [2, 3]
    assert book.take_as_ended((ended(2),), give_back=False) == []
    assert completed(exchange(book, reply(completed=(ended(2), ended(4))))) == [4]
    assert book.next_request(0.0).releases == ()


def test_what_was_told_by_the_rm_is_not_found_elsewhere() -> None:
    book = AskBook()
    exchange(book, reply(completed=(ended(2),)))
    assert book.take_as_ended((ended(2, -100),), give_back=True) == []
    assert book.next_request(0.0).releases == ()


def test_what_is_taken_as_ended_but_may_run_is_given_back_until_the_rm_tells_its_end() -> None:
    book = AskBook()
    assert completed(list(book.take_as_ended((ended(2, -100),), give_back=True))) == [2]
    assert book.next_request(0.0).releases == (container_id(2),)
    book.handle_not_registered()
    assert book.next_request(0.0).releases == (container_id(2),)
    assert completed(list(book.handle_reply(reply(completed=(ended(2, -100),))))) == []
    book.handle_not_registered()
    assert book.next_request(0.0).releases == ()


def test_the_response_id_follows_the_replies() -> None:
    book = AskBook()
    assert book.next_request(0.0).response_id == 0
    book.handle_reply(reply(7))
    assert book.next_request(0.0).response_id == 7


def test_a_request_without_outcome_is_sent_again_unchanged() -> None:
    """The RM answers an exact repeat with the answer it gave before, and reads nothing new in it."""
    book = AskBook()
    book.add_request(ANYWHERE)
    first = book.next_request(0.1)
    book.add_request(ANYWHERE)
    book.release(container_id(5))
    assert book.next_request(0.9) is first
    book.handle_reply(reply())
    assert [ask.count for ask in book.next_request(0.9).asks] == [2]


def test_a_refused_request_is_told_again_with_what_came_since() -> None:
    book = AskBook()
    book.add_request(ANYWHERE)
    book.release(container_id(5))
    book.change_blacklist(["n1"])
    book.next_request(0.0)
    book.add_request(ANYWHERE)
    book.change_blacklist(["n2"], ["n1"])
    book.handle_refused()
    again = book.next_request(0.0)
    assert again.response_id == 0
    assert [ask.count for ask in again.asks] == [2]
    assert again.releases == (container_id(5),)
    assert again.blacklist_additions == ("n2",)
    assert again.blacklist_removals == ("n1",)


def test_a_refused_withdrawal_is_told_again() -> None:
    book = AskBook()
    book.add_request(ANYWHERE)
    exchange(book)
    assert book.remove_request(ANYWHERE)
    book.next_request(0.0)
    book.handle_refused()
    assert [ask.count for ask in book.next_request(0.0).asks] == [0]


def test_an_allocated_container_takes_out_the_request_it_answers() -> None:
    book = AskBook()
    book.add_request(ANYWHERE)
    book.add_request(ANYWHERE)
    events = exchange(book, reply(allocated=(container(2),)))
    assert allocation(events) == (Allocation(container(2), ANYWHERE),)
    assert book.requests() == (ANYWHERE,)


def test_a_met_request_is_not_told_again_as_the_rm_has_counted_it_already() -> None:
    """Otherwise what the RM places before it hears of the lower count would be placed twice."""
    book = AskBook()
    for _ in range(3):
        book.add_request(ANYWHERE)
    exchange(book, reply(1))
    exchange(book, reply(2, allocated=(container(2), container(3))))
    assert book.next_request(0.0).asks == ()
    assert [ask.count for ask in book.asks()] == [1]
    book.handle_reply(reply(3, allocated=(container(4),)))
    assert book.asks() == ()


def test_a_row_of_the_very_call_that_brought_the_container_is_told_again() -> None:
    """The RM placed the container before it took the row's new count."""
    book = AskBook()
    book.add_request(ANYWHERE)
    exchange(book, reply(1))
    book.add_request(ANYWHERE)
    exchange(book, reply(2, allocated=(container(2),)))
    assert [ask.count for ask in book.next_request(0.0).asks] == [1]


def test_rows_of_hosts_and_racks_are_told_again_when_a_request_is_met() -> None:
    """The RM lowers the rows of the host it chose, not those of the other hosts of the request."""
    book = AskBook(rack_of)
    book.add_request(ContainerRequest(GB, priority=1, nodes=("n1", "n3")))
    exchange(book, reply(1, allocated=(container(2, "n1"),)))
    rows = {ask.resource_name: ask.count for ask in book.next_request(0.0).asks}
    assert rows == {"n1": 0, "n3": 0, "/r1": 0, "/r2": 0, "*": 0}


def test_a_container_that_nothing_asks_for_is_told_as_surplus() -> None:
    book = AskBook()
    events = exchange(book, reply(allocated=(container(2),)))
    assert allocation(events) == (Allocation(container(2), None),)


def test_the_request_nearest_to_the_container_is_met() -> None:
    book = AskBook(rack_of)
    on_n1 = ContainerRequest(GB, priority=1, nodes=("n1",))
    on_n3 = ContainerRequest(GB, priority=1, nodes=("n3",))
    for request in (ANYWHERE, on_n3, on_n1):
        book.add_request(request)
    same_rack = allocation(exchange(book, reply(1, allocated=(container(2, "n2"),))))
    same_host = allocation(exchange(book, reply(2, allocated=(container(3, "n3"),))))
    assert (same_rack[0].request, same_host[0].request) == (on_n1, on_n3)
    assert book.requests() == (ANYWHERE,)


def test_a_strict_request_is_not_met_elsewhere() -> None:
    book = AskBook(rack_of)
    book.add_request(ContainerRequest(GB, priority=1, nodes=("n1",), relax_locality=False))
    assert allocation(exchange(book, reply(allocated=(container(2, "n2"),))))[0].request is None


def test_removing_a_request_that_is_not_outstanding_does_nothing() -> None:
    book = AskBook()
    assert not book.remove_request(ANYWHERE)
    assert book.next_request(0.0).asks == ()


def test_an_end_is_told_exactly_once() -> None:
    book = AskBook()
    first = exchange(book, reply(1, completed=(ended(2), ended(3, 1))))
    second = exchange(book, reply(2, completed=(ended(3, 1), ended(4))))
    assert first[0] == ContainersCompleted((ended(2), ended(3, 1)))
    assert second[0] == ContainersCompleted((ended(4),))
    assert exchange(book, reply(3, completed=(ended(2),))) == [HeartbeatDone(GB, 2)]


def test_events_of_a_reply_come_in_hadoops_order() -> None:
    """AMRMClientAsyncImpl's handler: nodes, ends, then what was allocated."""
    book = AskBook()
    lost, asked = (node_report("n1", NodeState.LOST),), Preemption((container_id(9),))
    book.next_request(0.0)
    kinds = [
        type(event)
        for event in book.handle_reply(
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


def test_register_brings_tokens_and_what_earlier_attempts_left() -> None:
    book = AskBook()
    token = Token(b"i", b"p", "NMToken", "n1:45454")
    response = RegisterApplicationMasterResponse(
        GB,
        "root.default",
        containers_from_previous_attempts=(container(2),),
        nm_tokens=(NMToken(node_id("n1"), token),),
        resource_types=("MEMORY",),
    )
    assert book.handle_registered(response) == [
        Registered(GB, "root.default", ("MEMORY",)),
        ContainersFromPreviousAttempts((container(2),)),
    ]
    assert book.nm_tokens == {node_id("n1"): token}


def test_after_a_restart_of_the_rm_everything_outstanding_is_told_again() -> None:
    """AMRMClientImpl on ApplicationMasterNotRegistered: asks, blacklist, releases and updates, from response id 0."""
    book = AskBook()
    update = UpdateContainerRequest(container_id(3), 0, ContainerUpdateType.INCREASE_RESOURCE, GB * 2)
    book.add_request(ANYWHERE)
    book.release(container_id(5))
    book.release(container_id(6))
    book.change_blacklist(["n1"])
    book.update(update)
    exchange(book, reply(4, completed=(ended(6, -100),)))
    book.next_request(0.0)
    book.handle_not_registered()
    again = book.next_request(0.0)
    assert again.response_id == 0
    assert [(ask.resource_name, ask.count) for ask in again.asks] == [("*", 1)]
    assert again.releases == (container_id(5),)
    assert again.blacklist_additions == ("n1",)
    assert again.updates == (update,)


def test_a_container_that_has_ended_is_not_released() -> None:
    book = AskBook()
    exchange(book, reply(completed=(ended(2),)))
    book.release(container_id(2))
    assert book.next_request(0.0).releases == ()


def test_a_reply_without_a_request_is_a_bug() -> None:
    with pytest.raises(InternalError, match="without a request"):
        AskBook().handle_reply(reply())
    with pytest.raises(InternalError, match="without a request"):
        AskBook().handle_refused()


class Manager:
    """What an RM would know: rows as told and as lowered by placing, the blacklist, the releases it has seen.

    It answers a repeated call as it did before. What it places is handed over with the next call, after that call's
    asks have been taken.
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[int, str], int] = {}
        self.blacklist: set[str] = set()
        self.releases: set[object] = set()
        self.ready: list[Container] = []
        self.last: tuple[AllocateRequest, AllocateResponse] | None = None

    def place(self, given: Container) -> None:
        """Place a container if one is wanted anywhere at its priority: its `*` row goes down by one."""
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
def test_whatever_is_lost_the_rm_ends_up_knowing_what_the_book_wants(steps: list[tuple[str, object]]) -> None:
    """Requests and replies may be lost, calls refused, the RM restarted: after one good exchange both agree."""
    book, manager = AskBook(rack_of), Manager()
    numbers = itertools.count(100)
    for step, value in [*steps, *[("answered", None)] * 3]:
        match step, value:
            case "add", ContainerRequest() as request:
                book.add_request(request)
            case "remove", ContainerRequest() as request:
                book.remove_request(request)
            case "release", int(number):
                book.release(container_id(number))
            case "blacklist", str(host):
                book.change_blacklist([host])
            case "unblacklist", str(host):
                book.change_blacklist((), [host])
            case "place", int(priority):
                manager.place(container(next(numbers), priority=priority))
            case "heard", _:
                manager.answer(book.next_request(0.0))
            case "answered", _:
                book.handle_reply(manager.answer(book.next_request(0.0)))
            case "refused", _ if not manager.has_heard(book.next_request(0.0)):
                book.handle_refused()
            case "restarted", _:
                book.handle_not_registered()
                manager = Manager()
    assert {key: count for key, count in manager.rows.items() if count} == rows_of(book.asks())
    assert manager.blacklist == set(book._blacklist)
    assert manager.releases >= set(book._unconfirmed_releases)
