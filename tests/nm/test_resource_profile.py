"""The profile of an emulated container: from stages and random numbers to its end and its usage."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from nm.core.emulation import Amount, Draw, EmulationStage, PlannedUsage, ResourceProfile
from yarn.resource import Resource

SIZE = Resource(1000, 2)
MB = 1 << 20


def drawn(*numbers: float) -> Draw:
    """Returns these numbers one after the other. Drawing more numbers is an error."""
    numbers_left: Iterator[float] = iter(numbers)
    return lambda: next(numbers_left)


def test_stages_follow_one_another_and_end_with_0() -> None:
    profile = ResourceProfile.draw((EmulationStage(100), EmulationStage(250)), SIZE, drawn())
    assert (profile.ends_after_ms, profile.exit_code) == (350, 0)


@pytest.mark.parametrize(("number", "ends_after_ms"), [(0.0, 70), (0.5, 100), (0.9999, 130)])
def test_jitter_is_added_or_subtracted(number: float, ends_after_ms: int) -> None:
    assert (
        ResourceProfile.draw((EmulationStage(100, jitter_ms=30),), SIZE, drawn(number)).ends_after_ms == ends_after_ms
    )


@pytest.mark.parametrize(("number", "end"), [(0.24, (100, 3)), (0.25, (300, 0))])
def test_a_container_may_exit_after_a_stage_with_a_probability(number: float, end: tuple[int, int]) -> None:
    stages = (EmulationStage(100, exit_code=3, exit_probability=0.25), EmulationStage(200))
    profile = ResourceProfile.draw(stages, SIZE, drawn(number))
    assert (profile.ends_after_ms, profile.exit_code) == end


def test_a_certain_exit_draws_no_random_number() -> None:
    profile = ResourceProfile.draw(
        (EmulationStage(100, exit_code=9, exit_probability=1.0), EmulationStage(200)), SIZE, drawn()
    )
    assert (profile.ends_after_ms, profile.exit_code) == (100, 9)


def test_a_stage_that_lasts_forever_ends_by_a_signal() -> None:
    profile = ResourceProfile.draw(
        (EmulationStage(100), EmulationStage(None, memory_first=Amount(7), memory_last=Amount(7))), SIZE, drawn()
    )
    assert profile.ends_after_ms is None
    assert profile.usage_at(50).memory_bytes == 0
    assert profile.usage_at(10_000_000).memory_bytes == 7 * MB


def test_memory_changes_linearly_and_cpu_time_adds_up() -> None:
    stages = (
        EmulationStage(1000, memory_first=Amount(100), memory_last=Amount(300), cpu=Amount(0.5)),
        EmulationStage(2000, memory_first=Amount(0.5, True), memory_last=Amount(0.5, True), cpu=Amount(1.0, True)),
    )
    profile = ResourceProfile.draw(stages, SIZE, drawn())
    assert profile.usage_at(0) == PlannedUsage(100 * MB, 0)
    assert profile.usage_at(500) == PlannedUsage(200 * MB, 250)
    # The second stage uses fractions of what the container was given: 1000 MB and 2 vcores.
    assert profile.usage_at(1500) == PlannedUsage(500 * MB, 500 + 1000)
    assert profile.usage_at(3000) == profile.usage_at(9999) == PlannedUsage(500 * MB, 500 + 4000)


def test_a_stage_of_length_0_is_skipped() -> None:
    profile = ResourceProfile.draw((EmulationStage(0, memory_first=Amount(5)), EmulationStage(0)), SIZE, drawn())
    assert (profile.ends_after_ms, profile.usage_at(0)) == (0, PlannedUsage(0, 0))


def test_the_same_draws_give_the_same_profile() -> None:
    stages = (
        EmulationStage(1000, jitter_ms=900, exit_code=1, exit_probability=0.5),
        EmulationStage(500, jitter_ms=500),
    )
    courses = {ResourceProfile.draw(stages, SIZE, random.Random(seed).random) for seed in (1, 1, 2)}
    assert len(courses) == 2
