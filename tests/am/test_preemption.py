"""Which containers an AM gives back: the strict ones, then the cheapest that are enough."""

from __future__ import annotations

import pytest

from am.core.preemption import Held, containers_to_give_back
from tests.am.builders import GB, container_id
from yarn.asks import Preemption, ResourceRequest
from yarn.resource import Resource

HELD = {
    container_id(1): Held(GB, cost=50.0),
    container_id(2): Held(GB, cost=10.0),
    container_id(3): Held(GB * 2, cost=20.0),
    container_id(4): Held(GB, cost=30.0),
}


def numbers(preemption: Preemption) -> list[int]:
    return [chosen.number for chosen in containers_to_give_back(preemption, HELD)]


def ask(count: int, size: Resource = GB) -> tuple[ResourceRequest, ...]:
    return (ResourceRequest(1, "*", size, count),)


def test_strict_ones_are_given_whatever_they_cost() -> None:
    assert numbers(Preemption(strict=(container_id(1), container_id(2)))) == [1, 2]


def test_strict_ones_that_are_gone_are_passed_over() -> None:
    assert numbers(Preemption(strict=(container_id(9),))) == []


@pytest.mark.parametrize(("count", "given"), [(1, [2]), (2, [3]), (3, [2, 3]), (4, [2, 3, 4]), (9, [2, 3, 4, 1])])
def test_the_cheapest_that_cover_the_amount_are_given(count: int, given: list[int]) -> None:
    assert numbers(Preemption(negotiable=(container_id(1),), asks=ask(count))) == given


def test_every_component_must_be_covered() -> None:
    assert numbers(Preemption(asks=ask(1, Resource(1024, 3)))) == [2, 3]


def test_strict_ones_do_not_count_towards_the_negotiable_amount() -> None:
    assert numbers(Preemption(strict=(container_id(2),), asks=ask(1))) == [2, 3]


def test_without_asks_the_named_containers_tell_the_amount() -> None:
    assert numbers(Preemption(negotiable=(container_id(4),))) == [2]
