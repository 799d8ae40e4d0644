"""Lesson 19: how a guarantee comes back, and the limits of preemption (mission cases D4, E3, E5, E6).

The rules are recorded: tests/scenarios/scripts/d4-, e3-, e5-, e6- and b5-large-containers-minimum-30.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import pytest

from yarnling.lessons.catalogue import find_lesson
from yarnling.report.curves import Curves

NEVER = -1
Figures: TypeAlias = Callable[[str], dict[str, float | str]]


@pytest.fixture(scope="module")
def measured() -> Figures:
    """The figures of a case, which is run once."""
    lesson = find_lesson("churn")
    known: dict[str, dict[str, float | str]] = {}

    def of(case: str) -> dict[str, float | str]:
        if case not in known:
            known[case] = lesson.play(case).measured
        return known[case]

    return of


@pytest.mark.parametrize(
    ("case", "bob_gb", "killed"),
    [
        ("endless", 0, 0),
        ("churn", 20, 0),
        ("at-once", 20, 20),
        ("dead-zone", 18, 0),
        ("headroom", 5, 5),
        ("large-victims", 0, 0),
        ("large-request", 1, 7),
        ("inside", 0, 0),
        ("inside-on", 18, 18),
    ],
)
def test_the_outcome_of_each_case(measured: Figures, case: str, bob_gb: float, killed: int) -> None:
    found = measured(case)
    assert (found["bob_gb"], found["killed"]) == (bob_gb, killed)
    has_half = found["bob_gb"] == found["half_gb"]
    assert (found["reached_s"] != NEVER) is has_half


def test_with_the_defaults_one_container_is_taken_at_a_time_down_to_the_dead_zone() -> None:
    """0.2 of a round's 0.1 of 24 GB is one container, chosen again until it is killed; 1.1 x 12 GB are left alone."""
    story = find_lesson("churn").play("defaults")
    assert (story.measured["ann_gb"], story.measured["bob_gb"], story.measured["killed"]) == (13, 11, 11)
    (picture,) = [part for part in story.parts if isinstance(part, Curves)]
    ann = next(curve for curve in picture.curves if curve.name == "ann")
    uses = zip(picture.times_ms[1:], pairwise(ann.values), strict=True)
    falls = [at_ms for at_ms, (before, after) in uses if after < before]
    assert len(falls) == 11
    assert all(15_000 < later - sooner <= 25_000 for sooner, later in pairwise(falls))


def test_churn_is_faster_than_preemption_with_a_wait(measured: Figures) -> None:
    assert 0 < float(measured("churn")["reached_s"]) < 15 < float(measured("at-once")["reached_s"])
