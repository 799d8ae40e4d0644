"""All lessons, by their numbers."""

from __future__ import annotations

from yarn.errors import InvalidArgumentException
from yarn.suggestions import did_you_mean
from yarnling.lessons.chapters import (
    allocate,
    asked,
    asynchronous,
    churn,
    distribution,
    dominant,
    failure,
    headroom,
    heartbeat,
    labels,
    large,
    limits,
    locality,
    mapping,
    ordering,
    preemption,
    priorities,
    register,
    reservation,
    reservations,
    submit,
    user_limit,
    users,
)
from yarnling.lessons.scene.lesson import Lesson

LESSONS: tuple[Lesson, ...] = (
    register.LESSON,
    heartbeat.LESSON,
    submit.LESSON,
    allocate.LESSON,
    locality.LESSON,
    users.LESSON,
    reservation.LESSON,
    preemption.LESSON,
    failure.LESSON,
    distribution.LESSON,
    user_limit.LESSON,
    headroom.LESSON,
    ordering.LESSON,
    dominant.LESSON,
    labels.LESSON,
    mapping.LESSON,
    limits.LESSON,
    priorities.LESSON,
    churn.LESSON,
    large.LESSON,
    reservations.LESSON,
    asked.LESSON,
    asynchronous.LESSON,
)


def find_lesson(which: str) -> Lesson:
    """The lesson of that number or name. Raises InvalidArgumentException if there is none."""
    for lesson in LESSONS:
        if which in {str(lesson.number), lesson.name}:
            return lesson
    known = ", ".join(f"{lesson.number} ({lesson.name})" for lesson in LESSONS)
    nearest = did_you_mean(which, [lesson.name for lesson in LESSONS])
    raise InvalidArgumentException(f"unknown lesson {which!r}: {nearest}choose one of {known}")
