"""The lessons on sharing among queues and users: their figures are those of Hadoop's recordings and mission cases."""

from __future__ import annotations

import pytest

from yarnling.lessons.catalogue import find_lesson
from yarnling.lessons.chapters.user_limit import two_jobs
from yarnling.lessons.scene.story import Rows


@pytest.mark.slow
def test_the_story_of_1_tb() -> None:
    """Cases A1, A3 and A4: users end one container above 120 GB; 40 % is 400 GB; preemption by default is slow."""
    lesson = find_lesson("distribution")
    measured = lesson.play("off", 100).measured
    users = [measured[f"{name}_gb"] for name in ("sid", "hitesh", "jian", "zhijie", "xuan", "gupta", "mary", "sue")]
    assert users == [125, 125, 125, 125, 100, 0, 300, 100]
    assert (measured["development_gb"], measured["preempted"]) == (600, 0)
    assert measured["at-once_returned_s"] < measured["on_returned_s"] < measured["off_returned_s"]  # type: ignore[operator]
    assert lesson.play("off", 40).measured["development_gb"] == 400


@pytest.mark.slow
def test_the_story_of_1_tb_does_not_give_away_what_is_to_be_predicted() -> None:
    """The comparison has the variant that is told and that without preemption, no others."""
    lesson = find_lesson("distribution")
    for word in ("off", "at-once"):
        story = lesson.play(word, 20)
        tables = [part for part in story.parts if isinstance(part, Rows) and part.columns[0] == "preemption"]
        assert [row[0] for row in tables[0].rows] == list(dict.fromkeys(("off", word)))
        said = "".join(str(part) for part in story.parts)
        assert "sid ends one container above the limit (125 GB)" in said
        assert "hitesh gets 75 GB" in said


@pytest.mark.parametrize(
    ("users", "factor", "held", "limit"),
    [
        (1, 1.0, (100,), 100),
        (2, 1.0, (51, 49), 51),
        (3, 1.0, (35, 34, 31), 34),
        (5, 1.0, (31, 31, 31, 7, 0), 31),
        (3, 0.25, (26, 26, 26), 25),
    ],
)
def test_the_user_limit_is_the_formulas(users: int, factor: float, held: tuple[int, ...], limit: int) -> None:
    """Cases B2 and B3. The lesson's own computation is equal to the scheduler's."""
    measured = find_lesson("user-limit").play(users, factor).measured
    names = ("ann", "bob", "cem", "dan", "eve")[:users]
    assert tuple(measured[f"{name}_gb"] for name in names) == held
    assert measured["limit_gb"] == measured["scheduler_gb"] == limit
    assert measured["soon_limit_gb"] == measured["soon_scheduler_gb"]


def test_a_second_job_of_a_user_gets_nothing_under_fifo_and_half_under_fair() -> None:
    """FifoOrderingPolicy and FairOrderingPolicy, case B8."""
    assert (two_jobs("fifo"), two_jobs("fair")) == ((51, 0, 49), (26, 25, 49))


@pytest.mark.parametrize(
    ("scene", "factor", "minimum", "held", "limit", "preempted"),
    [
        ("1", 100.0, 30, (20,), 21, 0),
        ("2a", 100.0, 30, (1,), 3, 3),
        ("2a", 100.0, 100, (9,), 10, 10),
        ("2b", 100.0, 30, (10,), 11, 10),
        ("3", 100.0, 30, (5, 5, 2), 5, 12),
        ("3", 0.25, 30, (4, 4, 3), 3, 11),
    ],
)
def test_the_scenes_of_headroom_end_as_in_hadoop(
    scene: str, factor: float, minimum: int, held: tuple[int, ...], limit: int, preempted: int
) -> None:
    """Cases B4, B5 and B6."""
    measured = find_lesson("headroom").play(scene, factor, minimum).measured
    names = ("first",) if scene == "1" else ("second",) if scene[0] == "2" else ("bob", "cem", "dan")
    assert tuple(measured[f"{name}_gb"] for name in names) == held
    assert (measured["limit_gb"], measured["preempted"]) == (limit, preempted)


@pytest.mark.parametrize(("minimum", "flat_gb"), [(30, 3), (100, 10)])
def test_the_limit_is_flat_at_the_minimum_first(minimum: int, flat_gb: int) -> None:
    """Case B4: at 30 % of the queue, not at its capacity."""
    assert find_lesson("headroom").play("1", 100.0, minimum).measured["first_limit_gb"] == flat_gb


@pytest.mark.parametrize(
    ("priority", "policy", "order", "held_gb"),
    [
        (1, "priority-utilization", "AAA" + 8 * "B" + 5 * "A", (9, 16)),
        (0, "priority-utilization", "ABABBBBABBBBABBB", (5, 20)),
        (1, "utilization", "ABABBBBABBBBABBB", (5, 20)),
    ],
)
def test_a_queue_of_higher_priority_comes_first_up_to_its_guarantee(
    priority: int, policy: str, order: str, held_gb: tuple[int, int]
) -> None:
    """Case A6 and PriorityUtilizationQueueOrderingPolicy: above the guarantees priority counts again."""
    measured = find_lesson("priorities").play(priority, policy).measured
    assert (measured["order"], (measured["a_gb"], measured["b_gb"])) == (order, held_gb)
