"""Limits on what one application keeps in the ResourceManager: a call beyond one is refused whole, changing nothing."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from rm.core.events import Allocate
from rm.core.liveness import STALE_DEADLINES_MAX, DeadlineMonitor
from rm.scheduler.events import request_checks
from tests.rm.builders import RM, resource_request
from yarn.containers import ResourceRequest
from yarn.errors import (
    InvalidContainerReleaseException,
    InvalidResourceBlacklistRequestException,
    InvalidResourceRequestException,
    YarnException,
)
from yarn.ids import ApplicationId, ContainerId
from yarn.protocols.master import AllocateRequest, AllocateResponse


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test reaches quickly; the checks are the same."""
    monkeypatch.setattr(request_checks, "REQUESTS_MAX", 10)
    monkeypatch.setattr(request_checks, "NAMES_MAX", 5)
    monkeypatch.setattr(request_checks, "BLACKLIST_MAX", 3)
    monkeypatch.setattr(request_checks, "REMEMBERED_RELEASES_MAX", 3)


class AM:
    """An application whose calls are made field by field."""

    def __init__(self) -> None:
        self.rm = RM()
        self.rm.node("n1")
        self.app: ApplicationId = self.rm.submit()
        self.rm.run_am(self.app)
        self._last = AllocateRequest(0)

    def call(self, request: AllocateRequest) -> AllocateResponse:
        attempt_id = self.rm.attempt_id(self.app)
        request = replace(request, response_id=self._last.response_id)
        response: AllocateResponse = self.rm.send(Allocate(self.rm.call(), attempt_id, request))
        self._last = replace(self._last, response_id=response.response_id)
        return response

    def request(self, *asks: ResourceRequest) -> AllocateResponse:
        return self.call(AllocateRequest(0, asks=asks))

    def refused(self, request: AllocateRequest, error: type[YarnException], message: str) -> None:
        """The call is refused with that message, and leaves the scheduler as it was."""
        before = self.state()
        with pytest.raises(error, match=re.escape(message)):
            self.call(request)
        assert self.state() == before
        self.call(AllocateRequest(0))

    def state(self) -> tuple[object, ...]:
        attempt = self.rm.core.scheduler.applications[self.app].current_attempt
        assert attempt is not None
        rows = [(key, row.terms, row.count) for key, row in attempt.requests.rows()]
        return rows, attempt.requests.row_count, sorted(attempt.blacklist), list(attempt.pending_release), attempt.leaf


@pytest.fixture
def am() -> AM:
    return AM()


def named(name: str, priority: int = 1) -> ResourceRequest:
    return replace(resource_request(1, priority=priority), resource_name=name)


def test_requests_of_an_application_are_limited_over_all_its_calls(am: AM) -> None:
    am.request(*(resource_request(1, priority=number) for number in range(6)))
    asks = tuple(resource_request(1, priority=number) for number in range(4, 11))
    text = "would have 11 requests, at most 10 are allowed (withdraw those no longer needed)"
    am.refused(AllocateRequest(0, asks=asks), InvalidResourceRequestException, text)
    am.request(*asks[:-1])


def test_requests_withdrawn_by_a_call_make_room_for_its_new_ones(am: AM) -> None:
    am.request(*(resource_request(1, priority=number) for number in range(10)))
    am.request(resource_request(0, priority=3), named("n7", priority=11))
    am.refused(AllocateRequest(0, asks=(named("n8", 12),)), InvalidResourceRequestException, "have 11 requests")


def test_a_request_may_name_a_limited_number_of_places(am: AM) -> None:
    places = tuple(named(f"n{number}") for number in range(6))
    text = "at most 5 are allowed for one request: priority 1 (request id -1) 6"
    am.refused(AllocateRequest(0, asks=(resource_request(1), *places)), InvalidResourceRequestException, text)
    am.request(resource_request(1), *places[:-1])


def test_all_faults_of_a_call_are_named(am: AM) -> None:
    asks = tuple(named(f"n{number}", priority) for priority in (1, 2) for number in range(-1, 6))
    with pytest.raises(InvalidResourceRequestException) as refusal:
        am.request(*asks, resource_request(1, priority=1), resource_request(1, priority=2))
    assert "16 requests" in refusal.value.message
    assert "priority 1 (request id -1) 7, priority 2 (request id -1) 7" in refusal.value.message


def test_the_blacklist_is_limited_over_all_calls(am: AM) -> None:
    am.call(AllocateRequest(0, blacklist_additions=("n1", "n2")))
    more = AllocateRequest(0, asks=(resource_request(1),), blacklist_additions=("n2", "n3", "n4"))
    text = "it would have 4, at most 3 are allowed"
    am.refused(more, InvalidResourceBlacklistRequestException, text)
    am.call(replace(more, blacklist_removals=("n1",)))


def test_releases_of_unknown_containers_are_remembered_up_to_a_limit(am: AM) -> None:
    """Only while containers from before a restart may still be reported."""
    rm = am.rm
    rm.core.scheduler.context.releases_remembered_until_ms = rm.now_ms + 1
    unknown = tuple(ContainerId(rm.attempt_id(am.app), number) for number in range(100, 104))
    text = "4 releases of unknown containers would wait for their nodes, at most 3 are kept"
    am.refused(
        AllocateRequest(0, asks=(resource_request(1),), releases=unknown), InvalidContainerReleaseException, text
    )
    am.call(AllocateRequest(0, releases=unknown[:3]))
    am.call(AllocateRequest(0, releases=unknown[:3]))
    rm.now_ms += 1
    am.call(AllocateRequest(0, releases=unknown))


def test_repeatedly_changed_deadlines_use_no_extra_memory() -> None:
    monitor = DeadlineMonitor[str](1000, 0)
    for deadline_ms in range(10 * STALE_DEADLINES_MAX, 0, -1):
        monitor.register("app", deadline_ms)
    assert len(monitor._heap) <= STALE_DEADLINES_MAX + 2
    assert monitor.next_deadline_ms() == 1000
    assert monitor.expire(999) == []
    assert monitor.expire(1000) == ["app"]
