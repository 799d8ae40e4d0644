"""Which containers an AM releases: the strict ones, then the cheapest others that are enough."""

from __future__ import annotations

import pytest

from am.core.preemption import ReleaseCandidate, containers_to_release
from tests.am.builders import GB, container_id
from yarn.containers import Preemption, ResourceRequest
from yarn.resource import Resource

HELD = {
    container_id(1): ReleaseCandidate(GB, cost=50.0),
    container_id(2): ReleaseCandidate(GB, cost=10.0),
    container_id(3): ReleaseCandidate(GB * 2, cost=20.0),
    container_id(4): ReleaseCandidate(GB, cost=30.0),
}


def numbers(preemption: Preemption) -> list[int]:
    return [chosen.number for chosen in containers_to_release(preemption, HELD)]


def ask(count: int, size: Resource = GB) -> tuple[ResourceRequest, ...]:
    return (ResourceRequest(1, "*", size, count),)


def test_strict_containers_are_released_at_any_cost() -> None:
    assert numbers(Preemption(strict=(container_id(1), container_id(2)))) == [1, 2]


def test_strict_containers_that_have_ended_are_skipped() -> None:
    assert numbers(Preemption(strict=(container_id(9),))) == []


@pytest.mark.parametrize(("count", "given"), [(1, [2]), (2, [3]), (3, [2, 3]), (4, [2, 3, 4]), (9, [2, 3, 4, 1])])
def test_the_cheapest_that_cover_the_amount_are_released(count: int, given: list[int]) -> None:
    assert numbers(Preemption(negotiable=(container_id(1),), asks=ask(count))) == given


def test_every_component_must_be_covered() -> None:
    assert numbers(Preemption(asks=ask(1, Resource(1024, 3)))) == [2, 3]


def test_strict_containers_do_not_count_towards_the_negotiable_amount() -> None:
    assert numbers(Preemption(strict=(container_id(2),), asks=ask(1))) == [2, 3]


def test_without_resource_requests_the_named_containers_are_the_amount() -> None:
    assert numbers(Preemption(negotiable=(container_id(4),))) == [2]
