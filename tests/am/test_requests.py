"""Requests become rows: one for each host, rack and `*`, with absolute counts (AMRMClientImpl)."""

from __future__ import annotations

import pytest

from am.core.requests import ContainerRequest, ResourceRequestTable, WaitingRequests
from tests.am.builders import GB, MB_512, container
from yarn.errors import InvalidResourceRequestException


def rack_of(host: str) -> str:
    return {"n1": "/r1", "n2": "/r1", "n3": "/r2"}.get(host, "/default-rack")


def sent(table: ResourceRequestTable) -> list[tuple[str, int, bool]]:
    return [(row.resource_name, row.count, row.relax_locality) for row in table.take_unsent()]


def test_a_request_on_a_host_has_rows_for_host_rack_and_any() -> None:
    table = ResourceRequestTable(rack_of)
    table.add(ContainerRequest(GB, priority=1, nodes=("n1",)))
    assert sent(table) == [("*", 1, True), ("/r1", 1, True), ("n1", 1, True)]


def test_counts_are_absolute() -> None:
    table = ResourceRequestTable(rack_of)
    for _ in range(3):
        table.add(ContainerRequest(GB, priority=1))
    assert sent(table) == [("*", 3, True)]
    table.remove(ContainerRequest(GB, priority=1))
    assert sent(table) == [("*", 2, True)]


def test_unchanged_rows_are_not_sent_again() -> None:
    table = ResourceRequestTable(rack_of)
    table.add(ContainerRequest(GB, priority=1))
    table.take_unsent()
    assert sent(table) == []


def test_a_row_of_zero_is_sent_once_and_dropped() -> None:
    table = ResourceRequestTable(rack_of)
    request = ContainerRequest(GB, priority=1, nodes=("n1",))
    table.add(request)
    table.take_unsent()
    table.remove(request)
    assert sent(table) == [("*", 0, True), ("/r1", 0, True), ("n1", 0, True)]
    assert table.outstanding() == ()
    table.resend_all()
    assert sent(table) == []


def test_two_hosts_of_one_rack_have_one_rack_row() -> None:
    table = ResourceRequestTable(rack_of)
    table.add(ContainerRequest(GB, priority=1, nodes=("n1", "n2", "n3")))
    counts = {name: count for name, count, _ in sent(table)}
    assert counts == {"n1": 1, "n2": 1, "n3": 1, "/r1": 1, "/r2": 1, "*": 1}


def test_a_lowered_row_is_sent_each_time_if_the_table_asks_again() -> None:
    """AMRMClientImpl.decResourceRequest, also a count of 0: the ResourceManager must forget what it was sent."""
    table = ResourceRequestTable(rack_of, asks_again=True)
    request = ContainerRequest(GB, priority=1)
    table.add(request)
    table.add(request)
    assert sent(table) == [("*", 2, True)]
    table.satisfy(request, just_sent=())
    assert sent(table) == [("*", 1, True)]
    table.satisfy(request, just_sent=())
    assert sent(table) == [("*", 0, True)]
    assert sent(table) == []
    assert not table.rows


def test_strict_locality_is_set_on_any_and_on_the_inferred_rack() -> None:
    """A rack that was named is relaxed; a rack that is derived from a host is as strict as `*` (AMRMClientImpl)."""
    table = ResourceRequestTable(rack_of)
    table.add(ContainerRequest(GB, priority=1, nodes=("n1",), racks=("/r2",), relax_locality=False))
    assert sent(table) == [("*", 1, False), ("/r1", 1, False), ("/r2", 1, True), ("n1", 1, True)]


def test_rows_come_in_the_order_of_priority_then_name() -> None:
    table = ResourceRequestTable(rack_of)
    table.add(ContainerRequest(GB, priority=20))
    table.add(ContainerRequest(GB, priority=5, nodes=("n3",)))
    keys = [(row.priority, row.resource_name) for row in table.take_unsent()]
    assert keys == [(5, "*"), (5, "/r2"), (5, "n3"), (20, "*")]


def test_another_size_at_one_priority_is_refused_and_changes_nothing() -> None:
    table = ResourceRequestTable(rack_of)
    table.add(ContainerRequest(GB, priority=1))
    with pytest.raises(InvalidResourceRequestException, match="another size needs another priority"):
        table.add(ContainerRequest(MB_512, priority=1, nodes=("n1",)))
    assert sent(table) == [("*", 1, True)]


def test_another_size_is_fine_with_another_request_id_or_once_nothing_is_outstanding() -> None:
    table = ResourceRequestTable(rack_of)
    first = ContainerRequest(GB, priority=1)
    table.add(first)
    table.add(ContainerRequest(MB_512, priority=1, allocation_request_id=7))
    table.remove(first)
    table.add(ContainerRequest(MB_512, priority=1))
    assert [(row.allocation_request_id, row.capability) for row in table.outstanding()] == [(0, MB_512), (7, MB_512)]


def test_contradicting_locality_is_refused() -> None:
    table = ResourceRequestTable(rack_of)
    table.add(ContainerRequest(GB, priority=1, nodes=("n1",), relax_locality=False))
    with pytest.raises(InvalidResourceRequestException, match="use another priority"):
        table.add(ContainerRequest(GB, priority=1))


def test_requests_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(InvalidResourceRequestException, match="priority -1"):
        ContainerRequest(GB, priority=-1)
    with pytest.raises(InvalidResourceRequestException, match="needs nodes or racks"):
        ContainerRequest(GB, priority=1, relax_locality=False)
    with pytest.raises(InvalidResourceRequestException, match="label"):
        ContainerRequest(GB, priority=1, nodes=("n1",), label="gpu")
    with pytest.raises(InvalidResourceRequestException, match="negative amount"):
        ContainerRequest(GB * -1, priority=1)


def test_a_request_accepts_containers_that_are_large_enough() -> None:
    request = ContainerRequest(MB_512, priority=1)
    assert request.accepts(container(1, size=GB))
    assert not request.accepts(container(1, size=GB, priority=2))
    assert not ContainerRequest(GB * 2, priority=1).accepts(container(1, size=GB))


# Requests that wait

ANYWHERE = ContainerRequest(GB, priority=1)
ON_N1, ON_N2 = (ContainerRequest(GB, priority=1, nodes=(host,)) for host in ("n1", "n2"))


def waiting_for(*requests: ContainerRequest) -> WaitingRequests:
    waiting = WaitingRequests()
    for request in requests:
        waiting.add(request)
    return waiting


def test_the_nearest_is_taken_and_of_equal_ones_the_oldest() -> None:
    waiting = waiting_for(ON_N2, ANYWHERE, ON_N1, ANYWHERE)
    near = {ON_N1: 0, ON_N2: 2, ANYWHERE: 2}
    taken = [waiting.take(near.__getitem__) for _ in range(5)]
    assert taken == [ON_N1, ON_N2, ANYWHERE, ANYWHERE, None]


def test_a_request_out_of_reach_is_left() -> None:
    waiting = waiting_for(ON_N1)
    assert waiting.take(lambda request: None) is None
    assert list(waiting) == [ON_N1]


def test_requests_are_listed_by_age_and_the_oldest_equal_one_is_removed() -> None:
    waiting = waiting_for(ANYWHERE, ON_N1, ANYWHERE)
    assert list(waiting) == [ANYWHERE, ON_N1, ANYWHERE]
    assert waiting.remove(ContainerRequest(GB, priority=1))
    assert list(waiting) == [ON_N1, ANYWHERE]
    assert not waiting.remove(ON_N2)


def test_a_container_is_compared_once_with_each_group_of_equal_requests() -> None:
    waiting = waiting_for(*[ANYWHERE] * 100, ON_N1)
    compared: list[ContainerRequest] = []
    waiting.take(compared.append)
    assert compared == [ANYWHERE, ON_N1]
