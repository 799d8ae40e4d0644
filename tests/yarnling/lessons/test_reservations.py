"""Lesson 21: the ends of reservations (mission cases F3 to F6, recorded in tests/scenarios/scripts/f*.txt)."""

from __future__ import annotations

import pytest

from yarnling.lessons.catalogue import find_lesson
from yarnling.simulation.account import Told

LESSON = find_lesson("reservations")


@pytest.mark.parametrize(
    ("case", "outcomes", "place"),
    [
        ("filled", "became the container", "n2"),
        ("dropped", "dropped", "n1"),
        ("moved", "moved to n1, became the container", "n1"),
        ("one-per-node", ", ", ""),
        ("looking", "dropped", "n1"),
        ("not-looking", "", ""),
        ("second", "", ""),
    ],
)
def test_the_end_of_each_reservation(case: str, outcomes: str, place: str) -> None:
    measured = LESSON.play(case).measured
    assert (measured["outcomes"], measured["place"]) == (outcomes, place)


def test_the_second_of_two_requests_gets_another_node_and_the_third_none() -> None:
    answer = LESSON.play("one-per-node").question.answer
    assert answer.startswith("n2 for bob-c2, still reserved at the end; n1 for cem-c2, still reserved at the end")
    assert "dan" not in answer


def test_a_dropped_reservation_does_not_leave_its_id_to_the_container() -> None:
    texts = [part.text for part in LESSON.play("dropped").parts if isinstance(part, Told) and part.is_decision]
    assert any(text.startswith("reserves bob-c2 (4096 MB) on n2") for text in texts)
    assert any(text.startswith("allocates bob-c3 (4096 MB) on n1") for text in texts)


def test_a_moved_reservation_takes_containers_of_the_lower_queue_only() -> None:
    """QueuePriorityContainerCandidateSelector with allow-move-reservation; recorded in preemption-901017.jsonl.gz."""
    texts = [part.text for part in LESSON.play("moved").parts if isinstance(part, Told) and part.is_decision]
    killed = [text for text in texts if text.startswith("preemption: kills")]
    assert len(killed) == 3
    assert all("kills dan-c" in text for text in killed)
