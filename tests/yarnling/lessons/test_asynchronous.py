"""Lesson 23: walks over all nodes against heartbeats of nodes."""

from __future__ import annotations

import pytest

from yarn.settings.release import RELEASES
from yarn.settings.scheduler import SCHEDULE_ASYNCHRONOUSLY
from yarnling.lessons.catalogue import find_lesson
from yarnling.lessons.chapters.asynchronous import ASYNCHRONOUSLY, INTERVAL_MS, WANTED, Placed, watched
from yarnling.lessons.chapters.asynchronous import set_up as stage_of


@pytest.mark.parametrize("nodes", [4, 8, 16])
def test_a_heartbeat_places_one_container_and_a_walk_one_on_each_node_and_the_first_again(nodes: int) -> None:
    """CapacityScheduler.schedule goes from a random node to the end, and from the first one up to it again."""
    measured = find_lesson("asynchronous").play(nodes).measured
    seconds = WANTED / nodes
    assert seconds - 1 / nodes <= int(measured["heartbeats_last_ms"]) / 1000 <= seconds
    walks = -(-WANTED // (nodes + 1))
    assert (walks - 1) * INTERVAL_MS <= int(measured["walks_last_ms"]) <= walks * INTERVAL_MS
    assert measured["walks_received_ms"] == 1000, "the AM's next call"


def test_a_walk_ends_where_it_has_started() -> None:
    placed = watched(stage_of(4)).placed
    first: list[Placed] = [each for each in placed if each.after_ms == placed[0].after_ms]
    assert len(first) == 5
    assert first[0].node == first[-1].node
    assert len({each.node for each in first}) == 4


def test_the_default_has_changed_with_release_3_5_0() -> None:
    assert SCHEDULE_ASYNCHRONOUSLY.key == ASYNCHRONOUSLY
    assert [name for name, release in RELEASES.items() if release.schedules_asynchronously] == ["3.5.0"]
