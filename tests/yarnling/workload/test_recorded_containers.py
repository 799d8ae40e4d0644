"""Containers that ended are found from counts and lists; times in seconds here, ms there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from yarn.resource import Resource
from yarnling.workload.recorded_cluster import Level, ListedContainer
from yarnling.workload.recorded_containers import PollReading, RequestTimes, held_containers, listed_containers

SMALL, LARGE = Resource(1024, 1), Resource(4096, 1)
S = 1000


def levels(*counts: tuple[int, int], every_s: int = 10) -> list[Level]:
    """A level from each (second, containers beside the AM) on, which are small."""
    return [Level((at_s - every_s) * S, at_s * S, count + 1, 1024 * (count + 1), count + 1) for at_s, count in counts]


def listed(number: int, start_s: float, priority: int = 20) -> ListedContainer:
    return ListedContainer(1, number, SMALL, priority, round(start_s * S))


def held(
    counts: Sequence[Level], lists: Mapping[int, Sequence[ListedContainer]], *, last_s: int, is_batch: bool = True
) -> list[tuple[float, float, int | None]]:
    """(start, end, priority) of each container."""
    in_ms = {at_s * S: each for at_s, each in lists.items()}
    reading = PollReading(SMALL, [SMALL], 1024, 1, 0, is_batch)
    found = held_containers(counts, listed_containers(in_ms, 1), tuple(in_ms), last_s * S, reading)
    return [(each.start_ms / S, each.end_ms / S, each.priority) for each in found]


def test_the_example_of_the_module() -> None:
    """Two that are equally old: the list at the last poll shows which of them is still there."""
    lists = {10: [listed(2, 4), listed(3, 4)], 30: [listed(3, 4)]}
    assert held(levels((10, 2), (30, 1)), lists, last_s=40) == [(4, 25, 20), (4, 40, 20)]


def test_a_container_that_runs_for_long_is_told_from_those_beside_it() -> None:
    """Without lists the oldest of two would be the one that ended at 15 s."""
    lists = {10: [listed(2, 3), listed(3, 4)], 50: [listed(2, 3)]}
    assert held(levels((10, 2), (20, 1)), lists, last_s=60) == [(4, 15, 20), (3, 60, 20)]
    assert held(levels((10, 2), (20, 1)), {}, last_s=60) == [(5, 15, None), (5, 60, None)]


def test_where_one_begins_and_the_count_stays_another_one_ends() -> None:
    lists = {10: [listed(2, 4)], 30: [listed(3, 21)]}
    assert held(levels((10, 1)), lists, last_s=40) == [(4, 21, 20), (21, 40, 20)]


def test_what_no_list_shows_ends_before_what_the_next_list_shows() -> None:
    """Two at 10 s, one of them listed at 30 s: the other one ended when the count fell."""
    lists = {30: [listed(2, 2)]}
    assert held(levels((10, 2), (20, 1)), lists, last_s=40) == [(5, 15, 20), (2, 40, 20)]


def test_containers_of_no_list_have_the_priority_of_those_nearest_to_them() -> None:
    lists = {10: [listed(2, 4, priority=20)], 60: [listed(9, 55, priority=10)]}
    found = held(levels((10, 1), (20, 2), (30, 0), (50, 1)), lists, last_s=70)
    assert [(start, priority) for start, _, priority in found] == [(4, 20), (15, 20), (45, 10), (55, 10)]


def test_a_release_that_does_not_say_when_containers_began_has_no_lists_to_go_by() -> None:
    assert listed_containers({10_000: [listed(2, 0)]}, 5) == []


def test_sizes_that_no_list_shows_follow_from_the_memory() -> None:
    reading = PollReading(SMALL, [], 1024, 1, 0, True)
    before, after = Level(0, 10, 2, 2048, 2), Level(10, 20, 3, 2048 + 4096, 3)
    assert reading.size(before, after) == LARGE


def used_levels(*rows: tuple[int, int, int]) -> list[Level]:
    """A level from each (second, containers beside the AM, GB-seconds used by then) on, polls each 10 s."""
    return [
        Level((at_s - 10) * S, at_s * S, count + 1, 1024 * (count + 1), count + 1, None, gb_s * 1024 * S, at_s * S)
        for at_s, count, gb_s in rows
    ]


def test_what_was_used_between_two_polls_says_when_a_container_began_and_ended() -> None:
    """The AM has used 10 GB-seconds at 10 s and 30 at 30 s; the task began at 7 s and ended at 22 s."""
    ((start_s, end_s, _),) = held(used_levels((10, 1, 10 + 3), (30, 0, 30 + 15)), {}, last_s=40)
    assert (round(start_s), round(end_s)) == (7, 22)


def test_a_recording_that_began_later_does_not_know_when_the_first_began() -> None:
    counts = used_levels((10, 1, 500), (30, 0, 500 + 20 + 12))
    reading = PollReading(SMALL, [SMALL], 1024, 1, 0, True, 0, is_whole=False)
    (found,) = held_containers(counts, [], (), 40 * S, reading)
    assert (found.start_ms, found.end_ms) == (5 * S, 22 * S)


def pending_levels(*rows: tuple[int, int]) -> list[Level]:
    """A level from each (second, MB that it waits for) on."""
    return [Level((at_s - 10) * S, at_s * S, 2, 2048, 2, waits_mb) for at_s, waits_mb in rows]


def test_polls_that_saw_nothing_wanted_say_when_a_container_was_requested() -> None:
    """No container was wanted until 30 s, and something at 40 s: what began at 55 s was requested between them."""
    requests = RequestTimes(pending_levels((10, 1024), (20, 0), (40, 1024), (60, 0)))
    assert requests.asked_ms(55 * S) == 35 * S
    assert requests.asked_ms(15 * S) == 0, "it had been requested before the first poll that saw nothing wanted"
    assert requests.asked_ms(38 * S) == 37 * S, "no poll saw it wait"
