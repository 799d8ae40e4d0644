"""Equal elements have the order of java.util.PriorityQueue's heap."""

from __future__ import annotations

import random

import pytest

from yarn.java.priority_queue import JavaPriorityQueue


def compare_first(a: str, b: str) -> int:
    return ord(a[0]) - ord(b[0])


def queue_of(*elements: str) -> JavaPriorityQueue[str]:
    queue = JavaPriorityQueue(compare_first)
    for element in elements:
        queue.add(element)
    return queue


def poll_all(queue: JavaPriorityQueue[str]) -> list[str]:
    return [queue.pop() for _ in range(len(queue))]


@pytest.mark.parametrize(
    ("elements", "order"),
    [
        (["a1", "a2", "a3", "a4", "a5"], ["a1", "a5", "a4", "a3", "a2"]),
        (["b1", "a1", "a2", "b2"], ["a1", "a2", "b2", "b1"]),
        (
            ["a1", "b1", "a2", "b2", "a3", "b3", "a4", "c1", "a5", "b4"],
            ["a1", "a3", "a5", "a2", "a4", "b2", "b1", "b4", "b3", "c1"],
        ),
    ],
)
def test_equal_elements_are_polled_in_heap_order(elements: list[str], order: list[str]) -> None:
    """As a JVM returned them: the last element replaces the first and sinks, but not below an equal one."""
    assert poll_all(queue_of(*elements)) == order


def test_the_iterator_follows_the_heap() -> None:
    assert list(queue_of("c", "b", "a")) == ["a", "c", "b"]


def test_the_least_element_is_polled_first_after_any_insertions() -> None:
    rng = random.Random(7)
    queue, held = JavaPriorityQueue[int](lambda a, b: a - b), list[int]()
    for _ in range(500):
        if held and rng.random() < 0.4:
            assert queue.peek() == min(held)
            held.remove(queue.pop())
        else:
            held.append(rng.randrange(50))
            queue.add(held[-1])
        assert sorted(queue) == sorted(held)
